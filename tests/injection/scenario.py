# SPDX-License-Identifier: Apache-2.0
"""What is done while calls fail: a command of `ferry`, with the files that it starts from."""

from __future__ import annotations

import dataclasses
import re
import shutil
from collections.abc import Callable
from pathlib import Path

SOURCE = """
(define total 0) (define i 0)
(while (< i 3000) (set! total (+ total i)) (set! i (+ i 1)))
(print! total)
"""
POLICY = """
interpreter = "threaded"
[profile]
loop_threshold = 50
[[rule]]
backends = [{ name = "llvm", background = false }]
"""
ANSWER = "4498500\n"


@dataclasses.dataclass(frozen=True)
class Scenario:
    """A command in a folder that `prepared` fills; paths are relative to it."""

    name: str
    arguments: tuple[str, ...]
    output: str = ANSWER
    """What it prints if it succeeds."""
    code: int = 0
    outputs: tuple[str, ...] = ()
    """Files that it writes: afterwards each is whole, old or new."""
    from_empty_cache: bool = False


SCENARIOS = {
    s.name: s
    for s in (
        Scenario("compile", ("compile", "p.skiff", "-o", "out.fvm"), "", outputs=("out.fvm",)),
        Scenario("load", ("run", "--backend", "reference", "short.fvm"), "7\n"),
        Scenario("run", ("run", "--backend", "threaded", "p.skiff")),
        Scenario(
            "save",
            ("run", "--backend", "switch", "--fuel", "5000", "--save", "out.ferry", "p.fvm"),
            "",
            outputs=("out.ferry",),
        ),
        Scenario("resume", ("resume", "--backend", "threaded", "old.ferry")),
        Scenario("cache read", ("run", "--policy", "llvm.toml", "p.fvm")),
        Scenario("cache write", ("run", "--policy", "llvm.toml", "p.fvm"), from_empty_cache=True),
        Scenario(
            "fuzz",
            ("fuzz", "--backends", "switch", "--against", "threaded", "--programs=2", "--jobs=1"),
            "2 programs",
        ),
    )
}


def is_expected(scenario: Scenario, output: str) -> bool:
    """Whether this is what the command prints if it succeeds."""
    if scenario.name == "fuzz":
        return re.search(scenario.output, output) is not None
    return output == scenario.output


def prepared(ferry: Callable[..., int], folder: Path) -> None:
    """Fill a folder with what scenarios start from; `ferry` runs a command in it."""
    (folder / "p.skiff").write_text(SOURCE)
    (folder / "short.skiff").write_text("(print! 7)")
    (folder / "llvm.toml").write_text(POLICY)
    for name in ("p", "short"):
        assert ferry("compile", f"{name}.skiff", "-o", f"{name}.fvm") == 0
    save = ("--fuel", "4000", "--save", "old.ferry")
    assert ferry("run", "--backend", "switch", *save, "p.fvm") == 0
    shutil.copy(folder / "p.fvm", folder / "out.fvm")
    shutil.copy(folder / "old.ferry", folder / "out.ferry")
