# SPDX-License-Identifier: Apache-2.0
"""Functions of everyday code on lists and tuples: sorting, tables, graphs, matrices, searching,
permutations, run lengths."""

from __future__ import annotations

import numpy as np

from .case import case

# ruff: noqa: RUF005, PLR0124, B905  # everyday code, in its own style

_NUMBERS = [5, 3, 8, 1, 9, 2, 7, 7, 4, 6, 0, 3]
_GRAPH = [[1, 2], [3], [3, 4], [5], [5], []]
_EDGES = [(0, 1, 7), (0, 2, 3), (2, 1, 1), (1, 3, 2), (2, 3, 8), (3, 4, 4)]

# --- sorting ----------------------------------------------------------------------------------


@case((_NUMBERS,), ([],), ([2.5, -1.0, 0.5],))
def bubble_sort(xs):
    for end in range(len(xs) - 1, 0, -1):
        for i in range(end):
            if xs[i] > xs[i + 1]:
                xs[i], xs[i + 1] = xs[i + 1], xs[i]
    return xs


@case((_NUMBERS,))
def merge_sort(xs):
    if len(xs) <= 1:
        return xs
    middle = len(xs) // 2
    left, right = merge_sort(xs[:middle]), merge_sort(xs[middle:])
    merged = []
    i = j = 0
    while i < len(left) and j < len(right):
        if left[i] <= right[j]:
            merged.append(left[i])
            i += 1
        else:
            merged.append(right[j])
            j += 1
    return merged + left[i:] + right[j:]


@case((_NUMBERS,), ([],))
def quick_sort(xs):
    if not xs:
        return []
    pivot, *rest = xs
    return (
        quick_sort([x for x in rest if x < pivot])
        + [pivot]
        + quick_sort([x for x in rest if x >= pivot])
    )


