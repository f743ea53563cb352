# SPDX-License-Identifier: Apache-2.0
"""Search for the largest error of functions of f64.

    python -m tests.mathematics.search exp [NAME...] [--millions N] [--jobs N] [--seed N]

Operands are drawn from the ranges of the tests, in equal parts, and with random bits from all numbers.
Functions of binary128 (`tests.mathematics.wide`) give the errors, and MPFR confirms the largest of each
range.
"""

from __future__ import annotations

import argparse
import functools
import math
import multiprocessing
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from mpmath import mp, mpf

import ferryvm

from .test_double import BINARY, EXACT, RANGES, Array
from .wide import Worst, worst

PART = 1 << 17
"""Operands that are drawn at a time."""


def samples(name: str, random: np.random.Generator, count: int) -> Iterator[list[Array]]:
    """Operands of each range."""
    if name in BINARY:
        for pairs in BINARY[name]:
            yield list(pairs(random, count))
        return
    for low, high in RANGES[name]:
        yield [random.uniform(low, high, count)]
    bits = random.integers(0, 1 << 64, count, dtype=np.uint64)
    yield [bits.view(np.float64)]


def titles(name: str) -> list[str]:
    """The names of the ranges."""
    if name in BINARY:
        return [f"pairs {place}" for place in range(len(BINARY[name]))]
    return [*(f"[{low}, {high}]" for low, high in RANGES[name]), "all bits"]


@functools.cache
def _compiled(name: str) -> Callable[..., object]:
    names, ones = ("x y", "1.0 1.0") if name in BINARY else ("x", "1.0")
    program = ferryvm.compile(f"(define (f {names}) (f64.{name} {names})) (print! (f {ones}))")
    return ferryvm.Engine("llvm").instantiate(program).f


def examined(name: str, seed: int, count: int, place: int) -> list[Worst]:
    """The largest error in each range, for the part of the operands with a number."""
    random, function = np.random.default_rng((seed, place)), _compiled(name)
    with np.errstate(all="ignore"):  # NaN and infinities are among the operands
        ranges = list(samples(name, random, count))
    return [worst(name, ferryvm.map(function, *each), *each) for each in ranges]


def confirmed(name: str, found: Worst) -> float:
    """The error of a result, by MPFR."""
    if math.isnan(found.operands[0]) or math.isinf(found.error):
        return found.error
    function = "(define (f x y) (f64.{0} x y))" if name in BINARY else "(define (f x) (f64.{0} x))"
    program = ferryvm.compile(function.format(name) + " (print! 0)")
    result = ferryvm.Engine("threaded").instantiate(program).f(*found.operands)
    with mp.workprec(300):
        exact = EXACT[name](*map(mpf, found.operands))
        return float(abs(mpf(result) - exact) / mpf(math.ulp(float(exact))))


def main() -> None:
    """Search, and print a line for each range."""
    parser = argparse.ArgumentParser(prog="python -m tests.mathematics.search")
    parser.add_argument("names", nargs="+", choices=[*RANGES, *BINARY], metavar="NAME")
    parser.add_argument("--millions", type=float, default=1.0, help="operands of a function")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    for name in options.names:
        wanted = math.ceil(options.millions * 1e6 / len(titles(name)))
        parts = math.ceil(wanted / PART)
        found = [Worst(0.0, (math.nan,), 0)] * len(titles(name))
        part = functools.partial(examined, name, options.seed, min(wanted, PART))
        # Threads would wait for each other: NumPy draws operands under the interpreter's lock.
        with ProcessPoolExecutor(options.jobs, multiprocessing.get_context("spawn")) as pool:
            for done, results in enumerate(pool.map(part, range(parts)), 1):
                found = [_together(*pair) for pair in zip(found, results, strict=True)]
                print(f"\r{name} {done} of {parts}", end="", file=sys.stderr)
        print(file=sys.stderr)
        for title, each in zip(titles(name), found, strict=True):
            shown = ", ".join(map(repr, each.operands))
            error = confirmed(name, each)
            print(f"{name} {title}: {error:.4f} at {shown}, {each.wrong} not nearest", flush=True)


def _together(first: Worst, second: Worst) -> Worst:
    larger = max(first, second, key=lambda each: each.error)
    return larger._replace(wrong=first.wrong + second.wrong)


if __name__ == "__main__":
    main()
