# SPDX-License-Identifier: Apache-2.0
"""Counts the iterations of a triple nested loop."""

from numba import njit


@njit
def work(nx: int, ny: int, nz: int) -> int:
    total = 0
    for _x in range(nx):
        for _y in range(ny):
            for _z in range(nz):
                total = total + 1
    return total
