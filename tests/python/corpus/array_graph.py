# SPDX-License-Identifier: Apache-2.0
"""Functions of graphs on arrays."""

from __future__ import annotations

import math

import numpy as np

from .case import case


@case((np.array([[0, 1], [1, 2], [3, 4]]), 5), (np.zeros((0, 2), np.int64), 3))
def union_find(edges, n):
    parent = np.zeros(n, dtype=np.int64)
    for i in range(n):
        parent[i] = i
    for k in range(len(edges)):
        a, b = root(parent, edges[k, 0]), root(parent, edges[k, 1])
        if a != b:
            parent[a] = b
    return sum(1 for i in range(n) if parent[i] == i)


def root(parent, i):
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@case((np.array([[0.0, 3.0, 9.0], [3.0, 0.0, 1.0], [9.0, 1.0, 0.0]]),))
def floyd_warshall(d):
    n = len(d)
    for k in range(n):
        for i in range(n):
            for j in range(n):
                d[i, j] = min(d[i, j], d[i, k] + d[k, j])
    return d


@case((np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]]), 0), (np.zeros((2, 2), np.int64), 1))
def breadth_first(adjacent, start):
    n = len(adjacent)
    distance = [-1] * n
    distance[start] = 0
    queue = [start]
    head = 0
    while head < len(queue):
        u = queue[head]
        head += 1
        for v in range(n):
            if adjacent[u, v] and distance[v] < 0:
                distance[v] = distance[u] + 1
                queue.append(v)
    return distance


@case((np.array([[0.0, 1.0, 4.0], [1.0, 0.0, 2.0], [4.0, 2.0, 0.0]]), 0))
def dijkstra(weights, source):
    n = len(weights)
    distance = np.full(n, math.inf)
    done = np.zeros(n, dtype=bool)
    distance[source] = 0
    for _ in range(n):
        best = -1
        for v in range(n):
            if not done[v] and (best < 0 or distance[v] < distance[best]):
                best = v
        done[best] = True
        for v in range(n):
            distance[v] = min(distance[v], distance[best] + weights[best, v])
    return distance


@case((np.array([[0, 1, 0], [0, 1, 0], [0, 1, 0]], np.uint8),))
def life(grid):
    rows, columns = grid.shape
    new = np.zeros_like(grid)
    for i in range(rows):
        for j in range(columns):
            count = 0
            for di in (-1, 0, 1):
                for dj in (-1, 0, 1):
                    if di or dj:
                        count += int(grid[(i + di) % rows, (j + dj) % columns])
            new[i, j] = 1 if count == 3 or (count == 2 and grid[i, j]) else 0
    return new
