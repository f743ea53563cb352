# SPDX-License-Identifier: Apache-2.0
"""Strength reduction: add a step to an address in each iteration instead of computing it anew.

    b0(%i):                                b0(%i, %p):
      %a = mul %i, %n                        heap_load 8 %p
      %b = shl %a, 3                  ─>     jump b0(%i + 1, %p + %s)    %s = %n << 3, in front
      %c = add %v, %b
      heap_load 8 %c
      jump b0(%i + 1)

Inner loops are handled, and addresses that are affine in induction variables with an invariant
step. Modulo 2^64 the sums are the products, so the addresses are the same. At least as many
operations are removed as are added. Each address takes a register during the whole loop, as its
operands would otherwise, but is read only where the step is added: register files have few ports.
(Cooper, Simpson, Vick: Operator Strength Reduction, 2001, is the general case.)

Requires `code_motion`, `value_numbering` and `dead_code`, and `address_base` where addresses have
constants; leaves unused operations to `dead_code`. Preserves effects and exits; loops get
parameters.
"""

from __future__ import annotations

from collections.abc import Iterator

from ferryvm.ir.affine import AffineAnalysis, AffineExpression, step_of
from ferryvm.ir.build import Builder
from ferryvm.ir.flow import Flow, Loop
from ferryvm.ir.graph import Block, Body, Constant, Edge, Operation, Parameter, Value
from ferryvm.ir.passes.address_base import accessed
from ferryvm.ir.passes.dead_code import substitute
from ferryvm.isa.type import I64


def reduce_strength(body: Body) -> None:
    """Have inner loops add to the addresses that they access."""
    only = accessed(body)
    if not only:
        return
    flow = Flow(body)
    loops = flow.loops()
    home = flow.homes()
    users = users_of(body)
    new: dict[Value, Value] = {}
    for loop in loops:
        ways = flow.incoming[loop.head]
        if len(ways) == 2 and not any(each.blocks < loop.blocks for each in loops):
            new |= _Reduction(body, flow, loop, home, users, only).run()
    if new:
        substitute(body, new)


def users_of(body: Body) -> dict[Value, list[Operation | None]]:
    """Who uses each value: operations, or None for a state, an edge or the end of a block."""
    found: dict[Value, list[Operation | None]] = {}
    for block in body.blocks:
        for operation in block.operations:
            for value in operation.arguments:
                found.setdefault(value, []).append(operation)
            if operation.state is not None:
                for value in operation.state.uses():
                    found.setdefault(value, []).append(None)
        for value in block.end.uses():
            found.setdefault(value, []).append(None)
    return found


class _Reduction(Builder):
    """One loop, and the end of the block in front of it, where it builds."""

    def __init__(
        self,
        body: Body,
        flow: Flow,
        loop: Loop,
        home: dict[Value, int],
        users: dict[Value, list[Operation | None]],
        only: set[Value],
    ) -> None:
        """`only`: values that are used as addresses alone."""
        super().__init__(body.constants)
        self.flow, self.loop, self.home, self.users, self.only = flow, loop, home, users, only
        self.head = flow.blocks[loop.head]

    def run(self) -> dict[Value, Value]:
        """Change the loop; what is to be used instead of some values."""
        entries = [way for way in self.flow.incoming[self.loop.head] if not self._is_in(way[0])]
        backs = [way for way in self.flow.incoming[self.loop.head] if self._is_in(way[0])]
        new: dict[Value, Value] = {}
        if len(entries) != 1:
            return new
        ((front, entry),), ((tail, back),) = entries, backs
        starts: dict[Value, Value] = {}
        steps: dict[Value, Value] = {}
        for parameter, start, next_ in zip(
            self.head.parameters, entry.arguments, back.arguments, strict=True
        ):
            step = step_of(parameter, next_, self._is_outside)
            if parameter.type is I64 and step is not None:
                starts[parameter], steps[parameter] = start, step
        bases = [*dict.fromkeys(self._bases())]
        if not steps or not bases:
            return new
        self.open(self.flow.blocks[front])
        lines = AffineAnalysis(self, starts, self._is_outside)
        found = {base: line for base in bases if (line := lines.line(base)) and line.terms}
        for base, line in found.items():
            start = lines.at(line, starts)
            step = self._step(line, steps)
            new[base] = self._parameter(start, step, entry, back, tail)
        return new

    def _is_in(self, place: int) -> bool:
        return place in self.loop.blocks

    def _is_outside(self, value: Value) -> bool:
        return self.home.get(value) not in self.loop.blocks

    def _bases(self) -> Iterator[Operation]:
        """Addresses that are computed in the loop, less constants."""
        for place in sorted(self.loop.blocks):
            for operation in self.flow.blocks[place].operations:
                if operation.name in ("heap_load", "heap_store"):
                    base = _less_constant(operation.arguments[0], self.only)
                    if (
                        isinstance(base, Operation)
                        and not self._is_outside(base)
                        and all(base in self.only or user in self.only for user in self.users[base])
                    ):
                        yield base

    def _step(self, line: AffineExpression, steps: dict[Value, Value]) -> Value:
        """What a line rises by in an iteration."""
        total: Value = self.constant(I64, 0)
        for count, scale in line.terms:
            total = self.add(I64, total, self.mul(I64, scale, steps[count]))
        return total

    def _parameter(
        self, start: Value, step: Value, entry: Edge, back: Edge, tail: int
    ) -> Parameter:
        """A parameter of the loop that begins somewhere and rises."""
        found = Parameter(I64)
        self.head.parameters.append(found)
        entry.arguments.append(start)
        sum_ = Operation("add", I64, (I64,), (found, step))
        block: Block = self.flow.blocks[tail]
        sum_.pc = block.end.pc
        block.operations.append(sum_)
        back.arguments.append(sum_)
        return found


def _less_constant(address: Value, only: set[Value]) -> Value:
    """What a constant is added to for an address, if one is and that is used as an address
    alone."""
    if address in only and isinstance(address, Operation) and address.name == "add":
        base, more = address.arguments
        if isinstance(more, Constant):
            return base
    return address
