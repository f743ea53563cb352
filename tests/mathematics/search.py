# SPDX-License-Identifier: Apache-2.0
"""Search for the largest error of functions of f64.

    python -m tests.mathematics.search exp [--count N] [--seed N]

Operands are drawn from the ranges of the tests, and with random bits from all numbers. The exact
result comes from mpmath in 150 bits, many times faster where gmpy2 is installed.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator

import numpy as np
from mpmath import mp, mpf

import ferryvm

from .test_double import BINARY, EXACT, RANGES, Array


def worst(name: str, *operands: Array) -> tuple[float, tuple[float, ...], int]:
    """The largest error in units in the last place, its operands, and the number of results that
    are not the nearest f64."""
    names = "x y" if len(operands) == 2 else "x"
    ones = "1.0 1.0" if len(operands) == 2 else "1.0"
    program = ferryvm.compile(f"(define (f {names}) (f64.{name} {names})) (print! (f {ones}))")
    function = ferryvm.Engine("llvm").instantiate(program).f
    results = ferryvm.map(function, *operands)
    largest, place, wrong = 0.0, (math.nan,), 0
    with mp.workprec(150):
        for y, *x in zip(results.tolist(), *(each.tolist() for each in operands), strict=True):
            exact = EXACT[name](*map(mpf, x))
            nearest = float(exact) if isinstance(exact, mpf) else math.nan
            if not math.isfinite(nearest) or not math.isfinite(y):
                wrong += not (nearest == y or (math.isnan(nearest) and math.isnan(y)))
                continue
            wrong += nearest != y
            error = float(abs(mpf(y) - exact) / mpf(math.ulp(nearest)))
            if error > largest:
                largest, place = error, tuple(x)
    return largest, place, wrong


def samples(
    name: str, random: np.random.Generator, count: int
) -> Iterator[tuple[str, list[Array]]]:
    """Ranges by name, and operands of each."""
    if name in BINARY:
        for place, pairs in enumerate(BINARY[name]):
            yield f"pairs {place}", list(pairs(random, count))
        return
    for low, high in RANGES[name]:
        yield f"[{low}, {high}]", [random.uniform(low, high, count)]
    bits = random.integers(0, 1 << 64, count, dtype=np.uint64)
    yield "all bits", [bits.view(np.float64)]


def main() -> None:
    """Search, and print a line for each range."""
    parser = argparse.ArgumentParser(prog="python -m tests.mathematics.search")
    parser.add_argument("name", choices=[*RANGES, *BINARY])
    parser.add_argument("--count", type=int, default=100_000, help="operands of each range")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    random = np.random.default_rng(options.seed)
    for title, operands in samples(options.name, random, options.count):
        error, place, wrong = worst(options.name, *operands)
        shown = ", ".join(map(repr, place))
        print(f"{options.name} {title}: {error:.4f} at {shown}, {wrong} not nearest")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
