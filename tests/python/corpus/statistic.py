# SPDX-License-Identifier: Apache-2.0
"""Functions of statistics and random numbers."""

from __future__ import annotations

import math

import numpy as np

from .case import case


@case((np.array([2.0, 4.0, 9.0]),), (np.zeros(0),))
def mean(xs):
    if len(xs) == 0:
        raise ValueError("mean of an empty data set")
    return sum(xs) / len(xs)


@case((np.array([5.0, 1.0, 3.0]),), (np.array([4.0, 1.0]),))
def median(xs):
    a = [float(x) for x in xs]
    for i in range(1, len(a)):
        j = i
        while j > 0 and a[j] < a[j - 1]:
            a[j], a[j - 1] = a[j - 1], a[j]
            j -= 1
    mid = len(a) // 2
    return a[mid] if len(a) % 2 else (a[mid - 1] + a[mid]) / 2


@case((np.array([1, 2, 2, 3]),), (np.array([7]),))
def mode(xs):
    best, best_count = None, 0
    for x in xs:
        count = sum(1 for y in xs if y == x)
        if count > best_count:
            best, best_count = x, count
    return best, best_count


@case((np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 7.0])), (np.ones(2), np.ones(2)))
def correlation(xs, ys):
    n = len(xs)
    mx, my = sum(xs) / n, sum(ys) / n
    sxy = sum((x - mx) * (y - my) for x, y in zip(xs, ys))  # noqa: B905  # the plain form
    sxx = sum((x - mx) ** 2 for x in xs)
    syy = sum((y - my) ** 2 for y in ys)
    return float(sxy) / math.sqrt(sxx * syy)


@case((np.array([0.1, 0.5, 0.95, 1.0]), 4), (np.zeros(0), 2))
def histogram(xs, bins):
    counts = np.zeros(bins, dtype=np.int64)
    for x in xs:
        counts[min(int(x * bins), bins - 1)] += 1
    return counts


@case((np.array([1.0, 2.0, 4.0]), 0.5), (np.array([3.0]), 0.1))
def smoothed(xs, alpha):
    out = [float(xs[0])]
    for x in xs[1:]:
        out.append(alpha * float(x) + (1 - alpha) * out[-1])
    return out


@case((np.array([3.0, 1.0, 2.0]),))
def ranks(xs):
    return [1 + sum(1 for y in xs if y < x) for x in xs]


@case((0.0,), (1.96,), (-40.0,))
def normal_cdf(x):
    return 0.5 * (1 + math.erf(x / math.sqrt(2)))


@case((10, 3, 0.5), (4, 0, 0.0))
def binomial(n, k, p):
    return math.comb(n, k) * p**k * (1 - p) ** (n - k)


# --- random numbers --------------------------------------------------------------------------------------


@case((1, 5), (0, 2))
def xorshift(seed, n):
    x = seed
    out = []
    for _ in range(n):
        x ^= x << 13 & 0xFFFFFFFF
        x ^= x >> 17
        x ^= x << 5 & 0xFFFFFFFF
        out.append(x)
    return out


@case((42, 4), (7, 0))
def shuffled(seed, n):
    a = list(range(n))
    for i in range(n - 1, 0, -1):
        seed = (seed * 69069 + 1) % 2**32
        j = seed % (i + 1)
        a[i], a[j] = a[j], a[i]
    return a


@case((3, 8))
def dice(seed, n):
    total = 0
    for _ in range(n):
        seed = seed * 6364136223846793005 % 2**31
        total += seed // 65536 % 6 + 1
    return total
