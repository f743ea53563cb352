# SPDX-License-Identifier: Apache-2.0
"""Operators, conversions and instructions in a text: from their datum to a node."""

from __future__ import annotations

import itertools
from collections.abc import Sequence as Many
from typing import Protocol

from ferryvm.isa import Immediate, Instruction, Type
from ferryvm.skiff.fault import SourceSpan
from ferryvm.skiff.number import Number, parse_number
from ferryvm.skiff.operator import Operator
from ferryvm.skiff.reader import Atom, Datum, Sequence
from ferryvm.skiff.scope import Scope, show
from ferryvm.skiff.tree import (
    Block,
    Broken,
    Convert,
    Direct,
    Function,
    Get,
    Literal,
    Logic,
    Node,
    Operation,
    Set,
)


class Parser(Protocol):
    """The part of the parser that operations use."""

    scope: Scope
    wrappers: list[Function]
    """Functions that are made of operators."""

    def form(self, datum: Datum) -> Node:
        """The node of a form."""

    def forms_in(self, datums: Many[Datum]) -> list[Node]:
        """The nodes of some forms, in order."""

    def broken(self, place: SourceSpan, message: str) -> Broken:
        """A node for a form with a fault, which is recorded."""

    def silently_broken(self, place: SourceSpan) -> Broken:
        """A node for a form whose fault has been recorded."""

    def usage(self, datum: Sequence) -> Broken:
        """The node for a special form with wrong syntax."""


def _count(minimum: int, maximum: int | None) -> str:
    if maximum is None:
        return f"at least {minimum} operand{'' if minimum == 1 else 's'}"
    return f"{minimum} operand{'' if minimum == 1 else 's'}"


def operator(parser: Parser, operator: Operator, datum: Sequence) -> Node:
    """The node of an operator's application."""
    operands = parser.forms_in(datum.items[1:])
    maximum = operator.maximum
    if len(operands) < operator.minimum or (maximum is not None and len(operands) > maximum):
        expected = _count(operator.minimum, maximum)
        message = f"'{operator.name}' takes {expected}, found {len(operands)}"
        return parser.broken(datum.place, message)
    if operator.compares and len(operands) > 2:
        return _chain(parser, operator, operands, datum.place)
    return Operation(datum.place, operator, operands)


def _chain(parser: Parser, operator: Operator, operands: list[Node], place: SourceSpan) -> Node:
    """`(< a b c)` as `(and (< a b) (< b c))`, with every operand evaluated once and in order."""
    body: list[Node] = []
    if not all(isinstance(node, Get | Literal) for node in operands):
        for index, node in enumerate(operands):
            variable = parser.scope.temporary(node.place)
            body.append(Set(node.place, variable, node, "let"))
            operands[index] = Get(node.place, variable)
    pairs: list[Node] = []
    for left, right in itertools.pairwise(operands):
        pairs.append(Operation(place, operator, [left, right]))
    logic = Logic(place, True, pairs)
    return Block(place, [*body, logic], operator.name) if body else logic


def conversion(parser: Parser, to: Type, datum: Sequence) -> Node:
    """The node of a conversion."""
    operands = parser.forms_in(datum.items[1:])
    if len(operands) != 1:
        return parser.broken(datum.place, f"'{to}' takes 1 operand, found {len(operands)}")
    return Convert(datum.place, to, operands[0])


def direct(parser: Parser, row: Instruction, datum: Sequence) -> Node:
    """The node of an instruction that is called by its mnemonic."""
    items = datum.items[1:]
    has_immediate = row.immediate is not Immediate.NONE
    if len(items) != len(row.pops) + has_immediate:
        first = [f"the {row.immediate.value}"] if has_immediate else []
        takes = " and ".join([*first, _count(len(row.pops), len(row.pops))])
        message = f"'{row.mnemonic}' takes {takes}, found {len(items)}"
        return parser.broken(datum.place, message)
    if not has_immediate:
        return Direct(datum.place, row, 0, parser.forms_in(items))
    immediate = items[0]
    number = parse_number(immediate.text) if isinstance(immediate, Atom) else None
    if number is None:
        message = f"'{row.mnemonic}' takes the {row.immediate.value} first, found {show(immediate)}"
        return parser.broken(immediate.place, message)
    literal = row.immediate.literal
    if literal is not None:
        return _constant(parser, row, literal, number, datum)
    if number.is_float or not 0 <= int(number.value) < 1 << 32:
        message = f"'{number.text}' is not an {row.immediate.value} (0 to {(1 << 32) - 1})"
        return parser.broken(immediate.place, message)
    return Direct(datum.place, row, int(number.value), parser.forms_in(items[1:]))


def _constant(
    parser: Parser, row: Instruction, literal: Type, number: Number, datum: Sequence
) -> Node:
    fits = number.suffix in (None, literal) and (literal.is_float or not number.is_float)
    if not fits:
        message = f"'{row.mnemonic}' takes the {row.immediate.value}, found '{number.text}'"
        return parser.broken(datum.items[1].place, message)
    typed = Number(number.text, number.value, literal, number.is_pattern)
    return Literal(datum.items[1].place, typed)
