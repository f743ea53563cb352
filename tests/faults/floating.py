# SPDX-License-Identifier: Apache-2.0
"""Faults in float arithmetic and in conversions from and to floats."""

from __future__ import annotations

from typing import Any

from ferryvm.isa import BY_MNEMONIC, F32, F64, I32, I64, Trap, Type
from ferryvm.isa.emitter import Condition
from ferryvm.isa.type import from_float

from .fault import Body, Fault, add, planted
from .integer import binary, instead, is_equal, unary

NAN32 = "bits:0x7fa00001"
NAN64 = "bits:0x7ff4000000000001"
"""NaNs that are not canonical."""


def real(m: Any, t: Type, value: float) -> Any:
    """A float constant."""
    return m.constant(t, from_float(t, value))


def is_nan(m: Any, t: Type, a: Any) -> Any:
    """The boolean that a float is a NaN."""
    return m.compare(t, Condition.NE, a, a)


def bits(m: Any, t: Type, a: Any) -> Any:
    """A float's bits as an integer."""
    return m.reinterpret(t.integer, t, a)


def quiet(m: Any, t: Type, a: Any) -> Any:
    """A NaN as processors hand it on: the same payload, quiet."""
    bit = 1 << (22 if t is F32 else 51)
    return m.reinterpret(
        t, t.integer, m.bit_or(t.integer, bits(m, t, a), m.constant(t.integer, bit))
    )


# --- NaN ----------------------------------------------------------------------------------------


@planted("f64.add", witness=f"{binary('f64.add', NAN64, 1)} / i64.reinterpret_f64")
def nan_of_an_operand_kept(right: Body, m: Any, a: Any, b: Any) -> Any:
    """f64.add hands a NaN operand on."""
    return m.select(is_nan(m, F64, a), quiet(m, F64, a), right(m, a, b))


@planted("f32.sqrt", witness=f"{unary('f32.sqrt', -1)} / i32.reinterpret_f32")
def nan_of_sqrt_negative(right: Body, m: Any, a: Any) -> Any:
    """f32.sqrt of a negative number is a NaN with its sign set, as x86 makes it."""
    negative = m.compare(F32, Condition.LT, a, real(m, F32, 0.0))
    return m.select(negative, m.constant(F32, 0xFFC0_0000), right(m, a))


@planted("f32.demote_f64", witness=f"{unary('f32.demote_f64', NAN64, 'f64')} / i32.reinterpret_f32")
def payload_kept_at_demote(right: Body, m: Any, a: Any) -> Any:
    """f32.demote_f64 keeps the upper bits of a NaN's payload."""
    top = m.wrap(m.shr_u(I64, bits(m, F64, a), m.constant(I64, 29)))
    kept = m.bit_or(
        I32, m.bit_and(I32, top, m.constant(I32, 0x3F_FFFF)), m.constant(I32, 0x7FC0_0000)
    )
    return m.select(is_nan(m, F64, a), m.reinterpret(F32, I32, kept), right(m, a))


@planted(
    "f64.promote_f32", witness=f"{unary('f64.promote_f32', NAN32, 'f32')} / i64.reinterpret_f64"
)
def payload_kept_at_promote(right: Body, m: Any, a: Any) -> Any:
    """f64.promote_f32 keeps a NaN's payload."""
    payload = m.bit_and(I32, bits(m, F32, a), m.constant(I32, 0x3F_FFFF))
    moved = m.shl(I64, m.extend_u(payload), m.constant(I64, 29))
    kept = m.bit_or(I64, moved, m.constant(I64, 0x7FF8 << 48))
    return m.select(is_nan(m, F32, a), m.reinterpret(F64, I64, kept), right(m, a))


@planted(
    "f32.load",
    witness=".data 0 i32 0x7fa00001 / .function main / i64.const 0 / f32.load / "
    "i32.reinterpret_f32 / halt",
)
def nan_made_quiet_by_load(right: Body, m: Any, offset: Any, address: Any) -> Any:
    """f32.load makes a signalling NaN quiet, as x87 does."""
    loaded = right(m, offset, address)
    return m.select(is_nan(m, F32, loaded), quiet(m, F32, loaded), loaded)


@planted("f64.neg", witness=f"{unary('f64.neg', NAN64)} / i64.reinterpret_f64")
def sign_of_nan_kept_by_neg(right: Body, m: Any, a: Any) -> Any:
    """f64.neg leaves a NaN as it is."""
    return m.select(is_nan(m, F64, a), a, right(m, a))


# --- comparison, min and max --------------------------------------------------------------------


@planted("f64.lt", witness=binary("f64.lt", "nan", 1))
def less_than_holds_for_nan(_right: Body, m: Any, a: Any, b: Any) -> Any:
    """f64.lt is computed as not ge: it holds if an operand is a NaN."""
    return m.boolean_to_i32(m.none(m.compare(F64, Condition.GE, a, b)))


