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

import numpy as np
from mpmath import mp, mpf

import ferryvm

from .test_double import EXACT, RANGES


def worst(name: str, operands: np.ndarray) -> tuple[float, float, int]:
    """The largest error in units in the last place, its operand, and the number of results that
    are not the nearest f64."""
    program = ferryvm.compile(f"(define (f x) (f64.{name} x)) (print! (f 1.0))")
    function = ferryvm.Engine("llvm").instantiate(program).f
    results = ferryvm.map(function, operands)
    largest, place, wrong = 0.0, math.nan, 0
    with mp.workprec(150):
        for x, y in zip(operands.tolist(), results.tolist(), strict=True):
            exact = EXACT[name](mpf(x))
            nearest = float(exact) if isinstance(exact, mpf) else math.nan
            if not math.isfinite(nearest) or not math.isfinite(y):
                wrong += not (nearest == y or (math.isnan(nearest) and math.isnan(y)))
                continue
            wrong += nearest != y
            error = float(abs(mpf(y) - exact) / mpf(math.ulp(nearest)))
            if error > largest:
                largest, place = error, x
    return largest, place, wrong


def main() -> None:
    """Search, and print a line for each range."""
    parser = argparse.ArgumentParser(prog="python -m tests.mathematics.search")
    parser.add_argument("name", choices=RANGES)
    parser.add_argument("--count", type=int, default=100_000, help="operands of each range")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    random = np.random.default_rng(options.seed)
    samples = {
        f"[{low}, {high}]": random.uniform(low, high, options.count)
        for low, high in RANGES[options.name]
    }
    bits = random.integers(0, 1 << 64, options.count, dtype=np.uint64)
    samples["all bits"] = bits.view(np.float64)
    for title, operands in samples.items():
        error, place, wrong = worst(options.name, operands)
        print(f"{options.name} {title}: {error:.4f} at {place!r}, {wrong} not nearest")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
