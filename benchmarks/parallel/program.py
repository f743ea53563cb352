# SPDX-License-Identifier: Apache-2.0
"""The programs of data-parallel work, their sizes and their arrays; the twins are in
benchmarks/programs/parallel.

Each twin has a function `work` of numbers and arrays, which stores its results in arrays. The order
of floating-point operations is that of the Skiff twin, so all results are equal to the last bit.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy

from benchmarks.benchmark import PROGRAMS as FOLDER

Array = numpy.ndarray[tuple[int, ...], numpy.dtype[numpy.generic]]
Argument = int | float | Array

SEED = 20260823
"""Of the numbers in arrays."""


@dataclasses.dataclass(frozen=True)
class Work:
    """The arguments of `work`, and what of them it stores into."""

    arguments: tuple[Argument, ...]
    results: tuple[int, ...]
    """Positions of the arrays that hold the results."""
    made: list[Array] = dataclasses.field(default_factory=list)
    """Arrays that the program has made and returned."""

    def fresh(self) -> Work:
        """The same work with arrays of results of its own; arrays that are only read are shared."""
        own = list(self.arguments)
        for position in self.results:
            own[position] = self.array(position).copy()
        return Work(tuple(own), self.results)

    def restore(self, original: Work) -> None:
        """Make the arrays of results what they were at the start."""
        for position in self.results:
            self.array(position)[...] = original.array(position)
        self.made.clear()

    def array(self, position: int) -> Array:
        """The array at a position of the arguments."""
        found = self.arguments[position]
        assert isinstance(found, numpy.ndarray)
        return found

    def bits(self) -> list[bytes]:
        """Hashes of the results."""
        found = (*(self.array(position) for position in self.results), *self.made)
        return [hashlib.blake2b(array.data).digest() for array in found]


@dataclasses.dataclass(frozen=True)
class Call:
    """A run of a kernel in OpenCL C."""

    arguments: tuple[Argument, ...]
    range: tuple[int, ...]
    """The work-items, in several dimensions."""
    kernel: str = "item"
    local: tuple[int, ...] | None = None
    """The work-items of a group; None for any."""


def _one(work: Work) -> list[Call]:
    """A kernel with a work-item for each item."""
    count = work.arguments[0]
    assert isinstance(count, int)
    return [Call(work.arguments, (count,))]


@dataclasses.dataclass(frozen=True)
class Twin:
    """A program that is written once for each language."""

    name: str
    full: int
    small: int
    tiny: int
    """What a test runs."""
    make: Callable[[int], Work]
    """The work of a size."""
    kernels: Callable[[Work], list[Call]] = _one
    """The kernels in OpenCL C that do the work, one after another."""
    makes: bool = False
    """True if the result is an array that `work` makes, of `n` f64; it is an argument of the last
    kernel, the last one."""

    peer: str = ""
    """The name of the twin in other languages than Skiff, if it is another one."""

    def path(self, suffix: str) -> Path:
        """Where the twin with a file name's suffix is."""
        name = self.name if suffix == "skiff" else self.peer or self.name
        return FOLDER / "parallel" / f"{name}.{suffix}"

    def source(self, suffix: str) -> str:
        """The text of the twin with a file name's suffix."""
        return self.path(suffix).read_text(encoding="utf-8")

    def size(self, name: str) -> int:
        """The size by its name: full, small or tiny."""
        return {"full": self.full, "small": self.small, "tiny": self.tiny}[name]


def uniform(count: int, low: float, high: float, stream: int) -> Array:
    """Random f64 of [low, high); `stream` tells arrays of one program apart."""
    return numpy.random.default_rng((SEED, stream)).uniform(low, high, count)


def _daxpy(n: int) -> Work:
    x, y = uniform(n, -1.0, 1.0, 0), uniform(n, -1.0, 1.0, 1)
    return Work((n, 2.5, x, y, numpy.zeros(n)), (4,))


def _blackscholes(n: int) -> Work:
    price, strike = uniform(n, 10.0, 50.0, 0), uniform(n, 10.0, 50.0, 1)
    years = uniform(n, 0.25, 4.0, 2)
    both = numpy.zeros(n), numpy.zeros(n)
    return Work((n, 0.02, 0.3, price, strike, years, *both), (6, 7))


def _nbody(n: int) -> Work:
    bodies = 32 * n
    places = (uniform(bodies, -1.0, 1.0, stream) for stream in range(3))
    mass = uniform(bodies, 0.5, 1.5, 3)
    return Work((n, bodies, *places, mass, *(numpy.zeros(n) for _ in range(3))), (6, 7, 8))


