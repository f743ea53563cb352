# SPDX-License-Identifier: Apache-2.0
"""Faults in integer arithmetic, comparison and conversion between integers."""

from __future__ import annotations

from typing import Any

from ferryvm.isa import BY_MNEMONIC, I32, I64, Trap, Type
from ferryvm.isa.emitter import Condition

from .fault import Body, Fault, add, operation, planted

DIVISIONS = tuple(
    f"{t}.{name}" for t in (I32, I64) for name in ("div_s", "div_u", "rem_s", "rem_u")
)
"""Instructions that trap on division by zero."""


def binary(mnemonic: str, a: float | str, b: float | str) -> str:
    """A witness: an instruction on two constants of its own type."""
    t = mnemonic.partition(".")[0]
    return f"{t}.const {a} / {t}.const {b} / {mnemonic}"


def unary(mnemonic: str, a: float | str, t: str | None = None) -> str:
    """A witness: an instruction on a constant."""
    return f"{t or mnemonic.partition('.')[0]}.const {a} / {mnemonic}"


def is_equal(m: Any, t: Type, a: Any, bits: int) -> Any:
    """The boolean that an integer has these bits."""
    return m.compare(t, Condition.EQ, a, m.constant(t, bits))


def instead(name: str, what: str, mnemonic: str, other: str, witness: str) -> None:
    """Declare the fault that an instruction does what another one should."""

    def body(_right: Body, m: Any, *arguments: Any) -> Any:
        return BY_MNEMONIC[other].meaning(m, *arguments)

    add(Fault(name, what, (mnemonic,), witness, native=True, rows={mnemonic: body}))


# --- shifts and rotations -----------------------------------------------------------------------


@planted("i32.shl", "i32.shr_u", witness=binary("i32.shl", 1, 33))
def i32_shift_count_of_six_bits(_right: Body, m: Any, a: Any, b: Any) -> Any:
    """i32 left shifts take six bits of the count, as a register of 64 bits does."""
    count = m.bit_and(I64, m.extend_u(b), m.constant(I64, 63))
    return m.wrap(m.shl(I64, m.extend_u(a), count))


@planted("i64.shr_u", witness=binary("i64.shr_u", -1, 64))
def i64_shift_count_not_masked(right: Body, m: Any, a: Any, b: Any) -> Any:
    """i64.shr_u by 64 or more gives 0."""
    within = m.compare(I64, Condition.LT_U, b, m.constant(I64, 64))
    return m.select(within, right(m, a, b), m.constant(I64, 0))


@planted("i64.shr_s", witness=binary("i64.shr_s", -(1 << 63), 33))
def i64_shift_count_of_five_bits(right: Body, m: Any, a: Any, b: Any) -> Any:
    """i64.shr_s takes five bits of the count."""
    return right(m, a, m.bit_and(I64, b, m.constant(I64, 31)))


@planted("i32.rotl", witness=binary("i32.rotl", 5, 0))
def rotation_by_zero(right: Body, m: Any, a: Any, b: Any) -> Any:
    """i32.rotl by 0 gives 0, since a shift by the width does."""
    return m.select(is_equal(m, I32, b, 0), m.constant(I32, 0), right(m, a, b))


@planted("i64.rotr", witness=binary("i64.rotr", 5, 64))
def rotation_by_the_width(right: Body, m: Any, a: Any, b: Any) -> Any:
    """i64.rotr by 64 or more gives 0."""
    within = m.compare(I64, Condition.LT_U, b, m.constant(I64, 64))
    return m.select(within, right(m, a, b), m.constant(I64, 0))


# --- extension and words ------------------------------------------------------------------------

instead(
    "load8-not-sign-extended",
    "i32.load8_s extends by zeros.",
    "i32.load8_s",
    "i32.load8_u",
    '.data 0 "\\xff" / .function main / i64.const 0 / i32.load8_s / halt',
)
instead(
    "load16-not-sign-extended",
    "i64.load16_s extends by zeros.",
    "i64.load16_s",
    "i64.load16_u",
    '.data 0 "\\xff\\xff" / .function main / i64.const 0 / i64.load16_s / halt',
)
instead(
    "extend-32-by-zeros",
    "i64.extend_i32_s extends by zeros.",
    "i64.extend_i32_s",
    "i64.extend_i32_u",
    unary("i64.extend_i32_s", -1, "i32"),
)


