# SPDX-License-Identifier: Apache-2.0
"""Parallel regions that count instructions stop in the middle of a group where the reference
does."""

from __future__ import annotations

import sys
from unittest import mock

import pytest

from ferryvm.backend import Compiler
from ferryvm.ir.group import launch
from ferryvm.ir.group.item_loop import ItemLoop
from ferryvm.ir.group.launch import Launch
from ferryvm_backends.llvm import BACKEND as LLVM
from ferryvm_backends.vliw import BACKEND as VLIW

from ..faults.compilers.search import CC
from ..tier import nightly
from .forced_exit import miscounts
from .llvm.test_groups import EARLY, ENDED, FIRST, TEXTS
from .test_group_exits import HAS_CC

COMPILERS = ("llvm", "cc", "vliw")
CASES = [
    (name, backend) if (TEXTS[name], backend) == (FIRST, "llvm") else nightly((name, backend))
    for name in TEXTS
    for backend in COMPILERS
    if backend != "vliw" or TEXTS[name] not in (EARLY, ENDED)
]


def compiler(name: str) -> Compiler:
    """The compiler of a name."""
    if name == "cc":
        if not HAS_CC:
            pytest.skip("there is no C compiler here")
        sys.path.append(str(CC))
        from ferryvm_cc.backend import CcBackend

        return CcBackend()
    return {"llvm": LLVM, "vliw": VLIW}[name]


@pytest.mark.parametrize(("name", "backend"), CASES)
def test_fuel_ends_inside_a_group_at_the_instruction_of_the_reference(
    name: str, backend: str
) -> None:
    step = 23 if backend == "llvm" and TEXTS[name] is FIRST else 7
    assert [*miscounts(TEXTS[name], compiler(backend), step)] == []


FAULTS: dict[str, tuple[object, str, object]] = {
    "launch-test-unpaid": (ItemLoop, "_pay_test", lambda self: None),
    "paid-in-front-of-barriers": (launch, "_pay_behind", lambda *_: None),
    "item-begun-too-early": (Launch, "item_pc", -1),
}


@pytest.mark.nightly
@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_of_counting_is_found(name: str) -> None:
    target, attribute, planted = FAULTS[name]
    with mock.patch.object(target, attribute, planted):
        assert any(True for _ in miscounts(TEXTS["a first iteration with a side effect"], LLVM))
