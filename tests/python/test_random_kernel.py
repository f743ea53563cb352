# SPDX-License-Identifier: Apache-2.0
"""Random kernels against CPython."""

from __future__ import annotations

import numpy as np
import pytest

from ferryvm import UnsupportedError
from ferryvm.testing import check_kernel

from ..tier import sample
from .random_kernel import GROUP, random_kernel


@pytest.mark.parametrize("first", sample(range(0, 400, 10), 1))
def test_random_kernels_are_those_of_cpython(first: int) -> None:
    refused = 0
    for seed in range(first, first + 10):
        kernel, text = random_kernel(seed)
        arguments = np.zeros((8, 3)), np.array([0.5, 1, 2, 3]), np.array([1, 2]), seed % 4
        try:
            check_kernel(kernel, 8, *arguments, group=GROUP, backends=["switch"], races=first >= 10)
        except UnsupportedError as error:
            if "may wait here with variables of different types" not in str(error):
                raise AssertionError(text) from error
            refused += 1
    assert refused < 5