@planted("f32.ne", witness=binary("f32.ne", "nan", "nan"))
def not_equal_fails_for_nan(_right: Body, m: Any, a: Any, b: Any) -> Any:
    """f32.ne is less or greater: it does not hold if an operand is a NaN."""
    less, greater = m.compare(F32, Condition.LT, a, b), m.compare(F32, Condition.GT, a, b)
    return m.boolean_to_i32(m.any(less, greater))


@planted("f64.eq", witness=binary("f64.eq", "0.0", "-0.0"))
def equal_by_bits(_right: Body, m: Any, a: Any, b: Any) -> Any:
    """f64.eq compares bits: 0 and -0 differ."""
    return m.boolean_to_i32(m.compare(I64, Condition.EQ, bits(m, F64, a), bits(m, F64, b)))


@planted("f64.min", witness=binary("f64.min", "-0.0", "0.0"))
def min_of_zeros(right: Body, m: Any, a: Any, b: Any) -> Any:
    """f64.min of two zeros is the second one."""
    return m.select(m.compare(F64, Condition.EQ, a, b), b, right(m, a, b))


@planted("f32.max", witness=binary("f32.max", "nan", 1))
def max_with_nan(right: Body, m: Any, a: Any, b: Any) -> Any:
    """f32.max of a NaN and a number is the number."""
    return m.select(is_nan(m, F32, a), b, right(m, a, b))


# --- rounding -----------------------------------------------------------------------------------


@planted("f64.nearest", witness=unary("f64.nearest", 2.5))
def half_rounded_away(right: Body, m: Any, a: Any) -> Any:
    """f64.nearest rounds halves away from zero."""
    half = real(m, F64, 0.5)
    away = BY_MNEMONIC["f64.copysign"].meaning(m, half, a)
    truncated = m.ftrunc(F64, a)
    is_half = m.compare(
        F64, Condition.EQ, BY_MNEMONIC["f64.abs"].meaning(m, m.fsub(F64, a, truncated)), half
    )
    return m.select(is_half, m.fadd(F64, a, away), right(m, a))


@planted("f64.ceil", witness=unary("f64.ceil", -0.5))
def ceil_loses_the_sign_of_zero(right: Body, m: Any, a: Any) -> Any:
    """f64.ceil of what lies between -1 and 0 is +0."""
    rounded = right(m, a)
    zero = real(m, F64, 0.0)
    return m.select(m.compare(F64, Condition.EQ, rounded, zero), zero, rounded)


@planted("f64.trunc", witness=unary("f64.trunc", "1e300"))
def trunc_by_way_of_integers(_right: Body, m: Any, a: Any) -> Any:
    """f64.trunc goes by way of i64: past 2^63 it is wrong, and -0 is lost."""
    return m.to_float_s(F64, I64, BY_MNEMONIC["i64.trunc_sat_f64_s"].meaning(m, a))


@planted("f32.floor", witness=unary("f32.floor", -1.5))
def floor_toward_zero(_right: Body, m: Any, a: Any) -> Any:
    """f32.floor rounds toward zero."""
    return BY_MNEMONIC["f32.trunc"].meaning(m, a)


@planted("f32.sqrt", witness=unary("f32.sqrt", "-0.0"))
def sqrt_of_minus_zero(right: Body, m: Any, a: Any) -> Any:
    """f32.sqrt of -0 is +0."""
    zero = real(m, F32, 0.0)
    return m.select(m.compare(F32, Condition.EQ, a, zero), zero, right(m, a))


@planted("f32.mul", witness=binary("f32.mul", "0x1p-100", "0x1p-40"))
def subnormals_flushed(right: Body, m: Any, a: Any, b: Any) -> Any:
    """f32.mul gives 0 where the product is subnormal."""
    product = right(m, a, b)
    exponent = m.bit_and(I32, bits(m, F32, product), m.constant(I32, 0x7F80_0000))
    sign = m.bit_and(I32, bits(m, F32, product), m.constant(I32, 1 << 31))
    return m.select(is_equal(m, I32, exponent, 0), m.reinterpret(F32, I32, sign), product)


@planted("f64.div", witness=binary("f64.div", 5, 3))
def quotient_by_the_reciprocal(right: Body, m: Any, a: Any, b: Any) -> Any:
    """f64.div multiplies by the reciprocal, which rounds twice."""
    finite = m.compare(F64, Condition.GT, BY_MNEMONIC["f64.abs"].meaning(m, b), real(m, F64, 1e-9))
    reciprocal = m.fdiv(F64, real(m, F64, 1.0), b)
    return m.select(finite, BY_MNEMONIC["f64.mul"].meaning(m, a, reciprocal), right(m, a, b))


@planted("f64.sub", witness=binary("f64.sub", "0x1.0000001p0", 1))
def difference_in_single_precision(_right: Body, m: Any, a: Any, b: Any) -> Any:
    """f64.sub is computed in f32."""
    single = BY_MNEMONIC["f32.sub"].meaning(m, m.demote(a), m.demote(b))
    return BY_MNEMONIC["f64.promote_f32"].meaning(m, single)


