# SPDX-License-Identifier: Apache-2.0
"""Barriers of a member's code: all members come to each, and may leave in front of the first alone.

    member's code                          the check                   the work
      if bad: leave                          if bad: say so              …
      … barrier … barrier … return           return                      barrier … barrier … return

A member that leaves in the middle would have to tell the others, which wait for it. So the exits are taken
out of a member's code: a *check* of all members of a group comes first, which changes nothing, and the
group begins only if none of them leaves. Then it needs no exits.
"""

from __future__ import annotations

from collections.abc import Callable

from ferryvm.ir.control_flow_graph import remove_unreached
from ferryvm.ir.graph import Block, Body, Edge, Operation, Terminator, Value
from ferryvm.ir.loop.clone import copied
from ferryvm.ir.loop.preheader import Labels
from ferryvm.ir.member import UngroupedError
from ferryvm.ir.member.form import GroupForm
from ferryvm.ir.member.uniformity import Uniformity
from ferryvm.ir.operation import SHAPES, Role
from ferryvm.ir.passes.dead_code import remove_dead_code

Where = Callable[[int], str]
"""The position of an instruction, for people."""


def check_barriers(body: Body, form: GroupForm, where: Where) -> None:
    """Split a member's code at barriers. Raises UngroupedError if a barrier is not reached by all
    members."""
    split_at_barriers(body)
    for block in Uniformity(body, [form.member]).divergent:
        if _is_barrier(block):
            at = where(block.operations[0].pc)
            raise UngroupedError(f"some members may come to the barrier at {at} without others")


def take_exits(body: Body, where: Where) -> Body:
    """Remove all exits; the code that has them, and changes nothing. Raises UngroupedError if a member may
    leave behind a barrier, or for what it has loaded."""
    first = _first_phase(body)
    for block in body.blocks:
        for operation in (*block.operations, block.end):
            if operation.state is None:
                continue
            at = where(operation.pc)
            if operation.name == "poll":
                raise UngroupedError(f"a loop of its members may take long, at {at}")
            if block not in first:
                raise UngroupedError(f"a member may leave behind a barrier, at {at}")
            if _depends_on_load(operation, body):
                raise UngroupedError(f"whether a member leaves depends on an element, at {at}")
    check = copied(body)
    _truncate(check)
    for block in body.blocks:
        block.operations = [o for o in block.operations if o.state is None]
        if block.end.state is not None:
            block.terminator = Terminator("return")
    remove_dead_code(body)
    return check


def _truncate(check: Body) -> None:
    """Let code end in front of the first barriers, without any change of memory."""
    for block in check.blocks:
        if _is_barrier(block):
            block.operations, block.terminator = [], Terminator("return")
        block.operations = [o for o in block.operations if SHAPES[o.name].role is not Role.CHANGES]
    remove_unreached(check)
    remove_dead_code(check)


def _depends_on_load(operation: Operation, body: Body) -> bool:
    """True if whether control leaves at an exit depends on memory, other than by branches."""
    passed: dict[Value, list[Value]] = {}
    for edge in body.edges:
        for parameter, argument in zip(edge.block.parameters, edge.arguments, strict=True):
            passed.setdefault(parameter, []).append(argument)
    tests: list[Value] = []
    if operation not in body.blocks[0].operations:
        tests = [b.end.arguments[0] for b in _first_phase(body) if len(b.end.edges) > 1]
    seen, waiting = set[Value](), [*operation.arguments, *tests]
    while waiting:
        value = waiting.pop()
        if value in seen:
            continue
        seen.add(value)
        waiting += passed.get(value, ())
        if isinstance(value, Operation):
            role = SHAPES[value.name].role
            if role in (Role.READS, Role.CHANGES, Role.CALLS) and value.name != "static":
                return True
            waiting += value.arguments
    return False


def orders_all(body: Body) -> bool:
    """True if a member may store outside of its group's arrays in front of a barrier."""
    before, waiting = set[Block](), [block for block in body.blocks if _is_barrier(block)]
    sources: dict[Block, list[Block]] = {block: [] for block in body.blocks}
    for block in body.blocks:
        for edge in block.end.edges:
            sources[edge.block].append(block)
    while waiting:
        for source in sources[waiting.pop()]:
            if source not in before:
                before.add(source)
                waiting.append(source)
    return any(o in block.operations for o in changes(body) for block in before)


def changes(body: Body) -> list[Operation]:
    """The operations that change what others than the group see."""
    return [
        o
        for o in body.operations
        if SHAPES[o.name].role is Role.CHANGES
        and o.name != "barrier"
        and not (isinstance(o.arguments[0], Operation) and o.arguments[0].name == "group_array")
    ]


def _is_barrier(block: Block) -> bool:
    return bool(block.operations) and block.operations[0].name == "barrier"


def _first_phase(body: Body) -> set[Block]:
    """The blocks in front of the first barriers; a block behind one may be among them only in a loop."""
    found, waiting = set[Block](), [body.blocks[0]]
    while waiting:
        block = waiting.pop()
        if block not in found and not _is_barrier(block):
            found.add(block)
            waiting += [edge.block for edge in block.end.edges]
    return found - _behind_barriers(body)


def _behind_barriers(body: Body) -> set[Block]:
    found, waiting = set[Block](), [block for block in body.blocks if _is_barrier(block)]
    while waiting:
        block = waiting.pop()
        if block not in found:
            found.add(block)
            waiting += [edge.block for edge in block.end.edges]
    return found


def split_at_barriers(body: Body) -> None:
    """Let each barrier begin a block."""
    labels = Labels(body)
    blocks: list[Block] = []
    for block in body.blocks:
        blocks.append(block)
        here = block
        for operation in [*block.operations]:
            if operation.name == "barrier" and here.operations[0] is not operation:
                place = here.operations.index(operation)
                rest = labels.block(block, "wait")
                rest.operations = here.operations[place:]
                rest.terminator = here.terminator
                here.operations = here.operations[:place]
                here.terminator = Terminator("jump", edges=(Edge(rest, []),))
                blocks.append(rest)
                here = rest
    body.blocks[:] = blocks
