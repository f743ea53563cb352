# SPDX-License-Identifier: Apache-2.0
"""Expressions of numbers and lengths: sizes of a launch that are no constants.

    tile * tile        members of a group           members        elements of its array

An expression has whole numbers, names, + - and *. As long as the code has no names for its
parameters, a leaf is the place of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from ferryvm.ir.graph import Constant, Operation, Parameter, Value
from ferryvm.ir.operation import LENGTH
from ferryvm.isa.type import I64, signed


class Place(NamedTuple):
    """The parameter with a number, or the length of the array that it is."""

    number: int
    is_length: bool = False


class Compound(NamedTuple):
    """The sum, difference or product of two expressions."""

    operator: str
    left: Expression
    right: Expression


Expression = int | str | Place | Compound

_COMPUTED: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
}
OPERATIONS = {"+": "add", "-": "sub", "*": "mul"}
"""The operations of the IR that compute sums, differences and products."""

_OPERATORS = {name: operator for operator, name in OPERATIONS.items()}


def expression_of(value: Value, places: Mapping[Parameter, int]) -> Expression | None:
    """The expression that computes an i64 from parameters with these places; None if none does."""
    if isinstance(value, Constant):
        return signed(I64, value.bits)
    if isinstance(value, Parameter):
        return Place(places[value]) if value in places else None
    if not isinstance(value, Operation):
        return None
    if value.name == "header_word" and value.static[0] == LENGTH:
        (array,) = value.arguments
        is_known = isinstance(array, Parameter) and array in places
        return Place(places[array], True) if is_known else None  # type: ignore[index]  # it is one
    if value.type is not I64 or value.name not in (*_OPERATORS, "shl"):
        return None
    left, right = (expression_of(each, places) for each in value.arguments)
    if left is None or right is None:
        return None
    if value.name == "shl":
        return Compound("*", left, 1 << right) if right in range(32) else None  # type: ignore[operator]  # a number
    if value.name == "add" and isinstance(right, int) and right < 0:
        return Compound("-", left, -right)
    return Compound(_OPERATORS[value.name], left, right)


def mapped(expression: Expression, leaf: Callable[[Place], Expression]) -> Expression:
    """The expression with other leaves in the place of parameters."""
    if isinstance(expression, Place):
        return leaf(expression)
    if isinstance(expression, Compound):
        left, right = mapped(expression.left, leaf), mapped(expression.right, leaf)
        return expression._replace(left=left, right=right)
    return expression


def renamed(expression: Expression, places: Mapping[str, Place]) -> Expression:
    """The expression with the places of names."""
    if isinstance(expression, Compound):
        left, right = renamed(expression.left, places), renamed(expression.right, places)
        return expression._replace(left=left, right=right)
    return places[expression] if isinstance(expression, str) else expression


def leaves_of(expression: Expression) -> Iterator[str | Place]:
    """The names and places in an expression."""
    if isinstance(expression, Compound):
        yield from leaves_of(expression.left)
        yield from leaves_of(expression.right)
    elif not isinstance(expression, int):
        yield expression


def value_of(expression: Expression, values: Mapping[str | Place, int]) -> int:
    """The number that an expression is for values of its leaves."""
    if isinstance(expression, Compound):
        operation = _COMPUTED[expression.operator]
        return operation(value_of(expression.left, values), value_of(expression.right, values))
    return expression if isinstance(expression, int) else values[expression]


def expression_text(expression: Expression, named: Callable[[str], str] = str) -> str:
    """An expression of names as Python, C and OpenCL C have it; `named`: the text of a name."""
    if isinstance(expression, Compound):
        left, right = (_operand(each, named) for each in expression[1:])
        return f"{left} {expression.operator} {right}"
    assert not isinstance(expression, Place)
    return named(expression) if isinstance(expression, str) else str(expression)


def _operand(expression: Expression, named: Callable[[str], str]) -> str:
    text = expression_text(expression, named)
    return f"({text})" if isinstance(expression, Compound) else text
