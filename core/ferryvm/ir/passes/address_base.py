# SPDX-License-Identifier: Apache-2.0
"""Split heap addresses into a base, which accesses share, and a constant offset.

    heap_load 4 %v + 8 + (((%i + 3) * %n + %k) << 2)

        %a = %v + ((%i + 3) * %n << 2)      varies least: computed first, so that it is hoisted
        %b = %a + (%k << 2)                 varies with the inner loop
        heap_load 4 %b + 8                  for machines whose loads add a constant

The pass reassociates an address that is a sum of scaled values: constants last, values of outer
loops before those of inner loops, and values of one loop with one factor together. Sums and
products are modulo 2^64, so the address is the same. (Reassociation by rank: Cooper and Torczon,
Engineering a Compiler, 2nd edition, section 8.4.1.)

Addresses that a check or a state uses as well are unchanged; they would be computed twice. Requires
no other pass. Leaves invariant operations to `code_motion`, equal ones to `value_numbering`, unused
ones to `dead_code`. Preserves blocks, edges, effects and exits.
"""

from __future__ import annotations

from collections.abc import Callable

from ferryvm.ir.address import accessed, address_operands
from ferryvm.ir.build import Builder
from ferryvm.ir.control_flow_graph import ControlFlowGraph
from ferryvm.ir.graph import Body, Constant, Operation, Value
from ferryvm.ir.loop.natural import loops_of
from ferryvm.isa.type import I64, signed

MOST_TERMS = 6
"""The limit of terms of a sum; longer sums rarely have common parts."""

_DEEPEST = 24
"""Levels of an address that are analysed."""


def share_bases(body: Body) -> None:
    """Split the addresses of accesses into bases and constants."""
    only = accessed(body)
    if only:
        _Sharing(body, only).run()


class _Sharing(Builder):
    """The walk over accesses, which builds before each of them."""

    def __init__(self, body: Body, only: set[Value]) -> None:
        super().__init__(body.constants)
        self.only, self.graph = only, ControlFlowGraph(body)
        self.definitions = self.graph.definitions
        self.order = {value: number for number, value in enumerate(self.definitions)}
        self.loops = [loop.blocks for loop in loops_of(self.graph)]

    def run(self) -> None:
        """Change all blocks."""
        for place, block in enumerate(self.graph.blocks):
            operations = block.operations
            block.operations = []
            self.open(block)
            for operation in operations:
                addresses = address_operands(operation)
                if addresses:
                    self.pc = operation.pc
                    operation.arguments = tuple(
                        self._address(value, place) if number in addresses else value
                        for number, value in enumerate(operation.arguments)
                    )
                block.operations.append(operation)

    def _address(self, value: Value, place: int) -> Value:
        """An address as a base and a constant."""
        if value not in self.only:
            return value
        terms: dict[Value, int] = {}
        constant = _add_terms(value, 1, terms, _DEEPEST)
        terms = {each: scale for each, scale in terms.items() if scale}
        if not terms or len(terms) > MOST_TERMS:
            return value
        around = [blocks for blocks in self.loops if place in blocks]

        def depth(each: Value) -> int:
            return sum(self.definitions[each] in blocks for blocks in around)

        base = self._sum(terms, depth)
        return self.add(I64, base, self.constant(I64, constant)) if constant else base

    def _sum(self, terms: dict[Value, int], depth: Callable[[Value], int]) -> Value:
        """The sum of values times constants, those of outer loops first."""
        groups: dict[tuple[int, bool, int], list[Value]] = {}
        for each, scale in terms.items():
            is_negative = signed(I64, scale) < 0
            size = -scale & I64.mask if is_negative else scale
            groups.setdefault((depth(each), is_negative, size), []).append(each)
        total: Value | None = None
        for (_, is_negative, size), values in sorted(groups.items(), key=lambda item: item[0]):
            values.sort(key=self.order.__getitem__)
            part = values[0]
            for other in values[1:]:
                part = self.add(I64, part, other)
            part = self._scaled(part, size)
            if total is None:
                total = self.sub(I64, self.constant(I64, 0), part) if is_negative else part
            else:
                total = (self.sub if is_negative else self.add)(I64, total, part)
        assert total is not None
        return total

    def _scaled(self, value: Value, size: int) -> Value:
        if size & (size - 1):
            return self.mul(I64, value, self.constant(I64, size))
        return self.shl(I64, value, self.constant(I64, size.bit_length() - 1))


def _add_terms(value: Value, scale: int, terms: dict[Value, int], depth: int) -> int:
    """Add a value times a constant to the terms of a sum; returns the constant part."""
    if isinstance(value, Constant):
        return value.bits * scale & I64.mask
    if isinstance(value, Operation) and value.static == (I64,) and depth:
        a, b = value.arguments if len(value.arguments) == 2 else (None, None)
        if a is not None and b is not None:
            if value.name in ("add", "sub"):
                sign = -scale if value.name == "sub" else scale
                total = _add_terms(a, scale, terms, depth - 1) + _add_terms(
                    b, sign, terms, depth - 1
                )
                return total & I64.mask
            if isinstance(b, Constant):
                if value.name == "mul":
                    return _add_terms(a, scale * b.bits & I64.mask, terms, depth - 1)
                if value.name == "shl" and b.bits < I64.bits:
                    return _add_terms(a, scale << b.bits & I64.mask, terms, depth - 1)
    terms[value] = terms.get(value, 0) + scale & I64.mask
    return 0
