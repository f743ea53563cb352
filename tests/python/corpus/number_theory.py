# SPDX-License-Identifier: Apache-2.0
"""Functions of number theory."""

from __future__ import annotations

from .case import case


@case((91, 35), (0, 0), (-12, 18), (1 << 62, 6))
def gcd(a, b):
    while b:
        a, b = b, a % b
    return abs(a)


@case((240, 46), (-7, 5))
def extended_gcd(a, b):
    s, last_s = 0, 1
    t, last_t = 1, 0
    while b != 0:
        q = a // b
        a, b = b, a - q * b
        last_s, s = s, last_s - q * s
        last_t, t = t, last_t - q * t
    return a, last_s, last_t


@case((97,), (1,), (91,), (2,))
def is_prime(n):
    if n < 2:
        return False
    d = 2
    while d * d <= n:
        if n % d == 0:
            return False
        d += 1
    return True


@case((20,), (0,))
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


@case((20,), (25,), (-1,))
def factorial(n):
    if n < 0:
        raise ValueError("factorial() not defined for negative values")
    result = 1
    for i in range(2, n + 1):
        result *= i
    return result


@case((27,), (1,))
def collatz(n):
    steps = 0
    while n != 1:
        n = 3 * n + 1 if n % 2 else n // 2
        steps += 1
    return steps


@case((3, 1000, 1009), (2, 10, 1))
def power_modulo(base, exponent, modulus):
    result = 1
    base %= modulus
    while exponent > 0:
        if exponent & 1:
            result = result * base % modulus
        base = base * base % modulus
        exponent >>= 1
    return result


@case((10, 3), (7, 0), (-2, 5), (2, 62), (2, 64))
def power(a, n):
    return a**n


@case((100,))
def count_primes(n):
    count = 0
    for k in range(2, n):
        if is_prime(k):
            count += 1
    return count


@case((12,), (496,), (1,))
def is_perfect(n):
    total = 0
    for d in range(1, n):
        if n % d == 0:
            total += d
    return total == n


@case((0,), (1234567,), (-15,))
def digit_sum(n):
    n = abs(n)
    total = 0
    while n:
        n, digit = divmod_by_ten(n)
        total += digit
    return total


def divmod_by_ten(n):
    return n // 10, n % 10
