# SPDX-License-Identifier: Apache-2.0
"""The code of one member, from that of the item of the outer launch.

    entry … %n, arrays ─> b0(%next) ─┬─> b1: call of a member ─> b0(%next + 1)^
                                     └─> behind … return
    becomes
    entry … ─> b1: the member %member ─> barrier ─┬─ first member ─> behind … return
                                                  └─ others ─> return

All exits are in the state of the entry of the outer item, where a group that is not to begin goes
on in order (`boundary`). The arrays that the item makes for its members become `group_array`, the
place of elements that the target has for each group.

Requires inlined calls, and sizes that are constants or parameters. Raises UngroupedError for items
of another form.
"""

from __future__ import annotations

import dataclasses

from ferryvm.flowgraph.traversal import reverse_postorder
from ferryvm.ir.control_flow_graph import reachable_from
from ferryvm.ir.graph import (
    BOOLEAN,
    Block,
    Body,
    Constant,
    Edge,
    FrameState,
    Operation,
    Parameter,
    Terminator,
    Value,
)
from ferryvm.ir.loop.natural import Loop
from ferryvm.ir.loop.preheader import Labels
from ferryvm.ir.member import UngroupedError
from ferryvm.ir.member.exchange import Exchange, add_offsets, exchanges, give_offsets
from ferryvm.ir.member.size import launch_loops, launch_test
from ferryvm.ir.operation import HEADER, LENGTH, PLACE, SHAPES, Role
from ferryvm.ir.passes.dead_code import remove_dead_code
from ferryvm.ir.passes.jump_threading import thread_jumps
from ferryvm.ir.passes.value_numbering import number_values
from ferryvm.ir.use import substitute, users_of
from ferryvm.isa import BY_MNEMONIC
from ferryvm.isa.element import Element
from ferryvm.isa.emitter import Condition
from ferryvm.isa.object import type_number
from ferryvm.isa.type import I64
from ferryvm.program import Program

_MOST_MEMBERS = 1 << 31
"""Members of a group, more than any target has."""

_BARRIER = BY_MNEMONIC["launch.barrier"].opcode

_REFUSED = {
    "call": "its members call what cannot become part of them",
    "call_indirect": "its members call what cannot become part of them",
    "call_host": "its members call the host",
    "grow_if": "its members allocate from the heap",
}
_ELEMENTS = {element.array.number: element for element in Element}
_STORES = frozenset({"element_store", "canonicalise_elements"})


@dataclasses.dataclass(frozen=True)
class GroupArray:
    """An array that a group has for itself."""

    element: Element
    length: int
    is_stored_first: bool = False
    """True if members store all elements before any is read."""
    size: Parameter | None = None
    """The parameter that is its length, if that is no constant; then `length` is 0."""

    @property
    def bytes(self) -> int:
        """Bytes of its elements."""
        return self.element.bytes * self.length


@dataclasses.dataclass(frozen=True)
class GroupForm:
    """Facts on the group of a member, whose code is the body of the outer item's function."""

    member: Operation
    """The number of the member in its group."""
    members: int
    """Members of a group."""
    arrays: tuple[GroupArray, ...]
    """By the numbers of `group_array`."""
    axes: tuple[int, ...] = ()
    """Members along each axis of `member_index`; none if there is no such operation."""
    size: Parameter | None = None
    """The parameter that is the number of members, if that is no constant; then `members` are the
    most that any target has."""


def group_array_of(operation: Operation) -> int | None:
    """The number of the array of the group that an operation accesses; None if it accesses none."""
    for argument in operation.arguments[:1]:
        if isinstance(argument, Operation) and argument.name == "group_array":
            return argument.fact(0, int)
    return None


def settle(body: Body) -> None:
    """Fold constants, and remove what is not reached then."""
    thread_jumps(body)
    remove_dead_code(body)
    number_values(body)


def mark_barriers(body: Body, program: Program) -> None:
    """Replace the exits at which members wait by `barrier`. Raises UngroupedError."""
    opcodes = program.code.opcodes
    for block in body.blocks:
        block.operations = [o for o in block.operations if o.name != "check_entry"]
        for place, operation in enumerate(block.operations):
            if operation.name != "continue_launch_if" or opcodes[operation.exit.pc] != _BARRIER:
                continue
            (flag,) = operation.arguments
            if not isinstance(flag, Constant) or not flag.bits:
                raise UngroupedError("whether a member waits at a barrier depends on a value")
            made = Operation("barrier", None)
            made.pc = operation.exit.pc
            block.operations[place] = made


