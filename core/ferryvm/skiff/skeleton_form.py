# SPDX-License-Identifier: Apache-2.0
"""`reduce`, from its datum to a node."""

from __future__ import annotations

from ferryvm.skeleton.operation import Operation
from ferryvm.skiff.operation import Parser
from ferryvm.skiff.reader import Atom, Datum, Sequence
from ferryvm.skiff.scope import show
from ferryvm.skiff.tree import Broken, Function, Node, Reduce
from ferryvm.skiff.type import ELEMENTS, Unknown

OPERATIONS = {
    "+": "add", "*": "mul", "min": "min", "max": "max", "&": "and", "|": "or", "^": "xor",
}  # fmt: skip
"""Operators that are associative, with their names as operations."""
SYMBOLS = {name: symbol for symbol, name in OPERATIONS.items()}
"""The operators by the names of the operations."""


def reduce_form(parser: Parser, datum: Sequence) -> Node:
    """The node of `reduce`."""
    if len(datum.items) not in (3, 4):
        return parser.usage(datum)
    *initial, array = parser.forms_in(datum.items[2:])
    operation = _operation(parser, datum, datum.items[1])
    if isinstance(operation, Broken):
        return operation
    if isinstance(operation, Function) and not initial:
        message = f"'{operation.name}' is a function, so 'reduce' needs an initial value"
        return parser.broken(datum.place, f"{message}: (reduce {operation.name} initial array)")
    return Reduce(datum.place, operation, initial[0] if initial else None, array, Unknown(ELEMENTS))


def _operation(parser: Parser, datum: Sequence, named: Datum) -> Operation | Function | Broken:
    """The operation that a form names: an operator, or a function of two values."""
    head = datum.items[0]
    assert isinstance(head, Atom)
    if isinstance(named, Atom) and named.text in OPERATIONS:
        return Operation(OPERATIONS[named.text])
    function = function_named(parser, head.text, named, f"one of {' '.join(OPERATIONS)}, or ")
    if isinstance(function, Function) and len(function.parameters) != 2:
        count = len(function.parameters)
        message = f"'{head.text}' combines two values, '{function.name}' takes {count}"
        return parser.broken(named.place, message)
    return function


def function_named(
    parser: Parser, form: str, named: Datum, otherwise: str = ""
) -> Function | Broken:
    """The function of the program that a form names."""
    function = parser.scope.lookup(named.text) if isinstance(named, Atom) else None
    if isinstance(function, Function) and not function.is_host:
        return parser.silently_broken(named.place) if function.is_broken else function
    near = ""
    if isinstance(named, Atom):
        if function is None and named.text in parser.scope.faults.lost_names:
            return parser.silently_broken(named.place)
        near = parser.scope.near(named.text, (Function,))
    wanted = f"'{form}' takes {otherwise}a function that the program defines"
    return parser.broken(named.place, f"{wanted}, found {show(named)}{near}")
