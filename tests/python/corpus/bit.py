# SPDX-License-Identifier: Apache-2.0
"""Functions of numbers and their bits."""

from __future__ import annotations

import math

import numpy as np

from .case import case


@case((360,), (97,), (1,))
def prime_factors(n):
    factors = []
    p = 2
    while p * p <= n:
        while n % p == 0:
            factors.append(p)
            n //= p
        p += 1
    if n > 1:
        factors.append(n)
    return factors


@case((30,), (2,))
def sieve(n):
    is_prime = np.ones(n + 1, dtype=bool)
    is_prime[0] = is_prime[1] = False
    for i in range(2, int(n**0.5) + 1):
        if is_prime[i]:
            for j in range(i * i, n + 1, 1):
                if j % i == 0:
                    is_prime[j] = False
    return sum(1 for flag in is_prime if flag)


@case((36,), (1,))
def totient(n):
    result, p = n, 2
    while p * p <= n:
        if n % p == 0:
            while n % p == 0:
                n //= p
            result -= result // p
        p += 1
    if n > 1:
        result -= result // n
    return result


@case((3, 11), (2, 4), (10, 17))
def modular_inverse(a, m):
    if math.gcd(a, m) != 1:
        raise ValueError("no inverse exists")
    return pow(a, -1, m)


@case((0,), (255,), (2**62 + 5,))
def count_bits(n):
    count = 0
    while n:
        n &= n - 1
        count += 1
    return count


@case((6,), (0,), (-8,))
def lowest_bit(n):
    return n & -n


@case((13,), (0,))
def gray_code(n):
    code = n ^ (n >> 1)
    back, rest = code, code >> 1
    while rest:
        back ^= rest
        rest >>= 1
    return code, back == n


@case((11, 4), (1, 8))
def reversed_bits(n, width):
    result = 0
    for i in range(width):
        if n >> i & 1:
            result |= 1 << (width - 1 - i)
    return result


@case((64,), (63,), (0,))
def is_power_of_two(n):
    return n > 0 and n & (n - 1) == 0


@case((10,), (1,))
def is_happy(n):
    slow, fast = n, n
    while True:
        slow = square_digits(slow)
        fast = square_digits(square_digits(fast))
        if slow == fast:
            return slow == 1


def square_digits(n):
    total = 0
    while n > 0:
        n, d = divmod(n, 10)
        total += d * d
    return total


@case((7,), (0,))
def catalan(n):
    return math.comb(2 * n, n) // (n + 1)


@case((10,), (90,), (100,))
def fibonacci_iterative(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


@case((355, 113), (7, -2))
def continued_fraction(a, b):
    terms = []
    while b:
        q, r = divmod(a, b)
        terms.append(q)
        a, b = b, r
    return terms
