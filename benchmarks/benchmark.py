# SPDX-License-Identifier: Apache-2.0
"""The nine programs: their sizes and where their twins are.

A program is one algorithm written once for each language in benchmarks/programs, with the same
integer widths, the same order of floating-point operations and the same result. Sizes are
parameters of every twin, so that a test can run them all in a moment.
"""

from __future__ import annotations

import dataclasses
import enum
from pathlib import Path

ROOT = Path(__file__).resolve().parent
PROGRAMS = ROOT / "programs"


class BenchmarkError(Exception):
    """The harness or a twin is wrong: a size that cannot be set, a result that cannot be read."""


class Scale(enum.Enum):
    """How large a program is run. Times were about these on the machine of docs/benchmarks.md."""

    TINY = "tiny"
    """The reference backend takes well under a second."""
    QUICK = "quick"
    """A look at whether everything works; also what warms up peers that compile as they run."""
    BRIEF = "brief"
    """`threaded` takes 5 ms."""
    SHORT = "short"
    """`threaded` takes 40 ms."""
    INTERPRETERS = "interpreters"
    """What is reported of interpreters, and how the Skiff twins stand in their files."""
    SCALAR = "scalar"
    """What is reported of compilers."""
    LONG = "long"
    """Native code takes more than a second, except on `loop`, which it folds away."""


@dataclasses.dataclass(frozen=True)
class Size:
    """One parameter of a program, a field for each scale."""

    name: str
    skiff: str
    """The text that sets it in the Skiff twin, with {} for the number."""
    tiny: int
    quick: int
    brief: int
    short: int
    interpreters: int
    scalar: int
    long: int
    listing: str = ""
    """As `skiff`, for the classic listing of programs that have one."""

    def at(self, scale: Scale) -> int:
        """Its value at a scale."""
        value: int = getattr(self, scale.value)
        return value


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

    def at(self, scale: Scale) -> tuple[int, ...]:
        """Its sizes at a scale."""
        return tuple(size.at(scale) for size in self.sizes)

    def skiff(self, sizes: tuple[int, ...]) -> str:
        """The Skiff twin's text with these sizes.

        Raises BenchmarkError when the text does not hold a size exactly once.
        """
        return self._sized("skiff", [size.skiff for size in self.sizes], sizes)

    def listing(self, sizes: tuple[int, ...]) -> str:
        """The same of the classic listing."""
        return self._sized("fasm", [size.listing for size in self.sizes], sizes)

    def _sized(self, suffix: str, patterns: list[str], sizes: tuple[int, ...]) -> str:
        path = self.path(suffix)
        text = path.read_text(encoding="utf-8")
        for size, pattern, value in zip(self.sizes, patterns, sizes, strict=True):
            stated = pattern.format(size.interpreters)
            if text.count(stated) != 1:
                raise BenchmarkError(
                    f"{path}: expected {stated!r} once, found {text.count(stated)}"
                )
            text = text.replace(stated, pattern.format(value))
        return text

    def read(self, text: str) -> int | float:
        """A result from the text that a peer printed."""
        try:
            return float(text) if self.is_float else int(text)
        except ValueError:
            kind = "an f64" if self.is_float else "an i64"
            raise BenchmarkError(f"{self.name}: expected {kind}, found {text!r}") from None


def _defined(name: str, *values: int) -> Size:
    return Size(name, f"(define {name} {{}})", *values)


def _nest(brief: int, short: int, long: int) -> tuple[Size, ...]:
    """Bounds of the triple loop, which stand as literals in its conditions; the outermost one's
    at three scales."""
    return (
        Size("nx", "(< x {})", 3, 100, brief, short, 1000, 1000, long, "PUSH_WORD {} LT JMPF done"),
        Size("ny", "(< y {})", 4, 100, 1000, 1000, 1000, 1000, 1000, "PUSH_WORD {} LT JMPF next_x"),
        Size("nz", "(< z {})", 5, 10, 100, 100, 100, 100, 100, "PUSH_WORD {} LT JMPF next_y"),
    )


_HASHED = _defined("N", 60, 65_536, 524_288, 4_194_304, 16_777_216, 67_108_864, 402_653_184)
_SIEVED = _defined("N", 100, 50_000, 350_000, 2_700_000, 5_000_000, 10_000_000, 150_000_000)

BENCHMARKS: tuple[Benchmark, ...] = (
    Benchmark("loop", "triple nested loop, counting", _nest(17, 134, 1000)),
    Benchmark("loopmix", "the same with a multiplicative mix inside", _nest(11, 87, 12_000)),
    Benchmark("fib", "double recursion", (_defined("N", 8, 22, 27, 31, 32, 35, 44),)),
    Benchmark("sieve", "primes below N", (_SIEVED,)),
    Benchmark(
        "collatz",
        "longest chain below N",
        (_defined("N", 12, 3_000, 8_500, 60_000, 300_000, 1_000_000, 7_000_000),),
    ),
    Benchmark(
        "mandelbrot",
        "N x N points, at most LIMIT iterations",
        (
            _defined("N", 5, 32, 72, 204, 256, 512, 2_800),
            _defined("LIMIT", 8, 200, 200, 200, 200, 200, 200),
        ),
    ),
    Benchmark(
        "nbody",
        "N steps of five bodies",
        (_defined("N", 2, 1_000, 6_000, 48_000, 100_000, 500_000, 20_000_000),),
        True,
    ),
    Benchmark(
        "matmul",
        "TIMES products of N x N matrices",
        (
            _defined("N", 4, 24, 50, 110, 120, 300, 300),
            _defined("TIMES", 2, 2, 4, 3, 10, 10, 90),
        ),
        True,
    ),
    Benchmark("fnv1a", "hash of N bytes", (_HASHED,)),
)
"""In the order of the table."""

BY_NAME = {benchmark.name: benchmark for benchmark in BENCHMARKS}
