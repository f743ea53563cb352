# SPDX-License-Identifier: Apache-2.0
"""Arithmetic and comparison, as in WebAssembly 1.0, section 4.3 (numerics).

Every NaN that arithmetic yields is the canonical one (the deterministic profile), because the
bits of a NaN would otherwise differ from one processor to the next and a program can see them.
`abs`, `neg` and `copysign` are operations on the sign bit and keep a NaN's payload.
"""

from __future__ import annotations

from typing import TypeVar

from ferryvm.isa.emitter import Condition, Emitter, PureEmitter
from ferryvm.isa.table import instruction
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import CANONICAL_NAN, F32, F64, I32, I64, Type

V = TypeVar("V")


def canonical(m: PureEmitter[V], t: Type, value: V) -> V:
    """`value`, or the canonical NaN if it is any NaN."""
    is_nan = m.compare(t, Condition.NE, value, value)
    return m.select(is_nan, m.constant(t, CANONICAL_NAN[t]), value)


def _integer(t: Type) -> None:
    """Declare the integer instructions of type `t`."""
    width = t.bits

    def count(m: Emitter[V], b: V) -> V:
        return m.bit_and(t, b, m.constant(t, width - 1))

    def sign_extend(m: Emitter[V], a: V, bits: int) -> V:
        distance = m.constant(t, width - bits)
        return m.shr_s(t, m.shl(t, a, distance), distance)

    @instruction(f"{t}.eqz", pops=(t,), pushes=(I32,))
    def eqz(m: Emitter[V], a: V) -> V:
        """1 if the operand is zero, else 0."""
        return m.boolean_to_i32(m.compare(t, Condition.EQ, a, m.constant(t, 0)))

    def comparison(condition: Condition, summary: str) -> None:
        def compare(m: Emitter[V], a: V, b: V) -> V:
            return m.boolean_to_i32(m.compare(t, condition, a, b))

        compare.__doc__ = summary
        instruction(f"{t}.{condition.value}", pops=(t, t), pushes=(I32,))(compare)

    comparison(Condition.EQ, "1 if the operands are equal, else 0.")
    comparison(Condition.NE, "1 if the operands differ, else 0.")
    comparison(Condition.LT_S, "1 if the first is less than the second, signed, else 0.")
    comparison(Condition.LT_U, "1 if the first is less than the second, unsigned, else 0.")
    comparison(Condition.GT_S, "1 if the first is greater than the second, signed, else 0.")
    comparison(Condition.GT_U, "1 if the first is greater than the second, unsigned, else 0.")
    comparison(Condition.LE_S, "1 if the first is at most the second, signed, else 0.")
    comparison(Condition.LE_U, "1 if the first is at most the second, unsigned, else 0.")
    comparison(Condition.GE_S, "1 if the first is at least the second, signed, else 0.")
    comparison(Condition.GE_U, "1 if the first is at least the second, unsigned, else 0.")

    @instruction(f"{t}.clz", pops=(t,), pushes=(t,))
    def clz(m: Emitter[V], a: V) -> V:
        """Number of leading zero bits; the width for 0."""
        return m.clz(t, a)

    @instruction(f"{t}.ctz", pops=(t,), pushes=(t,))
    def ctz(m: Emitter[V], a: V) -> V:
        """Number of trailing zero bits; the width for 0."""
        return m.ctz(t, a)

    @instruction(f"{t}.popcnt", pops=(t,), pushes=(t,))
    def popcnt(m: Emitter[V], a: V) -> V:
        """Number of one bits."""
        return m.popcnt(t, a)

    @instruction(f"{t}.add", pops=(t, t), pushes=(t,))
    def add(m: Emitter[V], a: V, b: V) -> V:
        """Sum; wraps."""
        return m.add(t, a, b)

    @instruction(f"{t}.sub", pops=(t, t), pushes=(t,))
    def sub(m: Emitter[V], a: V, b: V) -> V:
        """Difference; wraps."""
        return m.sub(t, a, b)

    @instruction(f"{t}.mul", pops=(t, t), pushes=(t,))
    def mul(m: Emitter[V], a: V, b: V) -> V:
        """Product; wraps."""
        return m.mul(t, a, b)

    @instruction(f"{t}.div_s", pops=(t, t), pushes=(t,))
    def div_s(m: Emitter[V], a: V, b: V) -> V:
        """Signed quotient, rounded toward zero; traps on division by zero and on overflow."""
        zero, minus_one = m.constant(t, 0), m.constant(t, t.mask)
        smallest = m.constant(t, 1 << (width - 1))
        m.trap_if(m.compare(t, Condition.EQ, b, zero), Trap.INTEGER_DIVIDE_BY_ZERO)
        overflow = m.all(
            m.compare(t, Condition.EQ, b, minus_one), m.compare(t, Condition.EQ, a, smallest)
        )
        m.trap_if(overflow, Trap.INTEGER_OVERFLOW)
        return m.div_s(t, a, b)

    @instruction(f"{t}.div_u", pops=(t, t), pushes=(t,))
    def div_u(m: Emitter[V], a: V, b: V) -> V:
        """Unsigned quotient; traps on division by zero."""
        m.trap_if(m.compare(t, Condition.EQ, b, m.constant(t, 0)), Trap.INTEGER_DIVIDE_BY_ZERO)
        return m.div_u(t, a, b)

    @instruction(f"{t}.rem_s", pops=(t, t), pushes=(t,))
    def rem_s(m: Emitter[V], a: V, b: V) -> V:
        """Signed remainder, with the dividend's sign; traps on division by zero."""
        m.trap_if(m.compare(t, Condition.EQ, b, m.constant(t, 0)), Trap.INTEGER_DIVIDE_BY_ZERO)
        # The smallest integer by -1 overflows in hardware; the remainder by 1 is 0, too.
        by_minus_one = m.compare(t, Condition.EQ, b, m.constant(t, t.mask))
        return m.rem_s(t, a, m.select(by_minus_one, m.constant(t, 1), b))

    @instruction(f"{t}.rem_u", pops=(t, t), pushes=(t,))
    def rem_u(m: Emitter[V], a: V, b: V) -> V:
        """Unsigned remainder; traps on division by zero."""
        m.trap_if(m.compare(t, Condition.EQ, b, m.constant(t, 0)), Trap.INTEGER_DIVIDE_BY_ZERO)
        return m.rem_u(t, a, b)

    @instruction(f"{t}.and", pops=(t, t), pushes=(t,))
    def bit_and(m: Emitter[V], a: V, b: V) -> V:
        """Bitwise and."""
        return m.bit_and(t, a, b)

    @instruction(f"{t}.or", pops=(t, t), pushes=(t,))
    def bit_or(m: Emitter[V], a: V, b: V) -> V:
        """Bitwise or."""
        return m.bit_or(t, a, b)

    @instruction(f"{t}.xor", pops=(t, t), pushes=(t,))
    def bit_xor(m: Emitter[V], a: V, b: V) -> V:
        """Bitwise exclusive or."""
        return m.bit_xor(t, a, b)

    @instruction(f"{t}.shl", pops=(t, t), pushes=(t,))
    def shl(m: Emitter[V], a: V, b: V) -> V:
        """Left shift by the second operand modulo the width."""
        return m.shl(t, a, count(m, b))

    @instruction(f"{t}.shr_s", pops=(t, t), pushes=(t,))
    def shr_s(m: Emitter[V], a: V, b: V) -> V:
        """Arithmetic right shift by the second operand modulo the width."""
        return m.shr_s(t, a, count(m, b))

    @instruction(f"{t}.shr_u", pops=(t, t), pushes=(t,))
    def shr_u(m: Emitter[V], a: V, b: V) -> V:
        """Logical right shift by the second operand modulo the width."""
        return m.shr_u(t, a, count(m, b))

    @instruction(f"{t}.rotl", pops=(t, t), pushes=(t,))
    def rotl(m: Emitter[V], a: V, b: V) -> V:
        """Left rotation by the second operand modulo the width."""
        back = count(m, m.sub(t, m.constant(t, 0), b))
        return m.bit_or(t, m.shl(t, a, count(m, b)), m.shr_u(t, a, back))

    @instruction(f"{t}.rotr", pops=(t, t), pushes=(t,))
    def rotr(m: Emitter[V], a: V, b: V) -> V:
        """Right rotation by the second operand modulo the width."""
        back = count(m, m.sub(t, m.constant(t, 0), b))
        return m.bit_or(t, m.shr_u(t, a, count(m, b)), m.shl(t, a, back))

    @instruction(f"{t}.extend8_s", pops=(t,), pushes=(t,))
    def extend8_s(m: Emitter[V], a: V) -> V:
        """The low 8 bits, extended by their sign."""
        return sign_extend(m, a, 8)

    @instruction(f"{t}.extend16_s", pops=(t,), pushes=(t,))
    def extend16_s(m: Emitter[V], a: V) -> V:
        """The low 16 bits, extended by their sign."""
        return sign_extend(m, a, 16)

    if t is I64:

        @instruction("i64.extend32_s", pops=(t,), pushes=(t,))
        def extend32_s(m: Emitter[V], a: V) -> V:
            """The low 32 bits, extended by their sign."""
            return sign_extend(m, a, 32)


