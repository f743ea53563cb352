# SPDX-License-Identifier: Apache-2.0
"""Planted faults of suspended items are found by random programs."""

from __future__ import annotations

import pytest

from .launch import FAULTS, LaunchFault, search


def test_nothing_is_found_without_a_fault() -> None:
    assert search(None, 10) is None


@pytest.mark.rotate("fault", most=4)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_random_launches_find_the_fault(fault: LaunchFault) -> None:
    assert search(fault) is not None, fault.about
