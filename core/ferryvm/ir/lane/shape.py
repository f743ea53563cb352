# SPDX-License-Identifier: Apache-2.0
"""Shapes of values: how a value differs from one lane to the next.

    0        uniform: the same in all lanes
    1, -8    affine: so much more in each lane than in the one before (1: consecutive)
    None     varying: anything

An affine value is that of the first lane and its stride, both scalar; arithmetic wraps around, so
this holds modulo 2^width. (Karrenberg, Hack: Whole-Function Vectorization, CGO 2011, section 4.2.)
"""

from __future__ import annotations

from collections.abc import Sequence

from ferryvm.ir.graph import Constant, Operation
from ferryvm.isa.type import I64, Type

Shape = int | None
"""The stride of a value; None: varying."""

UNIFORM = 0
VARYING = None


def computed_shape(operation: Operation, shapes: Sequence[Shape]) -> Shape:
    """The shape of the result of a pure operation; `shapes`: of its operands."""
    if not any(shape != UNIFORM for shape in shapes):
        return UNIFORM
    if any(shape is VARYING for shape in shapes):
        return VARYING
    known = [shape for shape in shapes if shape is not None]
    match operation.name:
        case "add":
            return _signed(known[0] + known[1], operation.word_type)
        case "sub":
            return _signed(known[0] - known[1], operation.word_type)
        case "mul":
            a, b = operation.arguments
            if isinstance(b, Constant):
                return _signed(known[0] * b.bits, operation.word_type)
            if isinstance(a, Constant):
                return _signed(known[1] * a.bits, operation.word_type)
        case "shl":
            count = operation.arguments[1]
            if isinstance(count, Constant):
                return _signed(known[0] << count.bits, operation.word_type)
        case "wrap":
            return _signed(known[0], operation.word_type)
        case "to_slot" | "from_slot":
            return known[0] if operation.fact(0, Type) is I64 else VARYING
        case "select":
            return known[1] if known[0] == UNIFORM and known[1] == known[2] else VARYING
    return VARYING


def _signed(stride: int, t: Type) -> int:
    """A stride modulo 2^width, the nearest to zero."""
    half = 1 << t.bits - 1
    return (stride + half & t.mask) - half
