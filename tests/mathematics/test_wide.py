# SPDX-License-Identifier: Apache-2.0
"""The comparison with functions of binary128 finds wrong results of f64."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("gmpy2", reason="it is the reference of the comparison")

from .wide import worst  # it takes gmpy2

pytestmark = pytest.mark.nightly  # it needs a C compiler

X = np.array([0.5, 1.0, 2.0, 0.0, 800.0, math.nan])
EXACT = np.array([math.sqrt(2.0), 2.0, 4.0, 1.0, 2.0**800, math.nan])
"""2 to the power of each: all nearest."""


def test_nearest_results_have_at_most_half_a_unit() -> None:
    found = worst("exp2", EXACT, X)
    assert found.error < 0.5
    assert found.wrong == 0


@pytest.mark.parametrize(
    ("place", "result", "error"),
    [
        (2, math.nextafter(4.0, 5.0), 1.0),
        (1, 2.0 - 3 * math.ulp(1.0), 1.5),
        (4, math.inf, 2.0**276),
        (3, math.nan, math.inf),
        (5, 1.0, math.inf),
    ],
)
def test_wrong_result_is_found(place: int, result: float, error: float) -> None:
    results = EXACT.copy()
    results[place] = result
    found = worst("exp2", results, X)
    assert found.error == pytest.approx(error)
    np.testing.assert_array_equal(found.operands, (X[place],))
    assert found.wrong == 1


def test_pairs_have_their_second_operand() -> None:
    y = np.array([2.0, 3.0])
    found = worst("pow", np.array([9.0, math.nextafter(27.0, 28.0)]), np.array([3.0, 3.0]), y)
    assert (found.error, found.operands) == (1.0, (3.0, 3.0))
