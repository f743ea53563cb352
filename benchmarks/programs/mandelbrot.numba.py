# SPDX-License-Identifier: Apache-2.0
"""The sum of the iteration counts over a square of n x n points of the Mandelbrot set."""

from numba import njit


@njit
def work(n: int, limit: int) -> int:
    total = 0
    for row in range(n):
        ci = row * 2.0 / n - 1.0
        for column in range(n):
            cr = column * 3.0 / n - 2.0
            zr = zi = rr = ii = 0.0
            count = 0
            while count < limit and rr + ii <= 4.0:
                zi = 2.0 * zr * zi + ci
                zr = rr - ii + cr
                rr = zr * zr
                ii = zi * zi
                count += 1
            total += count
    return total
