# SPDX-License-Identifier: Apache-2.0
"""Atomic updates of elements by lanes, of kinds that commute, and whose former element nothing
uses.

of each lane    bits of the mask ─> while any: the lowest one updates its element
of one element  mask ─> operands of other lanes become the identity ─> vector.reduce ─> one update
"""

from __future__ import annotations

from ferryvm.ir.graph import Body, Operation
from ferryvm.isa.element import Element
from ferryvm.isa.emitter import Atomic
from ferryvm_backends._llvm import ir
from ferryvm_backends._llvm.arithmetic import I1, WORD
from ferryvm_backends._llvm.atomic import update
from ferryvm_backends._llvm.handler import POINTER
from ferryvm_backends.llvm.function import FunctionContext
from ferryvm_backends.llvm.lane_access import LaneAccess

_REDUCTIONS = {
    Atomic.ADD: "add",
    Atomic.MIN_S: "smin",
    Atomic.MIN_U: "umin",
    Atomic.MAX_S: "smax",
    Atomic.MAX_U: "umax",
    Atomic.AND: "and",
    Atomic.OR: "or",
}
"""LLVM's names of the reductions of updates that commute."""


def _identity(kind: Atomic, bits: int) -> int:
    """The operand with which an update changes nothing."""
    largest = (1 << bits - 1) - 1
    ones = (1 << bits) - 1
    return {
        Atomic.MIN_S: largest,
        Atomic.MAX_S: largest + 1,
        Atomic.MIN_U: ones,
        Atomic.AND: ones,
    }.get(kind, 0)


class LaneUpdates:
    """Lowers them. It is made where the function starts, since it allocates what it needs there."""

    def __init__(self, function: FunctionContext, access: LaneAccess, body: Body) -> None:
        self.function, self.builder, self.access = function, function.builder, access
        self.lanes = access.lanes
        self._rows: list[ir.Value] = []
        """Addresses and operands of the lanes."""
        if any(operation.name == "update_each" for operation in body.operations):
            kind = ir.VectorType(WORD, self.lanes)
            self._rows = [self.builder.alloca(kind) for _ in range(2)]

    def do_update_each(
        self,
        operation: Operation,
        mask: ir.Value,
        place: ir.Value,
        offset: ir.Value,
        operand: ir.Value,
    ) -> None:
        kind, elements = operation.fact(1, Atomic), operation.fact(0, Element)
        mask = self.access.arithmetic.vector(mask)
        if any(isinstance(each.type, ir.VectorType) for each in (place, offset)):
            self._in_turn(kind, elements.bits, mask, self.access.each(place, offset), operand)
        else:
            where = self.access.elements(place, offset)
            self._at_once(kind, elements.bits, mask, where, operand)

    def _in_turn(
        self, kind: Atomic, width: int, mask: ir.Value, where: ir.Value, operand: ir.Value
    ) -> None:
        """Update the element of each lane of a mask, in their order; `width`: bits of elements."""
        builder = self.builder
        addresses = builder.ptrtoint(where, ir.VectorType(WORD, self.lanes))
        for row, values in zip(self._rows, (addresses, operand), strict=True):
            builder.store(self.access.arithmetic.vector(values), row)
        start, bits = builder.block, ir.IntType(self.lanes)
        head, turn, done = (self.function.block(name) for name in ("lanes", "turn", "updated"))
        all_ = builder.bitcast(mask, bits)
        builder.branch(head)
        builder.position_at_end(head)
        left = builder.phi(bits)
        left.add_incoming(all_, start)
        builder.cbranch(builder.icmp_unsigned("!=", left, ir.Constant(bits, 0)), turn, done)
        builder.position_at_end(turn)
        lane = self._lowest(left, bits)
        places = (builder.gep(row, [lane], source_etype=WORD) for row in self._rows)
        address, value = (builder.load(place, typ=WORD) for place in places)
        narrow = builder.trunc(value, ir.IntType(width)) if width < WORD.width else value
        update(builder, kind, builder.inttoptr(address, POINTER), narrow)
        rest = builder.and_(left, builder.sub(left, ir.Constant(bits, 1)))
        left.add_incoming(rest, builder.block)
        builder.branch(head)
        builder.position_at_end(done)

    def _lowest(self, mask: ir.Value, bits: ir.IntType) -> ir.Value:
        """The number of the lowest lane of a mask that is not empty."""
        count = self.builder.module.intrinsic(f"llvm.cttz.i{self.lanes}", bits, [bits, I1])
        lane = self.builder.call(count, [mask, ir.Constant(I1, 1)])
        return self.builder.zext(lane, WORD) if self.lanes < WORD.width else lane

    def _at_once(
        self, kind: Atomic, width: int, mask: ir.Value, where: ir.Value, operand: ir.Value
    ) -> None:
        """Update one element by the operands of all lanes of a mask."""
        builder, element = self.builder, ir.IntType(width)
        narrow = ir.VectorType(element, self.lanes)
        values = self.access.arithmetic.vector(operand)
        values = builder.trunc(values, narrow) if width < WORD.width else values
        none = ir.Constant(narrow, [_identity(kind, width)] * self.lanes)
        name = f"llvm.vector.reduce.{_REDUCTIONS[kind]}.v{self.lanes}i{width}"
        reduce = builder.module.intrinsic(name, element, [narrow])
        total = builder.call(reduce, [builder.select(mask, values, none)])
        bits = ir.IntType(self.lanes)
        any_ = builder.icmp_unsigned("!=", builder.bitcast(mask, bits), ir.Constant(bits, 0))
        with builder.if_then(any_):
            update(builder, kind, where, total)
