# SPDX-License-Identifier: Apache-2.0
"""Functions that store into rows and slices of arrays, and that make arrays."""

from __future__ import annotations

import math

import numpy as np

from .case import case

GRID = np.arange(12.0).reshape(3, 4)
POINTS = np.array([[1.0, 2.0], [8.0, 8.5], [1.5, 1.0], [9.0, 8.0], [0.5, 1.5]])


@case(
    (1.0, 0.0, 0.1, 50),
)
def pendulum(theta, omega, dt, n):
    g, length = 9.81, 1.0
    out = np.empty((n, 2))
    for i in range(n):
        omega -= g / length * math.sin(theta) * dt
        theta += omega * dt
        out[i] = theta, omega
    return out


@case(
    (np.linspace(0, 1, 11), 0.1, 3),
)
def heat1d(u, alpha, steps):
    n = len(u)
    for _ in range(steps):
        new = u.copy()
        for i in range(1, n - 1):
            new[i] = u[i] + alpha * (u[i - 1] - 2 * u[i] + u[i + 1])
        u = new
    return u


@case((np.array([[2.0, 1, 1], [4, 3, 3], [8, 7, 9]]),))
def lu(a):
    n = len(a)
    lower = np.eye(n)
    upper = a.copy()
    for k in range(n - 1):
        for i in range(k + 1, n):
            lower[i, k] = upper[i, k] / upper[k, k]
            for j in range(k, n):
                upper[i, j] -= lower[i, k] * upper[k, j]
    return lower, upper


@case(
    (POINTS, 2),
)
def kmeans(points, k):
    centers = points[:k].copy()
    labels = np.zeros(len(points), dtype=int)
    for _ in range(10):
        for i, p in enumerate(points):
            best = float("inf")
            for c in range(k):
                d = (p[0] - centers[c, 0]) ** 2 + (p[1] - centers[c, 1]) ** 2
                if d < best:
                    best = d
                    labels[i] = c
        for c in range(k):
            n = 0
            sx = sy = 0.0
            for i in range(len(points)):
                if labels[i] == c:
                    n += 1
                    sx += points[i, 0]
                    sy += points[i][1]
            if n:
                centers[c] = sx / n, sy / n
    return labels, centers


@case((np.int8(-3),), (np.int64(256),), (np.float64("nan"),), (np.float32(0),), (np.uint16(0),))
def stored_as_bools(x):
    flags = np.zeros(3, dtype=bool)
    flags[0] = x
    flags[1:] = flags[0]
    return flags


@case((30,))
def sieve_of_slices(n):
    sieve = np.ones(n + 1, dtype=bool)
    sieve[:2] = False
    for i in range(2, int(np.sqrt(n)) + 1):
        if sieve[i]:
            sieve[i * i :: i] = False
    return [int(i) for i in range(n + 1) if sieve[i]]


@case((GRID,))
def parts_of_floats(a):
    a[1:, 2] = 5
    a[0, ::2] = [1, 2]
    a[:, 1] = a[:, 0]
    a[1:] = a[:-1]
    a[2] = 1, 2.5, 3, 4
    a[:, 3] = (7, 8, 9)
    a[:2, :2] = a[1:, 2:]
    a[:, :] = a[0]
    return a


@case((np.arange(12).reshape(3, 4),), (np.arange(12, dtype=np.int32).reshape(3, 4),))
def parts_of_integers(a):
    a[1:, 2] = 5
    a[1:] = a[:-1]
    a[0, ::-1] = a[1]
    b = a.copy()
    b[0] = 0
    return a, b


@case(
    (np.arange(4.0),),
)
def part_of_another_shape(a):
    a[:2] = a
    return a


@case(
    (np.arange(4.0),),
)
def items_of_another_shape(a):
    a[1:3] = [1, 2, 3]
    return a


@case((np.arange(20), 3), (np.arange(20), 7), (np.arange(20), 100), (np.arange(20), 2**63 - 1))
def computed_steps(a, k):
    b = a[1::k].copy()
    a[::k] = 0
    a[2:15:k] = -1
    return a, b, len(a[5::k]), len(a[30::k])


@case((np.arange(20), 0), (np.arange(20), -2))
def steps_that_are_not_above_zero(a, k):
    return len(a[::k]), a[::k].copy()


@case((np.arange(4, dtype=np.int8),), (np.arange(4, dtype=np.float32),), (np.arange(4) > 1,))
def filled_parts(a):
    a[:] = 1
    a[1:2] = a[3]
    return a


@case(
    (np.arange(4, dtype=np.int8),),
)
def filled_beyond_its_type(a):
    a[:] = 300
    return a


@case(
    (np.zeros((2, 4), dtype=np.uint8), 300),
    (np.zeros((2, 4), dtype=np.uint8), 7),
    (np.ones((2, 4)), 300),
)
def filled_where_no_element_is(a, n):
    a[:, 5:2] = n
    return a


@case((np.zeros(4, dtype=np.int8), 1), (np.zeros(4, dtype=np.int8), 4))
def filled_by_a_method_where_no_element_is(a, n):
    a[n:].fill(200)
    return a


@case((np.ones((3, 4)), 2), (np.ones((3, 4)), 4))
def filled_with_a_row_where_no_row_is(a, n):
    a[5:2] = a[0, :n]
    return a


@case((np.zeros((2, 3), dtype=complex),))
def filled_with_complex(a):
    a[0] = 1j
    a[1] = a[0]
    a[1, 1:] = 2.5
    return a


@case(
    (np.arange(4.0),),
)
def known_dtype(a):
    return a.dtype == np.float64, a.dtype == np.int64, a.dtype != np.float32


@case((3,))
def arrays_of_lists(n):
    a = np.array([[1, 2], [3, 4]])
    b = np.array([1.5, 2.5], dtype=np.float32)
    c = np.array((1, 2, 3), float)
    d = np.array([True, False])
    e = np.array([0] * n)
    e[0] = 9
    f = np.array([0.0 for _ in range(n)])
    return a, b, c, d, e, f, np.copy(a)


@case((3,), (0,), (-1,))
def arrays_of_ranges(n):
    return (
        np.arange(n),
        np.arange(1, n),
        np.arange(0, 10, n or 1),
        np.arange(0.0, 1.0, 0.1),
        np.arange(n * 1.0),
    )


@case((0.0, 1.0, 5), (1, 2, 1), (3.5, 3.5, 4), (0, 1e-300, 3), (5, -2, 0))
def spaced_numbers(a, b, n):
    return np.linspace(a, b, n), np.linspace(a, b, num=n)


@case(
    (np.int32(2),), (np.float32(1.5),), (True,), (np.float64(2.5),), (np.int64(3),), (np.uint8(4),)
)
def made_of_numbers_of_numpy(x):
    return np.arange(x), np.linspace(x, x + x, 4), np.linspace(0, x, 3)


@case((3,))
def identities(n):
    return np.eye(n), np.identity(n)
