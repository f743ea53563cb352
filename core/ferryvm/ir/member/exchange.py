# SPDX-License-Identifier: Apache-2.0
"""Arrays of a group that members exchange, as parts of one array.

    b0(%now, %then) … load place(%now), %at … ─> b0(%then, %now)      begins with b0(first, second)
    becomes
    b0(%now, %then) … load both, %at + %now … ─> b0(%then, %now)      begins with b0(0, bytes of one)

A variable that refers to one array and then to another one is a block parameter, or a select, of
references. A target names the memory of an array in its text, so such a variable cannot remain a
reference: it becomes the offset of a part of one array, which has all to which it may refer.

Requires that these have equal elements and lengths, so that headers and checks are those of each.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping

from ferryvm.ir.graph import Body, Constant, Operation, Value
from ferryvm.ir.member import UngroupedError
from ferryvm.ir.use import users_of
from ferryvm.isa.type import I64

_ACCESSES = {
    **dict.fromkeys(
        ("element_load", "element_store", "update_element", "compare_exchange_element"), 1 << 10
    ),
    "canonicalise_elements": 3,
}
"""Operations whose operands begin with a place and an offset in bytes, and the number of operands
after which another place follows."""


@dataclasses.dataclass
class Exchange:
    """New arrays of a group, and the variables that refer to one or another of them."""

    references: list[Value]
    """In the order in which they are made."""
    variables: set[Value]


def exchanges(body: Body, made: Collection[Value]) -> list[Exchange]:
    """All new arrays, those together that variables choose among; `made`: references to them, in
    the order in which they are made. Raises UngroupedError for variables that are used for anything
    but accesses."""
    sources = _variables(body, made)
    _refuse_uses(body, sources)
    found = [Exchange([reference], set()) for reference in made]
    for variable, values in sources.items():
        joined = Exchange([], {variable})
        for other in [*found]:
            if not other.variables.union(other.references).isdisjoint((variable, *values)):
                found.remove(other)
                joined.references += other.references
                joined.variables |= other.variables
        found.append(joined)
    order = [*made]
    for each in found:
        each.references.sort(key=order.index)
    return sorted(
        (each for each in found if each.references),
        key=lambda each: order.index(each.references[0]),
    )


def _variables(body: Body, made: Collection[Value]) -> dict[Value, list[Value]]:
    """The variables that refer to new arrays and to nothing else, and the values that each gets."""
    found: dict[Value, list[Value]] = {}
    for edge in body.edges:
        for parameter, argument in zip(edge.block.parameters, edge.arguments, strict=True):
            found.setdefault(parameter, []).append(argument)
    for operation in body.operations:
        if operation.name == "select":
            found[operation] = [*operation.arguments[1:]]
    while True:
        others = [
            variable
            for variable, values in found.items()
            if any(value not in made and value not in found for value in values)
        ]
        if not others:
            return found
        for variable in others:
            del found[variable]


def _refuse_uses(body: Body, variables: Collection[Value]) -> None:
    """Raise UngroupedError if a variable may be anything but the array of an access."""
    passed = [
        argument
        for edge in body.edges
        for parameter, argument in zip(edge.block.parameters, edge.arguments, strict=True)
        if parameter not in variables
    ]
    ends = (value for block in body.blocks for value in block.end.arguments)
    users = users_of(body)
    used = (
        variable
        for variable in variables
        for user in users.get(variable, ())
        if user is not None and user not in variables and not _is_of_array(user)
    )
    if any(value in variables for value in (*passed, *ends)) or any(True for _ in used):
        raise UngroupedError("an array of its groups is passed on, stored or compared")


def _is_of_array(user: Operation) -> bool:
    """True if an operation reads a header, or tests for null."""
    is_test = user.name == "compare" and isinstance(user.arguments[1], Constant)
    return is_test or user.name == "header_word"


def give_offsets(body: Body, exchange: Exchange, bytes_: int) -> dict[Value, Value]:
    """The offset of each array and variable of an exchange in what has all of its arrays, of so
    many bytes each. Variables get these from now on."""
    offsets: dict[Value, Value] = {
        reference: body.constant(I64, number * bytes_)
        for number, reference in enumerate(exchange.references)
    }
    for edge in body.edges:
        edge.arguments = [
            offsets.get(argument, argument) if parameter in exchange.variables else argument
            for parameter, argument in zip(edge.block.parameters, edge.arguments, strict=True)
        ]
    for variable in exchange.variables:
        if isinstance(variable, Operation):
            variable.arguments = tuple(offsets.get(a, a) for a in variable.arguments)
    return offsets | {variable: variable for variable in exchange.variables}


def add_offsets(body: Body, parts: Mapping[Value, Value]) -> None:
    """Let accesses reach the part of an array that they are for; `parts`: offsets, by the values
    that stand for places. Raises UngroupedError for operations on elements that have no offset."""
    if not parts:
        return
    for block in body.blocks:
        operations: list[Operation] = []
        for operation in block.operations:
            if not parts.keys().isdisjoint(operation.arguments):
                distance = _ACCESSES.get(operation.name)
                if distance is None:
                    raise UngroupedError(f"its members do `{operation.name}` to exchanged arrays")
                given = [*operation.arguments]
                for place in range(0, len(given), distance):
                    part = parts.get(given[place])
                    if part is not None:
                        offset = Operation("add", I64, (I64,), (given[place + 1], part))
                        operations.append(offset)
                        given[place + 1] = offset
                operation.arguments = tuple(given)
            operations.append(operation)
        block.operations = operations
