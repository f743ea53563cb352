# SPDX-License-Identifier: Apache-2.0
"""Look for neighbours at which a function of f64 is not monotonic, around the seams of its meaning.

    python -m tests.mathematics.monotonic sin [--count N]

Around each seam N consecutive f64 are applied. Between two extremes of the exact function the
results must not go back. Seams are where the reduction takes another multiple, where another
reduction begins, and zero.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
from mpmath import mp

import ferryvm

LONGEST = 2.0**20
"""Where the reduction of huge angles begins."""

MULTIPLES = (*range(1, 9), 101, 1001, 100_001, 667_543)
"""Of pi/4, in units of which extremes and seams of sin, cos and tan lie."""


def seams() -> list[float]:
    """Operands around which neighbours are compared."""
    quarters = [float(n * mp.pi / 4) for n in MULTIPLES]
    halfway = [float((n + 0.5) * mp.pi / 4) for n in MULTIPLES]
    return [0.0, 2.0**-28, 2.0**-14, 1.0, *quarters, *halfway, LONGEST]


def neighbours(x: float, count: int) -> np.ndarray:
    """So many consecutive f64 around one that is not negative."""
    middle = int(np.float64(x).view(np.int64))
    first = max(0, middle - count // 2)
    return np.arange(first, first + count, dtype=np.int64).view(np.float64)


def directions(name: str, operands: np.ndarray) -> np.ndarray:
    """The sign of the derivative between each operand and the next one; 0 where an extreme or a pole
    may be between them."""
    with mp.workprec(1200):
        quarter = [int(mp.floor(x / (mp.pi / 2))) for x in (operands[0], operands[-1])]
        turns = {n: float(n * mp.pi / 2) for n in range(quarter[0], quarter[1] + 2)}
    found = np.zeros(operands.size - 1, np.int8)
    for n in range(quarter[0], quarter[1] + 1):
        inside = (operands[:-1] > turns[n]) & (operands[1:] < turns[n + 1])
        sign = {"sin": (1, -1, -1, 1), "cos": (-1, -1, 1, 1), "tan": (1, 1, 1, 1)}[name][n % 4]
        found[inside] = sign
    return found


def wrong(name: str, count: int) -> list[tuple[float, float, float]]:
    """Operands from which the function goes back, with its results there and at the next one."""
    program = ferryvm.compile(f"(define (f x) (f64.{name} x)) (print! (f 1.0))")
    function = ferryvm.Engine("llvm").instantiate(program).f
    found = []
    for seam in seams():
        operands = neighbours(seam, count)
        results = ferryvm.map(function, operands)
        steps = np.diff(results) * directions(name, operands)
        for place in np.flatnonzero(steps < 0):
            here = int(place)
            found.append((float(operands[here]), float(results[here]), float(results[here + 1])))
    return found


def main() -> None:
    """Compare and print; exit code 1 if the function goes back."""
    parser = argparse.ArgumentParser(prog="python -m tests.mathematics.monotonic")
    parser.add_argument("name", choices=["sin", "cos", "tan"])
    parser.add_argument("--count", type=int, default=1 << 20, help="neighbours around each seam")
    options = parser.parse_args()
    found = wrong(options.name, options.count)
    for operand, here, after in found[:20]:
        print(f"  at {operand!r}: {here!r}, then {after!r}")
    print(f"{options.name}: {len(seams())} seams, {options.count} each: {len(found)} steps back")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
