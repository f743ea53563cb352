# SPDX-License-Identifier: Apache-2.0
"""Compare results of f64 functions for neighbouring operands: a rising function must not fall.

    python -m tests.mathematics.monotone [NAME...] [--operands 10000000]

The operands are those of `tests.mathematics.hard`, on llvm, each with the next larger number. What is
correctly rounded, as f32 functions of one operand are, is monotonic by that.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
from tests.mathematics.agree import PART, Place
from tests.mathematics.hard import operands

from ferryvm.isa.mathematics import FUNCTIONS

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


def violations(name: str, count: int, backend: str = "llvm") -> list[float]:
    """Operands of an f64 function whose results are on the wrong side of the next operand's."""
    place = Place.of(FUNCTIONS[f"f64.{name}"], backend)
    found: list[float] = []
    for first in range(0, count, PART):
        (words,) = operands(place.function, first, min(PART, count - first))
        x = words.view(np.float64)
        with np.errstate(all="ignore"):  # NaN and infinities are among the operands
            following = np.nextafter(x, np.inf).view(np.uint64)
            here, there = (place.results([each]).view(np.float64) for each in (words, following))
            is_wrong = here < there if name in FALLING else here > there
        found += x[is_wrong].tolist()
    return found


def main() -> None:
    """Compare and print; exit code 1 if a function is not monotonic."""
    parser = argparse.ArgumentParser(prog="python -m tests.mathematics.monotone")
    parser.add_argument("names", nargs="*", metavar="NAME", help="erf and so on; default: all")
    parser.add_argument("--operands", type=int, default=10_000_000, help="of each function")
    options = parser.parse_args()
    names = options.names or [*RISING, *FALLING]
    unknown = [name for name in names if name not in (*RISING, *FALLING)]
    if unknown:
        parser.error(f"no function {', '.join(unknown)}; there are {', '.join(RISING + FALLING)}")
    failed = False
    for name in names:
        found = violations(name, options.operands)
        failed |= bool(found)
        text = f"{len(found)} on the wrong side: {found[0].hex()}" if found else "monotonic"
        print(f"f64.{name}: {options.operands:,} operands, {text}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
