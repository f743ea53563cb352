# SPDX-License-Identifier: Apache-2.0
"""Divisions of consecutive numbers by one divisor, such as those that make a row and a column of an
item: no processor divides vectors of integers.

    first, first + s, …   by d:   q = first / d, r = first % d, one scalar division
                                  r + s, r + 2 s, …   where that reaches d: minus d, and q + 1

That holds if the last lane is less than d above the first: then at most one multiple of d is
passed.
"""

from __future__ import annotations

from ferryvm.ir.graph import Constant, Operation, Value
from ferryvm.isa.emitter import Condition
from ferryvm.isa.type import Type, signed
from ferryvm_backends._llvm import ir
from ferryvm_backends._llvm.arithmetic import LLVM_TYPE
from ferryvm_backends.llvm.function import FunctionContext
from ferryvm_backends.llvm.lane_arithmetic import LaneArithmetic

_NAMES = frozenset({"div_s", "div_u", "rem_s", "rem_u"})


class Divisions:
    """Lowers them."""

    def __init__(self, function: FunctionContext, arithmetic: LaneArithmetic) -> None:
        self.function, self.arithmetic = function, arithmetic
        self.builder, self.lanes = function.builder, arithmetic.lanes

    def result(self, operation: Operation) -> ir.Value | None:
        """The result of a division, in another block; None if it is none of these."""
        if operation.name not in _NAMES:
            return None
        t, (dividend, divisor) = operation.fact(0, Type), operation.arguments
        divisor = _uniform(divisor)
        if not isinstance(dividend, Operation) or dividend.name != "ramp":
            return None
        first, stride = dividend.arguments
        if not isinstance(stride, Constant) or not 0 < signed(t, stride.bits) < 1 << 16:
            return None
        by = self.function.value(divisor)
        if isinstance(by.type, ir.VectorType):
            return None
        return self._result(operation, self.function.value(first), by, stride.bits)

    def _result(self, operation: Operation, first: ir.Value, by: ir.Value, stride: int) -> ir.Value:
        builder, arithmetic, t = self.builder, self.arithmetic, operation.fact(0, Type)
        kind = LLVM_TYPE[t]
        distance = self.lanes * stride
        few, many = self.function.block("one.division"), self.function.block("divisions")
        on = self.function.block("divided")
        zero, reach = ir.Constant(kind, 0), ir.Constant(kind, distance)
        last = ir.Constant(kind, (t.mask >> 1) - distance)
        is_short = builder.and_(
            builder.icmp_signed(">=", by, reach),
            builder.and_(
                builder.icmp_signed(">=", first, zero), builder.icmp_signed("<=", first, last)
            ),
        )
        builder.cbranch(is_short, few, many)
        builder.position_at_end(few)
        quotient = builder.udiv(first, by)
        rest = builder.sub(first, builder.mul(quotient, by))
        steps = ir.Constant(
            ir.VectorType(kind, self.lanes), [n * stride for n in range(self.lanes)]
        )
        rests = builder.add(arithmetic.vector(rest), steps)
        divisors = arithmetic.vector(by)
        passes = arithmetic.compare(t, Condition.GE_U, rests, divisors)
        if operation.name.startswith("div"):
            short = builder.add(arithmetic.vector(quotient), builder.zext(passes, rests.type))
        else:
            short = builder.select(passes, builder.sub(rests, divisors), rests)
        builder.branch(on)
        builder.position_at_end(many)
        operands = [arithmetic.vector(self.function.value(a)) for a in operation.arguments]
        long = getattr(arithmetic, operation.name)(t, *operands)
        builder.branch(on)
        builder.position_at_end(on)
        found = builder.phi(short.type)
        found.add_incoming(short, few)
        found.add_incoming(long, many)
        return found


def _uniform(divisor: Value) -> Value:
    """A divisor, without the choice of 1 for lanes that do not take part."""
    if isinstance(divisor, Operation) and divisor.name == "safe_divisor":
        return divisor.arguments[1]
    return divisor
