# SPDX-License-Identifier: Apache-2.0
"""Strength reduction: add a step to an address in each iteration instead of recomputing it.

    b0(%i):                                b0(%i, %p):
      %a = mul %i, %n                        heap_load 8 %p
      %b = shl %a, 3                  ─>     jump b0(%i + 1, %p + %s)    %s = %n << 3, outside
      %c = add %v, %b
      heap_load 8 %c
      jump b0(%i + 1)

Inner loops are handled, and addresses that are affine in induction variables with an invariant
step. Modulo 2^64 the sums are the products, so the addresses are the same. At least as many
operations are removed as are added. Each address occupies a register during the whole loop, as its
operands would otherwise, but is read only by the addition of the step: register files have few
ports. (Cooper, Simpson, Vick: Operator Strength Reduction, 2001, is the general case.)

Requires `code_motion`, `value_numbering` and `dead_code`, and `address_base` where addresses have
constants; leaves unused operations to `dead_code`. Preserves effects and exits; loops get
parameters.
"""

from __future__ import annotations

from collections.abc import Iterator

from ferryvm.ir.address import accessed, address_operands
from ferryvm.ir.build import Builder
from ferryvm.ir.graph import Body, Constant, Operation, Parameter, Value
from ferryvm.ir.loop.affine import AffineAnalysis
from ferryvm.ir.loop.induction import recurrences
from ferryvm.ir.loop.natural import Loop, find_loops
from ferryvm.ir.use import substitute, users_of
from ferryvm.isa.type import I64

_ACCESSES = frozenset(
    {
        *("heap_load", "heap_store", "element_load", "element_store"),
        *("context_load", "context_store"),
    }
)


def reduce_strength(body: Body) -> None:
    """Reduce the strength of address computations in inner loops."""
    loops = find_loops(body)
    only = accessed(body) if loops else None
    if not only:
        return
    users = users_of(body)
    new: dict[Value, Value] = {}
    for loop in loops:
        if loop.is_innermost:
            new |= _Reduction(body, loop, users, only).run()
    if new:
        substitute(body.blocks, new)


class _Reduction(Builder):
    """One loop, and its preheader, in which new code is built."""

    def __init__(
        self,
        body: Body,
        loop: Loop,
        users: dict[Value, list[Operation | None]],
        only: set[Value],
    ) -> None:
        """`only`: values that are used as addresses alone."""
        super().__init__(body.constants)
        self.loop, self.users, self.only = loop, users, only

    def run(self) -> dict[Value, Value]:
        """Change the loop; returns the parameters that replace addresses."""
        variables = recurrences(self.loop)
        bases = [*dict.fromkeys(self._bases())] if variables else []
        if not bases:
            return {}
        starts: dict[Value, Value] = {each: known.start for each, known in variables.items()}
        steps: dict[Value, Value] = {each: known.step for each, known in variables.items()}
        self.open(self.loop.preheader)
        affine = AffineAnalysis(self, starts, self.loop)
        found = {base: affine.expression(base) for base in bases}
        new: dict[Value, Value] = {}
        for base, expression in found.items():
            if expression is not None and expression.terms:
                start = affine.at(expression, starts)
                new[base] = self._parameter(start, affine.step(expression, steps))
        return new

    def _bases(self) -> Iterator[Operation]:
        """Addresses that are computed in the loop, without constants."""
        for operation in self.loop.operations:
            if operation.name in _ACCESSES:
                base = _less_constant(operation.arguments[0], self.only)
                if (
                    isinstance(base, Operation)
                    and not self.loop.is_invariant(base)
                    and all(
                        base in self.only or user in self.only or _is_address_in(base, user)
                        for user in self.users[base]
                    )
                ):
                    yield base

    def _parameter(self, start: Value, step: Value) -> Parameter:
        """A new recurrence of the loop."""
        (entry,), (back_edge,) = self.loop.entries, self.loop.back_edges
        found = Parameter(I64)
        self.loop.header.parameters.append(found)
        entry.edge.arguments.append(start)
        sum_ = Operation("add", I64, (I64,), (found, step))
        sum_.pc = self.loop.latch.end.pc
        self.loop.latch.operations.append(sum_)
        back_edge.edge.arguments.append(sum_)
        return found


def _is_address_in(base: Value, user: Operation | None) -> bool:
    """True if an operation accesses memory at an address, and does not use it otherwise."""
    if user is None:
        return False
    addresses = address_operands(user)
    is_stored = any(
        value is base for place, value in enumerate(user.arguments) if place not in addresses
    )
    return len(addresses) > 0 and not is_stored


def _less_constant(address: Value, only: set[Value]) -> Value:
    """The base of an address with a constant offset, if all its uses are addresses."""
    if address in only and isinstance(address, Operation) and address.name == "add":
        base, more = address.arguments
        if isinstance(more, Constant):
            return base
    return address
