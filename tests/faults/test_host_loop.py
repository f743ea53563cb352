# SPDX-License-Identifier: Apache-2.0
"""Planted faults of the native loop around host calls are found."""

from __future__ import annotations

import functools

import pytest

from ferryvm.engine import host_loop
from ferryvm.machine.control import Status
from ferryvm.machine.host_loop import PERFORMED

from .host_loop import FAULTS, LoopFault, code_of, outcomes

pytestmark = pytest.mark.skipif(
    not host_loop.is_possible(), reason="native code cannot call this Python"
)

_right = functools.cache(lambda: outcomes(code_of(None)))


def test_the_loop_performs_calls_of_its_rows_and_leaves_all_others() -> None:
    twice = ["HOST", "call", "HOST", "call", "HALT"]
    items = ["HOST", "call", "LAUNCH", "LAUNCH", "HOST", "call", "HALT"]
    assert _right() == [
        (Status.HALT, twice, 98, 0),
        *[(Status.HOST, ["HOST"], 100, 0)] * 4,
        (Status.HOST, ["HOST", "call", "HOST"], 99, 0),
        (PERFORMED, ["HOST", "call"], 99, 0),
        ("raised", ["HOST", "call"], 99, 1),
        (Status.HALT, items, 98, 0),
        (Status.LAUNCH, ["HOST", "call", "LAUNCH"], 99, 0),
    ]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_calls_find_the_fault(fault: LoopFault) -> None:
    assert outcomes(code_of(fault)) != _right(), fault.about
