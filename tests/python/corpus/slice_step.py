# SPDX-License-Identifier: Apache-2.0
"""Functions of slices with steps, sequences from their ends, and zip of equal lengths."""

from __future__ import annotations

from .case import case


@case((30,), (2,))
def prime_sieve(n):
    is_prime = [True] * (n + 1)
    is_prime[0] = is_prime[1] = False
    for i in range(2, int(n**0.5) + 1):
        if is_prime[i]:
            is_prime[i * i :: i] = [False] * len(is_prime[i * i :: i])
    return [i for i, found in enumerate(is_prime) if found]


@case(
    *(([1, 2, 3, 4, 5, 6, 7], k, [9] * n) for k, n in ((2, 4), (-2, 4), (3, 2), (1, 3), (-1, 7))),
    *(([1, 2], 0, [1]), ([], 2, []), ([1, 2, 3], 5, [8]), ([1, 2, 3], -5, [8])),
)
def stored(xs, k, ys):
    xs[::k] = ys
    return xs


@case(*(([1, 2, 3, 4, 5, 6, 7], a, b, k) for a, b, k in ((1, 6, 2), (6, 0, -2), (-9, 9, 3))))
def parts(xs, a, b, k):
    ys = xs.copy()
    del ys[a:b:k]
    zs = xs.copy()
    del zs[::-1]
    xs[a:b:2] = xs[a:b:2][::-1]
    return xs[a:b:k], xs[a::k], xs[:b:k], ys, zs, xs


@case(("abc", [1, 2, 3], (4, 5)), ("", [], ()))
def backwards(s, xs, t):
    found = []
    for c in reversed(s):
        found.append(ord(c))
    for x in reversed(xs):
        found.append(x + 1)
    for x in reversed(t):
        found.append(x + 1)
    return found, [x * 2 for x in reversed(xs)]


@case(([1, 2, 3],), ([],))
def backwards_and_changed(xs):
    seen = 0
    for x in reversed(xs):
        seen = seen * 10 + x
        if len(xs) > 1:
            xs.pop()
            xs.pop(0)
    return seen, xs


@case(([1, 2, 3],))
def backwards_until_too_large(xs):
    found = 2**61
    for x in reversed(xs):
        found = found * x * 2
    return found


@case(([1, 2], [3.0, 4.0]), ([1], [2.0, 3.0]), ([1, 2], [3.0]), ([], []), ([], [1.0]))
def paired(xs, ys):
    total = 0
    for x, y in zip(xs, ys, strict=True):
        total += x * y
    return total


@case(([1, 2], [3, 4]), ([1, 2, 3], [3, 4]))
def paired_or_nothing(xs, ys):
    try:
        return [(x, i, y) for i, (x, y) in enumerate(zip(xs, ys, strict=True))]
    except ValueError:
        return None


@case(([(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.5, 0.2)],), ([(0.0, 1.0)],))
def convex_hull(points):
    def cross(o, a, b):
        return (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0])

    found = sorted(points)
    lower, upper = [], []
    for p in found:
        while len(lower) >= 2 and cross(lower[-2], lower[-1], p) <= 0:
            lower.pop()
        lower.append(p)
    for p in reversed(found):
        while len(upper) >= 2 and cross(upper[-2], upper[-1], p) <= 0:
            upper.pop()
        upper.append(p)
    return lower[:-1] + upper[:-1]
