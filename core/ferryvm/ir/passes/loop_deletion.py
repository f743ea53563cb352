# SPDX-License-Identifier: Apache-2.0
"""Loop deletion: replace counting loops by their closed forms.

    while i < n { s = s + i; i = i + 1 }   ─>   k = max(n - i, 0)
                                                s = s + k * i + k * (k - 1) / 2
                                                i = i + k

In iteration k a value is *linear* if it is base + k * slope, with both invariant. A value to which
a loop adds a linear one is a sum of these; a value that it sets to a linear one is the last of
them. (Bachmann, Wang, Zima: Chains of Recurrences, ISSAC 1994, of which these are the two lowest
degrees.) All arithmetic is modulo 2^64, so nothing has to be known of the numbers.

Only loops of a head and one block that do nothing but count are replaced, inner ones first. The
closed form is not interrupted, and need not be.

Requires `code_motion`: one edge enters each loop. Preserves effects and exits; leaves a body that
pays for its instructions alone.
"""

from __future__ import annotations

from ferryvm.ir.affine import InductionVariable, find_induction_variable
from ferryvm.ir.build import Builder
from ferryvm.ir.clone import rename
from ferryvm.ir.flow import Flow, Loop
from ferryvm.ir.graph import (
    Block,
    Body,
    Constant,
    Edge,
    FrameState,
    Operation,
    Parameter,
    Terminator,
    Value,
)
from ferryvm.ir.operation import PURE
from ferryvm.ir.passes.code_motion import hoist_invariants
from ferryvm.ir.passes.dead_code import remove_dead_code
from ferryvm.ir.passes.jump_threading import thread_jumps
from ferryvm.ir.passes.value_numbering import number_values
from ferryvm.isa.emitter import Condition
from ferryvm.isa.type import I64, signed

Straight = tuple[Value, Value]
"""Base and slope."""

_LARGEST = (1 << 63) - 1


def delete_counting_loops(body: Body) -> int:
    """Replace the loops of a body that only count; how many."""
    count = 0
    while _replace_one(body):
        count += 1
        # What an inner loop came to may not vary in the one around it.
        for tidy in (thread_jumps, remove_dead_code, hoist_invariants, number_values):
            tidy(body)
    return count


def _replace_one(body: Body) -> bool:
    if not any(edge.is_back for block in body.blocks for edge in block.end.edges):
        return False
    flow = Flow(body)
    home = flow.homes()
    return any(_Counting(body, flow, loop, home).replace() for loop in flow.loops())


