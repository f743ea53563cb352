# SPDX-License-Identifier: Apache-2.0
"""Random expressions, against an evaluation written here by hand."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ferryvm
from ferryvm import TrapError
from ferryvm.isa import Trap

from ..tier import examples

Tree = int | float | str | tuple["Tree", ...]

VARIABLES = {"a": 7, "b": -3, "c": (1 << 62) + 12345}
INTEGER = ("+", "-", "*", "&", "|", "^", "<<", ">>", ">>>", "/", "%")
COMPARISON = ("<", ">", "<=", ">=", "=", "!=")
COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt, ">": operator.gt, "<=": operator.le,
    ">=": operator.ge, "=": operator.eq, "!=": operator.ne,
}  # fmt: skip


def write(tree: Tree, suffix: str = "") -> str:
    if isinstance(tree, tuple):
        return "(" + " ".join(write(item, suffix) for item in tree) + ")"
    return str(tree) if isinstance(tree, str) else f"{tree}{suffix}"


class DivisionError(Exception):
    """A division that traps."""


def wrap(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def integer(tree: Tree, bits: int) -> int:
    """Value of an integer expression of that width; truths are integers too."""
    if isinstance(tree, str):
        return wrap(VARIABLES[tree], bits)
    if not isinstance(tree, tuple):
        return int(tree)
    head, *rest = tree
    if head == "if":
        return integer(rest[1] if truth(rest[0], bits) else rest[2], bits)
    if head == "-" and len(rest) == 1:
        return wrap(-integer(rest[0], bits), bits)
    if head == "~":
        return ~integer(rest[0], bits)
    a, b = integer(rest[0], bits), integer(rest[1], bits)
    count, unsigned = b % bits, a & ((1 << bits) - 1)
    if head in ("/", "%"):
        if b == 0 or (head == "/" and (a, b) == (-(1 << (bits - 1)), -1)):
            raise DivisionError
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        return quotient if head == "/" else a - quotient * b
    results = {
        "+": a + b, "-": a - b, "*": a * b, "&": a & b, "|": a | b, "^": a ^ b,
        "<<": a << count, ">>": a >> count, ">>>": unsigned >> count,
    }  # fmt: skip
    return wrap(results[str(head)], bits)


def truth(tree: Tree, bits: int) -> bool:
    assert isinstance(tree, tuple)
    head, *rest = tree
    if head == "not":
        return not truth(rest[0], bits)
    if head == "and":
        return all(truth(item, bits) for item in rest)
    if head == "or":
        return any(truth(item, bits) for item in rest)
    values = [integer(item, bits) for item in rest]
    return all(COMPARE[str(head)](a, b) for a, b in itertools.pairwise(values))


def draw_integer(draw: st.DrawFn, bits: int, depth: int) -> Tree:
    half = 1 << (bits - 1)
    kind = draw(st.integers(0, 5)) if depth else 0
    if kind == 0:
        literals = st.integers(-5, 70) | st.integers(-half, half - 1)
        return draw(literals | st.sampled_from(list(VARIABLES)))
    if kind == 1:
        condition = draw_condition(draw, bits, depth - 1)
        return ("if", condition, *(draw_integer(draw, bits, depth - 1) for _ in range(2)))
    if kind == 2:
        return (draw(st.sampled_from(("-", "~"))), draw_integer(draw, bits, depth - 1))
    head = draw(st.sampled_from(INTEGER))
    return (head, *(draw_integer(draw, bits, depth - 1) for _ in range(2)))


def draw_condition(draw: st.DrawFn, bits: int, depth: int) -> Tree:
    kind = draw(st.integers(0, 3)) if depth else 3
    if kind == 0:
        return ("not", draw_condition(draw, bits, depth - 1))
    if kind <= 2:
        head = ("and", "or")[kind - 1]
        count = draw(st.integers(1, 3))
        return (head, *(draw_condition(draw, bits, depth - 1) for _ in range(count)))
    count = draw(st.integers(2, 3))
    head = draw(st.sampled_from(COMPARISON))
    return (head, *(draw_integer(draw, bits, depth) for _ in range(count)))


@st.composite
def integers(draw: st.DrawFn, bits: int) -> Tree:
    return draw_integer(draw, bits, 4)


@pytest.mark.parametrize("optimize", [False, True])
@pytest.mark.parametrize(("type_", "bits"), [("i32", 32), ("i64", 64)])
def test_integer_expressions_have_the_value_that_arithmetic_says(
    type_: str, bits: int, optimize: bool
) -> None:
    @examples(8)
    @given(integers(bits))
    def check(tree: Tree) -> None:
        names = " ".join(f"({name} {type_})" for name in VARIABLES)
        values = " ".join(str(wrap(value, bits)) for value in VARIABLES.values())
        text = f"(define (f {names}) -> {type_} {write(tree, type_)}) (f {values})"
        program = ferryvm.compile(text, optimize=optimize)
        try:
            expected = integer(tree, bits)
        except DivisionError:
            with pytest.raises(TrapError) as caught:
                ferryvm.run(program, "reference")
            assert caught.value.kind in (Trap.INTEGER_DIVIDE_BY_ZERO, Trap.INTEGER_OVERFLOW)
        else:
            assert ferryvm.run(program, "reference").value == expected

    check()


def floating(tree: Tree, type_: type[np.floating]) -> np.floating:
    """Value of a float expression, rounded to the type at every step."""
    if not isinstance(tree, tuple):
        return type_(tree)
    head, *rest = tree
    values = [floating(item, type_) for item in rest]
    if head == "-" and len(values) == 1:
        return -values[0]
    if head == "sqrt":
        return np.sqrt(values[0])
    if head == "abs":
        return abs(values[0])
    if head == "floor":
        return np.floor(values[0])
    result = values[0]
    for value in values[1:]:
        apply = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}[str(head)]
        result = apply(result, value)
    return result


FLOATS: st.SearchStrategy[Tree] = st.recursive(
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(
        lambda value: repr(float(value))
    ),
    lambda inner: (
        st.tuples(st.sampled_from(("sqrt", "abs", "floor", "-")), inner)
        | st.tuples(st.sampled_from(("+", "-", "*", "/")), inner, inner)
        | st.tuples(st.sampled_from(("+", "-", "*", "/")), inner, inner, inner)
    ),
    max_leaves=10,
)


@pytest.mark.parametrize("type_", [np.float32, np.float64])
def test_float_expressions_have_the_value_that_ieee_754_says(type_: type[np.floating]) -> None:
    @examples(35)
    @given(FLOATS)
    def check(tree: Tree) -> None:
        name = "f32" if type_ is np.float32 else "f64"
        text = f"(define (f) -> {name} {write(tree)}) (f)"
        with np.errstate(all="ignore"):
            expected = float(floating(tree, type_))
        found = ferryvm.run(ferryvm.compile(text), "reference").value
        assert found is not None
        if math.isnan(expected):
            assert math.isnan(found)
        else:
            assert (found, math.copysign(1, found)) == (expected, math.copysign(1, expected))

    check()