@planted("i32.extend8_s", witness=unary("i32.extend8_s", 0x80))
def extend8_by_zeros(_right: Body, m: Any, a: Any) -> Any:
    """i32.extend8_s extends by zeros."""
    return m.bit_and(I32, a, m.constant(I32, 0xFF))


@planted("i64.extend16_s", witness=unary("i64.extend16_s", 0x8000))
def extend16_from_bit_8(_right: Body, m: Any, a: Any) -> Any:
    """i64.extend16_s extends the low 8 bits."""
    return BY_MNEMONIC["i64.extend8_s"].meaning(m, a)


@operation(
    "to_slot",
    where=("i32.const", "i32.add", "i32.sub", "i32.mul", "i32.wrap_i64"),
    witness="i32.const 0 / i32.const 1 / i32.sub",
    native=True,
)
def i32_high_half_not_zero(right: Body, m: Any, t: Type, a: Any) -> Any:
    """An i32 result is extended by its sign in its word, where the high half should be zero."""
    return m.extend_s(a) if t is I32 else right(m, t, a)


@planted("i64.const", witness="i64.const 0x80000000")
def constant_of_32_bits(_right: Body, m: Any, literal: Any) -> Any:
    """i64.const keeps 32 bits of its literal and extends them by sign."""
    return m.extend_s(m.wrap(literal))


# --- comparison ---------------------------------------------------------------------------------

instead(
    "less-than-unsigned",
    "i32.lt_s compares unsigned.",
    "i32.lt_s",
    "i32.lt_u",
    binary("i32.lt_s", -1, 0),
)
instead(
    "greater-than-signed",
    "i64.gt_u compares signed.",
    "i64.gt_u",
    "i64.gt_s",
    binary("i64.gt_u", -1, 0),
)
instead(
    "greater-or-equal-without-equal",
    "i32.ge_u does not hold for equal operands.",
    "i32.ge_u",
    "i32.gt_u",
    binary("i32.ge_u", 7, 7),
)


@planted("i64.eqz", witness=unary("i64.eqz", 1 << 32))
def zero_test_of_the_low_half(_right: Body, m: Any, a: Any) -> Any:
    """i64.eqz looks at the low 32 bits."""
    return m.boolean_to_i32(is_equal(m, I32, m.wrap(a), 0))


@planted("i64.lt_s", witness=binary("i64.lt_s", -(1 << 63), 1))
def less_than_by_difference(_right: Body, m: Any, a: Any, b: Any) -> Any:
    """i64.lt_s takes the sign of the difference, which overflows."""
    difference = m.sub(I64, a, b)
    return m.boolean_to_i32(m.compare(I64, Condition.LT_S, difference, m.constant(I64, 0)))


# --- arithmetic ---------------------------------------------------------------------------------


@planted("i32.sub", witness=binary("i32.sub", 3, 1))
def operands_of_sub_swapped(right: Body, m: Any, a: Any, b: Any) -> Any:
    """i32.sub subtracts the first operand from the second."""
    return right(m, b, a)


@planted("i64.add", witness=binary("i64.add", 0xFFFF_FFFF, 1))
def carry_lost_between_halves(_right: Body, m: Any, a: Any, b: Any) -> Any:
    """i64.add adds the halves apart and loses the carry."""
    half = m.constant(I64, 32)
    low = m.extend_u(m.add(I32, m.wrap(a), m.wrap(b)))
    high = m.add(I64, m.shr_u(I64, a, half), m.shr_u(I64, b, half))
    return m.bit_or(I64, m.shl(I64, high, half), low)


@planted("i64.mul", witness=binary("i64.mul", 1 << 32, 1 << 31))
def product_of_low_halves(_right: Body, m: Any, a: Any, b: Any) -> Any:
    """i64.mul multiplies the low halves."""
    return m.mul(I64, m.extend_u(m.wrap(a)), m.extend_u(m.wrap(b)))


@planted("i64.clz", witness=unary("i64.clz", 0))
def clz_of_zero(right: Body, m: Any, a: Any) -> Any:
    """i64.clz of 0 is 63."""
    return m.select(is_equal(m, I64, a, 0), m.constant(I64, 63), right(m, a))


