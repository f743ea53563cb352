# SPDX-License-Identifier: Apache-2.0
"""Functions that sort arrays and search in them."""

from __future__ import annotations

import numpy as np

from .case import case


@case((np.array([5, 2, 9, 1]),), (np.array([1.5]),), (np.zeros(0),))
def bubble_sort(a):
    n = len(a)
    for i in range(n):
        swapped = False
        for j in range(n - 1 - i):
            if a[j] > a[j + 1]:
                a[j], a[j + 1] = a[j + 1], a[j]
                swapped = True
        if not swapped:
            break
    return a


@case((np.array([4, 1, 3, 9, 7]),), (np.array([2]),))
def heap_sort(a):
    n = len(a)
    for start in range(n // 2 - 1, -1, -1):
        sift_down(a, start, n)
    for end in range(n - 1, 0, -1):
        a[0], a[end] = a[end], a[0]
        sift_down(a, 0, end)
    return a


def sift_down(a, root, end):
    while True:
        child = 2 * root + 1
        if child >= end:
            return
        if child + 1 < end and a[child] < a[child + 1]:
            child += 1
        if a[root] >= a[child]:
            return
        a[root], a[child] = a[child], a[root]
        root = child


@case((np.array([3, 1, 2, 3, 0]), 4), (np.zeros(0, np.int64), 1))
def counting_sort(a, k):
    counts = [0] * k
    for x in a:
        counts[x] += 1
    out = []
    for value, count in enumerate(counts):
        for _ in range(count):
            out.append(value)
    return out


@case((np.array([1, 2, 2, 4]), 2), (np.array([1, 2]), 9), (np.zeros(0), 1.0))
def bisect_right(a, x):
    lo, hi = 0, len(a)
    while lo < hi:
        mid = (lo + hi) // 2
        if x < a[mid]:
            hi = mid
        else:
            lo = mid + 1
    return lo


@case((np.array([7, 2, 5, 3]), 1), (np.array([7, 2, 5, 3]), 4))
def kth_smallest(a, k):
    if not 0 <= k < len(a):
        raise IndexError("k is out of range")
    for x in a:
        less = sum(1 for y in a if y < x)
        equal = sum(1 for y in a if y == x)
        if less <= k < less + equal:
            return x
    return None


@case((np.array([3.0, 1.0, 2.0]),), (np.array([2.0, 2.0]),))
def argmin(a):
    best = 0
    for i in range(1, len(a)):
        if a[i] < a[best]:
            best = i
    return best


@case((np.array([1, 2, 4, 7]), 9), (np.array([1, 2]), 10))
def two_sum(a, target):
    i, j = 0, len(a) - 1
    while i < j:
        s = a[i] + a[j]
        if s == target:
            return i, j
        if s < target:
            i += 1
        else:
            j -= 1
    return None


@case((np.array([1, 3, 5]), np.array([2, 3])), (np.zeros(0, int), np.array([1])))
def merged(a, b):
    out = np.empty(len(a) + len(b), dtype=np.int64)
    i = j = 0
    for k in range(len(out)):
        if j == len(b) or (i < len(a) and a[i] <= b[j]):
            out[k] = a[i]
            i += 1
        else:
            out[k] = b[j]
            j += 1
    return out
