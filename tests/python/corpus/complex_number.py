# SPDX-License-Identifier: Apache-2.0
"""Functions of complex numbers, in lists and arrays."""

from __future__ import annotations

import cmath
import math

import numpy as np

from .case import case

_SQUARE = [0j, 2 + 0j, 2 + 2j, 2j]


@case((_SQUARE,), ([],), ([1 + 1j],))
def polygon_area(points):
    total = 0.0
    for i in range(len(points)):
        p, q = points[i], points[(i + 1) % len(points)]
        total += p.real * q.imag - p.imag * q.real
    return abs(total) / 2


@case((_SQUARE, 1 + 1j, 1j), ([], 0j, 2 + 0j))
def turned(points, centre, by):
    return [(p - centre) * by + centre for p in points]


@case((_SQUARE,), ([],))
def centroid(points):
    if not points:
        return None
    return sum(points, 0j) / len(points)


@case((_SQUARE, 3 + 0.5j), ([1j, 1j], 0j), ([], 1j))
def nearest(points, to):
    best = None
    for p in points:
        if best is None or abs(p - to) < abs(best - to):
            best = p
    return best


@case(([1 + 0j, 2j, -1 + 1j, 0.5 + 0j],), ([3 - 1j],))
def transformed(xs):
    n = len(xs)
    if n == 1:
        return [xs[0]]
    even, odd = transformed(xs[::2]), transformed(xs[1::2])
    found = [0j] * n
    for k in range(n // 2):
        turn = complex(math.cos(math.pi * k), -math.sin(math.pi * k)) if n == 2 else (-1j) ** k
        found[k] = even[k] + turn * odd[k]
        found[k + n // 2] = even[k] - turn * odd[k]
    return found


@case(([1 + 0j, 0j, -1 + 0j], 2 + 1j), ([], 1j))
def polynomial(coefficients, z):
    total = 0j
    for i in range(len(coefficients) - 1, -1, -1):
        total = total * z + coefficients[i]
    return total


@case((np.array([1 + 2j, 3 - 1j, 0j]),), (np.zeros(0, np.complex64),))
def mirrored(zs):
    for i in range(len(zs)):
        zs[i] = zs[i].conjugate()
    return zs


@case((np.array([1 + 2j, 3 - 1j, 0j]), np.array([1j, 2 + 0j, 3j])))
def inner(a, b):
    total = 0j
    for x, y in zip(a, b):  # noqa: B905
        total += x.conjugate() * y
    return total


@case((np.array([[1 + 2j, 3 - 1j], [0j, 1j]], np.complex64),))
def trace(m):
    return sum(m[i, i] for i in range(len(m)))


@case(([1 + 1j, -1j, 2 + 0j],), ([],))
def by_size(zs):
    zs.sort(key=lambda z: z.real * z.real + z.imag * z.imag)
    zs.append(9j)
    return zs.index(9j), zs


@case((1.0, -3.0, 2.0), (1.0, 0.0, 1.0), (2.0, 4.0, 2.0))
def roots(a, b, c):
    d = b * b - 4 * a * c
    if d >= 0:
        return ((-b + math.sqrt(d)) / (2 * a), (-b - math.sqrt(d)) / (2 * a))
    root = complex(0, math.sqrt(-d))
    return ((-b + root) / (2 * a), (-b - root) / (2 * a))


@case(([(1 + 1j, 2), (2j, 1)],), ([],))
def weighted(pairs):
    total, count = 0j, 0
    for z, n in pairs:
        total += z * n
        count += n
    try:
        return total / count
    except ZeroDivisionError:
        return 0j


@case(([1 + 1j, 0j, 2j],))
def inverted(zs):
    return [1 / z for z in zs]


@case(([[1j, 2 + 0j], [3 + 0j, 4j]], [1 + 0j, 1j]))
def applied(rows, vector):
    return [sum((a * x for a, x in zip(row, vector)), 0j) for row in rows]  # noqa: B905


@case((_SQUARE, 1.5), ([], 1.0))
def inside(points, limit):
    return (
        [z for z in points if abs(z) < limit],
        2 + 2j in points,
        max([abs(z) for z in points] or [0.0]),
    )


@case(([0j, 1 + 0j, 1j],))
def phases(zs):
    return [round(cmath.phase(z), 6) for z in zs]
