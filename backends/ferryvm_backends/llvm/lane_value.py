# SPDX-License-Identifier: Apache-2.0
"""Values of lanes: consecutive numbers, divisors, and what all lanes have in common."""

from __future__ import annotations

from ferryvm.ir.graph import Operation
from ferryvm.isa.type import Type
from ferryvm_backends._llvm import ir
from ferryvm_backends.llvm.context import llvm_type
from ferryvm_backends.llvm.function import FunctionContext
from ferryvm_backends.llvm.lane_arithmetic import LaneArithmetic


class LaneValues:
    """Lowers them."""

    def __init__(self, function: FunctionContext, arithmetic: LaneArithmetic) -> None:
        self.builder, self.arithmetic, self.lanes = function.builder, arithmetic, arithmetic.lanes

    def do_ramp(self, operation: Operation, first: ir.Value, stride: ir.Value) -> ir.Value:
        t = operation.fact(0, Type)
        kind = ir.VectorType(llvm_type(t), self.lanes)
        numbers = ir.Constant(kind, list(range(self.lanes)))
        steps = self.builder.mul(self.arithmetic.vector(stride), numbers)
        return self.builder.add(self.arithmetic.vector(first), steps)

    def do_safe_divisor(self, operation: Operation, mask: ir.Value, by: ir.Value) -> ir.Value:
        one = ir.Constant(llvm_type(operation.fact(0, Type)), 1)
        return self.arithmetic.select(self.arithmetic.vector(mask), by, one)

    def do_any_lane(self, operation: Operation, mask: ir.Value) -> ir.Value:
        return self.arithmetic.any_bit(self.arithmetic.vector(mask))
