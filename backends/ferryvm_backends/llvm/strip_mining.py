# SPDX-License-Identifier: Apache-2.0
"""Loops that are run in strips, with a poll behind each strip instead of one in each round.

    while i < bound {              while i < bound {
        …                 ─>           limit = i + min(bound - i, budget)
        i = i + 1                      while i < limit { …; i = i + 1 }
        poll                           poll
    }                              }

How often the inner loop goes round is known as it begins, and it leaves in one way only, so LLVM
can vectorise it. (Loop strip mining; Wolfe: High Performance Compilers, 1996, section 9.7.)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

from ferryvm.ir.affine import InductionVariable, find_induction_variable
from ferryvm.ir.flow import Flow, Loop
from ferryvm.ir.graph import Block, Body, Constant, Edge, FrameState, Operation, Parameter, Value
from ferryvm.ir.operation import SAFEPOINTS, SHAPES, Role

LONGEST = 48
"""Operations of a loop that is run in strips, at most, checks included: the inner loop of a
multiplication of matrices has 34. Longer ones gain nothing."""

_BRANCHES = (SAFEPOINTS - {"trap_if"}) | {"call", "call_indirect", "canonicalise"}
"""Operations around which a loop is not vectorised, but for checks, which may be hoisted."""


@dataclasses.dataclass(eq=False)
class StripMinedLoop:
    """A loop that is run in strips."""

    head: Block
    count: InductionVariable
    poll: Operation
    state: FrameState
    """What its poll leaves in, in terms of the head's parameters."""
    onward: Edge
    """From the head into the loop."""
    out: Edge
    """From the head out of it."""


def strip_mined_loops(body: Body) -> Iterator[StripMinedLoop]:
    """The loops of a body that are to be run in strips."""
    if not any(edge.is_back for block in body.blocks for edge in block.end.edges):
        return
    flow = Flow(body)
    home = flow.homes()
    for loop in flow.loops():
        found = _strip(flow, loop, home)
        if found is not None:
            yield found


def _strip(flow: Flow, loop: Loop, home: dict[Value, int]) -> StripMinedLoop | None:
    blocks = [flow.blocks[place] for place in loop.blocks]
    operations = [operation for block in blocks for operation in block.operations]
    hindering = [operation for operation in operations if operation.name in _BRANCHES]
    if len(operations) > LONGEST or [operation.name for operation in hindering] != ["poll"]:
        return None
    (poll,) = hindering
    backs = [(s, edge) for s, edge in flow.incoming[loop.head] if s in loop.blocks]
    if len(backs) != 1:
        return None
    ((source, back),) = backs
    last = flow.blocks[source]
    if last.operations[-1:] != [poll] or last.end.name != "jump":
        return None

    def is_outside(value: Value) -> bool:
        return home.get(value) not in loop.blocks

    count = find_induction_variable(flow, loop, is_outside)
    if count is None or not isinstance(count.step, Constant) or count.step.bits != 1:
        return None
    head = flow.blocks[loop.head]
    if any(SHAPES[operation.name].role is Role.CHANGES for operation in head.operations):
        return None  # it is run twice between two strips
    state = _at_head(poll.exit, dict(zip(back.arguments, head.parameters, strict=True)), is_outside)
    if state is None:
        return None
    onward, out = head.end.edges
    if flow.places[onward.block] not in loop.blocks:
        onward, out = out, onward
    return StripMinedLoop(head, count, poll, state, onward, out)


def _at_head(
    state: FrameState, passed: dict[Value, Parameter], is_outside: Callable[[Value], bool]
) -> FrameState | None:
    """The state of a poll as it is once control has come to the head; None if not all is there.

    `passed`: what the loop passes to its next round.
    """
    new: dict[Value, Value] = {}
    for value in state.uses():
        if value in passed:
            new[value] = passed[value]
        elif not is_outside(value):
            return None
    return state.replace(new)