def leave_at_begin(body: Body, state: FrameState) -> None:
    """Let all exits be in the state of the entry."""
    for block in body.blocks:
        for operation in (*block.operations, block.end):
            if operation.state is not None and SHAPES[operation.name].role is not Role.CALLS:
                operation.state = state


def group_form(body: Body, program: Program) -> GroupForm:
    """Make the item of an outer launch one member of its group. Raises UngroupedError."""
    for operation in body.operations:
        if operation.name in _REFUSED:
            raise UngroupedError(_REFUSED[operation.name])
    loops = launch_loops(body, program)
    if len(loops) != 1:
        raise UngroupedError(f"its items have {len(loops)} launches, not one")
    (loop,) = loops
    limit = launch_test(loop).arguments[1]
    size = None if isinstance(limit, Constant) else limit
    assert size is None or isinstance(size, Parameter)
    member = Operation("member", I64)
    _refuse_effects_before(body, loop)
    arrays = _arrays(body, loop)
    _join(body, loop, member)
    body.blocks[0].operations.insert(0, member)
    settle(body)
    members = limit.bits if isinstance(limit, Constant) else _MOST_MEMBERS
    return GroupForm(member, members, arrays, size=size)


# --- arrays -----------------------------------------------------------------------------------


_ALLOCATION = frozenset({"allocate_if", "clear_prepared", "set_object_top"})


def _refuse_effects_before(body: Body, loop: Loop) -> None:
    """Raise UngroupedError if an item changes what is not new before its members begin."""
    reached = reachable_from(loop.graph.blocks[place] for place in loop.blocks)
    for block in body.blocks:
        if block not in reached:
            block.operations = [o for o in block.operations if not _clears(o, body)]
        for operation in block.operations:
            is_allocation = operation.name in {*_ALLOCATION, "set_header_word"}
            if block in reached and is_allocation:
                raise UngroupedError("its members make objects")
            if block not in reached and not is_allocation:
                if operation.name == "barrier" or operation.name in _STORES:
                    raise UngroupedError("its items store before their members begin")
                if SHAPES[operation.name].role is Role.CHANGES:
                    raise UngroupedError(f"its items do `{operation.name}` before their members")


def _clears(operation: Operation, body: Body) -> bool:
    """True if an operation stores zeros into a new array, whose elements are zero."""
    if operation.name != "fill_elements":
        return False
    place, *_, value = operation.arguments
    if not isinstance(value, Constant) or value.bits:
        return False
    headers = (o for o in body.operations if o.name == "set_header_word")
    return any((o.static[0], o.arguments[1]) == (PLACE, place) for o in headers)


def _arrays(body: Body, loop: Loop) -> tuple[GroupArray, ...]:
    """Let the new arrays of an item be those of its group."""
    graph = loop.graph
    found: list[GroupArray] = []
    new: dict[Value, Value] = {}
    places: list[Operation] = []
    headers: dict[Value, dict[int, Value]] = {}
    for block in body.blocks:
        for operation in block.operations:
            if operation.name == "set_header_word":
                reference, value = operation.arguments
                headers.setdefault(reference, {})[operation.fact(0, int)] = value
                if not graph.dominates(graph.places[block], loop.head):
                    raise UngroupedError("its items do not always make the same arrays")
        block.operations = [
            o for o in block.operations if o.name not in {*_ALLOCATION, "set_header_word"}
        ]
    parts: dict[Value, Value] = {}
    for exchange in exchanges(body, headers):
        place = Operation("group_array", I64, (len(found),))
        places.append(place)
        array, header, length = _array(exchange, headers)
        if array.size is not None and len(exchange.references) > 1:
            raise UngroupedError("its members exchange arrays of no constant length")
        offsets = give_offsets(body, exchange, array.bytes)
        found.append(dataclasses.replace(array, length=len(exchange.references) * array.length))
        for reference in exchange.references:
            _stand_for(headers[reference][PLACE], place, offsets[reference], new, parts)
        for operation in body.operations:
            offset = offsets.get(operation.arguments[0]) if operation.arguments else None
            if offset is None:
                continue
            if operation.name == "header_word":
                word = operation.fact(0, int)
                if word == PLACE:
                    _stand_for(operation, place, offset, new, parts)
                else:
                    new[operation] = {HEADER: header, LENGTH: length}[word]
            elif operation.name == "compare":
                new[operation] = body.constant(BOOLEAN, operation.static[1] is Condition.NE)
    add_offsets(body, parts)
    body.blocks[0].operations = [*places, *body.blocks[0].operations]
    substitute(body.blocks, new)
    remove_dead_code(body)
    users = users_of(body)
    for reference in headers:
        if users.get(reference):
            raise UngroupedError("an array of its groups is passed on, stored or compared")
    return tuple(found)