def _dft(n: int) -> Work:
    both = uniform(n, -1.0, 1.0, 0), uniform(n, -1.0, 1.0, 1)
    return Work((n, *both, numpy.zeros(n), numpy.zeros(n)), (3, 4))


def _mandelbrot(size: int) -> Work:
    return Work((size, 256, numpy.zeros(size * size, numpy.int32)), (2,))


def _kmeans(n: int) -> Work:
    points = uniform(n, 0.0, 1.0, 0), uniform(n, 0.0, 1.0, 1)
    centres = uniform(5, 0.0, 1.0, 2), uniform(5, 0.0, 1.0, 3)
    return Work((n, 5, *points, *centres, numpy.zeros(n, numpy.int32)), (6,))


def _hilbert(size: int) -> Work:
    return Work((size, numpy.zeros(size * size)), (1,))


def _spectralnorm(n: int) -> Work:
    return Work((n, uniform(n, 0.5, 1.5, 0), numpy.zeros(n)), (2,))


def _reduce(n: int) -> Work:
    return Work((n, uniform(n, -1.0, 1.0, 0), numpy.zeros(1)), (2,))


def _scan(n: int) -> Work:
    return Work((n, uniform(n, -1.0, 1.0, 0)), ())


def _histogram(n: int) -> Work:
    return Work((n, 1024.0, uniform(n, 0.0, 1.0, 0), numpy.zeros(1024, numpy.int32)), (3,))


def _square(work: Work) -> list[Call]:
    size = work.arguments[0]
    assert isinstance(size, int)
    return [Call(work.arguments, (size, size))]


def _stencil(size: int) -> Work:
    grid = uniform(size * size, 0.0, 1.0, 0)
    times = 100 if size > 1000 else 10
    return Work((size, times, grid, grid.copy()), (2, 3))


def _sweeps(work: Work) -> list[Call]:
    size, times, a, b = work.arguments
    assert isinstance(size, int)
    assert isinstance(times, int)
    points = size - 2, size - 2
    return [Call((size, a, b), points), Call((size, b, a), points)] * (times // 2)


def _levels(work: Work) -> list[Call]:
    """The levels of a reduction, until one value is left."""
    n, x, to = work.arguments
    assert isinstance(n, int)
    found: list[Call] = []
    while True:
        blocks = -(-n // 1024)
        results = to if blocks == 1 else numpy.empty(blocks)
        found.append(Call((n, x, results), (blocks,), "level"))
        if blocks == 1:
            return found
        n, x = blocks, results


def _scans(work: Work) -> list[Call]:
    """The scan of an array into a new one, and of the last results of its blocks."""
    n, x = work.arguments
    assert isinstance(n, int)
    to, blocks = numpy.empty(n), -(-n // 256)
    last = numpy.empty(blocks)
    scanned = Call((n, x, last, to), (blocks,), "blocks")
    if blocks == 1:
        return [scanned]
    before = _scans(Work((blocks, last), ()))
    return [scanned, *before, Call((n, before[-1].arguments[-1], to), (blocks - 1,), "combine")]


TWINS = (
    Twin("daxpy", 1 << 23, 1 << 19, 300, _daxpy),
    Twin("blackscholes", 1 << 20, 1 << 16, 300, _blackscholes),
    Twin("nbody", 4096, 256, 8, _nbody),
    Twin("dft", 10_240, 640, 100, _dft),
    Twin("mandelbrot", 1024, 192, 20, _mandelbrot, _square),
    Twin("kmeans", 1 << 22, 1 << 18, 300, _kmeans),
    Twin("hilbert", 4096, 512, 20, _hilbert, _square),
    Twin("spectralnorm", 32_000, 1600, 80, _spectralnorm),
    Twin("reduce", 1 << 26, 1 << 20, 40_000, _reduce, _levels),
    Twin("scan", 1 << 26, 1 << 20, 40_000, _scan, _scans, makes=True),
    Twin("histogram", 1 << 24, 1 << 18, 300, _histogram),
    Twin("stencil", 4096, 512, 20, _stencil, _sweeps),
    Twin("hilbert-2d", 4096, 512, 20, _hilbert, _square, peer="hilbert"),
    Twin("stencil-2d", 4096, 512, 20, _stencil, _sweeps, peer="stencil"),
)
BY_NAME = {twin.name: twin for twin in TWINS}
