# SPDX-License-Identifier: Apache-2.0
"""Faults that are planted in the arithmetic of meanings, and found by the operands of
`tests.mathematics.agree`: the results differ from those without the fault."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

from tests.mathematics.hard import operands
from tests.mathematics.meaning import FUNCTIONS as MEANINGS
from tests.mathematics.test_sample import lines
from tests.tier import together

from ferryvm.isa.constant_table import ConstantTable
from ferryvm.isa.emitter import Condition
from ferryvm.isa.evaluation import PythonArithmetic
from ferryvm.isa.mathematics import FUNCTIONS
from ferryvm.isa.mathematics.double import coefficient
from ferryvm.isa.type import F64, Type, from_float

COUNT, ORDINARY = 1000, 2000
"""Operands, and the number of the first one after those that are special."""


class Contraction(PythonArithmetic):
    """A sum or difference whose first operand is a product is a fused multiply-add."""

    def __init__(self) -> None:
        self.products: dict[int, tuple[int, int]] = {}

    def fmul(self, t: Type, a: int, b: int) -> int:
        product = super().fmul(t, a, b)
        self.products[product] = a, b
        return product

    def fadd(self, t: Type, a: int, b: int) -> int:
        for product, other in ((a, b), (b, a)):
            if product in self.products:
                return self.ffma(t, *self.products[product], other)
        return super().fadd(t, a, b)

    def fsub(self, t: Type, a: int, b: int) -> int:
        if a in self.products:
            return self.ffma(t, *self.products[a], b ^ 1 << t.bits - 1)
        return super().fsub(t, a, b)


class LastBit(PythonArithmetic):
    """The last bit of one constant, of f64 if no other type is given, is another one."""

    def __init__(self, bits: int, type_: Type = F64) -> None:
        self.bits, self.type = bits, type_

    def constant(self, t: Type, bits: int) -> int:
        return bits ^ 1 if t is self.type and bits == self.bits else bits


class OtherWord(PythonArithmetic):
    """The last bit of one constant of each table is another one."""

    def lookup(self, table: ConstantTable, index: int) -> int:
        return table.at(index) ^ (index % len(table) == len(table) - 1)


class NoNan(PythonArithmetic):
    """No number differs from itself."""

    def compare(self, t: Type, condition: Condition, a: int, b: int) -> int:
        if t.is_float and condition in (Condition.NE, Condition.EQ) and a == b:
            return condition is Condition.EQ
        return super().compare(t, condition, a, b)


class Constants(PythonArithmetic):
    """It notes constants that are floats."""

    def __init__(self) -> None:
        self.found: list[tuple[int, Type]] = []

    def constant(self, t: Type, bits: int) -> int:
        if t.is_float:
            self.found.append((bits, t))
        return bits


def differences(
    name: str, faulty: Callable[[], PythonArithmetic], first: int = ORDINARY
) -> Iterator[tuple[int, ...]]:
    """Operands, as bits, whose result is another one with the fault."""
    function = FUNCTIONS[name]
    arrays = operands(function, first, COUNT)
    for row in zip(*(array.tolist() for array in arrays), strict=True):
        if function.meaning(faulty(), *row) != function.meaning(PythonArithmetic(), *row):
            yield row


@together("name", ["f64.expm1", "f64.tanh", "f64.atan2"])
def test_contraction_of_a_product_and_a_sum_is_found(name: str) -> None:
    assert any(differences(name, Contraction))


@together(
    "place",
    [
        ("f64.exp", -coefficient.LN2_16_HIGH),
        ("f64.log", coefficient.LN2_HIGH),
        ("f64.sin", coefficient.SIN[0]),
        ("f64.erf", -coefficient.ERF_STEP),
    ],
)
def test_last_bit_of_a_leading_coefficient_is_found(place: tuple[str, float]) -> None:
    name, value = place
    assert any(differences(name, functools.partial(LastBit, from_float(F64, value))))


@together("name", ["f64.exp", "f64.erf", "f64.erfc"])
def test_last_bit_of_a_constant_of_a_table_is_found(name: str) -> None:
    assert any(differences(name, OtherWord))


@together("name", ["exp_f32", "log_f32", "sin_f32", "atan_f32"])
def test_last_bit_of_a_constant_of_an_f32_function_is_found_by_its_sample(name: str) -> None:
    constants = Constants()
    rows = lines(name)
    MEANINGS[name](constants, *rows[-1][:-1])
    assert any(
        MEANINGS[name](LastBit(*constant), *operands_) != right
        for constant in dict.fromkeys(constants.found)
        for *operands_, right in rows
    )


@together("name", ["f32.exp", "f64.exp", "f64.erf", "f64.asin"])
def test_missing_case_of_nan_is_found(name: str) -> None:
    assert any(differences(name, NoNan, first=0))
