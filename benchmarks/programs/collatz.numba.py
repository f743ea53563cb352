# SPDX-License-Identifier: Apache-2.0
"""The number below n whose Collatz chain is longest (the first one of them)."""

from numba import njit


@njit
def work(n: int) -> int:
    best = longest = 0
    for i in range(1, n):
        value, steps = i, 1
        while value != 1:
            value = value >> 1 if value & 1 == 0 else value * 3 + 1
            steps += 1
        if steps > longest:
            longest = steps
            best = i
    return best
