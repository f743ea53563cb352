# SPDX-License-Identifier: Apache-2.0
"""Faults of code made for speed: in one of the two modes only, or in sequences run as one."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from ferryvm.isa import BY_MNEMONIC, F32, F64, I64
from ferryvm.isa.type import from_float, signed, to_float

from .fault import Body, fused, planted


@fused(
    "f64.mul",
    "f64.add",
    pops=3,
    pushes=(F64,),
    witness="f64.const -1 / f64.const 0x1.0000001p0 / f64.const 0x0.fffffffp0 / f64.mul / f64.add",
)
def multiply_add_with_one_rounding(m: Any, c: int, a: int, b: int) -> Any:
    """f64.mul and f64.add in a row round once, where nothing is counted."""
    product = BY_MNEMONIC["f64.mul"].meaning(m, a, b)
    rounded = BY_MNEMONIC["f64.add"].meaning(m, c, product)
    x, y, z = (to_float(F64, operand) for operand in (a, b, c))
    if not math.isfinite(to_float(F64, rounded)) or not math.isfinite(to_float(F64, product)):
        return rounded
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    # Python makes a float of a fraction with one rounding; a zero's sign is the sum's.
    return from_float(F64, float(exact)) if exact else rounded


@fused(
    "f32.mul",
    "f32.add",
    pops=3,
    pushes=(F32,),
    witness="f32.const -1 / f32.const 0x1.0002p0 / f32.const 0x0.fffep0 / f32.mul / f32.add",
)
def f32_kept_in_double_precision(m: Any, c: int, a: int, b: int) -> Any:
    """f32.mul and f32.add in a row keep the product in f64, where nothing is counted."""
    wide = [BY_MNEMONIC["f64.promote_f32"].meaning(m, operand) for operand in (c, a, b)]
    total = m.fadd(F64, wide[0], m.fmul(F64, wide[1], wide[2]))
    return BY_MNEMONIC["f32.demote_f64"].meaning(m, total)


@fused(
    "i64.const", "i64.add", pops=1, pushes=(I64,), witness="i64.const 5 / i64.const -1 / i64.add"
)
def fused_constant_not_sign_extended(m: Any, literal: int, a: int) -> Any:
    """i64.const and i64.add in a row take the constant's low 32 bits, where nothing is counted."""
    return m.add(I64, a, literal & 0xFFFF_FFFF)


@fused(
    "local.get",
    "local.get",
    "i64.sub",
    pops=0,
    pushes=(I64,),
    witness=".function main / .local i64 i64 / i64.const 3 / local.set 1 / local.get 0 / "
    "local.get 1 / i64.sub / halt",
)
def fused_operands_swapped(m: Any, first: int, second: int) -> Any:
    """The sequence of two local.get and i64.sub subtracts the wrong way, where nothing is
    counted."""
    return m.sub(I64, m.local(second), m.local(first))


@fused(
    "i64.const",
    "i64.shl",
    pops=1,
    pushes=(I64,),
    witness="i64.const 5 / i64.const 65 / i64.shl",
)
def fused_shift_count_not_masked(_m: Any, literal: int, a: int) -> Any:
    """i64.const and i64.shl in a row shift everything out for counts past 63, where nothing is
    counted."""
    return a << literal & I64.mask if literal < 64 else 0


@fused(
    "i64.const",
    "i64.div_s",
    pops=1,
    pushes=(I64,),
    witness="i64.const -7 / i64.const 4 / i64.div_s",
    when=lambda literals: literals[0].bit_count() == 1 and literals[0] < 1 << 63,
)
def division_by_a_power_of_two_as_shift(_m: Any, literal: int, a: int) -> Any:
    """i64.div_s by a constant power of two shifts, which rounds down, where nothing is counted."""
    return signed(I64, a) >> (literal.bit_length() - 1) & I64.mask


@planted("i64.rotl", witness="i64.const 5 / i64.const 3 / i64.rotl", native=False)
def wrong_only_when_counting(right: Body, m: Any, a: int, b: int) -> Any:
    """i64.rotl rotates right in the code that counts instructions."""
    return BY_MNEMONIC["i64.rotr"].meaning(m, a, b) if m.counting else right(m, a, b)


@planted("i64.xor", witness="i64.const 5 / i64.const 3 / i64.xor", native=False)
def wrong_only_without_counting(right: Body, m: Any, a: int, b: int) -> Any:
    """i64.xor is or in the code that does not count instructions."""
    return right(m, a, b) if m.counting else a | b
