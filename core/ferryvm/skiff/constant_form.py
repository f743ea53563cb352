# SPDX-License-Identifier: Apache-2.0
"""`define-constant`: a name for a literal. Each use of the name is that literal, whose type its
context gives it; so a constant takes no static, and compilers see its value."""

from __future__ import annotations

import operator
from collections.abc import Callable

from ferryvm.skiff.number import Number
from ferryvm.skiff.operation import Parser
from ferryvm.skiff.reader import Atom, Datum, Sequence
from ferryvm.skiff.tree import Block, Broken, Constant, Literal, Node

_LONGEST = 1 << 64
"""Integers of constants are below it; no type has larger ones."""


def _quotient(dividend: int, divisor: int) -> int:
    magnitude = abs(dividend) // abs(divisor)
    return magnitude if (dividend < 0) == (divisor < 0) else -magnitude


_FOLDED: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _quotient,
    "%": lambda dividend, divisor: dividend - divisor * _quotient(dividend, divisor),
}


def constant_form(parser: Parser, datum: Sequence) -> Node:
    """The node of `(define-constant name value)`, which does nothing when it runs."""
    if len(datum.items) != 3:
        return parser.usage(datum)
    scope = parser.scope
    if scope.inner:
        message = "a constant is defined at the top level, not inside another form"
        return parser.broken(datum.place, message)
    number = _value(parser, datum.items[2])
    name = scope.name(datum.items[1], "constant")
    if name is None:
        return parser.silently_broken(datum.place)
    place = datum.items[1].place
    if scope.define_global(name, place):
        scope.globals[name] = Constant(name, place, number or Number("0", 0))
    return Block(datum.place, [], "define-constant")


def _value(parser: Parser, datum: Datum) -> Number | None:
    """The number that a constant is defined as; None if there is none, which is recorded."""
    if isinstance(datum, Atom):
        node = parser.form(datum)
        if isinstance(node, Literal):
            return node.number
        if isinstance(node, Broken):
            return None
    elif datum.items and isinstance(datum.items[0], Atom) and datum.items[0].text in _FOLDED:
        return _folded(parser, datum.items[0].text, datum)
    message = "a constant is a number, a character, or + - * / % of constant integers"
    parser.broken(datum.place, message)
    return None


def _folded(parser: Parser, name: str, datum: Sequence) -> Number | None:
    numbers = [_value(parser, operand) for operand in datum.items[1:]]
    if None in numbers:
        return None
    found: int | None = None
    for each in numbers:
        assert each is not None
        if not isinstance(each.value, int) or each.suffix is not None:
            message = f"'{name}' of a constant takes integers without a suffix, found {each.text}"
            parser.broken(datum.place, message)
            return None
        if found is None:
            found = each.value
        elif each.value == 0 and name in "/%":
            parser.broken(datum.place, "a constant is divided by zero")
            return None
        else:
            found = _FOLDED[name](found, each.value)
    if found is None or len(numbers) < 2 or abs(found) >= _LONGEST:
        parser.broken(datum.place, f"'{name}' of a constant takes 2 or more integers below 2^64")
        return None
    return Number(str(found), found)
