# SPDX-License-Identifier: Apache-2.0
"""The sizes of a group, in terms of what is known when the outer launch begins.

    limit of the inner launch, lengths of new arrays ─> statics, arguments, lengths of arguments

These are its *leaves*. Their values become constants of the code: so a member's loops, divisions by
sizes, and checks against lengths are those of code that is written for one size.

    min(count - group * size, size)    members, where the last group may have fewer

is a leaf, too: all groups of a launch but the last one have the same.
"""

from __future__ import annotations

import collections
import dataclasses
import enum
from collections.abc import Container, Iterable, Iterator, Mapping

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
    MEMBERS = "the members of a group, of which the last one may have fewer"


@dataclasses.dataclass(frozen=True, order=True)
class Leaf:
    """A value that is known when a launch begins."""

    kind: LeafKind = dataclasses.field(compare=False)
    number: int
    """Of the static; of the argument, the first one after the item being 0."""
    name: str
    """Of the kind, for an order."""
    of: tuple[Leaf, Leaf] | None = dataclasses.field(default=None, compare=False)
    """The number of items of all groups, and that of a group, of which members are the minimum."""


def _leaf(kind: LeafKind, number: int) -> Leaf:
    return Leaf(kind, number, kind.name)


def members_of(group: int, count: int, size: int) -> int:
    """The value of a leaf of kind MEMBERS."""
    return min(count - group * size, size)


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


def leaves(body: Body, program: Program, uneven: bool = False) -> tuple[Leaf, ...]:
    """The values on which the sizes of a group depend, in an order of their own. `uneven`: groups
    may have fewer members than others. Raises UngroupedError if that is not known when the outer
    launch begins."""
    changed = {o.static[0] for o in body.operations if o.name == "set_static"}
    members = _members(body) if uneven else {}
    found = set()
    for value in _sources(group_sizes(body, program), body, members):
        leaf = members.get(value) or _leaf_of(value, body)
        for each in (leaf,) if leaf is None or leaf.of is None else leaf.of:
            if each is None or (each.kind is LeafKind.STATIC and each.number in changed):
                raise UngroupedError("the size of its groups is not known when it begins")
        assert leaf is not None
        found |= {leaf, *(leaf.of or ())[1:]}
    return tuple(sorted(found))


def _members(body: Body) -> dict[Value, Leaf]:
    """The parameters of blocks that are leaves of kind MEMBERS."""
    item = body.blocks[0].parameters[0]
    found: dict[Value, Leaf] = {}
    entering = collections.Counter(edge.block for edge in body.edges)
    for block in body.blocks:
        p = block.end.arguments[0] if block.end.name == "branch" else None
        if not isinstance(p, Operation) or p.name != "compare" or p.static[0] is not I64:
            continue
        yes, no = block.end.edges
        a, b = p.arguments
        if p.static[1] in (Condition.GT_S, Condition.GE_S):
            a, b = b, a
        elif p.static[1] not in (Condition.LT_S, Condition.LE_S):
            continue
        if yes.block is not no.block or entering[yes.block] != 2:
            continue
        for parameter, one, two in zip(
            yes.block.parameters, *(yes.arguments, no.arguments), strict=True
        ):
            if (one, two) != (a, b):
                continue
            counted = _counted(a, b, item, body) or _counted(b, a, item, body)
            if counted is not None:
                found[parameter] = Leaf(LeafKind.MEMBERS, len(found), "MEMBERS", counted)
    return found


def _counted(rest: Value, size: Value, item: Value, body: Body) -> tuple[Leaf, Leaf] | None:
    """The number of items and that of a group, if `rest` is the number that is left from the group
    `item` on."""
    if not isinstance(rest, Operation) or (rest.name, rest.static) != ("sub", (I64,)):
        return None
    count, first = rest.arguments
    if not isinstance(first, Operation) or (first.name, first.static) != ("mul", (I64,)):
        return None
    if {*first.arguments} != {item, size}:
        return None
    total, each = _leaf_of(count, body), _leaf_of(size, body)
    return None if total is None or each is None else (total, each)


def group_sizes(body: Body, program: Program) -> Iterator[Value]:
    """The numbers of members, and the lengths of arrays."""
    for loop in launch_loops(body, program):
        yield launch_test(loop).arguments[1]
    for operation in body.operations:
        if operation.name == "set_header_word" and operation.static[0] == LENGTH:
            yield operation.arguments[1]


def _sources(values: Iterable[Value], body: Body, members: Container[Value]) -> Iterator[Value]:
    """The values from which others are computed, on whatever path; `members`: those that are looked
    at no further."""
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
        elif value in passed and value not in members:
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
    new: dict[Value, Value] = {
        value: body.constant(I64, values[leaf])
        for value, leaf in _members(body).items()
        if leaf in values
    }
    for value in (*body.blocks[0].parameters[1:], *body.operations):
        leaf = _leaf_of(value, body)
        if leaf is not None and leaf in values:
            new[value] = body.constant(I64, values[leaf])
    substitute(body.blocks, new)
