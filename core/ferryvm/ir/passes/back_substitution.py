# SPDX-License-Identifier: Apache-2.0
"""Back-substitution: linear recurrences of integers, computed several iterations ahead.

    b0(%x):                           b0(%x, %0, %1, %2, %3):    %0 = a * %x + c, %1 = a * %0 + c, …
      %s = a * %x + c                   %4 = a^4 * %0 + c * (a^3 + a^2 + a + 1)
      %y = bit_and %s, 2^k - 1   ─>     %y = bit_and %0, 2^k - 1
      jump b0(%y)                       jump b0(%y, %1, %2, %3, %4)

An iteration of a generator of random numbers waits for the product of the one before. Here it waits
for that of four iterations before, so the processor computes four at a time. Modulo 2^64 the values
are the same, and so they are modulo each smaller power of two, to which masks reduce them. An
addend that varies, as in a polynomial hash, costs a further product for each iteration it is ahead,
so that is one:

    b0(%x):                           b0(%x, %u, %v):            %u = a * %x, %v = %x
      %s = a * %x + %f                  %s = %u + %f
      jump b0(%s)                ─>     %w = a^2 * %v + a * %f
                                        jump b0(%s, %w, %s)

Checks of overflow are as they were: they compute from `%x`. (Schlansker, Kathail: Acceleration of
First and Higher Order Recurrences on Processors with Instruction Level Parallelism, 1993.)

Requires `code_motion`: one edge enters each loop. For compilers whose processor overlaps
iterations. Preserves effects and exits; loops get parameters.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import NamedTuple

from ferryvm.ir.build import Builder
from ferryvm.ir.graph import Block, Body, Constant, Operation, Parameter, Value
from ferryvm.ir.loop.induction import find_induction_variable
from ferryvm.ir.loop.natural import Loop, find_loops
from ferryvm.ir.operation import CALLS, TRANSFERS
from ferryvm.ir.passes.dead_code import remove_dead_code
from ferryvm.ir.use import substitute
from ferryvm.isa.type import Type

AHEAD = 4
"""Iterations by which a recurrence with an invariant addend is ahead: the cycles of a product and a
sum."""

LARGEST = 64
"""Operations of a loop, at most: in longer ones other work fills the time of a product."""

FEWEST = 64
"""Iterations of a loop, if their number is constant: LLVM unrolls a loop of fewer, and may run
several such loops in the lanes of vectors."""

_DEEPEST = 12
"""Operations between an addend and what it depends on, at most."""

_QUICK = frozenset({0, 1, 3, 5, 9})
"""Factors, besides powers of two, by which a processor multiplies in a cycle."""


class _Recurrence(NamedTuple):
    """x = factor * x + addend, and perhaps a mask."""

    x: Parameter
    type: Type
    factor: int
    addend: Value | None
    """None: zero."""
    sum: Operation
    """The next value, without mask."""
    masked: Operation | None


def substitute_back(body: Body) -> int:
    """Compute recurrences of inner loops ahead; the number of recurrences."""
    count = 0
    for loop in find_loops(body):
        if not loop.is_innermost or loop.entry is None or loop.back_edge is None:
            continue
        variable = find_induction_variable(loop)
        if variable is not None and variable.constant_trip_count(FEWEST) is not None:
            continue
        operations = [*loop.operations]
        if len(operations) > LARGEST or any(o.name in CALLS | TRANSFERS for o in operations):
            continue
        for recurrence in _recurrences(loop, operations):
            _Change(body, loop, recurrence).run()
            count += 1
    if count:
        remove_dead_code(body)
    return count


def _recurrences(loop: Loop, operations: list[Operation]) -> list[_Recurrence]:
    assert loop.back_edge is not None
    found = []
    for x, after in zip(loop.header.parameters, loop.back_edge.edge.arguments, strict=True):
        recurrence = _recurrence(loop, x, after)
        if recurrence is None:
            continue
        # Without a mask a test of overflow would need the product, too.
        if recurrence.masked is None and any(
            each.name == "mul_overflows" and x in each.arguments for each in operations
        ):
            continue
        found.append(recurrence)
    return found


def _recurrence(loop: Loop, x: Parameter, after: Value) -> _Recurrence | None:
    """The recurrence of a parameter of the header with its next value."""
    total, masked = after, None
    if isinstance(after, Operation) and after.name == "bit_and":
        first, mask = after.arguments
        if isinstance(mask, Constant) and not mask.bits & (mask.bits + 1):
            total, masked = first, after
    if not isinstance(total, Operation) or total.name not in ("add", "mul"):
        return None
    if loop.is_invariant(total):
        return None
    t = total.fact(0, Type)
    if total.name == "mul":
        factor = _factor(total, x)
        return None if factor is None else _Recurrence(x, t, factor, None, total, masked)
    for product, addend in (total.arguments, total.arguments[::-1]):
        factor = _factor(product, x)
        if factor is not None and not _depends(loop, addend, x):
            return _Recurrence(x, t, factor, addend, total, masked)
    return None


def _factor(product: Value, x: Parameter) -> int | None:
    """The constant by which a parameter is multiplied, unless that is quick."""
    if not isinstance(product, Operation) or product.name != "mul":
        return None
    value, factor = product.arguments
    if value is not x or not isinstance(factor, Constant):
        return None
    bits = factor.bits
    return None if bits in _QUICK or not bits & (bits - 1) else bits


def _depends(loop: Loop, value: Value, x: Parameter, depth: int = 0) -> bool:
    """True if a value of an iteration may depend on a parameter of the header."""
    if value is x or depth > _DEEPEST:
        return True
    if loop.is_invariant(value) or not isinstance(value, Operation):
        return False
    return any(_depends(loop, each, x, depth + 1) for each in value.arguments)


class _Change(Builder):
    """A change of one recurrence, for which operations are built."""

    def __init__(self, body: Body, loop: Loop, recurrence: _Recurrence) -> None:
        super().__init__(body.constants)
        self.body, self.loop, self.recurrence = body, loop, recurrence
        self.pc = recurrence.sum.pc

    def run(self) -> None:
        """Change the loop."""
        loop, found = self.loop, self.recurrence
        assert loop.entry is not None
        first = loop.entry.edge.arguments[loop.header.parameters.index(found.x)]
        self.open(loop.preheader)
        if found.addend is None or loop.is_invariant(found.addend):
            self._run_ahead(first)
        else:
            self._run_one_ahead(first, found.addend)

    def _times(self, factor: int, value: Value) -> Value:
        t = self.recurrence.type
        return self.mul(t, value, self.constant(t, factor & t.mask))

    def _run_ahead(self, first: Value) -> None:
        """With an invariant addend: the sums of the next iterations are parameters."""
        t, factor, addend = self.recurrence.type, self.recurrence.factor, self.recurrence.addend
        values, total = list[Value](), addend
        for number in range(AHEAD):
            product = self._times(factor, values[-1] if values else first)
            values.append(product if addend is None else self.add(t, product, addend))
            if number and addend is not None:
                assert total is not None
                total = self.add(t, self._times(factor, total), addend)
        new = [self._parameter(value) for value in values]
        with self._after_sum():
            ahead = self._times(factor**AHEAD, new[0])
            ahead = ahead if total is None else self.add(t, ahead, total)
        self._continue_with(*new[1:], ahead)
        sum_, masked = self.recurrence.sum, self.recurrence.masked
        if masked is None:
            substitute(self.body.blocks, {sum_: new[0]})
        else:
            masked.arguments = (new[0], masked.arguments[1])

    def _run_one_ahead(self, first: Value, addend: Value) -> None:
        """With an addend that varies: the next product is a parameter, and the sum before."""
        t, factor, sum_ = self.recurrence.type, self.recurrence.factor, self.recurrence.sum
        product, before = self._parameter(self._times(factor, first)), self._parameter(first)
        sum_.arguments = (product, addend)
        with self._after_sum():
            ahead = self._times(factor * factor, before)
            ahead = self.add(t, ahead, self._times(factor, addend))
        self._continue_with(ahead, sum_)

    @contextlib.contextmanager
    def _after_sum(self) -> Iterator[None]:
        """Build behind the sum, whose block dominates the latch."""
        sum_ = self.recurrence.sum
        (block,) = (each for each in self.loop.members if sum_ in each.operations)
        place = block.operations.index(sum_) + 1
        self.open(Block("ahead", block.pc))
        yield
        block.operations[place:place] = self.block.operations

    def _parameter(self, first: Value) -> Parameter:
        """A parameter of the loop with its first value."""
        (entry,) = self.loop.entries
        found = Parameter(self.recurrence.type)
        self.loop.header.parameters.append(found)
        entry.edge.arguments.append(first)
        return found

    def _continue_with(self, *values: Value) -> None:
        """The next values of the new parameters."""
        (back_edge,) = self.loop.back_edges
        back_edge.edge.arguments.extend(values)
