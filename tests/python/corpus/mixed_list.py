# SPDX-License-Identifier: Apache-2.0
"""Functions of lists whose items have several types."""

from __future__ import annotations

import math

import numpy as np

from .case import case


@case((5,), (0,))
def halves(n):
    xs = [0] * n
    for i in range(0, n, 2):
        xs[i] = i / 2
    return xs


@case((3,))
def hilbert(n):
    rows = [[0] * n for _ in range(n)]
    for i in range(n):
        for j in range(n):
            rows[i][j] = 1 / (i + j + 1)
    return rows, sum(rows[0]), rows[-1][-1] * 2


@case(([1, 2, 5], 11), ([2], 3), ([], 0))
def fewest_coins(coins, amount):
    best = [math.inf] * (amount + 1)
    best[0] = 0
    for a in range(1, amount + 1):
        for c in coins:
            if c <= a and best[a - c] + 1 < best[a]:
                best[a] = best[a - c] + 1
    return best[amount] if best[amount] != math.inf else -1, best


@case(([1, 0.5, 2, True],), ([3],), ([2.5, None],), ([],))
def added(xs):
    total = 0
    for x in xs:
        if x is not None:
            total += x
    return total


@case(([[1.0, 2.5], [], [3.0]],), ([[1, 2]],))
def sums(rows):
    found = [sum(row) for row in rows]
    found.append(7)
    return found, max(found), found.index(7)


@case((30,), (1,), (95,))
def remembered(n):
    known = [None] * (n + 1)

    def value(k):
        if k < 2:
            return k
        if known[k] is None:
            known[k] = value(k - 1) + value(k - 2)
        return known[k]

    return value(n), known[-1], known.count(None)


@case(([3, 1.5, 2, 0.5, 1],), ([1, 1.0, True],), ([],))
def in_order(xs):
    ys = sorted(xs)
    xs.sort(reverse=True)
    return ys, xs, xs == ys, 1.5 in xs, xs.count(1)


@case(([1, 2],), ([],))
def changed(xs):
    ys = xs
    ys.append(2.5)
    ys.insert(0, 7)
    ys.extend([1.5, 2.5])
    last = ys.pop()
    ys[1:2] = [0.25, 3]
    ys += [9]
    del ys[0]
    ys.remove(2.5)
    first, *rest = ys
    return last, xs, first, rest, ys[::-1], ys * 2, ys + [4]  # noqa: RUF005


@case((4,))
def pairs(n):
    found = [(0, 0)] * n
    for i in range(n):
        if i % 2:
            found[i] = (i, i * 0.5)
    total = 0
    for a, b in found:
        total += a * b
    return found, total, found[1][1]


@case((np.array([1.5, 2.5]), 3))
def of_array(a, n):
    xs = [0.0] * n
    for i in range(len(a)):
        xs[i] = a[i]
    return xs, xs[0] / 2, sum(xs)


@case((4,), (0,))
def indices_beside_values(n):
    order, values = [0] * n, [0] * n
    for i in range(n):
        order[i] = n - 1 - i
        values[i] = i * 0.5
    return [values[order[i]] for i in range(n)]


@case((3,), (0,))
def item_of_wrong_type(n):
    xs = [0, 1.5]
    xs[0] = 1.0 if n > 5 else n
    return xs[xs[0]]


@case((2,), (0,), (5,))
def missing_item(n):
    xs = [1, 2.5, None]
    try:
        return xs[n] + 1
    except IndexError:
        return -1
    except TypeError:
        return -2


@case(([1, 2.5], [2, 0.5]), ([1], [1, 2]), ([1, 2.5], [1, 2.5]))
def compared(xs, ys):
    return xs == ys, xs < ys, min(xs), max(ys), [a * b for a, b in zip(xs, ys)]  # noqa: B905


@case(([0, 1j, 2.5],), ([1j],))
def complex_sum(zs):
    total = 0
    for k, z in enumerate(zs):
        total += z * k
    return total


@case(([1, 2.0], 2**62), ([4, 0.5], 1))
def large_items(xs, k):
    xs[0] = xs[0] * k * 2
    return xs


@case(([[1.5, 2], [3, 4], []],), ([[], [None, 1]],))
def row_sums(rows):
    return [sum(x for x in row if x is not None) for row in rows]


@case(([1, 2.5],), ([2.5, 2.5],), ([None, 1],), ([1],))
def unpacked(xs):
    a, b = xs
    return a if b == 2.5 else (b, a)
