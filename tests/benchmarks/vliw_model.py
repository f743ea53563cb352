# SPDX-License-Identifier: Apache-2.0
"""What the programs of the vliw benchmark compute, in Python: a function for each, of its sizes.

Operations on floats are in the order of the programs, so results are equal to the last bit.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Sequence

import numpy as np

F32 = np.float32


def states(state: int = 1) -> Iterator[int]:
    """The generator's, as unsigned numbers."""
    while True:
        state = (state * 1664525 + 1013904223) % 2**32
        yield state


def signed(word: int, bits: int) -> int:
    """Two's complement."""
    return word - (1 << bits) if word >> (bits - 1) else word


def weighted(values: Sequence[float]) -> float:
    """The checksum of floats."""
    total = 0.0
    for i, value in enumerate(values):
        total += float(value) * (1 + i % 7)
    return total


def multiply_adds(pairs: Iterator[tuple[np.float32, np.float32]]) -> np.float32:
    """A sum of products, all in f32."""
    total = F32(0)
    for a, b in pairs:
        total = total + a * b
    return total


def dot(n: int, times: int) -> float:
    state = states()
    a, b = ([(next(state) >> 16) / 65536 for _ in range(n)] for _ in range(2))
    total = 0.0
    for _ in range(times):
        total = 0.0
        for x, y in zip(a, b, strict=True):
            total += x * y
        a[0] = total * 0.001
    return total


def fir(n: int, times: int) -> float:
    state = states()
    taps, samples = (
        [F32(signed(next(state), 32) >> 16) / F32(32768) for _ in range(count)]
        for count in (16, n + 15)
    )
    found: list[np.float32] = []
    for turn in range(times):
        found = [multiply_adds(zip(taps, samples[i : i + 16], strict=True)) for i in range(n)]
        samples[turn] = found[0]
    return weighted([float(each) for each in found])


def matmul(n: int, times: int) -> float:
    a = [(i % 13) / 7 for i in range(n * n)]
    b = [(i % 11) / 3 - 1 for i in range(n * n)]
    c: list[float] = []
    for _ in range(times):
        c = []
        for i in range(n):
            for j in range(n):
                total = 0.0
                for k in range(n):
                    total += a[i * n + k] * b[k * n + j]
                c.append(total)
        a[0] = c[0] * 0.001
    total = 0.0
    for each in c:
        total += each
    return total


def cosines() -> list[list[np.float32]]:
    """The table of the transform, a row a frequency."""
    known = [1.0, math.cos(math.pi / 16)]
    while len(known) < 32:
        known.append(2.0 * known[1] * known[-1] - known[-2])
    return [
        [F32((math.sqrt(0.125) if u == 0 else 0.5) * known[(2 * k + 1) * u % 32]) for k in range(8)]
        for u in range(8)
    ]


def transformed(image: list[np.float32], side: int) -> list[np.float32]:
    """The transform of the blocks of an image: of rows, then of columns."""
    table = cosines()
    rows = [
        multiply_adds(zip(table[x % 8], image[y * side + x - x % 8 :][:8], strict=True))
        for y in range(side)
        for x in range(side)
    ]
    return [
        multiply_adds(zip(table[y % 8], rows[(y - y % 8) * side + x :: side][:8], strict=True))
        for y in range(side)
        for x in range(side)
    ]


def pixels(side: int) -> list[np.float32]:
    """The image."""
    state = states()
    return [F32(next(state) >> 24) for _ in range(side * side)]


def dct(side: int, times: int) -> float:
    image = pixels(side)
    found: list[np.float32] = []
    for turn in range(times):
        found = transformed(image, side)
        image[turn] = found[0]
    return weighted([float(each) for each in found])


def looptest(nx: int, ny: int, nz: int) -> int:
    return nx * ny * nz


def crc32(n: int, times: int) -> int:
    state = states()
    content = bytes(next(state) >> 24 for _ in range(n))
    return zlib.crc32(content * times)


def sort(n: int, times: int) -> int:
    state, hashed = states(), 0
    for _ in range(times):
        for each in sorted(signed(next(state), 32) >> 8 for _ in range(n)):
            hashed = (hashed * 31 + each) % 2**64
    return signed(hashed, 64)


MODELS: dict[str, Callable[..., int | float]] = {
    "dot": dot,
    "fir": fir,
    "matmul": matmul,
    "dct": dct,
    "dct-launch": dct,
    "looptest": looptest,
    "crc32": crc32,
    "sort": sort,
}
