# SPDX-License-Identifier: Apache-2.0
"""Branches on the number of an item: the loop over items as two loops, one after the other.

    for item in 0 … n:                      m = u, at least 0 and at most n
        if item < u then A else B    ─>     for item in 0 … m: A
                                            for item in m … n: B

So each has no branch, and a check below it is made by all items of its loop. A tree of sums has
such a branch: `if local < half`. (Allen, Kennedy: Optimizing Compilers for Modern Architectures,
2001, section 5.8: index-set splitting.) Requires `code_motion`.
"""

from __future__ import annotations

from typing import NamedTuple

from ferryvm.ir.build import Builder
from ferryvm.ir.control_flow_graph import remove_unreached
from ferryvm.ir.graph import Block, Body, Constant, Edge, Operation, Parameter, Terminator, Value
from ferryvm.ir.group.branch import LARGEST, item_poll
from ferryvm.ir.group.check import MOST_KNOWN
from ferryvm.ir.loop.clone import LoopClone
from ferryvm.ir.loop.induction import InductionVariable, find_induction_variable
from ferryvm.ir.loop.natural import Loop, find_loops
from ferryvm.isa.emitter import Condition
from ferryvm.isa.type import I64

_MOST = 4
"""Loops that are made of one, at most."""

_MIRRORED = {
    Condition.LT_S: Condition.GT_S,
    Condition.LE_S: Condition.GE_S,
    Condition.GT_S: Condition.LT_S,
    Condition.GE_S: Condition.LE_S,
}
"""The conditions for exchanged operands, of those that divide items in order."""


class _Branch(NamedTuple):
    """A branch on the number of an item."""

    block: Block
    bound: Value
    """The value with which the number is compared."""
    is_inclusive: bool
    """True if the item with this number is one of the first items."""
    first: int
    """The edge that the first items take."""


def split_at_numbers(body: Body) -> int:
    """Make two loops of each loop over items that branch on their number; the number of loops that
    were divided."""
    made: dict[Block, int] = {}
    divided = 0
    while (found := _next(body, made)) is not None:
        loop, variable, branch = found
        times = made.get(loop.header, 1) + 1
        other = _divide(body, loop, variable, branch)
        made[loop.header] = made[other] = times
        divided += 1
    return divided


def _next(body: Body, made: dict[Block, int]) -> tuple[Loop, InductionVariable, _Branch] | None:
    for loop in find_loops(body):
        if made.get(loop.header, 1) >= _MOST or item_poll(loop) is None or loop.entry is None:
            continue
        if not loop.has_one_exit or sum(1 for _ in loop.operations) > LARGEST:
            continue
        variable = find_induction_variable(loop)
        if variable is None or not _counts_items(variable, made, loop):
            continue
        branches = (_branch(loop, variable, block) for block in loop.members)
        branch = next((each for each in branches if each is not None), None)
        if branch is not None and _passes_parameters_alone(loop, variable):
            return loop, variable, branch
    return None


def _counts_items(variable: InductionVariable, made: dict[Block, int], loop: Loop) -> bool:
    """True if a variable counts from 0 to a constant, or did so before its loop was divided."""
    numbers = variable.start, variable.step, variable.bound
    start, step, bound = (each.bits if isinstance(each, Constant) else -1 for each in numbers)
    return step == 1 and (loop.header in made or (start == 0 and 0 < bound <= MOST_KNOWN))


def _passes_parameters_alone(loop: Loop, variable: InductionVariable) -> bool:
    """True if nothing behind a loop uses values of it other than its header's parameters."""
    if loop.exits != [variable.exit]:
        return False
    parameters = {*loop.header.parameters}
    own = {v for b in loop.extent for v in (*b.parameters, *b.operations)} - parameters
    if not own.isdisjoint(variable.exit.arguments):
        return False
    inside = {*loop.extent}
    return all(
        own.isdisjoint(operation.uses())
        for block in loop.graph.blocks
        if block not in inside
        for operation in (*block.operations, block.end)
    )


