# SPDX-License-Identifier: Apache-2.0
"""The goals for programs with references, held to what a run found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from benchmarks.references.contender import SKIFF
from benchmarks.references.speed import Row
from benchmarks.report import Target

OVER_LUA = OVER_CPYTHON = 3.0
"""Times that `threaded` is to be as fast."""

NOT_MEASURED = (
    ("scalar programs with arrays over vectors (Skiff has no vectors any more)", 1.01, "x"),
    ("opencl: bytes copied for a second run over 2 arrays of 64 MiB (`benchmarks opencl`)",
     0, " bytes"),
)  # fmt: skip
"""Goals that this command does not measure, with the reason."""


def goals(
    rows: Iterable[Row],
    trees: Mapping[str, Any],
    arrays: Mapping[str, Any],
    collections: Mapping[str, Any],
    passing: Mapping[str, Any],
) -> list[Target]:
    """All goals; a mapping is empty where its part did not take place."""
    found = []
    for row in rows:
        name, twin = row.twin.name, row.twin
        found.append(
            Target(f"{name}: llvm over gcc", row.over_gcc("llvm"), twin.goal, is_upper=True)
        )
        of_skiff = row.over_gcc("llvm" + SKIFF)
        found.append(Target(f"{name} in Skiff: llvm over gcc", of_skiff, twin.goal, is_upper=True))
        if twin.has_structs:
            lua, cpython = row.ratio("lua", "threaded"), row.ratio("cpython", "threaded")
            found.append(Target(f"{name}: Lua 5.4 over threaded", lua, OVER_LUA))
            found.append(Target(f"{name}: CPython over threaded", cpython, OVER_CPYTHON))
    added = trees["added"] / trees["live"] if trees else None
    found.append(Target("trees: memory over live data", added, 3.0, is_upper=True))
    growth = arrays["most"] / arrays["first"] if arrays else None
    found.append(Target("arrays: memory at the end over the first", growth, 1.1, is_upper=True))
    speed = collections["bytes_per_second"] / 1e9 if collections else None
    found.append(Target("collections: marked a second", speed, 1.0, unit=" GB"))
    pause = 1e3 * collections["pause"] if collections else None
    found.append(Target("collections: pause for 100 MB", pause, 150.0, is_upper=True, unit=" ms"))
    passed = 1e6 * passing["slowest"] if passing else None
    found.append(
        Target("1 GiB NumPy array into a call and out", passed, 20.0, is_upper=True, unit=" us")
    )
    found += [
        Target(name, None, bound, is_upper=True, unit=unit) for name, bound, unit in NOT_MEASURED
    ]
    return found
