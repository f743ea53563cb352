# SPDX-License-Identifier: Apache-2.0
"""Make a function's sample: operands and correctly rounded results, by MPFR.

    python -m tests.mathematics.exhaustive exp_f32 --hard hard
    python -m tests.mathematics.sample exp_f32 hard

The sample has special operands, the operands whose exact results are nearest to the middle of two
floats, and pseudo-random ones. `tests/mathematics/test_sample.py` compares meanings with it.
"""

from __future__ import annotations

import argparse
import random
import struct
from collections.abc import Iterable
from pathlib import Path

import gmpy2
from tests.mathematics.function import FUNCTIONS, exact, number
from tests.mathematics.meaning import operand_count

from ferryvm.isa.mathematics.single import coefficient

FOLDER = Path("tests/mathematics/sample")

SPECIAL = [
    0x0000_0000,  # zero
    0x0000_0001,  # the least subnormal number
    0x007F_FFFF,  # the largest one
    0x0080_0000,  # the least normal number
    0x7F7F_FFFF,  # the largest number
    0x7F80_0000,  # infinity
    0x7F80_0001,  # signaling NaN
    0x7FC0_0001,  # NaN with a payload
    *(
        struct.unpack("<I", struct.pack("<f", each))[0]
        for each in (0.5, 1, 1.5, 2, 3, 10, 100, 1e10)
    ),
    0x3F80_0001,
    0x3F7F_FFFF,
]
"""Without signs."""

HARDEST, RANDOM, PAIRS = 120, 60, 200

SIGN = 1 << 31


def distance(name: str, operand: int) -> float:
    """Distance of the exact result from the middle of two floats, in floats' units."""
    with gmpy2.context(precision=200):
        value = getattr(gmpy2, name.removesuffix("_f32"))(gmpy2.mpfr(number(operand)))
    if not gmpy2.is_finite(value) or value == 0:
        return 1.0
    mantissa, _ = gmpy2.frexp(value)[::-1]
    scaled = abs(mantissa) * 2**24
    return float(abs(scaled - gmpy2.floor(scaled) - 0.5))


def operands(name: str, hard: Iterable[int]) -> list[int]:
    """The operands of a sample, without repetition."""
    source = random.Random(name)
    hardest = sorted(hard, key=lambda each: distance(name, each))[:HARDEST]
    pairs = getattr(coefficient, f"{name.removesuffix('_f32').upper()}_EXCEPTIONS", ())
    found = [
        *(each | sign for each in SPECIAL for sign in (0, SIGN)),
        *(operand for operand, _ in pairs),
        *hardest,
        # around 1, where most functions are interesting, and anywhere
        *(
            source.randrange(0x3000_0000, 0x4300_0000) | source.choice((0, SIGN))
            for _ in range(RANDOM)
        ),
        *(source.randrange(1 << 32) for _ in range(RANDOM)),
    ]
    return list(dict.fromkeys(found))


def pairs(hard: Path) -> list[tuple[int, int]]:
    """The pairs of a sample: special ones, ones that MPFR decided, and pseudo-random ones."""
    source = random.Random(hard.name)
    rows = [tuple(int(each, 16) for each in line.split()) for line in hard.read_text().splitlines()]
    special = [each | sign for each in SPECIAL for sign in (0, SIGN)]
    found = [
        *((a, b) for a in special for b in special),
        *source.sample(rows, min(len(rows), PAIRS)),
        *(
            (source.randrange(0x3C00_0000, 0x4300_0000), source.randrange(0x3C00_0000, 0x4300_0000))
            for _ in range(PAIRS)
        ),
    ]
    return list(dict.fromkeys(found))


def main() -> None:
    """Write a sample."""
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=FUNCTIONS)
    parser.add_argument("hard", type=Path)
    options = parser.parse_args()
    if operand_count(options.name) == 2:
        _write(options.name, pairs(options.hard))
        return
    hard = [int(line, 16) for line in options.hard.read_text().split()]
    _write(options.name, [(each,) for each in operands(options.name, hard)])


def _write(name: str, rows: Iterable[tuple[int, ...]]) -> None:
    lines = [" ".join(f"{each:08x}" for each in (*row, exact(name, *row))) for row in rows]
    (FOLDER / f"{name}.txt").write_text("\n".join([*lines, ""]))


if __name__ == "__main__":
    main()
