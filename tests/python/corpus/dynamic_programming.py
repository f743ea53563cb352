# SPDX-License-Identifier: Apache-2.0
"""Functions of dynamic programming."""

from __future__ import annotations

import math

import numpy as np

from .case import case


@case((np.array([-2, 1, -3, 4, -1, 2, 1]),), (np.array([-3, -1]),))
def maximum_subarray(a):
    best = current = a[0]
    for x in a[1:]:
        current = max(x, current + x)
        best = max(best, current)
    return best


@case((11,), (3,), (0,))
def fewest_coins(amount):
    best = [amount + 1] * (amount + 1)
    best[0] = 0
    for value in range(1, amount + 1):
        for coin in (2, 5):
            if coin <= value:
                best[value] = min(best[value], best[value - coin] + 1)
    return best[amount] if best[amount] <= amount else -1


@case((np.array([10, 9, 2, 5, 3, 7, 101]),), (np.array([1]),))
def longest_increasing(a):
    lengths = [1] * len(a)
    for i in range(len(a)):
        for j in range(i):
            if a[j] < a[i]:
                lengths[i] = max(lengths[i], lengths[j] + 1)
    return max(lengths)


@case((np.array([[1, 3, 1], [1, 5, 1], [4, 2, 1]]),), (np.array([[7]]),))
def cheapest_path(grid):
    rows, columns = grid.shape
    cost = np.zeros((rows, columns), dtype=np.int64)
    for i in range(rows):
        for j in range(columns):
            if i == 0 and j == 0:
                before = 0
            elif i == 0:
                before = cost[i, j - 1]
            elif j == 0:
                before = cost[i - 1, j]
            else:
                before = min(cost[i - 1, j], cost[i, j - 1])
            cost[i, j] = before + grid[i, j]
    return cost[-1, -1]


@case((5,), (0,))
def pascal(n):
    row = [1]
    for k in range(n):
        row.append(row[k] * (n - k) // (k + 1))
    return row


@case((np.array([10, 30, 5, 60]),))
def matrix_chain(dims):
    n = len(dims) - 1
    cost = np.zeros((n, n))
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length - 1
            cost[i, j] = math.inf
            for k in range(i, j):
                c = cost[i, k] + cost[k + 1, j] + dims[i] * dims[k + 1] * dims[j + 1]
                cost[i, j] = min(cost[i, j], c)
    return cost[0, n - 1]
