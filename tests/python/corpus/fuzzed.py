# SPDX-License-Identifier: Apache-2.0
"""Functions that `ferry fuzz --kind python` found to go wrong."""

from __future__ import annotations

import numpy as np

from .case import case


@case((np.array([2]), 0), (np.array([2]), 2))
def call_raises_in_try(xs, n):
    def inverse(m):
        return divmod(10, m)

    try:
        pair = inverse(n)
    except ZeroDivisionError:
        pair = 0, -1
    finally:
        xs[0] = 7
    try:
        divmod(n, 0)
    except ArithmeticError:
        xs[0] += pair[0]
    return pair


@case((np.zeros((0, 2)), 0), (np.zeros((2, 2)), 0), (np.zeros((2, 2)), 2))
def length_after_division(rows, n):
    rows[1 % n, len(rows[0]) - 1] += 1.0
    return 1 % n + len(rows[0])
