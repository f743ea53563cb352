# SPDX-License-Identifier: Apache-2.0
"""If-conversion: compute both sides of a short branch in a loop, and select.

    b0:  branch %p b1() b2()              b0:  %t = …
    b1:  trap_if %q; jump b3(%t)   ─>          %r = all %q, %p;  trap_if %r
    b2:  jump b3(%f)                           %v = select %p, %t, %f
    b3 (%v):                                   jump b3(%v)

A branch that depends on data is predicted wrong about every second time, which costs more than a
few operations. LLVM does the same, but not where a side has a check. A check of a side fails only
where control would have come to it, in the same state. (Allen, Kennedy, Porterfield, Warren:
Conversion of Control Dependence to Data Dependence, POPL 1983.)

Requires no other pass; runs late, since branches teach others what is known. Preserves effects and
exits.
"""

from __future__ import annotations

from ferryvm.ir.control_flow_graph import ControlFlowGraph
from ferryvm.ir.graph import BOOLEAN, Block, Body, Constant, Edge, Operation, Terminator, Value
from ferryvm.ir.loop.natural import Loop, loops_of
from ferryvm.ir.operation import DIVISIONS
from ferryvm.ir.passes.code_motion import is_movable

MOST_OPERATIONS = 4
"""Operations of a side, besides its checks and their conditions."""

MOST_CHECKS = 2
"""Checks of a side."""

_CHECKS = frozenset({"trap_if", "error_if"})
_CONDITIONS = frozenset(
    {"add_overflows", "sub_overflows", "mul_overflows", "compare", "all", "any", "none"}
)


def convert_branches(body: Body) -> int:
    """Convert branches of innermost loops whose sides are short; the number of them."""
    made = 0
    graph = ControlFlowGraph(body)
    gone: set[Block] = set()
    for loop in loops_of(graph):
        if loop.is_innermost and not _has_lanes(body, loop):
            for block in reversed(loop.members):
                if block not in gone and _convert(graph, loop, block, gone):
                    made += 1
    if gone:
        body.blocks[:] = [block for block in body.blocks if block not in gone]
    return made


def _has_lanes(body: Body, loop: Loop) -> bool:
    """True if a loop is one in lanes, which has branches only where all lanes go one path."""
    varying = body.varying or ()
    return any(o in varying for o in loop.operations)


def _convert(graph: ControlFlowGraph, loop: Loop, block: Block, gone: set[Block]) -> bool:
    end = block.end
    if end.name != "branch" or block is loop.header:
        return False
    sides = [_side(graph, block, edge, gone) for edge in end.edges]
    targets = {
        (edge.block if side is None else side.end.edges[0].block)
        for side, edge in zip(sides, end.edges, strict=True)
    }
    if len(targets) > 1 or sides == [None, None]:
        return False
    (target,) = targets
    if target is loop.header or graph.places[target] not in loop.blocks:
        return False
    (p,) = end.arguments
    for holds, side in ((True, sides[0]), (False, sides[1])):
        if side is not None:
            _append(block, side, p, holds)
            gone.add(side)
    passed = [
        (edge if side is None else side.end.edges[0]).arguments
        for side, edge in zip(sides, end.edges, strict=True)
    ]
    arguments: list[Value] = []
    for yes, no in zip(*passed, strict=True):
        value = yes
        if yes is not no:
            value = Operation("select", yes.type, (), (p, yes, no))
            value.pc = end.pc
            block.operations.append(value)
        arguments.append(value)
    block.terminator = Terminator("jump", edges=(Edge(target, arguments),))
    block.terminator.pc = end.pc
    return True


def _side(graph: ControlFlowGraph, block: Block, edge: Edge, gone: set[Block]) -> Block | None:
    """The target of an edge, if it is a short side of a branch; None if it may be where both sides
    come together."""
    side = edge.block
    incoming = graph.incoming[graph.places[side]]
    if len(incoming) > 1 or edge.is_back or side in gone or side.parameters:
        return None
    end = side.end
    if end.name != "jump" or end.edges[0].is_back:
        return None
    checks = sum(operation.name in _CHECKS for operation in side.operations)
    others = [o for o in side.operations if o.name not in _CHECKS]
    work = sum(operation.name not in _CONDITIONS for operation in others)
    is_short = checks <= MOST_CHECKS and work <= MOST_OPERATIONS and all(map(_is_defined, others))
    return side if is_short else None


def _is_defined(operation: Operation) -> bool:
    """True if an operation may be computed also where its side is not taken."""
    if operation.name in DIVISIONS:
        divisor = operation.arguments[1]
        return isinstance(divisor, Constant) and divisor.bits not in (0, divisor.word_type.mask)
    return is_movable(operation)


def _append(block: Block, side: Block, p: Value, holds: bool) -> None:
    """Append the operations of a side to the block that branches there."""
    taken = p
    if not holds and any(operation.name in _CHECKS for operation in side.operations):
        taken = Operation("none", BOOLEAN, (), (p,))
        taken.pc = block.end.pc
        block.operations.append(taken)
    for operation in side.operations:
        if operation.name in _CHECKS:
            fails = Operation("all", BOOLEAN, (), (operation.arguments[0], taken))
            fails.pc = operation.pc
            block.operations.append(fails)
            operation.arguments = (fails,)
        block.operations.append(operation)
