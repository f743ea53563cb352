# SPDX-License-Identifier: Apache-2.0
"""Functions that take functions: integration, roots, composition."""

from __future__ import annotations

import math

import numpy as np

import ferryvm

from .case import case

_HALF = 0.5


@ferryvm.function
def _square(x):
    return x * x


def _inverse(x, shift=1):
    return _HALF / (x - shift)


def _apply(f, x):
    return f(x)


@case((math.sin, 0.0, 1.0, 10), (lambda x: x * x + _HALF, 0, 2, 7), (_inverse, 1.0, 2.0, 4))
@case((np.sqrt, 0.0, 1.0, 3), (_square, 0.0, 1.0, 3))
def integrate(f, a, b, n):
    h = (b - a) / n
    total = (f(a) + f(b)) / 2
    for i in range(1, n):
        total += f(a + i * h)
    return total * h


@case((lambda x: x * x - 2, 0.0, 2.0), (math.cos, 0, 3), (abs, 1.0, 2.0))
def bisect(f, low, high, tolerance=1e-6):
    if f(low) * f(high) > 0:
        raise ValueError("no change of sign")
    while high - low > tolerance:
        middle = (low + high) / 2
        if f(low) * f(middle) <= 0:
            high = middle
        else:
            low = middle
    return (low + high) / 2


@case((math.sin, math.cos, 3.0), (math.sin, None, 3.0), (lambda x: x * x + 1, lambda x: 2 * x, 1.0))
def newton(f, slope, x):
    for _ in range(30):
        step = f(x) / slope(x) if slope is not None else f(x) * 1e3 / (f(x) - f(x + 1e-3))
        x -= step
        if abs(step) < 1e-12:
            return x
    raise ArithmeticError("no root")


@case((abs, int, -2.5), (math.sqrt, float, 4), (_square, lambda x: x + 1, 1 << 40))
@case((lambda x: x << 30, lambda x: x << 31, 3), (_inverse, _square, 1))
def compose(f, g, x):
    def both(y):
        return f(g(y))

    return both(x), _apply(f, _apply(x=x, f=g))


@case((abs, [3, -5, 1]), (lambda x: -x, [3, -5, 1]), (_square, [3, -5, 1 << 40]))
def by_key(f, xs):
    return sorted(xs, key=f), max(xs, key=f), [f(x) for x in xs]