@case((_NUMBERS,))
def heap_sort(xs):
    heap = []
    for x in xs:
        heap.append(x)
        child = len(heap) - 1
        while child and heap[(child - 1) // 2] > heap[child]:
            parent = (child - 1) // 2
            heap[parent], heap[child] = heap[child], heap[parent]
            child = parent
    out = []
    while heap:
        out.append(heap[0])
        last = heap.pop()
        if heap:
            heap[0] = last
        parent = 0
        while 2 * parent + 1 < len(heap):
            child = 2 * parent + 1
            if child + 1 < len(heap) and heap[child + 1] < heap[child]:
                child += 1
            if heap[parent] <= heap[child]:
                break
            heap[parent], heap[child] = heap[child], heap[parent]
            parent = child
    return out


@case((_NUMBERS,), ([],), ([1.5, float("nan"), 2.0],), ([(2, 1), (1, 5), (2, 0)],))
def sorted_in_several_orders(xs):
    up, down = sorted(xs), sorted(xs, reverse=True)
    xs.sort(key=lambda x: up.index(x) % 3 if x == x else 0, reverse=True)
    return up, down, xs


@case((_EDGES,))
def by_last_item(edges):
    edges.sort(key=lambda e: (e[2], -e[0]))
    return edges, max(edges), min(edges, key=lambda e: e[1])


# --- searching --------------------------------------------------------------------------------


@case(([1, 3, 5, 7, 9, 11], 7), ([1, 3, 5], 4), ([], 1))
def binary_search(xs, x):
    low, high = 0, len(xs)
    while low < high:
        middle = (low + high) // 2
        if xs[middle] < x:
            low = middle + 1
        else:
            high = middle
    if low < len(xs) and xs[low] == x:
        return low
    return -1


@case(([3, 1, 3], 3), ([3, 1], 4), ([1.5, 2.5], 2.5))
def methods_of_lists(xs, x):
    xs.insert(1, x)
    xs.insert(-100, x)
    xs.insert(100, x)
    before = xs.copy()
    n = xs.count(x)
    xs.remove(x)
    at = xs.index(x, 1)
    last = xs.pop(-2)
    xs.reverse()
    del xs[0], xs[-1]
    xs.extend([x, x])
    return before, n, at, last, xs, x in xs


@case(([1, 2, 3], 3), ([1, 2, 3], -4), ([1, 2, 3], 0))
def faults_of_lists(xs, i):
    found = []
    try:
        found.append(xs[i])
    except IndexError:
        found.append(-1)
    try:
        xs.remove(i)
    except ValueError:
        found.append(-2)
    try:
        found.append(xs.pop(i))
    except IndexError:
        found.append(-3)
    xs[i] = 7
    return found, xs.index(99)


# --- slices -----------------------------------------------------------------------------------


@case(([1, 2, 3, 4, 5], 1, 4), ([1, 2, 3], -2, 99), ([1, 2, 3], 5, -9))
def slices_of_lists(xs, a, b):
    parts = [xs[a:b], xs[:a], xs[b:], xs[::-1], xs[a:b:2], xs[b:a:-1], xs[-1::-2]]
    xs[a:b] = [9, 9, 9]
    del xs[:a]
    return parts, xs, sum(len(part) for part in parts)


@case(((1, 2, 3, 4),))
def tuples_in_parts(t):
    first, *middle, last = t
    *most, _ = t
    return first, middle, last, most, t[1:3], t[::-1], (*t, 0) + t[:1], t > (1, 2), t == t[:]


# --- tables -----------------------------------------------------------------------------------


@case(([1, 5, 3, 4, 2, 6],), ([],))
def longest_increasing(xs):
    best = [1] * len(xs)
    for i in range(len(xs)):
        for j in range(i):
            if xs[j] < xs[i]:
                best[i] = max(best[i], best[j] + 1)
    return max(best) if best else 0


@case(([3, 4, 5], [30, 50, 60], 8))
def knapsack(weights, values, capacity):
    table = [[0] * (capacity + 1) for _ in range(len(weights) + 1)]
    for i, (w, v) in enumerate(zip(weights, values), 1):
        for c in range(capacity + 1):
            table[i][c] = table[i - 1][c]
            if w <= c:
                table[i][c] = max(table[i][c], table[i - 1][c - w] + v)
    return table[-1][-1], table


@case((6,), (0,))
def pascal(n):
    rows = []
    for _ in range(n):
        row = [1]
        if rows:
            last = rows[-1]
            row.extend(last[i] + last[i + 1] for i in range(len(last) - 1))
            row.append(1)
        rows.append(row)
    return rows


@case((30,), (2,))
def sieve_of_lists(n):
    flags = [True] * (n + 1)
    flags[0:2] = [False, False]
    for i in range(2, n + 1):
        if flags[i]:
            for j in range(i * i, n + 1, i):
                flags[j] = False
    return [i for i, flag in enumerate(flags) if flag]


# --- graphs -----------------------------------------------------------------------------------


@case((_GRAPH, 0), (_GRAPH, 4))
def breadth_first(graph, start):
    distance = [-1] * len(graph)
    distance[start] = 0
    queue = [start]
    while queue:
        node = queue.pop(0)
        for other in graph[node]:
            if distance[other] < 0:
                distance[other] = distance[node] + 1
                queue.append(other)
    return distance


@case((_EDGES, 5))
def cheapest_paths(edges, n):
    graph = [[] for _ in range(n)]
    for a, b, cost in edges:
        graph[a].append((b, cost))
        graph[b].append((a, cost))
    best = [10**9] * n
    best[0] = 0
    todo = [(0, 0)]
    while todo:
        todo.sort(reverse=True)
        cost, node = todo.pop()
        if cost > best[node]:
            continue
        for other, step in graph[node]:
            if cost + step < best[other]:
                best[other] = cost + step
                todo.append((best[other], other))
    return best


@case((_GRAPH,))
def topological_order(graph):
    waiting = [0] * len(graph)
    for others in graph:
        for other in others:
            waiting[other] += 1
    order = [node for node, count in enumerate(waiting) if count == 0]
    for node in order:
        for other in graph[node]:
            waiting[other] -= 1
            if not waiting[other]:
                order.append(other)
    return order


@case(([[0, 1, 0], [0, 0, 0]],))
def reachable(grid):
    moves = ((0, 1), (1, 0), (0, -1), (-1, 0))
    seen = [[False] * len(row) for row in grid]
    stack = [(len(grid) - 1, 0)]
    count = 0
    while stack:
        y, x = stack.pop()
        if seen[y][x] or grid[y][x]:
            continue
        seen[y][x] = True
        count += 1
        for k in range(4):
            dy, dx = moves[k]
            if 0 <= y + dy < len(grid) and 0 <= x + dx < len(grid[0]):
                stack.append((y + dy, x + dx))
    return count, seen


# --- matrices ---------------------------------------------------------------------------------


@case(([[1, 2], [3, 4]], [[0, 1], [1, 1]]))
def product_of_matrices(a, b):
    n, m = len(a), len(b[0])
    c = [[0] * m for _ in range(n)]
    for i in range(n):
        for j in range(m):
            c[i][j] = sum([a[i][k] * b[k][j] for k in range(len(b))])
    return c


@case(([[1, 2, 3], [4, 5, 6]],))
def transposed(rows):
    return [[row[j] for row in rows] for j in range(len(rows[0]))], rows[::-1]


@case((np.arange(6.0).reshape(3, 2),))
def centre(points):
    x = y = 0.0
    for point in points:
        a, b = point
        x += a
        y += b
    return x / len(points), y / len(points)


# --- permutations, run lengths ------------------------------------------------------------------


@case((4,), (0,))
def permutations(n):
    found = []

    def extend(prefix, rest):
        if not rest:
            found.append(prefix)
        for i in range(len(rest)):
            extend(prefix + [rest[i]], rest[:i] + rest[i + 1 :])

    extend([], list(range(n)))
    return found


@case(([1, 2, 3],), ([3, 2, 1],))
def next_permutation(xs):
    i = len(xs) - 2
    while i >= 0 and xs[i] >= xs[i + 1]:
        i -= 1
    if i >= 0:
        j = len(xs) - 1
        while xs[j] <= xs[i]:
            j -= 1
        xs[i], xs[j] = xs[j], xs[i]
    xs[i + 1 :] = xs[i + 1 :][::-1]
    return i >= 0


@case(([1, 1, 2, 3, 3, 3],), ([],))
def run_lengths(xs):
    runs = []
    for x in xs:
        if runs and runs[-1][0] == x:
            runs[-1] = (x, runs[-1][1] + 1)
        else:
            runs.append((x, 1))
    back = []
    for x, n in runs:
        back += [x] * n
    return runs, back == xs


@case(([1], 3), ([1, 2], 0), ([1.0], -1))
def grown(xs, n):
    ys = xs
    xs *= n
    ys += [ys[0]] if ys else xs
    zs = n * xs + ys
    return xs, ys, zs
