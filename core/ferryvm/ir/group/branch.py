# SPDX-License-Identifier: Apache-2.0
"""Branches of items on what all of them have in common: the loop over items is made once for each
side.

    for each item: if more then A else B    ─>    if more then (for each item: A) else (for each item: B)

A region behind a barrier in a loop has such a branch where the loop goes on, or ends. (Allen,
Kennedy: Optimizing Compilers for Modern Architectures, 2001, section 9.7: loop unswitching.)
Requires `code_motion`.
"""

from __future__ import annotations

from ferryvm.ir.control_flow_graph import remove_unreached
from ferryvm.ir.graph import Block, Body, Constant, Edge, Operation, Terminator, Value
from ferryvm.ir.group.record import STARTED
from ferryvm.ir.loop.clone import LoopClone
from ferryvm.ir.loop.natural import Loop, find_loops
from ferryvm.ir.use import substitute

LARGEST = 200
"""Operations of a loop that is made twice, at most."""

_MOST = 4
"""Loops that are made of one, at most."""


def split_item_loops(body: Body) -> int:
    """Make loops over items whose branches are the same for all items once for each side; the
    number of loops that were divided."""
    made: dict[Block, int] = {}
    while (found := _next(body, made)) is not None:
        loop, block = found
        times = made.get(loop.header, 1)
        clone = _split(body, loop, block)
        made[loop.header] = made[clone] = 2 * times
    return len(made) // 2


def item_poll(loop: Loop) -> Operation | None:
    """The poll at the end of a loop over a region's items, or over rows of them; None if it is
    another loop."""
    if loop.back_edge is None or not loop.latch.operations:
        return None
    last = loop.latch.operations[-1]
    if last.name != "poll" or last.exit.phase is None:
        return None
    arrived, started = last.exit.phase.values[: STARTED + 1]
    return last if arrived is started and not isinstance(arrived, Constant) else None


def _next(body: Body, made: dict[Block, int]) -> tuple[Loop, Block] | None:
    for loop in find_loops(body):
        if made.get(loop.header, 1) >= _MOST or item_poll(loop) is None or loop.entry is None:
            continue
        if not loop.has_one_exit or sum(1 for _ in loop.operations) > LARGEST:
            continue
        inside = {*loop.members}
        for block in loop.members:
            end = block.end
            if end.name == "branch" and loop.is_invariant(end.arguments[0]):
                yes, no = (edge.block for edge in end.edges)
                if yes is not no and yes in inside and no in inside:
                    return loop, block
    return None


def fix_ends(body: Body) -> None:
    """Let code behind a loop over items use the end to which all come, where that is a constant:
    there is an item."""
    new: dict[Value, Value] = {}
    for loop in find_loops(body):
        if item_poll(loop) is None or loop.back_edge is None:
            continue
        used = {value for block in loop.members for o in block.operations for value in o.uses()}
        onward = loop.back_edge.edge.arguments
        for parameter, value in zip(loop.header.parameters, onward, strict=True):
            if isinstance(value, Constant) and parameter not in used:
                new[parameter] = value
    substitute(body.blocks, new)


def _split(body: Body, loop: Loop, block: Block) -> Block:
    """Make a clone of a loop, which has one side of a block's branch, while the loop has the other
    one; the header of the clone."""
    end = block.end
    clone = LoopClone(body, loop, prefix="other")
    first, original, preheader = (clone.new_block(n) for n in ("sides", "yes", "no"))
    first.terminator = Terminator(
        "branch", (), end.arguments, edges=(Edge(original, []), Edge(preheader, []))
    )
    clone.select_version(first, original, preheader, [])
    for each, side in ((block, 0), (clone.blocks[block], 1)):
        jump = Terminator("jump", edges=(each.end.edges[side],))
        jump.pc = end.pc
        each.terminator = jump
    remove_unreached(body)
    return clone.header
