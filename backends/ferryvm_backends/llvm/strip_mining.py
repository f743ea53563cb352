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

from ferryvm.ir.graph import Block, Body, Constant, Edge, FrameState, Operation, Value
from ferryvm.ir.loop.induction import InductionVariable, find_induction_variable
from ferryvm.ir.loop.natural import Loop, find_loops
from ferryvm.ir.operation import CALLS, PURE, SAFEPOINTS, SHAPES, TRANSFERS, Role
from ferryvm.isa.type import I64

LONGEST = 48
"""Operations of a loop that is run in strips, at most, checks included: the inner loop of a
multiplication of matrices has 34. Longer ones gain nothing."""

MOST_RECOMPUTED = 8
"""Operations that the state of the poll may take, at most."""

_BRANCHES = (
    (SAFEPOINTS - {"trap_if"}) | CALLS | TRANSFERS | {"canonicalise", "canonicalise_elements"}
)
"""Operations around which a loop is not vectorised, but for checks, which may be hoisted."""


@dataclasses.dataclass(eq=False)
class StripMinedLoop:
    """A loop that is run in strips."""

    head: Block
    count: InductionVariable
    poll: Operation
    state: FrameState
    """The state of its poll, in terms of the head's parameters and `recomputed`."""
    recomputed: list[Operation]
    """Values of the last iteration that the state needs, computed from the head's parameters: they
    are in no block. So no value of an iteration is used behind the loop."""
    is_checked: bool
    """True if an iteration may trap, so that LLVM vectorises it only where checks are hoisted."""
    onward: Edge
    """From the head into the loop."""
    out: Edge
    """From the head out of it."""
    operations: list[Operation]


def strip_mined_loops(body: Body) -> Iterator[StripMinedLoop]:
    """The loops of a body that are to be run in strips."""
    for loop in find_loops(body):
        found = strip_of(body, loop)
        if found is not None:
            yield found


def strip_of(body: Body, loop: Loop) -> StripMinedLoop | None:
    """A loop that is to be run in strips; None for others."""
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
    at_header = _AtHeader(body, loop, count)
    state = at_header.state(poll.exit)
    if state is None:
        return None
    is_checked = any(operation.name == "trap_if" for operation in operations)
    return StripMinedLoop(
        header,
        count,
        poll,
        state,
        at_header.made,
        is_checked,
        count.onward,
        count.exit,
        operations,
    )


class _AtHeader:
    """Values of an iteration in terms of those at the next header."""

    def __init__(self, body: Body, loop: Loop, count: InductionVariable) -> None:
        assert loop.back_edge is not None
        assert isinstance(count.step, Constant)
        before = body.constant(I64, -count.step.bits & I64.mask)
        previous = Operation("add", I64, (I64,), (count.value, before))
        self.loop = loop
        self.made: list[Operation] = []
        self.known: dict[Value, Value] = dict(
            zip(loop.back_edge.edge.arguments, loop.header.parameters, strict=True)
        )
        self.previous, self.count = previous, count.value

    def state(self, state: FrameState) -> FrameState | None:
        """A state; None if some of its values are not available at the header."""
        if any(self._value(value) is None for value in state.uses()):
            return None
        return state.replace(self.known)

    def _value(self, value: Value) -> Value | None:
        if value not in self.known:
            found = self._found(value)
            if found is None:
                return None
            self.known[value] = found
        return self.known[value]

    def _found(self, value: Value) -> Value | None:
        if self.loop.is_invariant(value):
            return value
        if value is self.count:
            self.made.append(self.previous)
            return self.previous
        if not isinstance(value, Operation) or value.name not in PURE:
            return None
        arguments = [self._value(argument) for argument in value.arguments]
        if None in arguments or len(self.made) >= MOST_RECOMPUTED:
            return None
        given = tuple(argument for argument in arguments if argument is not None)
        made = Operation(value.name, value.type, value.static, given)
        self.made.append(made)
        return made