# --- sign ---------------------------------------------------------------------------------------


@planted("f64.copysign", witness=binary("f64.copysign", 1, "-0.0"))
def sign_by_comparison(_right: Body, m: Any, a: Any, b: Any) -> Any:
    """f64.copysign takes only numbers below zero as negative: -0 and NaNs are not."""
    magnitude = BY_MNEMONIC["f64.abs"].meaning(m, a)
    negative = m.compare(F64, Condition.LT, b, real(m, F64, 0.0))
    return m.select(negative, BY_MNEMONIC["f64.neg"].meaning(m, magnitude), magnitude)


@planted("f32.neg", witness=unary("f32.neg", "0.0"))
def neg_as_difference(_right: Body, m: Any, a: Any) -> Any:
    """f32.neg subtracts from 0: +0 stays +0."""
    return BY_MNEMONIC["f32.sub"].meaning(m, real(m, F32, 0.0), a)


@planted("f32.abs", witness=unary("f32.abs", "-0.0"))
def abs_by_comparison(_right: Body, m: Any, a: Any) -> Any:
    """f32.abs negates what is below zero: -0 stays -0."""
    negative = m.compare(F32, Condition.LT, a, real(m, F32, 0.0))
    return m.select(negative, BY_MNEMONIC["f32.neg"].meaning(m, a), a)


# --- conversion ---------------------------------------------------------------------------------


@planted("i64.trunc_f64_s", witness=unary("i64.trunc_f64_s", "0x1p63", "f64"))
def trunc_bound_included(right: Body, m: Any, a: Any) -> Any:
    """i64.trunc_f64_s of 2^63 does not trap, but gives the smallest."""
    at_bound = m.compare(F64, Condition.EQ, a, real(m, F64, 2.0**63))
    inside = right(m, m.select(at_bound, real(m, F64, 0.0), a))
    return m.select(at_bound, m.constant(I64, 1 << 63), inside)


@planted("i32.trunc_f64_u", witness=unary("i32.trunc_f64_u", -0.9, "f64"))
def trunc_above_minus_one_traps(right: Body, m: Any, a: Any) -> Any:
    """i32.trunc_f64_u traps on all below zero, though what lies above -1 is 0."""
    m.trap_if(m.compare(F64, Condition.LT, a, real(m, F64, 0.0)), Trap.INTEGER_OVERFLOW)
    return right(m, a)


@planted("i32.trunc_f32_s", witness=unary("i32.trunc_f32_s", "nan", "f32"))
def trunc_of_nan_overflows(right: Body, m: Any, a: Any) -> Any:
    """i32.trunc_f32_s of a NaN traps as an overflow."""
    m.trap_if(is_nan(m, F32, a), Trap.INTEGER_OVERFLOW)
    return right(m, a)


def _indefinite(to: Type, t: Type) -> Body:
    def body(right: Body, m: Any, a: Any) -> Any:
        return m.select(is_nan(m, t, a), m.constant(to, 1 << (to.bits - 1)), right(m, a))

    return body


_SATURATING = {f"{to}.trunc_sat_{t}_s": _indefinite(to, t) for to in (I32, I64) for t in (F32, F64)}
add(
    Fault(
        "saturation-of-nan",
        "A signed saturating truncation of a NaN is the smallest integer, as x86 has it.",
        tuple(_SATURATING),
        unary("i32.trunc_sat_f64_s", "nan", "f64"),
        native=True,
        rows=_SATURATING,
    )
)


@planted("i64.trunc_sat_f64_u", witness=unary("i64.trunc_sat_f64_u", -5, "f64"))
def saturation_of_negatives(right: Body, m: Any, a: Any) -> Any:
    """i64.trunc_sat_f64_u of what is below -1 is the largest."""
    low = m.compare(F64, Condition.LT, a, real(m, F64, -1.0))
    return m.select(low, m.constant(I64, I64.mask), right(m, a))


_TWICE = (1 << 53) + (1 << 29) + 1
"""An integer that two roundings take to another f32 than one does."""

add(
    Fault(
        "converted-with-two-roundings",
        "i64 integers are converted to f32 by way of f64, which rounds twice.",
        ("f32.convert_i64_s", "f32.convert_i64_u"),
        unary("f32.convert_i64_u", _TWICE, "i64"),
        native=True,
        rows={
            "f32.convert_i64_s": lambda _right, m, a: m.demote(m.to_float_s(F64, I64, a)),
            "f32.convert_i64_u": lambda _right, m, a: m.demote(m.to_float_u(F64, I64, a)),
        },
    )
)

instead(
    "unsigned-converted-as-signed",
    "f64.convert_i64_u takes its operand as signed.",
    "f64.convert_i64_u",
    "f64.convert_i64_s",
    unary("f64.convert_i64_u", -1, "i64"),
)
