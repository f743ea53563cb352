# SPDX-License-Identifier: Apache-2.0
"""Members that fail in the middle of a group, and go on.

    trap_if %bad                     fail_if %bad                   the member has failed
    %x = element_load %place, %i     %x = element_load …            guarded: 0 if the member has failed
    element_store %place, %j, %x     element_store …                guarded: nothing then

A member that left would let the others wait for ever. So it goes on to the end, through all
barriers, with values of no use: what may do harm then, such as an access whose index it has not
checked, is *guarded*. Loops that may take long end early in a member that has failed. The group has
to be undone.

Control must come to barriers whether members have failed or not: `boundary` finds that out
afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence

from ferryvm.ir.control_flow_graph import ControlFlowGraph, reachable_from, remove_unreached
from ferryvm.ir.graph import BOOLEAN, Block, Body, Constant, Operation, Terminator
from ferryvm.ir.loop.natural import Loop, loops_of
from ferryvm.ir.member import UngroupedError
from ferryvm.ir.member.form import GroupForm, group_array_of
from ferryvm.ir.member.value_range import MemberRanges, member_ranges
from ferryvm.ir.operation import DIVISIONS, SHAPES, TRANSFERS, Role
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import Type, signed

_FAILURES = {"trap_if": "fail_if", "guard": "fail_if", "poll": "fail_if_interrupted"}
NOTES = frozenset(_FAILURES.values())
"""Operations at which a member may fail."""

_HARMFUL = DIVISIONS | {
    *("element_load", "element_store", "update_element", "compare_exchange_element"),
    *("canonicalise_elements", "header_word", "type_word", "field_load", "field_store"),
    *("heap_load", "heap_store", "canonicalise", "static_at", "set_static_at"),
}


def merge_traps(body: Body) -> None:
    """Let branches to blocks that only trap be checks in front of the other edge."""
    changed = True
    while changed:
        changed = False
        for block in body.blocks:
            end = block.end
            if end.name != "branch":
                continue
            traps = [_only_traps(edge.block) for edge in end.edges]
            if traps[0] == traps[1]:
                continue
            is_yes = traps[0]
            condition, tail = end.arguments[0], end.edges[0 if is_yes else 1].block.end
            other = end.edges[1 if is_yes else 0]
            if not is_yes:
                condition = Operation("none", BOOLEAN, (), (condition,))
                block.operations.append(condition)
            kind = tail.static[0] if tail.name == "trap" else Trap.UNREACHABLE
            check = Operation("trap_if", None, (kind,), (condition,), tail.state)
            check.pc = tail.pc
            block.operations.append(check)
            block.terminator = Terminator("jump", edges=(other,))
            changed = True
    remove_unreached(body)


def _only_traps(block: Block) -> bool:
    """True if a block leaves, and does nothing else that matters."""
    return block.end.state is not None and all(
        SHAPES[o.name].role in (Role.COMPUTES, Role.FIXED, Role.READS) for o in block.operations
    )


def defer_exits(
    body: Body, form: GroupForm, exits: dict[Operation, Operation] | None = None
) -> frozenset[Operation] | None:
    """Let members fail where they would leave; the guarded operations, None if no member can fail.
    `exits`: receives the former exits by what is in their place. Raises UngroupedError."""
    polled = {b for b in body.blocks if any(o.name == "poll" for o in b.operations)}
    graph = ControlFlowGraph(body)
    for loop in loops_of(graph):
        latches = [graph.blocks[place] for place in loop.latches]
        if polled.intersection(latches):
            has_barrier = any(o.name == "barrier" for o in loop.operations)
            _end_early(loop, latches, has_barrier)
    has_failures = False
    for block in body.blocks:
        for place, operation in enumerate(block.operations):
            has_failures |= operation.name in NOTES
            if operation.state is None:
                continue
            if operation.name not in _FAILURES:
                raise UngroupedError(f"a member may stop for `{operation.name}`")
            made = Operation(_FAILURES[operation.name], None, (), operation.arguments)
            made.pc = operation.pc
            if exits is not None:
                exits[made] = operation
            block.operations[place] = made
            has_failures = True
    return _guarded(body, form) if has_failures else None


def _end_early(loop: Loop, latches: Sequence[Block], has_barrier: bool) -> None:
    """Let a loop that may take long end in members that have failed; one with barriers in all
    members at once, after so many iterations that they fail. Raises UngroupedError."""
    block, is_yes = _test(loop)
    end = block.end
    if has_barrier:
        ends = Operation("iterations_spent", BOOLEAN)
        block.operations += [ends, Operation("fail_if", None, (), (ends,))]
        for latch in latches:
            latch.operations = [o for o in latch.operations if o.name != "poll"]
    else:
        ends = Operation("has_failed", BOOLEAN)
        block.operations.append(ends)
    if is_yes:
        made = Operation("any", BOOLEAN, (), (end.arguments[0], ends))
    else:
        goes_on = Operation("none", BOOLEAN, (), (ends,))
        block.operations.append(goes_on)
        made = Operation("all", BOOLEAN, (), (end.arguments[0], goes_on))
    block.operations.append(made)
    end.arguments = (made,)


def _test(loop: Loop) -> tuple[Block, bool]:
    """A block at whose end each iteration may leave a loop; true if it does so where the condition
    holds. Raises UngroupedError."""
    graph, own = loop.graph, {*loop.members}
    for place in loop.places:
        end = graph.blocks[place].end
        if end.name == "branch" and all(graph.dominates(place, each) for each in loop.latches):
            leaves = [edge.block not in own for edge in end.edges]
            if leaves[0] != leaves[1]:
                return graph.blocks[place], leaves[0]
    raise UngroupedError("a loop of its members that may take long has no test in each iteration")


def _guarded(body: Body, form: GroupForm) -> frozenset[Operation]:
    """The operations that may do harm in a member that has failed."""
    sources = [b for b in body.blocks if any(o.name in NOTES for o in b.operations)]
    behind = reachable_from(edge.block for block in sources for edge in block.end.edges)
    ranges = member_ranges(body, form)
    found = set[Operation]()
    for block in body.blocks:
        has_noted = block in behind
        for operation in block.operations:
            has_noted |= operation.name in NOTES
            if not has_noted:
                continue
            if operation.name in TRANSFERS:
                raise UngroupedError("its members move elements where they may have failed")
            if operation.name in _HARMFUL and not _is_harmless(operation, block, form, ranges):
                found.add(operation)
    return frozenset(found)


def _is_harmless(operation: Operation, block: Block, form: GroupForm, ranges: MemberRanges) -> bool:
    if operation.name in DIVISIONS:
        divisor = operation.arguments[1]
        return isinstance(divisor, Constant) and signed(operation.fact(0, Type), divisor.bits) > 0
    number = group_array_of(operation)
    if number is None or operation.name == "canonicalise_elements":
        return False
    array = form.arrays[number]
    found = ranges.range(operation.arguments[1], block)
    return found.low >= 0 and found.high <= array.bytes - array.element.bytes
