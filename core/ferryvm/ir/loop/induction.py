# SPDX-License-Identifier: Apache-2.0
"""Induction variables and trip counts of loops.

A *recurrence* is a parameter of a loop's header to which each iteration adds an invariant step:
{start, +, step}. An *induction variable* is a recurrence that a loop compares with a bound: the
loop continues while it is below. (Aho, Lam, Sethi, Ullman: Compilers, 2nd edition, section 9.1.)
"""

from __future__ import annotations

from typing import NamedTuple

from ferryvm.ir.build import Builder
from ferryvm.ir.graph import Constant, Edge, Operation, Parameter, Value
from ferryvm.ir.loop.natural import Loop
from ferryvm.isa.emitter import Condition
from ferryvm.isa.type import I64, Type, signed

_LARGEST = (1 << 63) - 1
_LARGEST_STEP = 1 << 31
"""The largest step of a descending variable."""


class InductionVariable(NamedTuple):
    """An induction variable of a loop, which continues while it is below the bound.

    The comparison holds in all blocks of the loop except the header.
    """

    value: Parameter
    start: Value
    bound: Value
    step: Value
    onward: Edge
    """The edge from the header into the loop."""
    exit: Edge
    """The edge from the header out of the loop."""

    def constant_trip_count(self, most: int) -> int | None:
        """The number of iterations, if start, bound and step are constants and it is not above
        `most`."""
        numbers = [
            each.bits for each in (self.start, self.bound, self.step) if isinstance(each, Constant)
        ]
        if len(numbers) < 3:
            return None
        value, bound, step = numbers
        for iterations in range(most + 1):
            if signed(I64, value) >= signed(I64, bound):
                return iterations
            value = (value + step) & I64.mask
        return None

    def trip_count(self, m: Builder) -> Value | None:
        """The number of iterations, computed in the header from the initial value; None if the loop
        may never end, or the step is not constant."""
        if not isinstance(self.step, Constant):
            return None
        step = signed(I64, self.step.bits)
        if step < 1:
            return None
        if step > 1 and not (
            isinstance(self.bound, Constant) and signed(I64, self.bound.bits) <= _LARGEST - step + 1
        ):
            return None  # it may wrap before the comparison
        one = m.constant(I64, 1)
        is_entered = m.compare(I64, Condition.LT_S, self.value, self.bound)
        distance = m.sub(I64, self.bound, self.value)
        if step > 1:
            whole = m.div_u(I64, m.sub(I64, distance, one), self.step)
            distance = m.add(I64, whole, one)
        return m.select(is_entered, distance, m.constant(I64, 0))


def find_induction_variable(loop: Loop, nest: Loop | None = None) -> InductionVariable | None:
    """The induction variable of a loop with one entry; None if none is recognised.

    `nest`: the enclosing loop in which bound and step must be invariant; itself if None.
    """
    nest = nest or loop
    header, end = loop.header, loop.header.end
    p = end.arguments[0] if end.name == "branch" else None
    if not isinstance(p, Operation) or p.name != "compare" or p.fact(0, Type) is not I64:
        return None
    match p.fact(1, Condition):
        case Condition.LT_S:
            onward, exit_ = end.edges
        case Condition.GE_S:
            exit_, onward = end.edges
        case _:
            return None
    value, bound = p.arguments
    places = loop.graph.places
    if (
        not isinstance(value, Parameter)
        or value not in header.parameters
        or not nest.is_invariant(bound)
        or places.get(onward.block) not in loop.blocks
        or places.get(exit_.block) in loop.blocks  # it may be a new block before another one
    ):
        return None
    index = header.parameters.index(value)
    steps = {step_of(value, edge.arguments[index], nest) for _, edge in loop.back_edges}
    step = steps.pop()
    if steps or step is None or loop.entry is None:
        return None
    start = loop.entry.edge.arguments[index]
    return InductionVariable(value, start, bound, step, onward, exit_)


def find_descending_variable(loop: Loop, m: Builder) -> InductionVariable | None:
    """The variable of a loop that continues while it is above its bound, and decreases by a
    constant; None if none is recognised. `m`: builds the bound."""
    end = loop.header.end
    p = end.arguments[0] if end.name == "branch" else None
    if not isinstance(p, Operation) or p.name != "compare" or p.fact(0, Type) is not I64:
        return None
    value, bound = p.arguments
    condition = p.fact(1, Condition)
    if condition in (Condition.GT_S, Condition.GE_S):
        onward, exit_ = end.edges
    elif condition in (Condition.LE_S, Condition.LT_S):
        exit_, onward = end.edges
    else:
        return None
    if condition in (Condition.GE_S, Condition.LT_S):
        if not isinstance(bound, Constant) or bound.bits > _LARGEST:
            return None
        bound = m.constant(I64, bound.bits - 1 & I64.mask)
    found = recurrences(loop).get(value) if isinstance(value, Parameter) else None
    places = loop.graph.places
    if (
        found is None
        or not loop.is_invariant(bound)
        or not isinstance(found.step, Constant)
        or not -_LARGEST_STEP <= signed(I64, found.step.bits) < 0
        or places.get(onward.block) not in loop.blocks
        or places.get(exit_.block) in loop.blocks
    ):
        return None
    assert isinstance(value, Parameter)
    return InductionVariable(value, found.start, bound, found.step, onward, exit_)


def step_of(value: Value, next_: Value, nest: Loop) -> Value | None:
    """The step from a recurrence's value to the next; None if it is not invariant in the nest."""
    if isinstance(next_, Operation) and next_.name == "add" and next_.arguments[0] is value:
        step = next_.arguments[1]
        return step if nest.is_invariant(step) else None
    return None


class Recurrence(NamedTuple):
    """{start, +, step}: the values of a header's parameter in the iterations of a loop."""

    start: Value
    step: Value


def recurrences(loop: Loop) -> dict[Parameter, Recurrence]:
    """The integer recurrences of a loop with one entry and one back edge."""
    found: dict[Parameter, Recurrence] = {}
    if loop.entry is None or loop.back_edge is None:
        return found
    for parameter, start, next_ in zip(
        loop.header.parameters,
        loop.entry.edge.arguments,
        loop.back_edge.edge.arguments,
        strict=True,
    ):
        step = step_of(parameter, next_, loop)
        if parameter.type is I64 and step is not None:
            found[parameter] = Recurrence(start, step)
    return found