@planted("i32.ctz", witness=unary("i32.ctz", 0))
def ctz_of_zero(right: Body, m: Any, a: Any) -> Any:
    """i32.ctz of 0 is 0."""
    return m.select(is_equal(m, I32, a, 0), a, right(m, a))


@planted("i64.popcnt", witness=unary("i64.popcnt", -1))
def popcnt_of_the_low_half(_right: Body, m: Any, a: Any) -> Any:
    """i64.popcnt counts in the low 32 bits."""
    return m.extend_u(m.popcnt(I32, m.wrap(a)))


# --- division -----------------------------------------------------------------------------------


def _overflows(m: Any, t: Type, a: Any, b: Any) -> Any:
    return m.all(is_equal(m, t, b, t.mask), is_equal(m, t, a, 1 << (t.bits - 1)))


@planted("i32.div_s", witness=binary("i32.div_s", -(1 << 31), -1))
def division_overflow_not_reported(right: Body, m: Any, a: Any, b: Any) -> Any:
    """i32.div_s of the smallest by -1 gives the smallest."""
    return right(m, a, m.select(_overflows(m, I32, a, b), m.constant(I32, 1), b))


@planted("i64.div_s", witness=binary("i64.div_s", -(1 << 63), -1))
def division_overflow_is_by_zero(right: Body, m: Any, a: Any, b: Any) -> Any:
    """i64.div_s of the smallest by -1 traps as a division by zero."""
    m.trap_if(_overflows(m, I64, a, b), Trap.INTEGER_DIVIDE_BY_ZERO)
    return right(m, a, b)


@planted("i64.rem_s", witness=binary("i64.rem_s", -(1 << 63), -1))
def remainder_by_minus_one_traps(right: Body, m: Any, a: Any, b: Any) -> Any:
    """i64.rem_s of the smallest by -1 traps."""
    m.trap_if(_overflows(m, I64, a, b), Trap.INTEGER_OVERFLOW)
    return right(m, a, b)


def _uneven_and_opposite(m: Any, t: Type, a: Any, b: Any, rest: Any) -> Any:
    """The boolean that a division is inexact and its operands differ in sign."""
    zero = m.constant(t, 0)
    opposite = m.compare(t, Condition.LT_S, m.bit_xor(t, a, b), zero)
    return m.all(m.compare(t, Condition.NE, rest, zero), opposite)


@planted("i64.div_s", witness=binary("i64.div_s", -7, 2))
def quotient_rounded_down(right: Body, m: Any, a: Any, b: Any) -> Any:
    """i64.div_s rounds toward minus infinity."""
    quotient = right(m, a, b)
    rest = m.sub(I64, a, m.mul(I64, quotient, b))
    low = m.sub(I64, quotient, m.constant(I64, 1))
    return m.select(_uneven_and_opposite(m, I64, a, b, rest), low, quotient)


@planted("i32.rem_s", witness=binary("i32.rem_s", -7, 2))
def remainder_with_the_divisors_sign(right: Body, m: Any, a: Any, b: Any) -> Any:
    """i32.rem_s has the divisor's sign."""
    rest = right(m, a, b)
    return m.select(_uneven_and_opposite(m, I32, a, b, rest), m.add(I32, rest, b), rest)


@planted("i32.rem_u", witness=binary("i32.rem_u", 7, 0))
def remainder_by_zero_is_the_dividend(right: Body, m: Any, a: Any, b: Any) -> Any:
    """i32.rem_u by 0 gives the dividend, as some processors do."""
    by_zero = is_equal(m, I32, b, 0)
    return m.select(by_zero, a, right(m, a, m.select(by_zero, m.constant(I32, 1), b)))


@planted("i64.div_u", witness=binary("i64.div_u", (1 << 53) + 1, 1))
def quotient_by_way_of_floats(right: Body, m: Any, a: Any, b: Any) -> Any:
    """i64.div_u loses the low bits of dividends past 2^53."""
    wide = m.compare(I64, Condition.GE_U, a, m.constant(I64, 1 << 53))
    return right(m, m.select(wide, m.bit_and(I64, a, m.constant(I64, I64.mask - 1)), a), b)
