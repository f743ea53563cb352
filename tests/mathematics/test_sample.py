# SPDX-License-Identifier: Apache-2.0
"""The f32 functions on stored samples (`tests.mathematics.sample`); see docs/math.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.mathematics.c_function import operation_count
from tests.mathematics.meaning import FUNCTIONS, operand_count
from tests.tier import together

from ferryvm.isa.evaluation import PythonArithmetic

ROOT = Path(__file__).parents[2]

STEP = 5
"""The default tier takes every so many lines of a sample."""


def lines(name: str) -> list[list[int]]:
    """Operands and result, as bits, of each line of a sample."""
    text = (Path(__file__).parent / "sample" / f"{name}.txt").read_text()
    return [[int(each, 16) for each in line.split()] for line in text.splitlines()]


def wrong(name: str, rows: list[list[int]]) -> list[str]:
    """The rows with another result."""
    m = PythonArithmetic()
    found = []
    for *operands, right in rows:
        result = FUNCTIONS[name](m, *operands)
        if result != right:
            texts = " ".join(f"{each:08x}" for each in operands)
            found.append(f"{texts} -> {result:08x}, not {right:08x}")
    return found


@together("name", FUNCTIONS)
def test_function_is_correctly_rounded_on_a_part_of_its_sample(name: str) -> None:
    rows = lines(name)
    assert len(rows) > 100
    assert wrong(name, rows[::STEP]) == []


@pytest.mark.nightly
@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_is_correctly_rounded_on_its_sample(name: str) -> None:
    assert wrong(name, lines(name)) == []


def test_page_states_the_operations_of_each_function() -> None:
    page = (ROOT / "docs" / "math.md").read_text()
    stated = {
        name: int(n) for name, n in re.findall(r"^\| `(\w+_f32)` \| (\d+) \|", page, re.MULTILINE)
    }
    assert stated == {
        name: operation_count(FUNCTIONS[name], operand_count(name)) for name in FUNCTIONS
    }


@pytest.mark.nightly
def test_coefficients_are_those_that_the_script_makes() -> None:
    from tests.mathematics import make  # it needs mpmath

    assert make.text() == (ROOT / make.TARGET).read_text()
