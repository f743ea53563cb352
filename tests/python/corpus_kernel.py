# SPDX-License-Identifier: Apache-2.0
"""Kernels in Python of the kinds that vendors of GPUs ship as samples, each with a launch and
NumPy's result."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import ferryvm


@dataclasses.dataclass
class Sample:
    """A launch of a kernel. `out`: the number of the argument with the result, `wanted` from
    NumPy."""

    kernel: Any
    n: Any
    group: Any
    arguments: tuple[Any, ...]
    wanted: Any
    out: int = 0
    is_exact: bool = True


SAMPLES: list[Callable[[], Sample]] = []


def sample(make: Callable[[], Sample]) -> Callable[[], Sample]:
    SAMPLES.append(make)
    return make


def noise(*shape: int) -> Any:
    return np.random.default_rng(26).standard_normal(shape)


TILE = 4


@ferryvm.kernel
def transpose(out, x):
    tile = ferryvm.group_array((TILE, TILE), np.float64)
    row, column = ferryvm.local_item(0), ferryvm.local_item(1)
    tile[row, column] = x[ferryvm.item(0), ferryvm.item(1)]
    ferryvm.barrier()
    to, across = ferryvm.group_number(1) * TILE, ferryvm.group_number(0) * TILE
    out[to + row, across + column] = tile[column, row]


@sample
def transposed() -> Sample:
    x = noise(8, 12)
    return Sample(transpose, x.shape, (TILE, TILE), (np.zeros((12, 8)), x), x.T)


@ferryvm.kernel
def multiply(out, a, b):
    i, j = ferryvm.item(0), ferryvm.item(1)
    row, column = ferryvm.local_item(0), ferryvm.local_item(1)
    across = ferryvm.group_array((TILE, TILE), "f64")
    down = ferryvm.group_array((TILE, TILE), "f64")
    total = 0.0
    for tile in range(a.shape[1] // TILE):
        across[row, column] = a[i, tile * TILE + column]
        down[row, column] = b[tile * TILE + row, j]
        ferryvm.barrier()
        for k in range(TILE):
            total += across[row, k] * down[k, column]
        ferryvm.barrier()
    out[i, j] = total


@sample
def product() -> Sample:
    a, b = noise(8, 12), noise(12, 4)
    return Sample(multiply, (8, 4), (TILE, TILE), (np.zeros((8, 4)), a, b), a @ b, is_exact=False)


@ferryvm.kernel
def reduce(partial, x):
    tile = ferryvm.group_array(ferryvm.group_size(), "i64")
    me = ferryvm.local_item()
    tile[me] = x[ferryvm.item()]
    ferryvm.barrier()
    half = ferryvm.group_size() // 2
    while half > 0:
        if me < half:
            tile[me] += tile[me + half]
        ferryvm.barrier()
        half //= 2
    if me == 0:
        partial[ferryvm.group_number()] = tile[0]


@sample
def reduced() -> Sample:
    x = np.arange(64) ** 2
    return Sample(reduce, 64, 16, (np.zeros(4, int), x), x.reshape(4, 16).sum(axis=1))


def combined(tile, me, distance):
    """The sum of two elements, which are read before any item writes."""
    value = tile[me]
    if me >= distance:
        value += tile[me - distance]
    ferryvm.barrier()
    return value


@ferryvm.kernel
def scan(out, x):
    tile = ferryvm.group_array(16, "i32")
    me = ferryvm.local_item()
    tile[me] = x[ferryvm.item()]
    distance = 1
    while distance < 16:
        ferryvm.barrier()
        tile[me] = combined(tile, me, distance)
        distance *= 2
    out[ferryvm.item()] = tile[me]


@sample
def scanned() -> Sample:
    x = np.arange(48, dtype=np.int32) * 7 % 11
    wanted = x.reshape(3, 16).cumsum(axis=1).ravel()
    return Sample(scan, 48, 16, (np.zeros(48, np.int32), x), wanted)


@ferryvm.kernel
def histogram(bins, x):
    local = ferryvm.group_array(8, "u32")
    ferryvm.atomic_add(local, x[ferryvm.item()], 1)
    ferryvm.barrier()
    me = ferryvm.local_item()
    if me < 8:
        ferryvm.atomic_add(bins, me, local[me])


@sample
def counted() -> Sample:
    x = (np.arange(64) * 37 % 8).astype(np.uint8)
    x[::5] = 3
    return Sample(histogram, 64, 16, (np.zeros(8, np.uint32), x), np.bincount(x, minlength=8))


@ferryvm.kernel
def sort(x):
    tile = ferryvm.group_array(16, "f32")
    me = ferryvm.local_item()
    tile[me] = x[ferryvm.item()]
    size = 2
    while size <= 16:
        stride = size // 2
        while stride > 0:
            ferryvm.barrier()
            other = me ^ stride
            if other > me:
                is_down = me & size != 0
                if (tile[me] > tile[other]) != is_down:
                    tile[me], tile[other] = tile[other], tile[me]
            stride //= 2
        size *= 2
    ferryvm.barrier()
    x[ferryvm.item()] = tile[me]


@sample
def sorted_bitonically() -> Sample:
    x = noise(32).astype(np.float32)
    return Sample(sort, 32, 16, (x.copy(),), np.sort(x.reshape(2, 16), axis=1).ravel())


COSINES = np.array(
    [
        [
            math.sqrt((1 if k == 0 else 2) / 8) * math.cos((2 * n + 1) * k * math.pi / 16)
            for n in range(8)
        ]
        for k in range(8)
    ]
)


@ferryvm.kernel
def dct(out, x):
    rows = ferryvm.group_array((8, 8), "f64")
    i, j = ferryvm.local_item(0), ferryvm.local_item(1)
    top, left = ferryvm.group_number(0) * 8, ferryvm.group_number(1) * 8
    total = 0.0
    for k in range(8):
        total += COSINES[i, k] * x[top + k, left + j]
    rows[i, j] = total
    ferryvm.barrier()
    total = 0.0
    for k in range(8):
        total += rows[i, k] * COSINES[j, k]
    out[top + i, left + j] = total


@sample
def cosines() -> Sample:
    x = noise(8, 16)
    blocks = [COSINES @ x[:, at : at + 8] @ COSINES.T for at in (0, 8)]
    out = np.zeros((8, 16))
    return Sample(dct, (8, 16), (8, 8), (out, x), np.hstack(blocks), is_exact=False)


@ferryvm.kernel
def convolve(out, x, weights):
    radius = len(weights) // 2
    tile = ferryvm.group_array(ferryvm.group_size() + len(weights) - 1, "f64")
    i, me = ferryvm.item(), ferryvm.local_item()
    first = ferryvm.group_number() * ferryvm.group_size() - radius
    at = me
    while at < len(tile):
        tile[at] = x[first + at] if 0 <= first + at < len(x) else 0.0
        at += ferryvm.group_size()
    ferryvm.barrier()
    total = 0.0
    for k in range(len(weights)):
        total += weights[k] * tile[me + k]
    out[i] = total


@sample
def convolved() -> Sample:
    x, weights = noise(32), np.array([0.25, 0.5, 1.0, 0.5, 0.25])
    wanted = np.convolve(x, weights, "same")
    return Sample(convolve, 32, 8, (np.zeros(32), x, weights), wanted, is_exact=False)


@ferryvm.kernel
def haar(out, x):
    tile = ferryvm.group_array(16, "f64")
    me = ferryvm.local_item()
    tile[2 * me], tile[2 * me + 1] = x[2 * me], x[2 * me + 1]
    size = 8
    while size > 0:
        ferryvm.barrier()
        mean = difference = 0.0
        if me < size:
            mean = (tile[2 * me] + tile[2 * me + 1]) * 0.5
            difference = (tile[2 * me] - tile[2 * me + 1]) * 0.5
        ferryvm.barrier()
        if me < size:
            tile[me] = mean
            out[size + me] = difference
        size //= 2
    if me == 0:
        out[0] = tile[0]


@sample
def wavelets() -> Sample:
    x = np.arange(16.0) ** 2
    wanted, rest, size = np.zeros(16), x, 8
    while size:
        wanted[size : 2 * size] = (rest[::2] - rest[1::2]) / 2
        rest, size = (rest[::2] + rest[1::2]) / 2, size // 2
    wanted[0] = rest[0]
    return Sample(haar, 8, 8, (np.zeros(16), x), wanted)


@ferryvm.kernel
def shortest(distances):
    i, j = ferryvm.local_item(0), ferryvm.local_item(1)
    tile = ferryvm.group_array((6, 6), "f64")
    tile[i, j] = distances[i, j]
    for k in range(6):
        ferryvm.barrier()
        through = tile[i, k] + tile[k, j]
        ferryvm.barrier()
        tile[i, j] = min(tile[i, j], through)
    distances[i, j] = tile[i, j]


@sample
def paths() -> Sample:
    given = np.abs(noise(6, 6)) * 10
    np.fill_diagonal(given, 0.0)
    wanted = given.copy()
    for k in range(6):
        wanted = np.minimum(wanted, wanted[:, k : k + 1] + wanted[k])
    return Sample(shortest, (6, 6), (6, 6), (given.copy(),), wanted)


@ferryvm.kernel
def attract(force, x, mass):
    tile = ferryvm.group_array((8, 2), "f64")
    i, me = ferryvm.item(), ferryvm.local_item()
    total = 0.0
    for block in range(ferryvm.group_count()):
        tile[me, 0] = x[block * 8 + me]
        tile[me, 1] = mass[block * 8 + me]
        ferryvm.barrier()
        for k in range(8):
            apart = tile[k, 0] - x[i]
            total += tile[k, 1] * apart / (abs(apart) * apart * apart + 0.01)
        ferryvm.barrier()
    force[i] = total


@sample
def bodies() -> Sample:
    x, mass = noise(16), np.arange(16.0)
    apart = x - x[:, None]
    wanted = (mass * apart / (np.abs(apart) * apart * apart + 0.01)).sum(axis=1)
    return Sample(attract, 16, 8, (np.zeros(16), x, mass), wanted, is_exact=False)


@ferryvm.kernel
def mandelbrot(out, limit):
    i, j = ferryvm.item(0), ferryvm.item(1)
    re = -2.0 + 3.0 * j / ferryvm.item_count(1)
    im = -1.5 + 3.0 * i / ferryvm.item_count(0)
    a, b, n = 0.0, 0.0, 0
    while n < limit and a * a + b * b < 4.0:
        a, b, n = a * a - b * b + re, 2.0 * a * b + im, n + 1
    out[i, j] = n


@sample
def points() -> Sample:
    rows, columns, limit = 6, 9, 20
    wanted = np.zeros((rows, columns), np.int16)
    for i, j in np.ndindex(rows, columns):
        z, c = 0j, complex(-2.0 + 3.0 * j / columns, -1.5 + 3.0 * i / rows)
        while wanted[i, j] < limit and abs(z) < 2.0:
            z, wanted[i, j] = z * z + c, wanted[i, j] + 1
    return Sample(mandelbrot, (rows, columns), None, (np.zeros_like(wanted), limit), wanted)
