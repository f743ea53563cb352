# SPDX-License-Identifier: Apache-2.0
"""The golden cases of functions of floats have every special operand, and the rules of `pow`."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from tests.tier import together

from ferryvm.isa import BY_MNEMONIC
from ferryvm.isa.evaluation import PythonArithmetic
from ferryvm.isa.mathematics import FUNCTIONS
from ferryvm.isa.mathematics.single import angle
from ferryvm.isa.type import F32, F64, Type, to_float
from ferryvm.testing.conformance.golden import GoldenCase, cases_of

OTHERS = ("fma", "min", "min_number", "max", "max_number", "copysign")
NAMES = [*FUNCTIONS, *(f"{t}.{name}" for t in (F32, F64) for name in OTHERS)]

KINDS = {
    "zero", "-zero", "subnormal", "-subnormal", "normal", "-normal", "infinity", "-infinity",
    "quiet NaN", "signalling NaN",
}  # fmt: skip

INFINITY = math.inf


def kind(t: Type, bits: int) -> str:
    """The class of a float, as IEEE 754-2019, 5.7.2, has them; the sign of a NaN is left out."""
    width = 52 if t is F64 else 23
    sign, exponent = bits >> t.bits - 1, bits >> width & (1 << t.bits - 1 - width) - 1
    fraction = bits & (1 << width) - 1
    if exponent == (1 << t.bits - 1 - width) - 1 and fraction:
        return "quiet NaN" if fraction >> width - 1 else "signalling NaN"
    small = "subnormal" if fraction else "zero"
    large = "infinity" if exponent == (1 << t.bits - 1 - width) - 1 else "normal"
    return "-" * sign + (large if exponent else small)


@together("name", NAMES)
def test_each_operand_has_a_golden_case_of_every_kind_of_float(name: str) -> None:
    row = BY_MNEMONIC[name]
    for place, t in enumerate(row.pops):
        assert isinstance(t, Type)
        assert {kind(t, case.operands[place]) for case in cases_of(name)} == KINDS, place


def _is_integer(y: float) -> bool:
    return math.isfinite(y) and y == math.floor(y)


def _is_odd(y: float) -> bool:
    return _is_integer(y) and y % 2 == 1


def _is_below(x: float) -> bool:
    """True if a number has the sign bit."""
    return math.copysign(1.0, x) < 0


Rule = tuple[Callable[[float, float], bool], Callable[[float, float], float]]

RULES: dict[str, Rule] = {
    "any base to the power of zero": (lambda x, y: y == 0, lambda x, y: 1.0),
    "NaN to the power of zero": (lambda x, y: math.isnan(x) and y == 0, lambda x, y: 1.0),
    "one to any power": (lambda x, y: x == 1, lambda x, y: 1.0),
    "one to the power of NaN": (lambda x, y: x == 1 and math.isnan(y), lambda x, y: 1.0),
    "-1 to an infinite power": (lambda x, y: x == -1 and math.isinf(y), lambda x, y: 1.0),
    "zero to a negative odd power": (
        lambda x, y: x == 0 and y < 0 and _is_odd(y),
        lambda x, y: math.copysign(INFINITY, x),
    ),
    "zero to the power of -inf": (lambda x, y: x == 0 and y == -INFINITY, lambda x, y: INFINITY),
    "zero to a negative power that is not odd": (
        lambda x, y: x == 0 and y < 0 and math.isfinite(y) and not _is_odd(y),
        lambda x, y: INFINITY,
    ),
    "zero to a positive odd power": (
        lambda x, y: x == 0 and y > 0 and _is_odd(y),
        lambda x, y: math.copysign(0.0, x),
    ),
    "zero to a positive power that is not odd": (
        lambda x, y: x == 0 and y > 0 and not _is_odd(y),
        lambda x, y: 0.0,
    ),
    "below 1 to the power of inf": (
        lambda x, y: 0 < abs(x) < 1 and y == INFINITY,
        lambda x, y: 0.0,
    ),
    "above 1 to the power of inf": (lambda x, y: abs(x) > 1 and y == INFINITY, lambda x, y: y),
    "below 1 to the power of -inf": (
        lambda x, y: 0 < abs(x) < 1 and y == -INFINITY,
        lambda x, y: INFINITY,
    ),
    "above 1 to the power of -inf": (lambda x, y: abs(x) > 1 and y == -INFINITY, lambda x, y: 0.0),
    "inf to a negative power": (lambda x, y: x == INFINITY and y < 0, lambda x, y: 0.0),
    "inf to a positive power": (lambda x, y: x == INFINITY and y > 0, lambda x, y: x),
    "-inf to a negative odd power": (
        lambda x, y: x == -INFINITY and y < 0 and _is_odd(y),
        lambda x, y: -0.0,
    ),
    "-inf to a negative power that is not odd": (
        lambda x, y: x == -INFINITY and y < 0 and not _is_odd(y),
        lambda x, y: 0.0,
    ),
    "-inf to a positive odd power": (
        lambda x, y: x == -INFINITY and y > 0 and _is_odd(y),
        lambda x, y: x,
    ),
    "-inf to a positive power that is not odd": (
        lambda x, y: x == -INFINITY and y > 0 and not _is_odd(y),
        lambda x, y: INFINITY,
    ),
    "a negative number to a power that is no integer": (
        lambda x, y: x < 0 and math.isfinite(x) and math.isfinite(y) and not _is_integer(y),
        lambda x, y: math.nan,
    ),
    "NaN to a power but zero": (lambda x, y: math.isnan(x) and y != 0, lambda x, y: math.nan),
    "a base but 1 to the power of NaN": (
        lambda x, y: x != 1 and math.isnan(y),
        lambda x, y: math.nan,
    ),
}
"""IEEE 754-2019, 9.2.1, `pow`: operands that a rule is for, and the result."""


@pytest.mark.parametrize("t", [F32, F64])
def test_pow_has_golden_cases_of_each_rule_of_the_standard(t: Type) -> None:
    given = [(_floats(t, case), case) for case in cases_of(f"{t}.pow")]
    for rule, (is_for, right) in RULES.items():
        chosen = [(operands, case) for operands, case in given if is_for(*operands)]
        assert chosen, rule
        signs = {_is_below(x) for (x, _), _ in chosen}
        assert signs == {True, False} or not rule.startswith("zero"), rule
        for operands, case in chosen:
            ((_, found),) = case.outcome.stack
            wanted = right(*operands)
            value = to_float(t, found)
            assert math.isnan(value) == math.isnan(wanted), case
            assert math.isnan(wanted) or (value, _is_below(value)) == (wanted, _is_below(wanted)), (
                case
            )


def _floats(t: Type, case: GoldenCase) -> tuple[float, float]:
    x, y = (to_float(t, bits) for bits in case.operands)
    return x, y


@pytest.mark.parametrize("t", [F32, F64])
def test_powers_of_two_of_integers_are_exact_in_golden_cases(t: Type) -> None:
    exponents = set()
    for case in cases_of(f"{t}.exp2"):
        x = to_float(t, case.operands[0])
        if _is_integer(x) and -1074 <= x < (1024 if t is F64 else 128):
            ((_, found),) = case.outcome.stack
            assert to_float(t, found) == (2.0**x if t is F64 or x > -150 else 0.0), case
            exponents.add(x)
    assert len(exponents) >= 10


def test_rounding_test_of_atan2_that_is_too_narrow_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was that of `atan_f32`."""
    monkeypatch.setattr(angle, "_MISSING", (0.0, 10 * 2.0**-36))
    wrong = []
    for case in cases_of("f32.atan2"):
        ((_, right),) = case.outcome.stack
        if angle.atan2_f32(PythonArithmetic(), *case.operands) != right:
            wrong.append(case.operands)
    assert wrong == [(0x4B04D34A, 0x4DFA3311)]