def _float(t: Type) -> None:
    """Declare the float instructions of type `t`."""
    sign = 1 << (t.bits - 1)
    integer = t.integer

    def on_bits(m: Emitter[V], a: V) -> V:
        return m.reinterpret(integer, t, a)

    def comparison(condition: Condition, summary: str) -> None:
        def compare(m: Emitter[V], a: V, b: V) -> V:
            return m.boolean_to_i32(m.compare(t, condition, a, b))

        compare.__doc__ = summary
        instruction(f"{t}.{condition.value}", pops=(t, t), pushes=(I32,))(compare)

    comparison(Condition.EQ, "1 if the operands are equal, else 0; 0 with a NaN.")
    comparison(Condition.NE, "1 if the operands differ, else 0; 1 with a NaN.")
    comparison(Condition.LT, "1 if the first is less than the second, else 0; 0 with a NaN.")
    comparison(Condition.GT, "1 if the first is greater than the second, else 0; 0 with a NaN.")
    comparison(Condition.LE, "1 if the first is at most the second, else 0; 0 with a NaN.")
    comparison(Condition.GE, "1 if the first is at least the second, else 0; 0 with a NaN.")

    @instruction(f"{t}.abs", pops=(t,), pushes=(t,))
    def abs_(m: Emitter[V], a: V) -> V:
        """The operand with its sign bit clear."""
        bits = m.bit_and(integer, on_bits(m, a), m.constant(integer, sign - 1))
        return m.reinterpret(t, integer, bits)

    @instruction(f"{t}.neg", pops=(t,), pushes=(t,))
    def neg(m: Emitter[V], a: V) -> V:
        """The operand with its sign bit inverted."""
        bits = m.bit_xor(integer, on_bits(m, a), m.constant(integer, sign))
        return m.reinterpret(t, integer, bits)

    @instruction(f"{t}.ceil", pops=(t,), pushes=(t,))
    def ceil(m: Emitter[V], a: V) -> V:
        """Nearest integral value not below."""
        return canonical(m, t, m.fceil(t, a))

    @instruction(f"{t}.floor", pops=(t,), pushes=(t,))
    def floor(m: Emitter[V], a: V) -> V:
        """Nearest integral value not above."""
        return canonical(m, t, m.ffloor(t, a))

    @instruction(f"{t}.trunc", pops=(t,), pushes=(t,))
    def trunc(m: Emitter[V], a: V) -> V:
        """Integral value toward zero."""
        return canonical(m, t, m.ftrunc(t, a))

    @instruction(f"{t}.nearest", pops=(t,), pushes=(t,))
    def nearest(m: Emitter[V], a: V) -> V:
        """Nearest integral value, ties to even."""
        return canonical(m, t, m.fnearest(t, a))

    @instruction(f"{t}.sqrt", pops=(t,), pushes=(t,))
    def sqrt(m: Emitter[V], a: V) -> V:
        """Square root, correctly rounded."""
        return canonical(m, t, m.fsqrt(t, a))

    @instruction(f"{t}.add", pops=(t, t), pushes=(t,))
    def add(m: Emitter[V], a: V, b: V) -> V:
        """Sum, rounded to nearest even."""
        return canonical(m, t, m.fadd(t, a, b))

    @instruction(f"{t}.sub", pops=(t, t), pushes=(t,))
    def sub(m: Emitter[V], a: V, b: V) -> V:
        """Difference, rounded to nearest even."""
        return canonical(m, t, m.fsub(t, a, b))

    @instruction(f"{t}.mul", pops=(t, t), pushes=(t,))
    def mul(m: Emitter[V], a: V, b: V) -> V:
        """Product, rounded to nearest even."""
        return canonical(m, t, m.fmul(t, a, b))

    @instruction(f"{t}.div", pops=(t, t), pushes=(t,))
    def div(m: Emitter[V], a: V, b: V) -> V:
        """Quotient, rounded to nearest even."""
        return canonical(m, t, m.fdiv(t, a, b))

    @instruction(f"{t}.fma", pops=(t, t, t), pushes=(t,))
    def fma(m: Emitter[V], a: V, b: V, c: V) -> V:
        """Product of the first two plus the third, rounded once to nearest even."""
        return canonical(m, t, m.ffma(t, a, b, c))

    def extremum(name: str, condition: Condition, summary: str, number: str) -> None:
        def ordered(m: Emitter[V], a: V, b: V) -> V:
            # Equal operands differ at most in the sign of zero: -0 is the lesser.
            merge = m.bit_or if condition is Condition.LT else m.bit_and
            equal = m.reinterpret(t, integer, merge(integer, on_bits(m, a), on_bits(m, b)))
            chosen = m.select(m.compare(t, condition, a, b), a, b)
            return m.select(m.compare(t, Condition.EQ, a, b), equal, chosen)

        def choose(m: Emitter[V], a: V, b: V) -> V:
            chosen = ordered(m, a, b)
            unordered = m.any(m.compare(t, Condition.NE, a, a), m.compare(t, Condition.NE, b, b))
            return m.select(unordered, m.constant(t, CANONICAL_NAN[t]), chosen)

        def choose_number(m: Emitter[V], a: V, b: V) -> V:
            # Comparisons with a NaN are false, so the second operand is chosen already.
            chosen = m.select(m.compare(t, Condition.NE, b, b), a, ordered(m, a, b))
            return canonical(m, t, chosen)

        choose.__doc__, choose_number.__doc__ = summary, number
        instruction(f"{t}.{name}", pops=(t, t), pushes=(t,))(choose)
        instruction(f"{t}.{name}_number", pops=(t, t), pushes=(t,))(choose_number)

    extremum(
        "min",
        Condition.LT,
        "The lesser operand, -0 below +0; NaN if one is.",
        "The lesser operand, -0 below +0; the other one if one is NaN.",
    )
    extremum(
        "max",
        Condition.GT,
        "The greater operand, +0 above -0; NaN if one is.",
        "The greater operand, +0 above -0; the other one if one is NaN.",
    )

    @instruction(f"{t}.copysign", pops=(t, t), pushes=(t,))
    def copysign(m: Emitter[V], a: V, b: V) -> V:
        """The first operand with the second's sign bit."""
        magnitude = m.bit_and(integer, on_bits(m, a), m.constant(integer, sign - 1))
        sign_bit = m.bit_and(integer, on_bits(m, b), m.constant(integer, sign))
        return m.reinterpret(t, integer, m.bit_or(integer, magnitude, sign_bit))


for _t in (I32, I64):
    _integer(_t)
for _t in (F32, F64):
    _float(_t)
