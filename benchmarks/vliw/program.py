# SPDX-License-Identifier: Apache-2.0
"""The programs, each with a function, its kernel, that what is of interest happens in.

All but looptest give a number that every element of their results goes into.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from benchmarks.benchmark import PROGRAMS as FOLDER
from benchmarks.benchmark import ROOT, Benchmark, Scale, Size

FULL = Scale.INTERPRETERS
"""What is reported, and how the programs stand in their files."""

DCT, LAUNCH, LOOPTEST = "dct", "dct-launch", "looptest"


@dataclasses.dataclass(frozen=True)
class Simulated(Benchmark):
    """A program of this benchmark; its sizes are those of three scales."""

    kernel: str = ""
    """A function of it."""
    counted: str = ""
    """What a call of the kernel is at full size."""

    def path(self, suffix: str) -> Path:
        return FOLDER / "vliw" / f"{self.name}.{suffix}"


class Example(Simulated):
    """A program of the examples; it prints its result."""

    def path(self, suffix: str) -> Path:
        return ROOT.parent / "examples" / f"{self.name}.{suffix}"


def _size(name: str, stated: str, tiny: int, quick: int, full: int) -> Size:
    return Size(name, stated, tiny, quick, full, full, full, full, full)


def _defined(name: str, tiny: int, quick: int, full: int) -> Size:
    return _size(name, f"(define {name} {{}})", tiny, quick, full)


PROGRAMS: tuple[Simulated, ...] = (
    Simulated(
        "dot",
        "dot product of two vectors of N elements, f64",
        (_defined("N", 10, 100, 1000), _defined("TIMES", 3, 10, 1000)),
        True,
        "dot",
        "1,000 multiply-adds",
    ),
    Simulated(
        "fir",
        "filter of 16 taps over N samples, f32",
        (_defined("N", 10, 64, 1024), _defined("TIMES", 2, 2, 50)),
        True,
        "fir",
        "1,024 times a loop of 16 multiply-adds",
    ),
    Simulated(
        "matmul",
        "product of two N x N matrices, f64",
        (_defined("N", 4, 12, 64), _defined("TIMES", 2, 2, 4)),
        True,
        "multiply",
        "64 x 64 times a loop of 64 multiply-adds",
    ),
    Simulated(
        DCT,
        "cosine transform of the 8 x 8 blocks of SIDE x SIDE pixels, f32",
        (_defined("SIDE", 8, 16, 64), _defined("TIMES", 2, 2, 10)),
        True,
        "dct",
        "both loops of 8 multiply-adds for each of the 4,096 elements",
    ),
    Simulated(
        LAUNCH,
        "the transform of dct as two launches, of rows and of columns of blocks",
        (_defined("SIDE", 8, 16, 64), _defined("TIMES", 2, 2, 10)),
        True,
        "dct",
        "eight times eight multiply-adds in each of 512 iterations, twice",
    ),
    Example(
        LOOPTEST,
        "the triple loop of the examples",
        (
            _size("nx", "(< x {})", 3, 10, 1000),
            _size("ny", "(< y {})", 4, 20, 1000),
            _size("nz", "(< z {})", 5, 100, 100),
        ),
        False,
        "looptest",
        "all of it",
    ),
    Simulated(
        "crc32",
        "CRC-32 of N bytes by a table, a byte at a time",
        (_defined("N", 20, 500, 8192), _defined("TIMES", 2, 2, 50)),
        False,
        "crc32",
        "8,192 bytes",
    ),
    Simulated(
        "sort",
        "insertion sort of N integers",
        (_defined("N", 12, 60, 400), _defined("TIMES", 2, 2, 10)),
        False,
        "sort",
        "400 integers, about 40,000 times round the inner loop",
    ),
)
"""In the order of the tables."""

BY_NAME = {program.name: program for program in PROGRAMS}
