# SPDX-License-Identifier: Apache-2.0
"""The number of primes below n, by the sieve of Eratosthenes with a byte for each number."""

import numpy as np


def work(n: int) -> int:
    """How many primes are below n."""
    composite = np.zeros(n, np.uint8)
    count = 0
    for i in range(2, n):
        if composite[i] == 0:
            count += 1
            j = i * i
            while j < n:  # as in the twin for Numba
                composite[j] = 1
                j += i
    return count
