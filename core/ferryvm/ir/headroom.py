# SPDX-License-Identifier: Apache-2.0
"""The limits of bounds checks: headroom of the heap and of the stack."""

from __future__ import annotations

from ferryvm.ir.graph import Constant, Operation, Value
from ferryvm.isa.emitter import Condition
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import I64


def headroom(b: Value) -> tuple[Value, int]:
    """A limit, and the distance in bytes from `b` to it; `b` is zero if the limit is less.

    That is `select(limit > reach, limit - reach, 0)`, the form in bounds checks of the heap; any
    other value is a limit itself.
    """
    if isinstance(b, Operation) and b.name == "select":
        p, less, zero = b.arguments
        if isinstance(zero, Constant) and not zero.bits and isinstance(p, Operation):
            limit, reach = p.arguments if p.name == "compare" else (None, None)
            if (
                p.static == (I64, Condition.GT_U)
                and isinstance(reach, Constant)
                and isinstance(less, Operation)
                and less.name == "add"
                and less.arguments[0] is limit
                and isinstance(less.arguments[1], Constant)
                and less.arguments[1].bits == -reach.bits & I64.mask
            ):
                assert limit is not None
                return limit, reach.bits
    return b, 0


def frame_headroom(operation: Operation) -> int:
    """Bytes above the frame that a stack check requires; 0 for other checks."""
    if operation.name != "trap_if" or operation.static[0] is not Trap.STACK_OVERFLOW:
        return 0
    (overflow,) = operation.arguments
    if not isinstance(overflow, Operation) or overflow.name != "compare":
        return 0
    end = overflow.arguments[0]
    if not isinstance(end, Operation) or end.name != "add":
        return 0
    base, offset = end.arguments
    is_frame = isinstance(base, Operation) and base.name == "frame"
    return offset.bits if is_frame and isinstance(offset, Constant) else 0
