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
from numpy.typing import NDArray

import ferryvm
from ferryvm.isa.evaluation import PythonArithmetic
from ferryvm.isa.mathematics import FUNCTIONS
from ferryvm.isa.mathematics.double import coefficient

from .angle import distance, errors, hard_angles
from .double.__main__ import text

COUNT = 500
"""Operands of each range."""

Random = np.random.Generator
Array = NDArray[np.float64]
Pair = tuple[Array, Array]
Pairs = Callable[[Random, int], Pair]

RANGES = {
    "asin": [(-1.0, 1.0), (0.4, 0.6), (-1e-3, 1e-3), (-1e-300, 1e-300)],
    "acos": [(-1.0, 1.0), (0.4, 0.6), (0.999, 1.0), (-1e-3, 1e-3)],
    "atan": [(-10.0, 10.0), (0.4, 0.5), (2.0, 1e17), (-1e-3, 1e-3), (-1e-300, 1e-300)],
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


def _near(random: Random, count: int) -> Pair:
    """Pairs of any exponents, whose difference is small."""
    ones, exponents = random.uniform(-1, 1, (2, count)), random.integers(-1000, 1000, count)
    return np.ldexp(ones[0], exponents), np.ldexp(
        ones[1], exponents + random.integers(-30, 3, count)
    )


def _far(random: Random, count: int) -> Pair:
    """Pairs of any exponents: most quotients are subnormal, zero or infinite."""
    ones, exponents = random.uniform(0.5, 1, (2, count)), random.integers(-1070, 1023, (2, count))
    return np.ldexp(ones[0], exponents[0]), np.ldexp(ones[1], exponents[1])


def _wide(random: Random, count: int) -> Pair:
    """Pairs in all directions."""
    return random.uniform(-1, 1, count), random.uniform(-1, 1, count)


def _power(low: float, high: float, base: Callable[[Random, int], Array]) -> Pairs:
    """Bases, and exponents for which the logarithm of the power is in a range."""

    def pairs(random: Random, count: int) -> Pair:
        x = base(random, count)
        return x, random.uniform(low, high, count) / np.log(x)

    return pairs


def _any_base(random: Random, count: int) -> Array:
    return np.ldexp(random.uniform(0.5, 1, count), random.integers(-1070, 1024, count))


def _base_near_1(random: Random, count: int) -> Array:
    return 1 + np.ldexp(random.choice([-1.0, 1.0], count), -random.integers(2, 53, count))


def _base_near_root(random: Random, count: int) -> Array:
    return random.uniform(1.41, 1.4143, count)


BINARY: dict[str, list[Pairs]] = {
    "hypot": [_near],
    "atan2": [_wide, _near, _far],
    "pow": [
        _power(-745, 709.7, _any_base),
        _power(-745, 709.7, _base_near_1),
        # The logarithm is least accurate near the root of 2.
        _power(680, 707, _base_near_root),
        _power(-707, -680, _base_near_root),
        _power(-709, -708.3, _base_near_root),  # rounded twice, as they are subnormal
        _power(-745, -707, _any_base),
        _power(-1, 1, _any_base),
    ],
}
"""Functions of two operands, and makers of pairs of operands."""

EXACT: dict[str, Callable[..., Any]] = {
    "asin": mp.asin,
    "acos": mp.acos,
    "atan": mp.atan,
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
    "hypot": mp.hypot,
    "atan2": mp.atan2,
    "pow": mp.power,
}
"""Functions of mpmath."""


def test_every_function_of_f64_has_ranges() -> None:
    names = {f"f64.{name}" for name in (*RANGES, *BINARY)}
    exact = {"f64.fmod", "f64.remainder"}
    assert names | exact == {name for name in FUNCTIONS if name.startswith("f64")}


@pytest.mark.rotate("name", most=7)
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


@pytest.mark.parametrize("name", BINARY)
def test_errors_of_binary_functions_are_below_one_unit_in_the_last_place(name: str) -> None:
    program = ferryvm.compile(f"(define (f x y) (f64.{name} x y)) (print! (f 1.0 1.0))")
    function = ferryvm.Engine("threaded").instantiate(program).f
    random = np.random.default_rng(2026)
    for pairs in BINARY[name]:
        x, y = pairs(random, COUNT)
        results = ferryvm.map(function, x, y)
        with mp.workprec(150):
            for a, b, found in zip(x.tolist(), y.tolist(), results.tolist(), strict=True):
                exact = EXACT[name](mpf(a), mpf(b))
                assert abs(mpf(found) - exact) < 0.85 * math.ulp(float(exact)), (a, b)


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


def test_powers_and_roots_that_are_f64_are_exact() -> None:
    program = ferryvm.compile("(define (f x y) (f64.pow x y)) (print! (f 1.0 1.0))")
    function = ferryvm.Engine("threaded").instantiate(program).f
    random = np.random.default_rng(2026)
    cases = []
    for exponent in range(2, 34):
        largest = int(2 ** (53 / exponent))
        for base in (2, 3, *random.integers(2, largest, 40, endpoint=True).tolist()):
            power, scale = base**exponent, int(random.integers(-900, 900)) // exponent
            x, result = math.ldexp(base, scale), math.ldexp(power, scale * exponent)
            cases.append((x, exponent, result))
            cases.append((-x, exponent, (-1) ** exponent * result))
            if exponent in (2, 4, 8, 16, 32):
                cases.append((result, 1 / exponent, x))
    x, y, right = np.array(cases).T.copy()
    np.testing.assert_array_equal(ferryvm.map(function, x, y), right)


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_errors_nearest_to_multiples_of_quarter_turns_are_small(name: str) -> None:
    angles = hard_angles()
    assert min(map(distance, angles)) < 5e-19
    assert max(errors(name, angles)) < 0.6


@pytest.mark.nightly
def test_coefficients_are_those_that_the_program_makes() -> None:
    assert coefficient.__file__ is not None
    assert Path(coefficient.__file__).read_text() == text()
