# SPDX-License-Identifier: Apache-2.0
"""Planted faults of barriers are found by random kernels."""

from __future__ import annotations

import pytest

from ..tier import nightly
from .kernel import COMPILED, FAULTS, WITHOUT, KernelFault, is_found, search

CHEAP = ("item-without-references", "order-reversed", "divergence-unseen")


def test_nothing_is_found_without_a_fault() -> None:
    assert not any(is_found(None, number) for number in range(3))


@pytest.mark.nightly
@pytest.mark.parametrize("backend", COMPILED)
def test_nothing_is_found_in_compiled_code_without_a_fault(backend: str) -> None:
    assert not any(is_found(None, number, backend) for number in range(6))


@pytest.mark.nightly
def test_nothing_is_found_where_items_run_in_lanes_without_a_fault() -> None:
    assert not any(is_found(WITHOUT, number) for number in range(12))


@pytest.mark.parametrize(
    "fault",
    [one if one.name in CHEAP else nightly((one,)) for one in FAULTS],
    ids=lambda fault: f"{fault.name}-{fault.backend}",
)
def test_random_kernels_find_the_fault(fault: KernelFault) -> None:
    assert search(fault) is not None, fault.about
