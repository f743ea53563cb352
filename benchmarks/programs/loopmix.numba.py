# SPDX-License-Identifier: Apache-2.0
"""The triple nested loop with a multiplicative mix inside; Numba's int64 wraps modulo 2^64."""

from numba import njit


@njit
def work(nx: int, ny: int, nz: int) -> int:
    total = 0
    for x in range(nx):
        for y in range(ny):
            for z in range(nz):
                total = total * 31 + (x ^ y ^ z)
    return total