def _array(
    exchange: Exchange, headers: dict[Value, dict[int, Value]]
) -> tuple[GroupArray, Constant, Value]:
    """One of the arrays of an exchange, and the words of its header. Raises UngroupedError."""
    (first, *others) = [headers[reference] for reference in exchange.references]
    header, length = first[HEADER], first[LENGTH]
    assert isinstance(header, Constant)
    element = _ELEMENTS.get(type_number(header.bits))
    if element is None:
        raise UngroupedError("its items make objects that are no arrays of numbers")
    if any(other[HEADER] is not header or other[LENGTH] is not length for other in others):
        raise UngroupedError("its members exchange arrays of different lengths or elements")
    if isinstance(length, Constant):
        return GroupArray(element, length.bits), header, length
    assert isinstance(length, Parameter)
    return GroupArray(element, 0, size=length), header, length


def _stand_for(
    value: Value,
    place: Operation,
    offset: Value,
    new: dict[Value, Value],
    parts: dict[Value, Value],
) -> None:
    """Let a value stand for a part of the array at a place."""
    new[value] = place
    if not isinstance(offset, Constant) or offset.bits:
        parts[value] = offset


# --- the launch -------------------------------------------------------------------------------


def _join(body: Body, loop: Loop, member: Operation) -> None:
    """Replace the loop over members by one member, and what follows it by that of the first one."""
    header, test = loop.header, launch_test(loop)
    next_ = test.arguments[0]
    if header.end.name != "branch" or header.end.arguments[0] is not test:
        raise UngroupedError("the loop of its members has another form")
    behind, inside = header.end.edges
    (first, *others), back_edges = loop.entries, loop.back_edges
    if others:
        raise UngroupedError("its members begin in several places")
    new: dict[Value, Value] = {}
    for place, parameter in enumerate(header.parameters):
        start = first.edge.arguments[place]
        again = {back.edge.arguments[place] for back in back_edges}
        if parameter is next_:
            if not isinstance(start, Constant) or start.bits:
                raise UngroupedError("its members do not begin with the first one")
            new[parameter] = member
        elif again <= {parameter, start}:
            new[parameter] = start
        else:
            raise UngroupedError("a value is passed from member to member")
    header.parameters = []
    first.edge.arguments = []
    after = _after(body, behind, member)
    for source, edge in back_edges:
        block = loop.graph.blocks[source]
        block.operations = [
            o
            for n, o in enumerate(block.operations)
            if o.name != "poll" or n < len(block.operations) - 1
        ]
        edge.block, edge.arguments, edge.is_back = after.block, [*after.arguments], False
    header.terminator = Terminator("jump", edges=(Edge(inside.block, inside.arguments),))
    substitute(body.blocks, new)
    order = reverse_postorder(body.blocks[0], lambda b: [e.block for e in reversed(b.end.edges)])
    body.blocks[:] = order


def _after(body: Body, behind: Edge, member: Operation) -> Edge:
    """The edge that a member takes at its end."""
    seen, waiting = set[Block](), [behind.block]
    while waiting:
        block = waiting.pop()
        if block not in seen:
            seen.add(block)
            waiting += [edge.block for edge in block.end.edges]
    operations = [o for block in seen for o in (*block.operations, block.end)]
    if not any(SHAPES[o.name].role in (Role.CHANGES, Role.READS) for o in operations):
        return behind
    labels = Labels(body)
    joined, done = labels.block(behind.block, "joined"), labels.block(behind.block, "done")
    is_first = Operation("compare", BOOLEAN, (I64, Condition.EQ), (member, body.constant(I64, 0)))
    joined.operations = [Operation("barrier", None), is_first]
    joined.terminator = Terminator(
        "branch",
        arguments=(is_first,),
        edges=(Edge(behind.block, behind.arguments), Edge(done, [])),
    )
    done.terminator = Terminator("return")
    body.blocks += [joined, done]
    return Edge(joined, [])
