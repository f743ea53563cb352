# SPDX-License-Identifier: Apache-2.0
"""Multiplies two n x n matrices again and again; each product depends on the one before."""

import numpy as np
import numpy.typing as npt
from numba import njit

Array = npt.NDArray[np.float64]


@njit
def multiply(n: int, a: Array, b: Array, c: Array) -> None:
    for i in range(n):
        for j in range(n):
            total = 0.0
            for k in range(n):
                total = total + a[i * n + k] * b[k * n + j]
            c[i * n + j] = total


@njit
def work(n: int, times: int) -> float:
    size = n * n
    a, b, c = np.empty(size), np.empty(size), np.zeros(size)
    for i in range(size):
        a[i] = (i % 13) / 7.0
        b[i] = (i % 11) / 3.0 - 1.0
    for _ in range(times):
        multiply(n, a, b, c)
        a[0] = c[0] * 0.001
    total = 0.0
    for i in range(size):
        total = total + c[i]
    return total