class _Counting(Builder):
    """One loop."""

    def __init__(self, body: Body, flow: Flow, loop: Loop, home: dict[Value, int]) -> None:
        super().__init__(body.constants)
        self.body, self.flow, self.loop, self.home = body, flow, loop, home
        self.head = flow.blocks[loop.head]
        self.pc = self.head.end.pc
        self.zero, self.one = self.constant(I64, 0), self.constant(I64, 1)

    def replace(self) -> bool:
        """Replace the loop if it only counts."""
        count = self._count()
        if count is None:
            return False
        (source, back), *others = [
            (place, edge)
            for place, edge in self.flow.incoming[self.loop.head]
            if place in self.loop.blocks
        ]
        latch = self.flow.blocks[source]
        if others or latch is self.head or len(self.loop.blocks) != 2:
            return False
        self.next = dict(zip(self.head.parameters, back.arguments, strict=True))
        self.open(Block("formula", self.head.pc))
        self.iterations = self._iterations(count)
        if self.iterations is None:
            return False
        last: dict[Value, Value] = {}
        for parameter in self.head.parameters:
            value = self._last(parameter)
            if value is None:
                return False
            last[parameter] = value
        self._put(latch, last)
        return True

    def _is_outside(self, value: Value) -> bool:
        return self.home.get(value) not in self.loop.blocks

    def _count(self) -> InductionVariable | None:
        """What the loop counts, if it does nothing else."""
        for place in self.loop.blocks:
            for operation in self.flow.blocks[place].operations:
                if operation.name not in PURE and operation.name != "poll":
                    return None
        return find_induction_variable(self.flow, self.loop, self._is_outside)

    def _iterations(self, count: InductionVariable) -> Value | None:
        """How often the loop goes round; None where that may be for ever."""
        if not isinstance(count.step, Constant):
            return None
        step = signed(I64, count.step.bits)
        if step < 1:
            return None
        if step > 1 and not (
            isinstance(count.bound, Constant)
            and signed(I64, count.bound.bits) <= _LARGEST - step + 1
        ):
            return None  # it may wrap around before it is seen to be too large
        begins = self.compare(I64, Condition.LT_S, count.value, count.bound)
        distance = self.sub(I64, count.bound, count.value)
        if step > 1:
            whole = self.div_u(I64, self.sub(I64, distance, self.one), count.step)
            distance = self.add(I64, whole, self.one)
        return self.select(begins, distance, self.zero)

    # --- values -----------------------------------------------------------------------------

    def _last(self, parameter: Parameter) -> Value | None:
        """What a parameter of the head is when the loop ends; here it is what it begins with."""
        iterations, next_ = self.iterations, self.next[parameter]
        assert iterations is not None
        if next_ is parameter:
            return parameter
        if self._is_outside(next_):
            begins = self.compare(I64, Condition.NE, iterations, self.zero)
            return self.select(begins, next_, parameter)
        if parameter.type is not I64:
            return None
        added = self._added(parameter)
        if added is not None:
            base, slope = added
            whole = self.mul(I64, iterations, base)
            if slope is not self.zero:
                whole = self.add(I64, whole, self.mul(I64, self._pairs(iterations), slope))
            return self.add(I64, parameter, whole)
        straight = self._straight(next_)
        if straight is None:
            return None
        base, slope = straight
        before = self.mul(I64, self.sub(I64, iterations, self.one), slope)
        begins = self.compare(I64, Condition.NE, iterations, self.zero)
        return self.select(begins, self.add(I64, base, before), parameter)

    def _pairs(self, iterations: Value) -> Value:
        """iterations * (iterations - 1) / 2: the even one of both is halved before it is too
        late."""
        half = self.shr_u(I64, iterations, self.one)
        less = self.sub(I64, iterations, self.one)
        is_even = self.compare(
            I64, Condition.EQ, self.bit_and(I64, iterations, self.one), self.zero
        )
        return self.select(is_even, self.mul(I64, half, less), self.mul(I64, half, iterations))

    def _step(self, parameter: Parameter) -> tuple[str, Value] | None:
        """`add` or `sub`, and what an iteration adds to a parameter or takes from it."""
        next_ = self.next.get(parameter)
        if not isinstance(next_, Operation) or next_.name not in ("add", "sub"):
            return None
        a, b = next_.arguments
        if next_.name == "add" and b is parameter:
            a, b = b, a
        return (next_.name, b) if a is parameter else None

    def _negated(self, value: Value) -> Value:
        return self.sub(I64, self.zero, value)

    def _added(self, parameter: Parameter) -> Straight | None:
        """The straight value that each iteration adds to a parameter."""
        step = self._step(parameter)
        straight = self._straight(step[1]) if step is not None else None
        if step is None or straight is None or step[0] == "add":
            return straight
        return self._negated(straight[0]), self._negated(straight[1])

    def _straight(self, value: Value) -> Straight | None:
        if self._is_outside(value):
            return (value, self.zero) if value.type is I64 else None
        if isinstance(value, Parameter):
            return self._straight_parameter(value)
        if not isinstance(value, Operation) or value.name not in ("add", "sub", "mul"):
            return None
        if value.type is not I64:
            return None
        a, b = (self._straight(each) for each in value.arguments)
        if a is None or b is None:
            return None
        if value.name == "mul":
            if a[1] is not self.zero:
                a, b = b, a
            if a[1] is not self.zero:
                return None
            return self.mul(I64, a[0], b[0]), self.mul(I64, a[0], b[1])
        combine = getattr(self, value.name)
        return combine(I64, a[0], b[0]), combine(I64, a[1], b[1])

    def _straight_parameter(self, parameter: Parameter) -> Straight | None:
        if parameter.type is not I64:
            return None
        if self.next.get(parameter) is parameter:
            return parameter, self.zero
        step = self._step(parameter)
        if step is None or not self._is_outside(step[1]):
            return None
        return parameter, step[1] if step[0] == "add" else self._negated(step[1])

    # --- the body ---------------------------------------------------------------------------

    def _put(self, latch: Block, last: dict[Value, Value]) -> None:
        """Have the head compute the last values and go on behind the loop."""
        head, out = self.head, self._out(latch)
        for operation in head.operations:
            if operation.name in PURE:
                assert operation.type is not None
                arguments = tuple(last.get(a, a) for a in operation.arguments)
                last[operation] = self.pure(
                    operation.name, operation.static, arguments, operation.type
                )
        head.operations = self.block.operations
        passed = [last.get(a, a) for a in out.arguments]
        end = Terminator("jump", edges=(Edge(out.block, passed, out.is_back),))
        end.pc = head.end.pc
        head.terminator = end
        self.body.blocks.remove(latch)
        states: dict[FrameState, FrameState] = {}
        for block in self.body.blocks:
            if block is not head:
                rename(block, last, states)

    def _out(self, latch: Block) -> Edge:
        one, other = self.head.end.edges
        return other if one.block is latch else one
