# SPDX-License-Identifier: Apache-2.0
"""The triple nested loop with a multiplicative mix inside, modulo 2^64."""


def work(nx: int, ny: int, nz: int) -> int:
    """The mix of all (x, y, z), as a signed 64-bit integer."""
    mask = (1 << 64) - 1
    total = 0
    for x in range(nx):
        for y in range(ny):
            for z in range(nz):
                total = (total * 31 + (x ^ y ^ z)) & mask
    return total - (1 << 64) if total >> 63 else total
