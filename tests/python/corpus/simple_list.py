# SPDX-License-Identifier: Apache-2.0
"""Functions that make lists."""

from __future__ import annotations

import math

from .case import case


@case((30,), (2,))
def primes(n):
    found = []
    for k in range(2, n):
        for p in found:
            if k % p == 0:
                break
        else:
            found.append(k)
    return found


@case((9,), (0,))
def squares(n):
    return [i * i for i in range(n) if i % 2], [i / 2 for i in range(n)]


@case((4,))
def pairs(n):
    return [i * 10 + j for i in range(n) for j in range(i)]


@case((4,), (0,), (-1,))
def filled(n):
    xs = [0] * n
    for i, x in enumerate(xs):
        xs[i] = x + i
    return xs, len(xs), any(xs), all(xs)


@case((5,), (0,))
def totals(n):
    return sum([i / 2 for i in range(n)]), sum(range(n)), max([3, 1, n]), min((2.5, n))


@case((0,))
def empty_maximum(n):
    return max([i + 1 for i in range(n)])


@case((3, 0), (3, 2), (3, 3), (3, -3))
def stack(n, i):
    xs = [2 * k for k in range(n)]
    ys = xs
    ys.append(7)
    top = xs.pop()
    ys[i - 1] = top
    return xs, ys[i], top


@case((3,))
def emptied(n):
    xs = [1] * n
    total = 0
    while True:
        total += xs.pop()
        if total > n:
            return total


@case((20,), (30,), (1,))
def from_math(n):
    return (
        math.gcd(n, 12),
        math.comb(n, 2),
        math.isqrt(n),
        divmod(n, 7),
        pow(3, n, 1000),
        math.factorial(n),
    )


@case((1 << 40, 3))
def list_beyond_64_bits(n, k):
    xs = [n]
    ys = xs
    for _ in range(k):
        xs.append(int(xs[-1] % 1000) * n)
    ys.append(n)
    return n * n, xs, ys
