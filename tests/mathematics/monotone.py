# SPDX-License-Identifier: Apache-2.0
"""Compare results of f64 functions for neighbouring operands: a rising function must not fall,
and sin, cos and tan not between two extremes or poles.

    python -m tests.mathematics.monotone [NAME...] [--operands 10000000]

The operands are those of `tests.mathematics.hard`, on llvm, each with the next larger number. What
is correctly rounded, as f32 functions of one operand are, is monotonic by that.
"""

from __future__ import annotations

import argparse
import math
import sys

import numpy as np
from numpy.typing import NDArray
from tests.mathematics.agree import PART, Place
from tests.mathematics.hard import operands

from ferryvm.isa.mathematics import FUNCTIONS
from ferryvm.isa.mathematics.double.coefficient import PI_2_REST

RISING = [
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "asin",
    "atan",
    "sinh",
    "tanh",
    "cbrt",
    "erf",
]
FALLING = ["acos", "erfc"]
PERIODIC = {"sin": (1, -1, -1, 1), "cos": (-1, -1, 1, 1), "tan": (1, 1, 1, 1)}
"""The sign of the derivative in each quarter of a turn; operands up to 2^20."""

EVERY = [*RISING, *FALLING, *PERIODIC]


def direction(name: str, x: NDArray[np.float64], after: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sign of the derivative between an operand and the next larger one; 0 where an extreme or
    a pole is near enough to be there."""
    if name not in PERIODIC:
        return np.full(x.shape, -1.0 if name in FALLING else 1.0)
    # 11 bits more than f64 has: the error of a number of quarters is below 2^-42.
    quarter = np.longdouble(math.pi) / 2 + np.longdouble(PI_2_REST)
    margin = np.longdouble(2.0**-40)
    is_small = np.abs(x) < 2.0**20
    safe, safe_after = np.where(is_small, x, 0.0), np.where(is_small, after, 0.0)
    first = np.floor(safe.astype(np.longdouble) / quarter - margin).astype(np.int64)
    last = np.floor(safe_after.astype(np.longdouble) / quarter + margin).astype(np.int64)
    signs = np.array(PERIODIC[name], dtype=np.float64)[first % 4]
    return np.where(is_small & (first == last), signs, 0.0)


def violations(name: str, count: int, backend: str = "llvm") -> list[float]:
    """Operands of an f64 function whose results are on the wrong side of the next operand's."""
    place = Place.of(FUNCTIONS[f"f64.{name}"], backend)
    found: list[float] = []
    for first in range(0, count, PART):
        (words,) = operands(place.function, first, min(PART, count - first))
        x = words.view(np.float64)
        with np.errstate(all="ignore"):  # NaN and infinities are among the operands
            after = np.nextafter(x, np.inf)
            following = after.view(np.uint64)
            here, there = (place.results([each]).view(np.float64) for each in (words, following))
            is_wrong = (there - here) * direction(name, x, after) < 0
        found += x[is_wrong].tolist()
    return found


def main() -> None:
    """Compare and print; exit code 1 if a function is not monotonic."""
    parser = argparse.ArgumentParser(prog="python -m tests.mathematics.monotone")
    parser.add_argument("names", nargs="*", metavar="NAME", help="erf and so on; default: all")
    parser.add_argument("--operands", type=int, default=10_000_000, help="of each function")
    options = parser.parse_args()
    names = options.names or EVERY
    unknown = [name for name in names if name not in EVERY]
    if unknown:
        parser.error(f"no function {', '.join(unknown)}; there are {', '.join(EVERY)}")
    failed = False
    for name in names:
        found = violations(name, options.operands)
        failed |= bool(found)
        text = f"{len(found)} on the wrong side: {found[0].hex()}" if found else "monotonic"
        print(f"f64.{name}: {options.operands:,} operands, {text}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
