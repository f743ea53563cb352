# SPDX-License-Identifier: Apache-2.0
"""Kernels in Python against NumPy, and against CPython."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import ferryvm
from ferryvm.testing import check_kernel

from ..tier import nightly
from .corpus_kernel import SAMPLES, Sample


@pytest.mark.parametrize(
    "backend", [nightly(each) for each in ("llvm", "vliw", "opencl", "reference", "threaded")]
)
@pytest.mark.parametrize("make", SAMPLES, ids=lambda make: make.__name__)
def test_kernels_compute_what_numpy_does(make: Callable[[], Sample], backend: str) -> None:
    of = make()
    ferryvm.launch(of.kernel, of.n, *of.arguments, group=of.group, backend=backend)
    found = of.arguments[of.out]
    if of.is_exact:
        assert np.array_equal(found, of.wanted)
    else:
        assert np.allclose(found, of.wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.rotate("make", most=5)
@pytest.mark.parametrize("make", SAMPLES, ids=lambda make: make.__name__)
def test_kernels_have_the_bits_of_cpython_and_the_values_of_numpy(
    make: Callable[[], Sample],
) -> None:
    of = make()
    after = check_kernel(
        of.kernel, of.n, *of.arguments, group=of.group, backends=["switch"], races=False
    )
    assert np.allclose(after[of.out], of.wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.nightly
@pytest.mark.parametrize("make", SAMPLES, ids=lambda make: make.__name__)
def test_kernels_have_no_races(make: Callable[[], Sample]) -> None:
    of = make()
    ferryvm.launch(of.kernel, of.n, *of.arguments, group=of.group, check="independence")
