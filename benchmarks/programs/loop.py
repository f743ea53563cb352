# SPDX-License-Identifier: Apache-2.0
"""Counts the iterations of a triple nested loop."""


def work(nx: int, ny: int, nz: int) -> int:
    """`nx * ny * nz`, one at a time."""
    total = 0
    for _x in range(nx):
        for _y in range(ny):
            for _z in range(nz):
                total = total + 1
    return total
