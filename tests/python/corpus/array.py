# SPDX-License-Identifier: Apache-2.0
"""Functions of arrays."""

from __future__ import annotations

import numpy as np

from .case import case


@case((np.arange(5.0), np.arange(5.0)), (np.zeros(0), np.zeros(0)))
def dot(xs, ys):
    total = 0.0
    for i in range(len(xs)):
        total += xs[i] * ys[i]
    return total


@case((np.arange(6.0).reshape(2, 3), 2.0), (np.ones((0, 3)), 1.0))
def scale(a, k):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            a[i, j] *= k


@case((np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4), np.zeros((2, 4))))
def multiply(a, b, out):
    rows, inner = a.shape
    for i in range(rows):
        for j in range(b.shape[1]):
            total = 0.0
            for k in range(inner):
                total += a[i, k] * b[k, j]
            out[i, j] = total


@case((np.array([3, 1, 2, 5, 4]),), (np.array([2.5, -1.0]),), (np.zeros(0, np.int32),))
def insertion_sort(a):
    for i in range(1, len(a)):
        value = a[i]
        j = i - 1
        while j >= 0 and a[j] > value:
            a[j + 1] = a[j]
            j -= 1
        a[j + 1] = value


@case((np.array([1, 3, 5, 7]), 5), (np.array([1, 3, 5, 7]), 4))
def binary_search(a, wanted):
    low, high = 0, len(a)
    while low < high:
        middle = (low + high) // 2
        if a[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low if low < len(a) and a[low] == wanted else -1


@case((np.arange(5), 5), (np.arange(5), -6), (np.arange(5), -1), (np.arange(5), 2))
def element(a, i):
    return a[i]


@case((np.arange(4.0), 1), (np.arange(4.0), 9))
def changed_before_error(a, i):
    a[0] = 7
    a[i] = 8
    return a[0]


@case((np.arange(6.0), 20), (np.arange(2.0), 3))
def mixed_iteration(xs, n):
    total = 0.0
    for i, (x, y) in enumerate(zip(xs, range(n, 0, -2))):  # noqa: B905  # the plain form
        if i > 2 and x < 5.0:
            continue
        total += x * y
    total = total + 1
    return total, i


@case((np.array([True, False, True]),), (np.zeros(0, bool),))
def count_true(flags):
    count = 0
    for flag in flags:
        if flag:
            count += 1
    return count


@case((np.array([250, 3], np.uint8), np.array([10, 20], np.uint8)))
def narrow(a, b):
    return a[0] + b[0], a[1] * b[1], a[1] - b[1]


@case((np.array([1.5, 2.5], np.float32),))
def single(a):
    return a[0] * 3 + 1, a[1] / 2, a[0] < a[1], float(a[0])


@case((10, 25), (5, 0))
def coins(amount, limit):
    """Ways to pay an amount with coins of 1, 2 and 5, by recursion."""
    if amount == 0:
        return 1
    if amount < 0 or limit == 0:
        return 0
    return (
        coins(amount - 1, 1)
        + (coins(amount - 2, 2) if limit >= 2 else 0)
        + (coins(amount - 5, 5) if limit >= 5 else 0)
    )


@case((0.0, 1.0, 10))
def integral(a, b, n):
    h = (b - a) / n
    total = 0.5 * (a * a + b * b)
    for i in range(1, n):
        x = a + i * h
        total += x * x
    return total * h


@case((2.0,), (0.0,))
def newton(x):
    guess = x if x > 1 else 1.0
    for _ in range(20):
        better = 0.5 * (guess + x / guess)
        if better == guess:
            break
        guess = better
    return guess


@case((20,))
def logistic(n):
    x = 0.3
    for _ in range(n):
        x = 3.7 * x * (1.0 - x)
    return x


@case((5,))
def random_walk(steps):
    state = 12345
    place = 0
    for _ in range(steps):
        state = (state * 1103515245 + 12345) % 2147483648
        place += 1 if state & 65536 else -1
    return place, state


@case((np.arange(8.0),))
def moments(xs):
    n = len(xs)
    mean = 0.0
    for x in xs:
        mean += x
    mean /= n
    variance = 0.0
    for x in xs:
        variance += (x - mean) ** 2
    return mean, variance / (n - 1)


@case(
    (np.frombuffer(b"kitten", np.uint8), np.frombuffer(b"sitting", np.uint8), np.zeros(8, np.int64))
)
def edit_distance(a, b, row):
    for j in range(len(row)):
        row[j] = j
    for i in range(1, len(a) + 1):
        corner = row[0]
        row[0] = i
        for j in range(1, len(b) + 1):
            cost = 0 if a[i - 1] == b[j - 1] else 1
            best = min(row[j] + 1, row[j - 1] + 1, corner + cost)
            corner = row[j]
            row[j] = best
    return row[len(b)]


@case((np.frombuffer(b"level", np.uint8),), (np.frombuffer(b"ab", np.uint8),))
def palindrome(text):
    for i in range(len(text) // 2):  # noqa: SIM110  # a loop is what is compiled
        if text[i] != text[-1 - i]:
            return False
    return True


@case(*((np.zeros(3, bool), x) for x in (5, 0, -(2**40), 2.5, -0.0, np.nan, True, np.True_)))
def mark(flags, value):
    flags[1] = value
    return flags[1]
