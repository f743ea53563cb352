# SPDX-License-Identifier: Apache-2.0
"""The nine programs: their sizes and where their twins are.

A program is one algorithm written once for each language in benchmarks/programs, with the same
integer widths, the same order of floating-point operations and the same result. Sizes are
parameters of every twin, so that a test can run them all in a moment.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

ROOT = Path(__file__).resolve().parent
PROGRAMS = ROOT / "programs"


class BenchmarkError(Exception):
    """The harness or a twin is wrong: a size that cannot be set, a result that cannot be read."""


@dataclasses.dataclass(frozen=True)
class Size:
    """One parameter of a program."""

    name: str
    full: int
    quick: int
    tiny: int
    skiff: str
    """The text that sets the full size in the Skiff twin, with {} for the number."""


@dataclasses.dataclass(frozen=True)
class Benchmark:
    """A program of the suite."""

    name: str
    summary: str
    sizes: tuple[Size, ...]
    is_float: bool = False
    """Whether the result is an f64, otherwise it is an i64."""

    def path(self, suffix: str) -> Path:
        """Where the twin with that file name suffix is (or would be)."""
        return PROGRAMS / f"{self.name}.{suffix}"

    @property
    def full(self) -> tuple[int, ...]:
        """The sizes that are reported."""
        return tuple(size.full for size in self.sizes)

    @property
    def quick(self) -> tuple[int, ...]:
        """Sizes for a look at whether everything works."""
        return tuple(size.quick for size in self.sizes)

    @property
    def tiny(self) -> tuple[int, ...]:
        """Sizes that the reference backend runs in well under a second."""
        return tuple(size.tiny for size in self.sizes)

    def skiff(self, sizes: tuple[int, ...]) -> str:
        """The Skiff twin's text with these sizes.

        Raises BenchmarkError when the text does not hold a size exactly once.
        """
        path = self.path("skiff")
        text = path.read_text(encoding="utf-8")
        for size, value in zip(self.sizes, sizes, strict=True):
            stated = size.skiff.format(size.full)
            if text.count(stated) != 1:
                raise BenchmarkError(
                    f"{path}: expected {stated!r} once, found {text.count(stated)}"
                )
            text = text.replace(stated, size.skiff.format(value))
        return text

    def read(self, text: str) -> int | float:
        """A result from the text that a peer printed."""
        try:
            return float(text) if self.is_float else int(text)
        except ValueError:
            kind = "an f64" if self.is_float else "an i64"
            raise BenchmarkError(f"{self.name}: expected {kind}, found {text!r}") from None


def _defined(name: str, full: int, quick: int, tiny: int) -> Size:
    return Size(name, full, quick, tiny, f"(define {name} {{}})")


def _nest() -> tuple[Size, ...]:
    """Bounds of the triple loop, which stand as literals in its conditions."""
    return (
        Size("nx", 1000, 100, 3, "(< x {})"),
        Size("ny", 1000, 100, 4, "(< y {})"),
        Size("nz", 100, 10, 5, "(< z {})"),
    )


BENCHMARKS: tuple[Benchmark, ...] = (
    Benchmark("loop", "triple nested loop, 1000 x 1000 x 100", _nest()),
    Benchmark("loopmix", "the same with a multiplicative mix inside", _nest()),
    Benchmark("fib", "fib(32) by double recursion", (_defined("N", 32, 22, 8),)),
    Benchmark("sieve", "primes below 5 million", (_defined("N", 5_000_000, 50_000, 100),)),
    Benchmark("collatz", "longest chain below 300,000", (_defined("N", 300_000, 3_000, 12),)),
    Benchmark(
        "mandelbrot",
        "256 x 256 points, at most 200 iterations",
        (_defined("N", 256, 32, 5), _defined("LIMIT", 200, 200, 8)),
    ),
    Benchmark("nbody", "100,000 steps of five bodies", (_defined("N", 100_000, 1_000, 2),), True),
    Benchmark(
        "matmul",
        "10 products of 120 x 120 matrices",
        (_defined("N", 120, 24, 4), _defined("TIMES", 10, 2, 2)),
        True,
    ),
    Benchmark("fnv1a", "hash of 16 MB", (_defined("N", 16_777_216, 65_536, 60),)),
)
"""In the order of the table."""

BY_NAME = {benchmark.name: benchmark for benchmark in BENCHMARKS}
