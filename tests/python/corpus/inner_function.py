# SPDX-License-Identifier: Apache-2.0
"""Functions with functions in them."""

from __future__ import annotations

import math

import numpy as np

from .case import case


@case((3,), (-2, 5))
def inner_functions(n, k=2):
    base = n * 10

    def add(x, y=1):
        return x + y + base

    square = lambda v: v * v + k  # it is what is compiled

    def factorial_of(m):
        return 1 if m < 2 else m * factorial_of(m - 1)

    def both(x):
        return add(square(x)), factorial_of(x)

    base += 1
    return add(1), add(1, y=5), square(3), both(4)


@case((0.0, 1.0, 10))
def simpson(a, b, n):
    def f(x):
        return x * x * math.sqrt(x)

    h = (b - a) / n
    total = f(a) + f(b)
    for i in range(1, n):
        total += (4 if i % 2 else 2) * f(a + i * h)
    return total * h / 3


@case((3,), (1 << 62,))
def inner_beyond_64_bits(n):
    def scaled(x):
        return x * n

    total = 0
    for i in range(3):
        total += scaled(i)
    return total


@case((0, 0), (0, 2), (3, 0), (3, 2))
def lists_that_may_stay_empty(n, m):
    xs, ys, zs = [], [], [float(i) for i in range(n)]
    for i in range(n):
        xs.append(i * 0.5)
    for i in range(m):
        ys.append(i * 2)
    total = 0.0
    for x in xs:
        total += x
    doubled = xs * 2
    doubled.append(total)
    return total, len(ys), xs, ys, zs, doubled


@case((np.int64(-5), np.int64(2)), (np.int64(5), np.int64(64)), (np.int64(-5), -1))
@case((np.int32(-5), np.int32(31)), (np.int32(7), 40), (np.int32(-7), np.int32(-2)))
def numpy_shifts(a, b):
    return a << b, a >> b
