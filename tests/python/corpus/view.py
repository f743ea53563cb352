# SPDX-License-Identifier: Apache-2.0
"""Functions of slices, views and new arrays."""

from __future__ import annotations

import numpy as np

from .case import case

GRID = np.arange(24.0).reshape(4, 6)
FLAGS = np.array([True, False])


@case((GRID,), (np.zeros((0, 3)),))
def sum_of_rows(a):
    total = 0.0
    for row in a:
        for x in row:
            total += x
    return total


@case((GRID, 1, 3, 2), (GRID, -3, 9, -1), (GRID, 3, 1, 0), (GRID, 5, 6, 2))
def views(a, i, j, k):
    return a[i:j], a[::2], a[::-1], a[i], a[:, k], a[1:3, ::-2], len(a[i:j])


@case(*((np.arange(7), i, j) for i in (-9, -3, 0, 2, 9) for j in (-8, -2, 3, 20)))
def slices(x, i, j):
    return x[i:j], x[i:], x[:j], x[j:i:-1], x[None:j]


@case(
    (GRID, 2),
)
def stores_into_views(a, i):
    v = a[1:, i]
    v[0] = 100
    w = v[::-1]
    w[0] += 1
    return w[-1], v[len(v) - 1], v.shape, a[1][i]


@case((2, 3), (0, 3), (-1, 2))
def new_arrays(n, m):
    a = np.zeros((n, m))
    b = np.ones(n, dtype=np.int32)
    c = np.full((m, n), 2.5)
    d = np.zeros_like(c[::2])
    e = np.full(3, n, dtype="float32")
    g = np.zeros(2, bool)
    for i in range(n):
        for j in range(m):
            a[i, j] = i * 10 + j
        b[i] += i
    return a, b, c, d, e, g, a[1:], np.ones_like(b)


@case((np.arange(5.0),))
def cumulated(xs):
    out = np.empty(len(xs))
    total = 0.0
    for i, x in enumerate(xs):
        total += x
        out[i] = total
    return out


@case((0,), (1,), (9,))
def from_free_arrays(i):
    if FLAGS[i % 2]:
        return GRID[i, -1] * len(GRID)
    return GRID[-1, 2]


@case((2, 0.25), (3, 1.0))
def described_error(n, x):
    if n == 2:
        raise ValueError(f"bad {n} and {x:.3f}")
    return n


@case((2,), (0,))
def caught_described_error(n):
    try:
        return described_error(n, 0.5)
    except ValueError:
        return -1


@case((np.arange(10.0), 3))
def moving_average(xs, width):
    out = np.zeros(len(xs) - width + 1)
    for i in range(len(out)):
        window = xs[i : i + width]
        out[i] = sum(window) / width
    return out


@case((np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([3.0, 5.0])))
def solved(a, b):
    """Gaussian elimination without pivots."""
    n = len(b)
    m = np.zeros((n, n + 1))
    for i in range(n):
        for j in range(n):
            m[i, j] = a[i, j]
        m[i, n] = b[i]
    for k in range(n):
        for i in range(k + 1, n):
            factor = m[i, k] / m[k, k]
            for j in range(k, n + 1):
                m[i, j] -= factor * m[k, j]
    x = np.zeros(n)
    for i in range(n - 1, -1, -1):
        rest = m[i, n]
        for j in range(i + 1, n):
            rest -= m[i, j] * x[j]
        x[i] = rest / m[i, i]
    return x


@case((np.array([60, 100, 120]), np.array([10, 20, 30]), 50))
def knapsack(values, weights, capacity):
    best = [0] * (capacity + 1)
    for i in range(len(values)):
        weight, value = int(weights[i]), int(values[i])
        for room in range(capacity, weight - 1, -1):
            best[room] = max(best[room], best[room - weight] + value)
    return best[capacity]


@case((np.frombuffer(b"AGGTAB", np.uint8), np.frombuffer(b"GXTXAYB", np.uint8)))
def longest_common_subsequence(a, b):
    table = np.zeros((len(a) + 1, len(b) + 1), np.int64)
    for i in range(len(a)):
        for j in range(len(b)):
            if a[i] == b[j]:
                table[i + 1, j + 1] = table[i, j] + 1
            else:
                table[i + 1, j + 1] = max(table[i, j + 1], table[i + 1, j])
    return table[-1, -1]


@case((200,))
def monte_carlo(n):
    """Pi by a linear congruential generator."""
    state, inside = 1, 0
    for _ in range(n):
        state = (1103515245 * state + 12345) % 2147483648
        x = state / 2147483648
        state = (1103515245 * state + 12345) % 2147483648
        y = state / 2147483648
        if x * x + y * y <= 1.0:
            inside += 1
    return 4.0 * inside / n


@case((np.array([5, 3, 8, 1, 9, 2]),))
def quicksort(a):
    partition(a, 0, len(a) - 1)


def partition(a, low, high):
    if low >= high:
        return
    pivot, i = a[high], low
    for j in range(low, high):
        if a[j] < pivot:
            a[i], a[j] = a[j], a[i]
            i += 1
    a[i], a[high] = a[high], a[i]
    partition(a, low, i - 1)
    partition(a, i + 1, high)


@case((0.02, 100))
def decay(rate, steps):
    amount, half = 1.0, 0
    while half < steps and amount > 0.5:
        amount *= 1 - rate
        half += 1
    return half, amount


@case((np.array([2.0, 4.0, 4.0, 5.0]), np.array([1.0, 3.0, 2.0, 5.0])))
def regression(xs, ys):
    n = len(xs)
    mean_x, mean_y = sum(xs) / n, sum(ys) / n
    top = bottom = 0.0
    for x, y in zip(xs, ys):  # noqa: B905  # the plain form
        top += (x - mean_x) * (y - mean_y)
        bottom += (x - mean_x) ** 2
    slope = top / bottom
    return slope, mean_y - slope * mean_x


@case(
    (np.arange(5),),
    (np.arange(2.0),),
    (np.array([True, False, True]),),
    (np.arange(1),),
    (np.arange(4, dtype=np.uint8),),
)
def ends_and_the_list_between(xs):
    first, *between, last = xs
    between.append(last)
    *rest, end = xs[1:]
    return first, between, rest, end
