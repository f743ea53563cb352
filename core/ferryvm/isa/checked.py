# SPDX-License-Identifier: Apache-2.0
"""Signed arithmetic of languages whose integers do not wrap, and division that rounds down.

Sum, difference and product trap where the exact result does not fit (Java's `Math.addExact`, CIL's
`add.ovf`). Floored division is that of Python, R and Ruby (Knuth, The Art of Computer Programming,
volume 1, section 1.2.4).
"""

from __future__ import annotations

from typing import TypeVar

from ferryvm.isa.emitter import Condition, Emitter
from ferryvm.isa.table import instruction
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import F64, I32, I64, Type

V = TypeVar("V")


def _checked(t: Type) -> None:
    """Declare the checked instructions of type `t`."""

    def zero(m: Emitter[V]) -> V:
        return m.constant(t, 0)

    def trap_if_negative(m: Emitter[V], a: V) -> None:
        m.trap_if(m.compare(t, Condition.LT_S, a, zero(m)), Trap.INTEGER_OVERFLOW)

    @instruction(f"{t}.add_checked", pops=(t, t), pushes=(t,))
    def add_checked(m: Emitter[V], a: V, b: V) -> V:
        """Sum, signed; traps on overflow."""
        total = m.add(t, a, b)
        # Both operands have another sign than the sum.
        trap_if_negative(m, m.bit_and(t, m.bit_xor(t, a, total), m.bit_xor(t, b, total)))
        return total

    @instruction(f"{t}.sub_checked", pops=(t, t), pushes=(t,))
    def sub_checked(m: Emitter[V], a: V, b: V) -> V:
        """Difference, signed; traps on overflow."""
        rest = m.sub(t, a, b)
        # The first operand has another sign than the second and the difference.
        trap_if_negative(m, m.bit_and(t, m.bit_xor(t, a, b), m.bit_xor(t, a, rest)))
        return rest

    @instruction(f"{t}.mul_checked", pops=(t, t), pushes=(t,))
    def mul_checked(m: Emitter[V], a: V, b: V) -> V:
        """Product, signed; traps on overflow."""
        product = m.mul(t, a, b)
        if t is I32:
            wide = m.mul(I64, m.extend_s(a), m.extend_s(b))
            wrong = m.compare(I64, Condition.NE, wide, m.extend_s(product))
        else:
            # The exact product is the wrapped one plus a multiple of 2^64. In f64 it is known to
            # 2^-51 of itself, so the distance is below 2^13, or at least 2^63.
            x, y, z = (m.to_float_s(F64, I64, each) for each in (a, b, product))
            distance = m.fsub(F64, m.fmul(F64, x, y), z)
            bits = m.reinterpret(I64, F64, distance)
            magnitude = m.bit_and(I64, bits, m.constant(I64, (1 << 63) - 1))
            wrong = m.compare(I64, Condition.GT_S, magnitude, m.constant(I64, _TWO_TO_32))
        m.trap_if(wrong, Trap.INTEGER_OVERFLOW)
        return product

    def trap_if_zero(m: Emitter[V], b: V) -> None:
        m.trap_if(m.compare(t, Condition.EQ, b, zero(m)), Trap.INTEGER_DIVIDE_BY_ZERO)

    def is_above(m: Emitter[V], rest: V, b: V) -> V:
        """True if the quotient toward zero, which leaves this rest, is above the exact one."""
        other_sign = m.compare(t, Condition.LT_S, m.bit_xor(t, rest, b), zero(m))
        return m.all(m.compare(t, Condition.NE, rest, zero(m)), other_sign)

    def is_minus_one(m: Emitter[V], b: V) -> V:
        return m.compare(t, Condition.EQ, b, m.constant(t, t.mask))

    @instruction(f"{t}.div_floor", pops=(t, t), pushes=(t,))
    def div_floor(m: Emitter[V], a: V, b: V) -> V:
        """Signed quotient, rounded down; traps on division by zero and on overflow."""
        trap_if_zero(m, b)
        is_smallest = m.compare(t, Condition.EQ, a, m.constant(t, 1 << (t.bits - 1)))
        m.trap_if(m.all(is_minus_one(m, b), is_smallest), Trap.INTEGER_OVERFLOW)
        quotient = m.div_s(t, a, b)
        rest = m.sub(t, a, m.mul(t, quotient, b))
        one_less = m.sub(t, quotient, m.constant(t, 1))
        return m.select(is_above(m, rest, b), one_less, quotient)

    @instruction(f"{t}.mod_floor", pops=(t, t), pushes=(t,))
    def mod_floor(m: Emitter[V], a: V, b: V) -> V:
        """Remainder of the quotient that is rounded down, with the divisor's sign; traps on division
        by zero."""
        trap_if_zero(m, b)
        # The remainder by 1 is 0, as that by -1; the latter can overflow in hardware.
        rest = m.rem_s(t, a, m.select(is_minus_one(m, b), m.constant(t, 1), b))
        return m.select(is_above(m, rest, b), m.add(t, rest, b), rest)


_TWO_TO_32 = (1023 + 32) << 52
"""2^32 as bits of f64."""

for _t in (I32, I64):
    _checked(_t)