def _branch(loop: Loop, variable: InductionVariable, block: Block) -> _Branch | None:
    end, inside = block.end, {*loop.members}
    if block is loop.header or end.name != "branch":
        return None
    yes, no = (edge.block for edge in end.edges)
    test = end.arguments[0]
    if yes is no or yes not in inside or no not in inside or not isinstance(test, Operation):
        return None
    if test.name != "compare" or test.static[0] is not I64:
        return None
    (one, other), condition = test.arguments, test.static[1]
    assert isinstance(condition, Condition)
    if other is variable.value:
        one, other, condition = other, one, _MIRRORED.get(condition, condition)
    if one is not variable.value or condition not in _MIRRORED or not loop.is_invariant(other):
        return None
    is_below = condition in (Condition.LT_S, Condition.LE_S)
    is_inclusive = condition in (Condition.LE_S, Condition.GT_S)
    return _Branch(block, other, is_inclusive, 0 if is_below else 1)


def _divide(body: Body, loop: Loop, variable: InductionVariable, branch: _Branch) -> Block:
    """Let a loop run the first items, and a clone of it the others; the header of the clone."""
    entry = loop.entry
    assert entry is not None
    header, start = loop.header, [*entry.edge.arguments]
    place = header.parameters.index(variable.value)
    clone = LoopClone(body, loop, prefix="other")
    # The exit leads to a block behind both, with all that is used there.
    behind, passed = variable.exit.block, [*variable.exit.arguments]
    front, first, between, second = (
        clone.new_block(name) for name in ("items", "below", "rest", "above")
    )
    clone.select_version(front, first, second, [between])
    between.parameters = [Parameter(p.type) for p in header.parameters]
    m = Builder(body.constants)
    m.open(front)
    m.pc = header.pc
    start_item = start[place]
    middle = _middle(m, branch, start_item, variable.bound)
    is_any = m.compare(I64, Condition.LT_S, start_item, middle)
    m.close(_two(is_any, Edge(first, []), Edge(between, start)))
    m.open(header)
    more = m.compare(I64, Condition.LT_S, variable.value, middle)
    variable.exit.block, variable.exit.arguments = between, [*header.parameters]
    m.close(_two(more, variable.onward, variable.exit))
    m.open(between)
    is_more = m.compare(I64, Condition.LT_S, middle, variable.bound)
    known = dict(zip(header.parameters, between.parameters, strict=True))
    onward: list[Value] = [known.get(v, v) if isinstance(v, Parameter) else v for v in passed]
    m.close(_two(is_more, Edge(second, []), Edge(behind, onward)))
    rest: list[Value] = [*between.parameters]
    rest[place] = middle
    second.end.edges[0].arguments = rest
    for block, side in (
        (branch.block, branch.first),
        (clone.blocks[branch.block], 1 - branch.first),
    ):
        jump = Terminator("jump", edges=(block.end.edges[side],))
        jump.pc = block.end.pc
        block.terminator = jump
    _order(body, loop, clone, [front, first], [between, second])
    remove_unreached(body)
    return clone.header


def _middle(m: Builder, branch: _Branch, start: Value, end: Value) -> Value:
    """The first item that is not one of the first ones."""
    one = m.constant(I64, 1)
    low, high = (m.sub(I64, v, one) if branch.is_inclusive else v for v in (start, end))
    raised = m.select(m.compare(I64, Condition.LT_S, branch.bound, low), low, branch.bound)
    found = m.select(m.compare(I64, Condition.LT_S, high, raised), high, raised)
    return m.add(I64, found, one) if branch.is_inclusive else found


def _two(condition: Value, yes: Edge, no: Edge) -> Terminator:
    return Terminator("branch", (), (condition,), None, (yes, no))


def _order(
    body: Body, loop: Loop, clone: LoopClone, before: list[Block], between: list[Block]
) -> None:
    """Place blocks in the order in which control comes to them."""
    clones = [clone.blocks[block] for block in loop.extent]
    moved = {*before, *between, *clones}
    blocks = [block for block in body.blocks if block not in moved]
    last = max(blocks.index(block) for block in loop.extent) + 1
    blocks[last:last] = [*between, *clones]
    at = blocks.index(loop.header)
    blocks[at:at] = before
    body.blocks[:] = blocks
