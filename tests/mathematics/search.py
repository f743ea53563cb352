# SPDX-License-Identifier: Apache-2.0
"""Search for the largest error of functions of f64.

    python -m tests.mathematics.search exp [NAME...] [--millions N] [--jobs N] [--seed N] [--fresh]

Operands are drawn from the ranges of the tests, in equal parts, and with random bits from all
numbers. Functions of binary128 (`tests.mathematics.wide`) give the errors, and MPFR confirms the
largest of each range. A finished part is noted in a file, so that a search that was stopped goes
on; `--fresh` begins again.
"""

from __future__ import annotations

import argparse
import functools
import math
import multiprocessing
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from mpmath import mp, mpf

import ferryvm
from ferryvm.isa.mathematics import FUNCTIONS
from ferryvm.isa.type import F64

from .c_function import functions
from .progress import Progress
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
    parser.add_argument("--fresh", action="store_true", help="forget finished parts")
    options = parser.parse_args()
    for name in options.names:
        wanted = math.ceil(options.millions * 1e6 / len(titles(name)))
        count = min(wanted, PART)
        progress = Progress(
            f"search-{name}", f"{_text(name)} {options.seed} {count}", options.fresh
        )
        parts = range(math.ceil(wanted / PART))
        part = functools.partial(examined, name, options.seed, count)
        left = [place for place in parts if place not in progress.parts]
        # Threads would wait for each other: NumPy draws operands under the interpreter's lock.
        with ProcessPoolExecutor(options.jobs, multiprocessing.get_context("spawn")) as pool:
            for place, results in zip(left, pool.map(part, left), strict=True):
                progress.add({"first": place, "worst": results})
                print(f"\r{name} {len(progress.parts)} of {len(parts)}", end="", file=sys.stderr)
        rows = ([_read(row) for row in progress.parts[place]["worst"]] for place in parts)
        found = [functools.reduce(_together, column) for column in zip(*rows, strict=True)]
        print(file=sys.stderr)
        for title, each in zip(titles(name), found, strict=True):
            shown = ", ".join(map(repr, each.operands))
            error = confirmed(name, each)
            print(f"{name} {title}: {error:.4f} at {shown}, {each.wrong} not nearest", flush=True)


def _text(name: str) -> str:
    """The meaning, as C."""
    function = FUNCTIONS[f"f64.{name}"]
    return functions([("meaning", function.meaning, len(function.parameters))], F64)


def _read(row: list[Any]) -> Worst:
    error, operands, wrong = row
    return Worst(error, tuple(operands), wrong)


def _together(first: Worst, second: Worst) -> Worst:
    larger = max(first, second, key=lambda each: each.error)
    return larger._replace(wrong=first.wrong + second.wrong)


if __name__ == "__main__":
    main()
