# SPDX-License-Identifier: Apache-2.0
"""Planted faults of launches whose items are work-items are found by the cases of `test_items`."""

from __future__ import annotations

from unittest import mock

import pytest

from ferryvm import Engine
from ferryvm.backend import BackendError
from ferryvm_backends.opencl import OpenClBackend
from ferryvm_backends.opencl.device import find

from .item_fault import FAULTS, ItemFault
from .test_items import CASES, make_small, outcome, program, started

_CASES = ("a map", "items that print", "items that recur deeply", "a trap in the middle")


def is_found(fault: ItemFault) -> bool:
    """True if one of the cases does not end as the loop in order."""
    for name in _CASES:
        expected = outcome(Engine("threaded").start(program(CASES[name])))[:2]
        for wraps in (True, False):
            with mock.patch.object(*fault.patch):
                try:
                    found = outcome(started(OpenClBackend(wraps, "cpu"), CASES[name]))[:2]
                except Exception:  # noqa: BLE001 - whatever a fault leads to
                    return True
            if found != expected:
                return True
    return False


@pytest.mark.nightly
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_cases_find_the_fault(fault: ItemFault, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        find("cpu")
    except BackendError as error:
        pytest.skip(str(error))
    make_small(monkeypatch)
    assert is_found(fault), fault.about
