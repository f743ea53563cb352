# SPDX-License-Identifier: Apache-2.0
"""Loop deletion: replace counting loops by their closed forms.

    while i < n { s = s + i; i = i + 1 }   ─>   k = max(n - i, 0)
                                                s = s + k * i + k * (k - 1) / 2
                                                i = i + k

In iteration k a value is *linear* if it is base + k * slope, with both invariant. A value to which
a loop adds a linear one becomes a sum of these; a value that it sets to a linear one becomes the
last of them. (Bachmann, Wang, Zima: Chains of Recurrences, ISSAC 1994, of which these are the two
lowest degrees.) All arithmetic is modulo 2^64, so no bounds are needed.

Only loops of a head and one block that have no effect but counting are replaced, inner ones first.
The closed form needs no polls.

Requires `code_motion`: one edge enters each loop. Preserves effects and exits; does not change a
body that pays for its instructions.
"""

from __future__ import annotations

from typing import NamedTuple

from ferryvm.ir.build import Builder
from ferryvm.ir.graph import Block, Body, Edge, Operation, Parameter, Terminator, Value
from ferryvm.ir.loop.affine import AffineAnalysis
from ferryvm.ir.loop.induction import InductionVariable, find_induction_variable
from ferryvm.ir.loop.natural import Loop, find_loops
from ferryvm.ir.operation import PURE
from ferryvm.ir.passes.code_motion import hoist_invariants
from ferryvm.ir.passes.dead_code import remove_dead_code
from ferryvm.ir.passes.jump_threading import thread_jumps
from ferryvm.ir.passes.value_numbering import number_values
from ferryvm.ir.use import substitute
from ferryvm.isa.emitter import Condition
from ferryvm.isa.type import I64


class Linear(NamedTuple):
    """A value that is base + k * slope in iteration k."""

    base: Value
    slope: Value


def delete_counting_loops(body: Body) -> int:
    """Replace the loops of a body that only count; the number of these loops."""
    count = 0
    while _replace_one(body):
        count += 1
        # The closed form of an inner loop may be invariant in the loop around it.
        for tidy in (thread_jumps, remove_dead_code, hoist_invariants, number_values):
            tidy(body)
    return count


def _replace_one(body: Body) -> bool:
    return any(_Counting(body, loop).replace() for loop in find_loops(body))


class _Counting(Builder):
    """One loop."""

    def __init__(self, body: Body, loop: Loop) -> None:
        super().__init__(body.constants)
        self.body, self.loop = body, loop
        self.pc = loop.header.end.pc
        self.zero, self.one = self.constant(I64, 0), self.constant(I64, 1)

    def replace(self) -> bool:
        """Replace the loop if it only counts."""
        loop, header = self.loop, self.loop.header
        if len(loop.blocks) != 2 or loop.back_edge is None or loop.latch is header:
            return False
        if any(each.name not in PURE and each.name != "poll" for each in loop.operations):
            return False
        variable = find_induction_variable(loop)
        if variable is None:
            return False
        self.next = dict(zip(header.parameters, loop.back_edge.edge.arguments, strict=True))
        self.open(Block("formula", header.pc))
        iterations = variable.trip_count(self)
        if iterations is None:
            return False
        self.iterations = iterations
        steps = {parameter: self._step(parameter) for parameter in header.parameters}
        self.steps: dict[Value, Value] = {p: step for p, step in steps.items() if step is not None}
        self.affine = AffineAnalysis(self, self.steps, loop)
        last: dict[Value, Value] = {}
        for parameter in header.parameters:
            value = self._last(parameter)
            if value is None:
                return False
            last[parameter] = value
        self._put(variable, last)
        return True

    # --- values -----------------------------------------------------------------------------

    def _last(self, parameter: Parameter) -> Value | None:
        """The value of a parameter of the header at the end of the loop, computed from its initial
        value."""
        iterations, next_ = self.iterations, self.next[parameter]
        if next_ is parameter:
            return parameter
        if self.loop.is_invariant(next_):
            is_entered = self.compare(I64, Condition.NE, iterations, self.zero)
            return self.select(is_entered, next_, parameter)
        if parameter.type is not I64:
            return None
        added = self._added(parameter)
        if added is not None:
            whole = self.mul(I64, iterations, added.base)
            if added.slope is not self.zero:
                whole = self.add(I64, whole, self.mul(I64, self._pairs(iterations), added.slope))
            return self.add(I64, parameter, whole)
        linear = self._linear(next_)
        if linear is None:
            return None
        before = self.mul(I64, self.sub(I64, iterations, self.one), linear.slope)
        is_entered = self.compare(I64, Condition.NE, iterations, self.zero)
        return self.select(is_entered, self.add(I64, linear.base, before), parameter)

    def _pairs(self, iterations: Value) -> Value:
        """iterations * (iterations - 1) / 2: the even factor is halved before the product can
        wrap."""
        half = self.shr_u(I64, iterations, self.one)
        less = self.sub(I64, iterations, self.one)
        is_even = self.compare(
            I64, Condition.EQ, self.bit_and(I64, iterations, self.one), self.zero
        )
        return self.select(is_even, self.mul(I64, half, less), self.mul(I64, half, iterations))

    def _sum(self, parameter: Parameter) -> tuple[str, Value] | None:
        """`add` or `sub`, and the value that an iteration adds to a parameter or subtracts."""
        next_ = self.next[parameter]
        if not isinstance(next_, Operation) or next_.name not in ("add", "sub"):
            return None
        a, b = next_.arguments
        if next_.name == "add" and b is parameter:
            a, b = b, a
        return (next_.name, b) if a is parameter else None

    def _step(self, parameter: Parameter) -> Value | None:
        """The invariant that each iteration adds to an integer parameter; None if there is none."""
        if parameter.type is not I64:
            return None
        if self.next[parameter] is parameter:
            return self.zero
        sum_ = self._sum(parameter)
        if sum_ is None or not self.loop.is_invariant(sum_[1]):
            return None
        return sum_[1] if sum_[0] == "add" else self.sub(I64, self.zero, sum_[1])

    def _added(self, parameter: Parameter) -> Linear | None:
        """The linear value that each iteration adds to a parameter."""
        sum_ = self._sum(parameter)
        linear = self._linear(sum_[1]) if sum_ is not None else None
        if sum_ is None or linear is None or sum_[0] == "add":
            return linear
        return Linear(*(self.sub(I64, self.zero, each) for each in linear))

    def _linear(self, value: Value) -> Linear | None:
        """A value that is affine in the parameters to which each iteration adds an invariant."""
        expression = self.affine.expression(value)
        if expression is None:
            return None
        base = self.affine.at(expression, {each: each for each in self.steps})
        return Linear(base, self.affine.step(expression, self.steps))

    # --- the body ---------------------------------------------------------------------------

    def _put(self, variable: InductionVariable, last: dict[Value, Value]) -> None:
        """Make the header compute the final values and jump past the loop."""
        header, exit_ = self.loop.header, variable.exit
        for operation in header.operations:
            if operation.name in PURE:
                assert operation.type is not None
                arguments = tuple(last.get(a, a) for a in operation.arguments)
                last[operation] = self.pure(
                    operation.name, operation.static, arguments, operation.type
                )
        header.operations = self.block.operations
        passed = [last.get(a, a) for a in exit_.arguments]
        end = Terminator("jump", edges=(Edge(exit_.block, passed, exit_.is_back),))
        end.pc = header.end.pc
        header.terminator = end
        self.body.blocks.remove(self.loop.latch)
        substitute([block for block in self.body.blocks if block is not header], last)
