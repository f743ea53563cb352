# SPDX-License-Identifier: Apache-2.0
"""The triple nested loop with a multiplicative mix inside; NumPy's int64 wraps modulo 2^64."""

import numpy as np


def work(nx: int, ny: int, nz: int) -> int:
    """The mix of all (x, y, z)."""
    total = np.int64(0)
    for x in range(nx):
        for y in range(ny):
            for z in range(nz):
                total = total * 31 + (x ^ y ^ z)
    return int(total)
