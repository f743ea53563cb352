# SPDX-License-Identifier: Apache-2.0
"""Atomic updates of elements as instructions of LLVM, which order no other access."""

from __future__ import annotations

from ferryvm.isa.emitter import Atomic
from ferryvm_backends._llvm import ir

_NAMES = {
    Atomic.ADD: "add",
    Atomic.MIN_S: "min",
    Atomic.MIN_U: "umin",
    Atomic.MAX_S: "max",
    Atomic.MAX_U: "umax",
    Atomic.AND: "and",
    Atomic.OR: "or",
    Atomic.EXCHANGE: "xchg",
}
_ORDERING = "monotonic"


def update(builder: ir.IRBuilder, kind: Atomic, where: ir.Value, operand: ir.Value) -> ir.Value:
    """Update the integer at a pointer; the former one."""
    return builder.atomic_rmw(_NAMES[kind], where, operand, _ORDERING, _bytes(operand))


def compare_exchange(
    builder: ir.IRBuilder, where: ir.Value, expected: ir.Value, value: ir.Value
) -> ir.Value:
    """Replace the integer at a pointer if it is the expected one; the former one."""
    return builder.cmpxchg(where, expected, value, _ORDERING, _bytes(value))


def _bytes(value: ir.Value) -> int:
    assert isinstance(value.type, ir.IntType)
    return value.type.width // 8
