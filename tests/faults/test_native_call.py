# SPDX-License-Identifier: Apache-2.0
"""Planted faults of calls from Python are found."""

from __future__ import annotations

import pytest

from ferryvm.engine import built_in

from .native_call import FAULTS, CallFault, planted

pytestmark = pytest.mark.skipif(
    built_in.problem() is not None, reason=f"no built-in functions: {built_in.problem()}"
)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_calls_find_the_fault(fault: CallFault) -> None:
    assert not fault.is_wrong()
    with planted(fault):
        assert fault.is_wrong(), fault.about
