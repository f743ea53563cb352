# SPDX-License-Identifier: Apache-2.0
"""Functions of linear algebra and geometry."""

from __future__ import annotations

import math

import numpy as np

from .case import case


@case((np.arange(9.0).reshape(3, 3),), (np.ones((0, 2)),))
def transposed(a):
    out = np.zeros((a.shape[1], a.shape[0]))
    for i, row in enumerate(a):
        for j, x in enumerate(row):
            out[j, i] = x
    return out


@case((np.array([[2.0, 1.0], [1.0, 3.0]]),), (np.array([[1.0, 2.0], [2.0, 4.0]]),))
def determinant(a):
    n = len(a)
    m = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            m[i, j] = a[i, j]
    det = 1.0
    for k in range(n):
        pivot = k
        for i in range(k + 1, n):
            if abs(m[i, k]) > abs(m[pivot, k]):
                pivot = i
        if m[pivot, k] == 0.0:
            return 0.0
        if pivot != k:
            for j in range(n):
                m[k, j], m[pivot, j] = m[pivot, j], m[k, j]
            det = -det
        det *= m[k, k]
        for i in range(k + 1, n):
            factor = m[i, k] / m[k, k]
            for j in range(k, n):
                m[i, j] -= factor * m[k, j]
    return det


@case((np.array([[4.0, 2.0], [2.0, 5.0]]),), (np.array([[-1.0]]),))
def cholesky(a):
    n = a.shape[0]
    low = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            s = sum(low[i, k] * low[j, k] for k in range(j))
            if i == j:
                low[i, j] = math.sqrt(a[i, i] - s)
            else:
                low[i, j] = (a[i, j] - s) / low[j, j]
    return low


@case((np.array([[2.0, 0.0], [0.0, 1.0]]), 5))
def power_iteration(a, steps):
    v = np.ones(len(a))
    for _ in range(steps):
        w = np.zeros(len(a))
        for i in range(len(a)):
            for j in range(len(a)):
                w[i] += a[i, j] * v[j]
        norm = math.sqrt(sum(x * x for x in w))
        for i in range(len(a)):
            v[i] = w[i] / norm
    return v


@case((np.array([0.0, 4.0, 4.0, 0.0]), np.array([0.0, 0.0, 3.0, 3.0])))
def polygon_area(xs, ys):
    area = 0.0
    n = len(xs)
    for i in range(n):
        j = (i + 1) % n
        area += xs[i] * ys[j] - xs[j] * ys[i]
    return abs(area) / 2


@case((np.array([[0.0, 0.0], [4.0, 0.0], [4.0, 4.0]]), 3.0, 1.0), (np.zeros((0, 2)), 0.0, 0.0))
def is_inside(points, x, y):
    inside = False
    j = len(points) - 1
    for i in range(len(points)):
        xi, yi = points[i, 0], points[i, 1]
        xj, yj = points[j, 0], points[j, 1]
        if (yi > y) != (yj > y) and x < (xj - xi) * (y - yi) / (yj - yi) + xi:
            inside = not inside
        j = i
    return inside


@case(((0, 0), (3, 4)), ((1.5, 2), (1.5, 2)))
def distance(p, q):
    (x0, y0), (x1, y1) = p, q
    return math.hypot(x1 - x0, y1 - y0)


@case(((0.0, 0.0), (2.0, 2.0), (0.0, 2.0), (2.0, 0.0)), ((0, 0), (1, 1), (2, 2), (3, 3)))
def intersect(a, b, c, d):
    def side(p, q, r):
        return (q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0])

    return side(a, b, c) * side(a, b, d) < 0 and side(c, d, a) * side(c, d, b) < 0


@case((1.0, 2.0, 0.5), (1, 0, 0))
def rotated(x, y, angle):
    c, s = math.cos(angle), math.sin(angle)
    return c * x - s * y, s * x + c * y
