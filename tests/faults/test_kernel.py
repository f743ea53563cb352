# SPDX-License-Identifier: Apache-2.0
"""Planted faults of barriers are found by random kernels."""

from __future__ import annotations

import pytest

from ..tier import nightly
from .kernel import FAULTS, KernelFault, is_found, search

CHEAP = ("item-without-references", "order-reversed", "divergence-unseen")


def test_nothing_is_found_without_a_fault() -> None:
    assert not any(is_found(None, number) for number in range(3))


@pytest.mark.nightly
def test_nothing_is_found_in_native_code_without_a_fault() -> None:
    assert not any(is_found(None, number, "llvm") for number in range(6))


@pytest.mark.parametrize(
    "fault",
    [one if one.name in CHEAP else nightly((one,)) for one in FAULTS],
    ids=lambda fault: fault.name,
)
def test_random_kernels_find_the_fault(fault: KernelFault) -> None:
    assert search(fault) is not None, fault.about
