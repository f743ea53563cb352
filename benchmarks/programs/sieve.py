# SPDX-License-Identifier: Apache-2.0
"""The number of primes below n, by the sieve of Eratosthenes with a byte for each number."""


def work(n: int) -> int:
    """How many primes are below n."""
    composite = bytearray(n)
    count = 0
    for i in range(2, n):
        if composite[i] == 0:
            count += 1
            # An element at a time as in every other twin; a slice assignment would measure C.
            for j in range(i * i, n, i):
                composite[j] = 1
    return count
