# SPDX-License-Identifier: Apache-2.0
"""Range checks hoisted out of the loop over items that makes them.

    for each item: trap_if index >= length        if an index of an item is not below the length:
        …                                     ─>      leave, and an interpreter runs these items
                                                  for each item: …

Each item makes such a check, so one fails if that of the extreme items does, and the loop has no
exit that keeps a compiler from running items together. Control leaves in front of the first item,
with those that are done at the region's end, as where a poll leaves. Requires `code_motion`.
"""

from __future__ import annotations

from ferryvm.ir.build import Builder
from ferryvm.ir.graph import Body, Edge, Operation, Parameter, Terminator, Value
from ferryvm.ir.group.branch import item_poll
from ferryvm.ir.group.record import ARRIVED
from ferryvm.ir.loop.natural import Loop, find_loops
from ferryvm.ir.loop.preheader import Labels
from ferryvm.ir.passes.dead_code import remove_dead_code
from ferryvm.ir.passes.range_check import hoist_range_checks


def check_before_loops(body: Body, invariant: bool = False) -> int:
    """Make checks of items in front of their loops; the number of these loops. `invariant`: as for
    `hoist_range_checks`."""
    labels = {block.label for block in body.blocks}
    if not hoist_range_checks(body, True, lambda loop: item_poll(loop) is not None, invariant):
        return 0
    made = 0
    for loop in find_loops(body):
        poll = item_poll(loop)
        if poll is not None and loop.entry is not None and loop.preheader.label not in labels:
            _leave_before(body, loop, poll)
            made += 1
    remove_dead_code(body)
    return made


def _leave_before(body: Body, loop: Loop, poll: Operation) -> None:
    """Leave where the doubt that was hoisted is true, and make no check that depends on it."""
    before, header = loop.preheader, loop.header
    (doubt,) = before.parameters
    for block in loop.members:
        block.operations = [o for o in block.operations if not _depends(o, doubt)]
    labels = Labels(body)
    out, onward = (labels.block(header, name) for name in ("fails", "passes"))
    phase = poll.exit.phase
    assert phase is not None
    following = phase.values[ARRIVED]
    assert isinstance(following, Operation)
    m = Builder(body.constants)
    m.open(out)
    m.pc = header.pc
    done = _at_entry(loop, following.arguments[0], m)
    m.close(Terminator("leave", state=poll.exit.replace({following: done})))
    onward.terminator = before.terminator
    before.terminator = Terminator("branch", (), (doubt,), None, (Edge(out, []), Edge(onward, [])))
    before.end.pc = header.pc
    place = body.blocks.index(before) + 1
    body.blocks[place:place] = [out, onward]


def _at_entry(loop: Loop, value: Value, m: Builder) -> Value:
    """A value of the first iteration, computed in front of it."""
    if loop.is_invariant(value):
        return value
    assert loop.entry is not None
    if isinstance(value, Parameter):
        return loop.entry.edge.arguments[loop.header.parameters.index(value)]
    assert isinstance(value, Operation)
    assert value.type is not None
    arguments = tuple([_at_entry(loop, each, m) for each in value.arguments])
    return m.pure(value.name, value.static, arguments, value.type)


def _depends(operation: Operation, doubt: Value) -> bool:
    p = operation.arguments[0] if operation.name == "trap_if" else None
    return isinstance(p, Operation) and p.name == "all" and doubt in p.arguments
