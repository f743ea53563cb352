# SPDX-License-Identifier: Apache-2.0
"""Loops of members that need no polls, since they end after a number of iterations that the host
knows."""

from __future__ import annotations

from ferryvm.ir.graph import BOOLEAN, Body, Constant, FrameState, Operation, Value
from ferryvm.ir.loop.induction import find_induction_variable
from ferryvm.ir.loop.natural import Loop, find_loops
from ferryvm.ir.member.form import GroupForm
from ferryvm.ir.member.value_range import MemberRanges, member_ranges
from ferryvm.isa.emitter import Condition
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import I64, signed
from ferryvm_backends.opencl.item.bound import MOST_ITERATIONS, Bound, argument_bound

_HALVINGS = 64
"""Iterations of a loop that halves or doubles a number until it passes a bound."""


def drop_polls(
    body: Body, form: GroupForm, state: FrameState, has_arguments: bool
) -> tuple[tuple[Bound, ...], ...]:
    """Remove the polls of loops whose iterations are bounded; the bounds of each such loop and of
    the loops around it. A step that is an argument is checked at the entry, in its `state`.
    `has_arguments`: bounds may be arguments, too."""
    ranges = member_ranges(body, form)
    loops = find_loops(body)
    known = {loop: _bound(loop, body, ranges, state) for loop in loops}
    if not has_arguments:
        for loop, bound in known.items():
            if bound is not None and bound[0] is not None:
                known[loop] = None
    found: list[tuple[Bound, ...]] = []
    for loop in loops:
        nest = [known[around] for around in loops if loop.blocks <= around.blocks]
        bounds = tuple(bound for bound in nest if bound is not None)
        if len(bounds) == len(nest):
            found.append(bounds)
            for place in loop.latches:
                latch = loop.graph.blocks[place]
                latch.operations = [o for o in latch.operations if o.name != "poll"]
    return tuple(found)


def _bound(loop: Loop, body: Body, ranges: MemberRanges, state: FrameState) -> Bound | None:
    """The most iterations of a loop each time that it is entered."""
    if ranges.ends_by_factors(loop):
        return None, _HALVINGS
    variable = find_induction_variable(loop)
    if variable is None or loop.entry is None:
        return None
    source = loop.graph.blocks[loop.entry.source]
    start, step = ranges.range(variable.start, source), 1
    if isinstance(variable.step, Constant):
        step = signed(I64, variable.step.bits)
    elif variable.step in body.blocks[0].parameters[1:]:
        _check_step(body, variable.step, state)
    else:
        return None
    if step < 1 or step > MOST_ITERATIONS or start.low < 0:
        return None
    high = ranges.range(variable.bound, source).high
    if high <= MOST_ITERATIONS:
        return None, max(-(-(high - start.low) // step), 1)
    return argument_bound(variable.bound, body)


def _check_step(body: Body, step: Value, state: FrameState) -> None:
    """Let no group begin if a step is not positive, or so large that a sum may wrap."""
    less = Operation("sub", I64, (I64,), (step, body.constant(I64, 1)))
    most = body.constant(I64, MOST_ITERATIONS)
    is_other = Operation("compare", BOOLEAN, (I64, Condition.GE_U), (less, most))
    check = Operation("trap_if", None, (Trap.INTEGER_OVERFLOW,), (is_other,), state)
    body.blocks[0].operations += [less, is_other, check]
