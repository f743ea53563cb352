# SPDX-License-Identifier: Apache-2.0
"""Planted faults of parallel regions are found on compilers other than llvm, too: by programs that
are left in their middle, against the reference."""

from __future__ import annotations

import shutil
from unittest import mock

import pytest

from ferryvm_backends.llvm.group_store import GroupStores

from ..tier import nightly
from . import forced_exit
from .forced_exit import differences
from .llvm.test_group_faults import FAULTS
from .llvm.test_groups import ENDED, FIRST, NESTED
from .llvm.test_item_loops import TILES

HAS_CC = any(shutil.which(name) for name in ("cc", "gcc", "clang"))
COMPILED = {"cc": forced_exit.cc, "vliw": forced_exit.vliw}
WHOLE = 9999
"""A step behind all safepoints: the program is left at the first one, and not at all."""
PROGRAMS = {
    "vliw": ((FIRST, 2), (NESTED, WHOLE), (TILES.format(first=1), WHOLE)),
    "cc": ((FIRST, 2), (NESTED, WHOLE), (TILES.format(first=1), WHOLE), (ENDED, 9)),
}
"""The programs, each with the step from one safepoint to the next."""
OTHERS = {
    ("context-array-shared", "vliw"): "the program is simulated for minutes, its loop being longer",
    ("row-not-counted", "vliw"): "checks of all rows are made in front of the first one",
    ("row-not-counted", "cc"): "it makes no checks in front of rows",
    ("item-on-other-side", "vliw"): "it divides no loops at numbers of items",
    ("item-on-other-side", "cc"): "it divides no loops at numbers of items",
    ("exchanged-unstored", "cc"): "it stores all that lives across a barrier",
    ("divergence-unnoticed", "vliw"): "items of the program that shows it read what others write",
}
"""Pairs that are left out, and the reasons."""
SHARED = [name for name, fault in FAULTS.items() if fault[0] is not GroupStores]
PAIRS = [
    (name, backend) if (name, backend) == (SHARED[0], "cc") else nightly((name, backend))
    for name in SHARED
    for backend in COMPILED
    if (name, backend) not in OTHERS
]


def is_found(name: str, backend: str) -> bool:
    """True if a program shows the fault, or does not end because of it."""
    target, attribute, planted = FAULTS[name]
    with mock.patch.object(target, attribute, planted):
        for text, step in PROGRAMS[backend]:
            try:
                if any(True for _ in differences(text, step, 0.7, COMPILED[backend])):
                    return True
            except (AttributeError, NameError, TypeError):  # no fault was planted
                raise
            except Exception:  # noqa: BLE001 - whatever a fault leads to
                return True
    return False


@pytest.mark.nightly
@pytest.mark.parametrize("backend", COMPILED)
def test_no_program_differs_without_a_fault(backend: str) -> None:
    if backend == "cc" and not HAS_CC:
        pytest.skip("there is no C compiler here")
    for text, step in PROGRAMS[backend]:
        assert [*differences(text, step, 0.7, COMPILED[backend])] == []


@pytest.mark.parametrize(("name", "backend"), PAIRS)
def test_a_planted_fault_is_found(name: str, backend: str) -> None:
    if backend == "cc" and not HAS_CC:
        pytest.skip("there is no C compiler here")
    assert is_found(name, backend)
