# SPDX-License-Identifier: Apache-2.0
"""The n-th Fibonacci number by double recursion."""

from numba import njit


@njit
def work(n: int) -> int:
    if n < 2:
        return n
    return work(n - 1) + work(n - 2)
