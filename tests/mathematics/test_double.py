# SPDX-License-Identifier: Apache-2.0
"""Functions of f64: errors below one unit in the last place, on a sample."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf

import ferryvm
from ferryvm.isa.evaluation import PythonArithmetic
from ferryvm.isa.mathematics import FUNCTIONS
from ferryvm.isa.mathematics.double import coefficient

from .double.__main__ import text

COUNT = 500
"""Operands of each range."""

RANGES = {
    "exp2": [(-1074.0, 1023.9), (-1.0, 1.0), (-1e-3, 1e-3)],
    "expm1": [(-40.0, 709.7), (-1.0, 1.0), (-1e-3, 1e-3), (-1e-18, 1e-18)],
    "exp": [(-745.0, 709.7), (-1.0, 1.0), (-1e-3, 1e-3)],
    "sinh": [(-710.0, 710.0), (-1.0, 1.0), (-1e-3, 1e-3), (-1e-300, 1e-300)],
    "cosh": [(-710.0, 710.0), (-1.0, 1.0), (-1e-3, 1e-3)],
    "tanh": [(-20.0, 20.0), (-1.0, 1.0), (-1e-3, 1e-3), (-1e-300, 1e-300)],
    "cbrt": [(-1e3, 1e3), (-1e-307, 1e-307), (1e300, 1e308)],
    "sin": [(-4.0, 4.0), (-0.8, 0.8), (-1e6, 1e6), (-1e300, 1e300), (-1e-300, 1e-300)],
    "cos": [(-4.0, 4.0), (-0.8, 0.8), (-1e6, 1e6), (-1e300, 1e300)],
    "tan": [(-4.0, 4.0), (-0.8, 0.8), (-1e6, 1e6), (-1e300, 1e300), (-1e-300, 1e-300)],
    "log1p": [(-0.999, 1e3), (-0.3, 0.5), (-1e-3, 1e-3), (-1e-18, 1e-18)],
    "log2": [(1e-3, 1e3), (0.7, 1.5), (0.99, 1.01), (0.0, 1e-307)],
    "log10": [(1e-3, 1e3), (0.7, 1.5), (0.99, 1.01), (0.0, 1e-307)],
    "log": [(1e-3, 1e3), (0.7, 1.5), (0.99, 1.01), (0.0, 1e-307)],
    "erf": [(-6.0, 6.0), (-1.0, 1.0), (0.7, 0.8), (-1e-3, 1e-3), (-1e-307, 1e-307)],
    "erfc": [(-6.0, 27.3), (-1.0, 1.0), (0.7, 0.8), (1.0, 4.0), (26.5, 27.3)],
}

EXACT: dict[str, Callable[[Any], Any]] = {
    "exp": mp.exp,
    "exp2": lambda x: mp.power(2, x),
    "expm1": mp.expm1,
    "log": mp.log,
    "log10": mp.log10,
    "sin": mp.sin,
    "cos": mp.cos,
    "tan": mp.tan,
    "log1p": mp.log1p,
    "cbrt": lambda x: mp.sign(x) * mp.cbrt(abs(x)),
    "cosh": mp.cosh,
    "sinh": mp.sinh,
    "tanh": mp.tanh,
    "erf": mp.erf,
    "erfc": mp.erfc,
    "log2": lambda x: mp.log(x, 2),
}
"""Functions of mpmath."""


def test_every_function_of_f64_has_ranges() -> None:
    unary = {n for n, each in FUNCTIONS.items() if len(each.parameters) == 1}
    assert {f"f64.{name}" for name in RANGES} == {n for n in unary if n.startswith("f64")}


@pytest.mark.parametrize("name", RANGES)
def test_errors_are_below_one_unit_in_the_last_place(name: str) -> None:
    program = ferryvm.compile(f"(define (f x) (f64.{name} x)) (print! (f 1.0))")
    function = ferryvm.Engine("threaded").instantiate(program).f
    random = np.random.default_rng(2026)
    for low, high in RANGES[name]:
        operands = random.uniform(low, high, COUNT)
        results = ferryvm.map(function, operands)
        with mp.workprec(150):
            for x, y in zip(operands.tolist(), results.tolist(), strict=True):
                exact = EXACT[name](mpf(x))
                assert abs(mpf(y) - exact) < 0.8 * math.ulp(float(exact)), (name, x.hex())


def test_error_of_hypot_is_below_one_unit_in_the_last_place() -> None:
    program = ferryvm.compile("(define (f x y) (f64.hypot x y)) (print! (f 1.0 1.0))")
    function = ferryvm.Engine("threaded").instantiate(program).f
    random = np.random.default_rng(2026)
    ones, exponents = random.uniform(-1, 1, (2, COUNT)), random.integers(-1000, 1000, COUNT)
    x = np.ldexp(ones[0], exponents)
    y = np.ldexp(ones[1], exponents + random.integers(-30, 3, COUNT))
    results = ferryvm.map(function, x, y)
    with mp.workprec(150):
        for a, b, found in zip(x.tolist(), y.tolist(), results.tolist(), strict=True):
            exact = mp.hypot(mpf(a), mpf(b))
            assert abs(mpf(found) - exact) < 0.8 * math.ulp(float(exact)), (a, b)


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_bits_in_lanes_of_which_some_have_huge_angles_are_those_of_the_meaning(name: str) -> None:
    program = ferryvm.compile(f"(define (f x) (f64.{name} x)) (print! (f 1.0))")
    operands = np.random.default_rng(2026).uniform(-9, 9, 4096)
    operands[::37] *= 1e300
    operands[5::501] = math.inf
    results = ferryvm.map(ferryvm.Engine("llvm").instantiate(program).f, operands)
    m, meaning = PythonArithmetic(), FUNCTIONS[f"f64.{name}"].meaning
    expected = [meaning(m, bits) for bits in operands.view(np.uint64).tolist()]
    assert results.view(np.uint64).tolist() == expected


@pytest.mark.parametrize(("name", "exact"), [("fmod", math.fmod), ("remainder", math.remainder)])
def test_remainders_are_exact_for_quotients_of_any_length(
    name: str, exact: Callable[[float, float], float]
) -> None:
    program = ferryvm.compile(f"(define (f x y) (f64.{name} x y)) (print! (f 1.0 1.0))")
    function = ferryvm.Engine("threaded").instantiate(program).f
    random = np.random.default_rng(2026)
    bits = random.integers(0, 1 << 64, (2, 4 * COUNT), dtype=np.uint64)
    bits[1, ::4] |= np.uint64((1 << 52) - 1)  # divisors of which products are hardest
    bits[1, 1::4] = bits[0, 1::4] - (
        np.arange(COUNT, dtype=np.uint64) % np.uint64(5) << np.uint64(52)
    )
    bits[1, 2::4] += random.integers(0, 3, COUNT, dtype=np.uint64)
    x, y = bits.view(np.float64)
    x[~np.isfinite(x)] = 1.0
    y[~np.isfinite(y) | (y == 0)] = 1.0
    results = ferryvm.map(function, x, y)
    right = np.array([exact(a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)])
    assert results.tobytes() == right.tobytes()


def test_coefficients_are_those_that_the_program_makes() -> None:
    assert coefficient.__file__ is not None
    assert Path(coefficient.__file__).read_text() == text()
