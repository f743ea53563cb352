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
from ferryvm.isa.type import I32, I64, Type

V = TypeVar("V")


def _checked(t: Type) -> None:
    """Declare the checked instructions of type `t`."""

    def zero(m: Emitter[V]) -> V:
        return m.constant(t, 0)

    @instruction(f"{t}.add_checked", pops=(t, t), pushes=(t,))
    def add_checked(m: Emitter[V], a: V, b: V) -> V:
        """Sum, signed; traps on overflow."""
        m.trap_if(m.add_overflows(t, a, b), Trap.INTEGER_OVERFLOW)
        return m.add(t, a, b)

    @instruction(f"{t}.sub_checked", pops=(t, t), pushes=(t,))
    def sub_checked(m: Emitter[V], a: V, b: V) -> V:
        """Difference, signed; traps on overflow."""
        m.trap_if(m.sub_overflows(t, a, b), Trap.INTEGER_OVERFLOW)
        return m.sub(t, a, b)

    @instruction(f"{t}.mul_checked", pops=(t, t), pushes=(t,))
    def mul_checked(m: Emitter[V], a: V, b: V) -> V:
        """Product, signed; traps on overflow."""
        m.trap_if(m.mul_overflows(t, a, b), Trap.INTEGER_OVERFLOW)
        return m.mul(t, a, b)

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
        """Remainder of the quotient that is rounded down, with the divisor's sign; traps on
        division by zero."""
        trap_if_zero(m, b)
        # The remainder by 1 is 0, as that by -1; the latter can overflow in hardware.
        rest = m.rem_s(t, a, m.select(is_minus_one(m, b), m.constant(t, 1), b))
        return m.select(is_above(m, rest, b), m.add(t, rest, b), rest)


for _t in (I32, I64):
    _checked(_t)
