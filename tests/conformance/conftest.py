# SPDX-License-Identifier: Apache-2.0
"""Which cases of the suite are in the default tier.

Every case is there, on most backends, in a part of its manners, by rotation: the first case in its
first manner, the next one in its second, and so on. All of them are run every night.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import pytest

from ferryvm.testing.pytest_plugin import Check

from ..quick import QUICK
from ..tier import NIGHTLY

BACKENDS = ("llvm", "opencl", "reference", "switch", "threaded", "vliw")
"""Those of the tree; other backends in tests run all that they are given."""

PARTS = 8
"""Of how many manners of a case the default tier has one."""

DEEP = {"call/deep/plain": ("opencl", "threaded")}
"""Cases that the default tier has on some backends only, since they take seconds on others. All of
them have as many frames in `call/overflow`; tests/engine/test_recursion.py goes deeper with llvm
and comes back; what the reference does is what is expected of the others."""


COSTLY = (
    "call/results-in-a-loop/cuts",
    "exception/nested-loops/cuts",
    "exception/ten-frames/cuts",
)
"""What takes seconds on some backends: the other manners of these cases take turns without it."""


GOLDEN = ("rotated", "together")
"""Groups of golden cases, which all backends have but `reference`."""

SHARES = {
    "reference": (5, 4),
    "switch": (2, 1),
    "threaded": (2, 1),
    "opencl": (7, 4),
    "vliw": (7, 4),
}
"""Of how many cases, and of how many batches of golden cases, a backend has one in the default
tier, if not all. The first makes what is expected of the others, and is compared with itself: what
is stated by hand is compared with it for every backend. The next two are interpreters of the same
handlers, and take turns. The others take long to build a program, and take turns: each second batch
of golden cases is on one of them."""

OFTEN = {"idiom": 2, "fuel": 3, "entry": 3}
"""Of how many cases of a group a backend has at least one: idioms are made of what compilers got
wrong, the others have few cases."""

WELL = 8
"""Of how many cases in a row of `PARTS` LLVM optimises those of one row: its passes take half the
time of a case, and are tested by tests/backends/llvm."""

FIRST = {"threaded": (1, 0), "opencl": (1, 3), "vliw": (2, 2)}
"""The first case and the first batch of golden cases that a backend has, if not the first of all."""


CASE = "ferry_case"
"""The parameter of the suite's test."""


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Mark what is not in the default tier; where that alone is to run, make no tests of the rest,
    of which there are five times as many."""
    if CASE not in metafunc.fixturenames:
        return
    parametrize = metafunc.parametrize
    is_default = metafunc.config.getoption("markexpr") == f"not {NIGHTLY}"

    def sorted_into_tiers(name: str, checks: Sequence[Check], ids: Sequence[str]) -> None:
        nightly = _nightly(checks)
        parametrize(
            name,
            [
                pytest.param(check, id=text, marks=pytest.mark.nightly if place in nightly else ())
                for place, (check, text) in enumerate(zip(checks, ids, strict=True))
                if not (is_default and place in nightly)
            ],
        )

    metafunc.parametrize = sorted_into_tiers  # type: ignore[method-assign] # the suite calls it


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have llvm compile most cases quickly."""
    for item in items:
        check = item.callspec.params.get(CASE) if hasattr(item, "callspec") else None
        if check and (check.backend.name, check.item.label) in _quick:
            item.stash[QUICK] = True


_quick: set[tuple[str, str]] = set()
"""Backend and label of the cases that are compiled quickly in the default tier."""


def _nightly(checks: Iterable[Check]) -> set[int]:
    """The places of those that are not in the default tier."""
    found: set[int] = set()
    cases: defaultdict[tuple[str, str, str], list[tuple[int, Check]]] = defaultdict(list)
    for place, check in enumerate(checks):
        if check.backend.name in BACKENDS:
            if check.item.label in COSTLY:
                found.add(place)
                continue
            cases[check.backend.name, check.item.group, check.item.name].append((place, check))
            if check.backend.name not in DEEP.get(check.item.label, BACKENDS):
                found.add(place)
    passed: Counter[tuple[str, bool]] = Counter()
    for (backend, group, _), manners in cases.items():
        is_golden = group in GOLDEN
        share = min(SHARES.get(backend, (1, 1))[is_golden], OFTEN.get(group, PARTS))
        # A case with few manners has one of them all the same.
        parts = min(PARTS, len(manners))
        # All backends have a case in the same manner, so that what is expected of them is computed
        # once. A share has several cases in sequence where each third one, say, would always be in
        # the same of three manners.
        number = sum(passed[backend, golden] for golden in (False, True))
        turn = (
            passed[backend, is_golden] // math.gcd(parts, share)
            + FIRST.get(backend, (0, 0))[is_golden]
        )
        passed[backend, is_golden] += 1
        for which, (place, check) in enumerate(manners):
            if turn % share or (number + which) % parts:
                found.add(place)
            elif backend == "llvm" and number // parts % WELL:
                _quick.add((backend, check.item.label))
    return found
