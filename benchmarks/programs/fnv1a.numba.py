# SPDX-License-Identifier: Apache-2.0
"""The 32-bit FNV-1a hash of n bytes from a linear congruential generator."""

import numpy as np
from numba import njit


@njit
def work(n: int) -> int:
    data = np.empty(n, np.uint8)
    state = np.uint32(1)
    for i in range(n):
        state = np.uint32(state * np.uint32(1664525) + np.uint32(1013904223))
        data[i] = state >> np.uint32(24)
    hash_ = np.uint32(2166136261)
    for i in range(n):
        hash_ = np.uint32((hash_ ^ data[i]) * np.uint32(16777619))
    return np.int64(hash_)
