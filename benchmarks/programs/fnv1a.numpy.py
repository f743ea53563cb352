# SPDX-License-Identifier: Apache-2.0
"""The 32-bit FNV-1a hash of n bytes from a linear congruential generator."""

import numpy as np


def work(n: int) -> int:
    """The hash, from 0 to 2^32 - 1."""
    data = np.zeros(n, np.uint8)
    state = 1
    for i in range(n):
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        data[i] = state >> 24
    hash_ = 2166136261
    for byte in data:
        hash_ = ((hash_ ^ int(byte)) * 16777619) & 0xFFFFFFFF
    return hash_
