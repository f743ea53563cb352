# SPDX-License-Identifier: Apache-2.0
"""Functions of f64: errors below one unit in the last place, on a sample."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from mpmath import mp, mpf

import ferryvm
from ferryvm.isa.mathematics import FUNCTIONS
from ferryvm.isa.mathematics.double import coefficient

from .double.__main__ import text

COUNT = 500
"""Operands of each range."""

RANGES = {
    "exp": [(-745.0, 709.7), (-1.0, 1.0), (-1e-3, 1e-3)],
    "log": [(1e-3, 1e3), (0.7, 1.5), (0.99, 1.01), (0.0, 1e-307)],
}


def test_every_function_of_f64_has_ranges() -> None:
    assert {f"f64.{name}" for name in RANGES} == {n for n in FUNCTIONS if n.startswith("f64")}


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
                exact = getattr(mp, name)(mpf(x))
                assert abs(mpf(y) - exact) < 0.8 * math.ulp(float(exact)), (name, x.hex())


def test_coefficients_are_those_that_the_program_makes() -> None:
    assert coefficient.__file__ is not None
    assert Path(coefficient.__file__).read_text() == text()
