# SPDX-License-Identifier: Apache-2.0
"""The sizes of a group, in terms of what is known when the outer launch begins.

    limit of the inner launch, lengths of new arrays ─> statics, arguments, lengths of arguments

These are its *leaves*. Their values become constants of the code: so a member's loops, divisions by
sizes, and checks against lengths are those of code that is written for one size.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterable, Iterator, Mapping

from ferryvm.ir.graph import Body, Constant, Operation, Value
from ferryvm.ir.loop.natural import Loop, find_loops
from ferryvm.ir.member import UngroupedError
from ferryvm.ir.operation import LENGTH, PURE
from ferryvm.ir.use import substitute
from ferryvm.isa.emitter import Condition
from ferryvm.isa.type import I64
from ferryvm.program import Program
from ferryvm.region.launch import is_launch_head


class LeafKind(enum.Enum):
    """The kinds of values that are known when a launch begins."""

    STATIC = "a static"
    ARGUMENT = "an argument that items share"
    LENGTH = "the length of an array that items share"


@dataclasses.dataclass(frozen=True, order=True)
class Leaf:
    """A value that is known when a launch begins."""

    kind: LeafKind = dataclasses.field(compare=False)
    number: int
    """Of the static; of the argument, the first one after the item being 0."""
    name: str
    """Of the kind, for an order."""


def _leaf(kind: LeafKind, number: int) -> Leaf:
    return Leaf(kind, number, kind.name)


def launch_loops(body: Body, program: Program) -> list[Loop]:
    """The loops of a body that are launches."""
    return [
        loop
        for loop in find_loops(body)
        if loop.header.pc >= 0 and is_launch_head(program, loop.header.pc)
    ]


def launch_test(loop: Loop) -> Operation:
    """The comparison of next and limit at the head of a launch's loop. Raises UngroupedError."""
    for operation in loop.header.operations:
        if operation.name == "compare" and operation.static == (I64, Condition.GE_S):
            return operation
    raise UngroupedError("the loop of its members has another form")


def leaves(body: Body, program: Program) -> tuple[Leaf, ...]:
    """The values on which the sizes of a group depend, in an order of their own. Raises
    UngroupedError if that is not known when the outer launch begins."""
    changed = {o.static[0] for o in body.operations if o.name == "set_static"}
    found = set()
    for value in _sources(group_sizes(body, program), body):
        leaf = _leaf_of(value, body)
        if leaf is None or (leaf.kind is LeafKind.STATIC and leaf.number in changed):
            raise UngroupedError("the size of its groups is not known when it begins")
        found.add(leaf)
    return tuple(sorted(found))


def group_sizes(body: Body, program: Program) -> Iterator[Value]:
    """The numbers of members, and the lengths of arrays."""
    for loop in launch_loops(body, program):
        yield launch_test(loop).arguments[1]
    for operation in body.operations:
        if operation.name == "set_header_word" and operation.static[0] == LENGTH:
            yield operation.arguments[1]


def _sources(values: Iterable[Value], body: Body) -> Iterator[Value]:
    """The values from which others are computed, on whatever path."""
    passed: dict[Value, list[Value]] = {}
    for edge in body.edges:
        for parameter, argument in zip(edge.block.parameters, edge.arguments, strict=True):
            passed.setdefault(parameter, []).append(argument)
    seen, waiting = set[Value](), [*values]
    while waiting:
        value = waiting.pop()
        if value in seen or isinstance(value, Constant):
            continue
        seen.add(value)
        if isinstance(value, Operation) and value.name in PURE:
            waiting += value.arguments
        elif value in passed:
            waiting += passed[value]
        else:
            yield value


def _leaf_of(value: Value, body: Body) -> Leaf | None:
    shared: list[Value] = [*body.blocks[0].parameters[1:]]
    if isinstance(value, Operation):
        if value.name == "static" and value.type is I64:
            return _leaf(LeafKind.STATIC, value.fact(0, int))
        is_length = value.name == "header_word" and value.static[0] == LENGTH
        if is_length and value.arguments[0] in shared:
            return _leaf(LeafKind.LENGTH, shared.index(value.arguments[0]))
    elif value in shared and value.type is I64:
        return _leaf(LeafKind.ARGUMENT, shared.index(value))
    return None


def specialise(body: Body, values: Mapping[Leaf, int]) -> None:
    """Use the values of leaves as constants, wherever they occur."""
    new: dict[Value, Value] = {}
    for value in (*body.blocks[0].parameters[1:], *body.operations):
        leaf = _leaf_of(value, body)
        if leaf is not None and leaf in values:
            new[value] = body.constant(I64, values[leaf])
    substitute(body.blocks, new)
