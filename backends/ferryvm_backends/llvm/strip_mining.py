# SPDX-License-Identifier: Apache-2.0
"""Strip mining: loops that run in strips, with a poll after each strip, not in each iteration.

    while i < bound {              while i < bound {
        …                 ─>           limit = i + min(bound - i, budget)
        i = i + 1                      while i < limit { …; i = i + 1 }
        poll                           poll
    }                              }

The trip count of the inner loop is known as it begins, and it has one exit, so LLVM can vectorise
it. (Loop strip mining; Wolfe: High Performance Compilers, 1996, section 9.7.)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from ferryvm.ir.graph import Block, Body, Constant, Edge, FrameState, Operation, Parameter, Value
from ferryvm.ir.loop.induction import InductionVariable, find_induction_variable
from ferryvm.ir.loop.natural import Loop, find_loops
from ferryvm.ir.operation import CALLS, SAFEPOINTS, SHAPES, Role

LONGEST = 48
"""Operations of a loop that is run in strips, at most, checks included: the inner loop of a
multiplication of matrices has 34. Longer ones gain nothing."""

_BRANCHES = (SAFEPOINTS - {"trap_if"}) | CALLS | {"canonicalise", "canonicalise_elements"}
"""Operations around which a loop is not vectorised, but for checks, which may be hoisted."""


@dataclasses.dataclass(eq=False)
class StripMinedLoop:
    """A loop that is run in strips."""

    head: Block
    count: InductionVariable
    poll: Operation
    state: FrameState
    """The state of its poll, in terms of the head's parameters."""
    onward: Edge
    """From the head into the loop."""
    out: Edge
    """From the head out of it."""


def strip_mined_loops(body: Body) -> Iterator[StripMinedLoop]:
    """The loops of a body that are to be run in strips."""
    for loop in find_loops(body):
        found = _strip(loop)
        if found is not None:
            yield found


def _strip(loop: Loop) -> StripMinedLoop | None:
    operations = [*loop.operations]
    hindering = [operation for operation in operations if operation.name in _BRANCHES]
    if len(operations) > LONGEST or [operation.name for operation in hindering] != ["poll"]:
        return None
    (poll,) = hindering
    if loop.back_edge is None:
        return None
    if loop.latch.operations[-1:] != [poll] or loop.latch.end.name != "jump":
        return None
    count = find_induction_variable(loop)
    if count is None or not isinstance(count.step, Constant) or count.step.bits != 1:
        return None
    header = loop.header
    if any(SHAPES[operation.name].role is Role.CHANGES for operation in header.operations):
        return None  # it is run twice between two strips
    passed = dict(zip(loop.back_edge.edge.arguments, header.parameters, strict=True))
    state = _at_header(poll.exit, passed, loop)
    if state is None:
        return None
    return StripMinedLoop(header, count, poll, state, count.onward, count.exit)


def _at_header(state: FrameState, passed: dict[Value, Parameter], loop: Loop) -> FrameState | None:
    """The state of a poll in terms of the values at the header; None if some are not available
    there.

    `passed`: the arguments of the back edge, with the parameters that they become.
    """
    new: dict[Value, Value] = {}
    for value in state.uses():
        if value in passed:
            new[value] = passed[value]
        elif not loop.is_invariant(value):
            return None
    return state.replace(new)
