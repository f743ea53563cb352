# SPDX-License-Identifier: Apache-2.0
"""Checks of members that cannot fail, and checks in loops that can be made before them.

The ranges of values (`value_range`) show that most checks of indices into arrays of a group cannot
fail.

A check of an affine index moves in front of its loop (`range_check`), where a doubt that it may
fail in any iteration is a reason to leave: a group that leaves needlessly only runs in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from ferryvm.ir.control_flow_graph import ControlFlowGraph
from ferryvm.ir.graph import (
    BOOLEAN,
    Block,
    Body,
    Constant,
    FrameState,
    Operation,
    Parameter,
    Value,
)
from ferryvm.ir.loop.natural import Loop, loops_of
from ferryvm.ir.member.form import GroupForm
from ferryvm.ir.member.uniformity import post_dominators
from ferryvm.ir.member.value_range import MOST, MemberRanges, member_ranges
from ferryvm.ir.passes.dead_code import remove_dead_code
from ferryvm.ir.passes.entry_exit import MOVABLE
from ferryvm.ir.passes.range_check import hoist_range_checks
from ferryvm.ir.use import substitute
from ferryvm.isa.emitter import Condition
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import I64


def eliminate_member_checks(body: Body, form: GroupForm) -> None:
    """Remove checks that hold for no member, and let comparisons that never hold be false."""
    ranges = member_ranges(body, form)
    never: dict[Value, Value] = {
        operation: body.constant(BOOLEAN, 0)
        for block in body.blocks
        for operation in block.operations
        if operation.name == "compare" and ranges.is_false(operation, block)
    }
    spare_checks(body.blocks, ranges)
    substitute(body.blocks, never)
    remove_dead_code(body)


def spare_checks(blocks: Iterable[Block], ranges: MemberRanges) -> None:
    """Remove checks of these blocks that hold for no member."""
    for block in blocks:
        remaining = []
        for operation in block.operations:
            if operation.name == "trap_if":
                condition = operation.arguments[0]
                if ranges.is_false(condition, block):
                    continue
            remaining.append(operation)
        block.operations = remaining
        for operation in block.operations:
            if operation.name == "trap_if":
                operation.arguments = (_possible(operation.arguments[0], block, ranges),)


def _possible(condition: Value, block: Block, ranges: MemberRanges) -> Value:
    """A condition without disjuncts that never hold."""
    if not isinstance(condition, Operation) or condition.name != "any":
        return condition
    parts = [each for each in condition.arguments if not ranges.is_false(each, block)]
    if len(parts) == 1:
        return _possible(parts[0], block, ranges)
    return condition


def hoist_argument_checks(
    body: Body, form: GroupForm, state: FrameState, is_exact: bool = False
) -> None:
    """Check arguments at the entry, in its `state`, wherever members check them: whether they are
    null or read-only, the room on the stack, indices that arguments and the member determine, where
    branches on these lead to the check. Unless it is to be exact, an index is checked for its
    largest value, or the limit that a branch has found of it."""
    graph, ranges = ControlFlowGraph(body), member_ranges(body, form)
    movable: dict[Value, bool] = {}
    entry = body.blocks[0]

    def is_movable(value: Value) -> bool:
        if isinstance(value, Constant) or value in entry.parameters:
            return True
        if not isinstance(value, Operation) or value.name not in MOVABLE:
            return False
        if value not in movable:
            movable[value] = all(map(is_movable, value.arguments))
        return movable[value]

    def extreme(condition: Value, block: Block) -> Value:
        """The condition for the largest index of all members and iterations, if that is known."""
        if is_exact or not isinstance(condition, Operation) or condition.name != "compare":
            return condition
        index, limit = condition.arguments
        if condition.static != (I64, Condition.GE_U) or is_movable(index) or not is_movable(limit):
            return condition
        found = ranges.range(index, block)
        if found.low < 0 or found.high >= MOST:
            return condition
        largest = body.constant(I64, found.high)
        return Operation("compare", BOOLEAN, condition.static, (largest, limit))

    def limit_of(condition: Value, block: Block) -> Value | None:
        """The condition that an index may pass the length, if branches have found limits of it: all
        of these are above."""
        if is_exact or not isinstance(condition, Operation) or condition.name != "compare":
            return None
        index, length = condition.arguments
        if condition.static != (I64, Condition.GE_U) or is_movable(index) or not is_movable(length):
            return None
        if ranges.range(index, block).low < 0:
            return None
        found: Operation | None = None
        for limit in filter(is_movable, ranges.limits(index, block)):
            passes = Operation("compare", BOOLEAN, (I64, Condition.GT_S), (limit, length))
            found = Operation("all", BOOLEAN, (), (found, passes)) if found else passes
        return found

    needed: dict[Operation, None] = {}

    def need(value: Value) -> None:
        if isinstance(value, Operation) and value not in needed:
            for argument in value.arguments:
                need(argument)
            needed[value] = None

    loops, after = loops_of(graph), post_dominators(body.blocks) if is_exact else None
    conditions: list[tuple[Operation, list[tuple[Value, bool]]]] = []
    for place, block in enumerate(graph.blocks[1:], 1):
        path = _path(graph, loops, place, is_movable, after)
        remaining = []
        for operation in block.operations:
            limited = operation.name == "trap_if" and limit_of(operation.arguments[0], block)
            if limited:
                operation.arguments = (limited,)
                conditions.append((operation, []))
                need(limited)
                continue
            if operation.name == "trap_if" and path is not None:
                operation.arguments = (extreme(operation.arguments[0], block),)
            is_check = operation.name == "trap_if" and is_movable(operation.arguments[0])
            if not is_check or (path is None and operation.static[0] not in _ALWAYS):
                remaining.append(operation)
                continue
            conditions.append((operation, path or []))
            need(operation.arguments[0])
            for test, _ in path or ():
                need(test)
        block.operations = remaining
    if not conditions:
        return
    for block in body.blocks:
        block.operations = [o for o in block.operations if o not in needed]
    made: list[Operation] = []
    for check, tests in conditions:
        condition = check.arguments[0]
        for test, is_so in tests:
            if not is_so:
                made.append(Operation("none", BOOLEAN, (), (test,)))
                test = made[-1]
            made.append(Operation("all", BOOLEAN, (), (condition, test)))
            condition = made[-1]
        made.append(Operation("trap_if", None, check.static, (condition,), state))
        made[-1].pc = check.pc
    entry.operations = [*needed, *made, *entry.operations]


_ALWAYS = frozenset({Trap.STACK_OVERFLOW, Trap.NULL_REFERENCE, Trap.READ_ONLY_ARRAY})


def _path(
    graph: ControlFlowGraph,
    loops: Sequence[Loop],
    place: int,
    is_movable: Callable[[Value], bool],
    after: Mapping[Block, Block | None] | None,
) -> list[tuple[Value, bool]] | None:
    """The tests of branches that lead to a block, each with its result; None if one of them cannot
    be computed at the entry. `after`: post-dominators, if a block to which several edges lead is to
    be one of the branch above."""
    found: list[tuple[Value, bool]] = []
    while place:
        above = graph.dominators.parent(place)
        end = graph.blocks[above].end
        ends_loop = any(
            above in loop.blocks and (place not in loop.blocks or above == loop.head)
            for loop in loops
        )
        if len(end.edges) > 1 and not ends_loop:
            only = graph.only_edge(place)
            if only is not None:
                if end.name != "branch" or not is_movable(end.arguments[0]):
                    return None
                found.append((end.arguments[0], only[1] is end.edges[0]))
            elif after is not None and not _follows(
                graph.blocks[place], graph.blocks[above], after
            ):
                return None
        place = above
    return found


def _follows(block: Block, above: Block, after: Mapping[Block, Block | None]) -> bool:
    """True if control comes to a block from the one above on each path."""
    here = after.get(above)
    while here is not None and here is not block:
        here = after.get(here)
    return here is block


def hoist_member_checks(body: Body, state: FrameState) -> None:
    """Leave in front of loops where a check in them may fail; `state`: of the entry."""
    if not hoist_range_checks(body, groups=True):
        return
    false = body.constant(BOOLEAN, 0)
    new: dict[Value, Value] = {}
    made: list[tuple[Block, Value]] = []
    for block in body.blocks:
        for operation in block.operations:
            if operation.name != "trap_if":
                continue
            condition = operation.arguments[0]
            if isinstance(condition, Operation) and condition.name == "all":
                for doubt in condition.arguments:
                    if isinstance(doubt, Parameter) and doubt not in new:
                        home = next((b for b in body.blocks if doubt in b.parameters), None)
                        if home is not None and home.label.startswith("checked."):
                            new[doubt] = false
                            made.append((home, doubt))
    substitute(body.blocks, new)
    for home, doubt in made:
        check = Operation("trap_if", None, (Trap.INDEX_OUT_OF_BOUNDS,), (doubt,), state)
        check.pc = home.pc
        home.operations.insert(0, check)
