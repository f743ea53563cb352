# SPDX-License-Identifier: Apache-2.0
"""Written by `python -m ferryvm.build.stub`."""

from ferryvm.build.body import Body
from ferryvm.build.object_type import Array, Field, OperandType, Struct
from ferryvm.build.symbol import Host, Label, Local, Static, Tag
from ferryvm.program import Signature

class Instructions(Body):
    """Code that grows by instructions."""

    def i32_const(self, value: int) -> None:
        """i32.const ( -- i32 )

        The immediate."""

    def i64_const(self, value: int) -> None:
        """i64.const ( -- i64 )

        The immediate."""

    def f32_const(self, value: float) -> None:
        """f32.const ( -- f32 )

        The immediate."""

    def f64_const(self, value: float) -> None:
        """f64.const ( -- f64 )

        The immediate."""

    def local_get(self, local: Local | str) -> None:
        """local.get ( -- t )

        The value of a local."""

    def local_set(self, local: Local | str) -> None:
        """local.set ( t -- )

        Store into a local."""

    def static_get(self, static: Static) -> None:
        """static.get ( -- t )

        The value of a static."""

    def static_set(self, static: Static) -> None:
        """static.set ( t -- )

        Store into a static."""

    def static_load(self) -> None:
        """static.load ( i64 -- i64 )

        The value of the static whose number is the operand; all statics must be i64."""

    def static_store(self) -> None:
        """static.store ( i64 i64 -- )

        Store the first operand into the static whose number is the second; all must be i64."""

    def drop(self) -> None:
        """drop ( t -- )

        Discard the operand."""

    def dup(self) -> None:
        """dup ( t -- t t )

        The operand, twice."""

    def swap(self) -> None:
        """swap ( t u -- u t )

        The operands, exchanged."""

    def select(self) -> None:
        """select ( t t i32 -- t )

        The first operand if the third is not 0, else the second."""

    def i32_eqz(self) -> None:
        """i32.eqz ( i32 -- i32 )

        1 if the operand is zero, else 0."""

    def i32_eq(self) -> None:
        """i32.eq ( i32 i32 -- i32 )

        1 if the operands are equal, else 0."""

    def i32_ne(self) -> None:
        """i32.ne ( i32 i32 -- i32 )

        1 if the operands differ, else 0."""

    def i32_lt_s(self) -> None:
        """i32.lt_s ( i32 i32 -- i32 )

        1 if the first is less than the second, signed, else 0."""

    def i32_lt_u(self) -> None:
        """i32.lt_u ( i32 i32 -- i32 )

        1 if the first is less than the second, unsigned, else 0."""

    def i32_gt_s(self) -> None:
        """i32.gt_s ( i32 i32 -- i32 )

        1 if the first is greater than the second, signed, else 0."""

    def i32_gt_u(self) -> None:
        """i32.gt_u ( i32 i32 -- i32 )

        1 if the first is greater than the second, unsigned, else 0."""

    def i32_le_s(self) -> None:
        """i32.le_s ( i32 i32 -- i32 )

        1 if the first is at most the second, signed, else 0."""

    def i32_le_u(self) -> None:
        """i32.le_u ( i32 i32 -- i32 )

        1 if the first is at most the second, unsigned, else 0."""

    def i32_ge_s(self) -> None:
        """i32.ge_s ( i32 i32 -- i32 )

        1 if the first is at least the second, signed, else 0."""

    def i32_ge_u(self) -> None:
        """i32.ge_u ( i32 i32 -- i32 )

        1 if the first is at least the second, unsigned, else 0."""

    def i32_clz(self) -> None:
        """i32.clz ( i32 -- i32 )

        Number of leading zero bits; the width for 0."""

    def i32_ctz(self) -> None:
        """i32.ctz ( i32 -- i32 )

        Number of trailing zero bits; the width for 0."""

    def i32_popcnt(self) -> None:
        """i32.popcnt ( i32 -- i32 )

        Number of one bits."""

    def i32_add(self) -> None:
        """i32.add ( i32 i32 -- i32 )

        Sum; wraps."""

    def i32_sub(self) -> None:
        """i32.sub ( i32 i32 -- i32 )

        Difference; wraps."""

    def i32_mul(self) -> None:
        """i32.mul ( i32 i32 -- i32 )

        Product; wraps."""

    def i32_div_s(self) -> None:
        """i32.div_s ( i32 i32 -- i32 )

        Signed quotient, rounded toward zero; traps on division by zero and on overflow."""

    def i32_div_u(self) -> None:
        """i32.div_u ( i32 i32 -- i32 )

        Unsigned quotient; traps on division by zero."""

    def i32_rem_s(self) -> None:
        """i32.rem_s ( i32 i32 -- i32 )

        Signed remainder, with the dividend's sign; traps on division by zero."""

    def i32_rem_u(self) -> None:
        """i32.rem_u ( i32 i32 -- i32 )

        Unsigned remainder; traps on division by zero."""

    def i32_and(self) -> None:
        """i32.and ( i32 i32 -- i32 )

        Bitwise and."""

    def i32_or(self) -> None:
        """i32.or ( i32 i32 -- i32 )

        Bitwise or."""

    def i32_xor(self) -> None:
        """i32.xor ( i32 i32 -- i32 )

        Bitwise exclusive or."""

    def i32_shl(self) -> None:
        """i32.shl ( i32 i32 -- i32 )

        Left shift by the second operand modulo the width."""

    def i32_shr_s(self) -> None:
        """i32.shr_s ( i32 i32 -- i32 )

        Arithmetic right shift by the second operand modulo the width."""

    def i32_shr_u(self) -> None:
        """i32.shr_u ( i32 i32 -- i32 )

        Logical right shift by the second operand modulo the width."""

    def i32_rotl(self) -> None:
        """i32.rotl ( i32 i32 -- i32 )

        Left rotation by the second operand modulo the width."""

    def i32_rotr(self) -> None:
        """i32.rotr ( i32 i32 -- i32 )

        Right rotation by the second operand modulo the width."""

    def i32_extend8_s(self) -> None:
        """i32.extend8_s ( i32 -- i32 )

        The low 8 bits, extended by their sign."""

    def i32_extend16_s(self) -> None:
        """i32.extend16_s ( i32 -- i32 )

        The low 16 bits, extended by their sign."""

    def i64_eqz(self) -> None:
        """i64.eqz ( i64 -- i32 )

        1 if the operand is zero, else 0."""

    def i64_eq(self) -> None:
        """i64.eq ( i64 i64 -- i32 )

        1 if the operands are equal, else 0."""

    def i64_ne(self) -> None:
        """i64.ne ( i64 i64 -- i32 )

        1 if the operands differ, else 0."""

    def i64_lt_s(self) -> None:
        """i64.lt_s ( i64 i64 -- i32 )

        1 if the first is less than the second, signed, else 0."""

    def i64_lt_u(self) -> None:
        """i64.lt_u ( i64 i64 -- i32 )

        1 if the first is less than the second, unsigned, else 0."""

    def i64_gt_s(self) -> None:
        """i64.gt_s ( i64 i64 -- i32 )

        1 if the first is greater than the second, signed, else 0."""

    def i64_gt_u(self) -> None:
        """i64.gt_u ( i64 i64 -- i32 )

        1 if the first is greater than the second, unsigned, else 0."""

    def i64_le_s(self) -> None:
        """i64.le_s ( i64 i64 -- i32 )

        1 if the first is at most the second, signed, else 0."""

    def i64_le_u(self) -> None:
        """i64.le_u ( i64 i64 -- i32 )

        1 if the first is at most the second, unsigned, else 0."""

    def i64_ge_s(self) -> None:
        """i64.ge_s ( i64 i64 -- i32 )

        1 if the first is at least the second, signed, else 0."""

    def i64_ge_u(self) -> None:
        """i64.ge_u ( i64 i64 -- i32 )

        1 if the first is at least the second, unsigned, else 0."""

    def i64_clz(self) -> None:
        """i64.clz ( i64 -- i64 )

        Number of leading zero bits; the width for 0."""

    def i64_ctz(self) -> None:
        """i64.ctz ( i64 -- i64 )

        Number of trailing zero bits; the width for 0."""

    def i64_popcnt(self) -> None:
        """i64.popcnt ( i64 -- i64 )

        Number of one bits."""

    def i64_add(self) -> None:
        """i64.add ( i64 i64 -- i64 )

        Sum; wraps."""

    def i64_sub(self) -> None:
        """i64.sub ( i64 i64 -- i64 )

        Difference; wraps."""

    def i64_mul(self) -> None:
        """i64.mul ( i64 i64 -- i64 )

        Product; wraps."""

    def i64_div_s(self) -> None:
        """i64.div_s ( i64 i64 -- i64 )

        Signed quotient, rounded toward zero; traps on division by zero and on overflow."""

    def i64_div_u(self) -> None:
        """i64.div_u ( i64 i64 -- i64 )

        Unsigned quotient; traps on division by zero."""

    def i64_rem_s(self) -> None:
        """i64.rem_s ( i64 i64 -- i64 )

        Signed remainder, with the dividend's sign; traps on division by zero."""

    def i64_rem_u(self) -> None:
        """i64.rem_u ( i64 i64 -- i64 )

        Unsigned remainder; traps on division by zero."""

    def i64_and(self) -> None:
        """i64.and ( i64 i64 -- i64 )

        Bitwise and."""

    def i64_or(self) -> None:
        """i64.or ( i64 i64 -- i64 )

        Bitwise or."""

    def i64_xor(self) -> None:
        """i64.xor ( i64 i64 -- i64 )

        Bitwise exclusive or."""

    def i64_shl(self) -> None:
        """i64.shl ( i64 i64 -- i64 )

        Left shift by the second operand modulo the width."""

    def i64_shr_s(self) -> None:
        """i64.shr_s ( i64 i64 -- i64 )

        Arithmetic right shift by the second operand modulo the width."""

    def i64_shr_u(self) -> None:
        """i64.shr_u ( i64 i64 -- i64 )

        Logical right shift by the second operand modulo the width."""

    def i64_rotl(self) -> None:
        """i64.rotl ( i64 i64 -- i64 )

        Left rotation by the second operand modulo the width."""

    def i64_rotr(self) -> None:
        """i64.rotr ( i64 i64 -- i64 )

        Right rotation by the second operand modulo the width."""

    def i64_extend8_s(self) -> None:
        """i64.extend8_s ( i64 -- i64 )

        The low 8 bits, extended by their sign."""

    def i64_extend16_s(self) -> None:
        """i64.extend16_s ( i64 -- i64 )

        The low 16 bits, extended by their sign."""

    def i64_extend32_s(self) -> None:
        """i64.extend32_s ( i64 -- i64 )

        The low 32 bits, extended by their sign."""

    def f32_eq(self) -> None:
        """f32.eq ( f32 f32 -- i32 )

        1 if the operands are equal, else 0; 0 with a NaN."""

    def f32_ne(self) -> None:
        """f32.ne ( f32 f32 -- i32 )

        1 if the operands differ, else 0; 1 with a NaN."""

    def f32_lt(self) -> None:
        """f32.lt ( f32 f32 -- i32 )

        1 if the first is less than the second, else 0; 0 with a NaN."""

    def f32_gt(self) -> None:
        """f32.gt ( f32 f32 -- i32 )

        1 if the first is greater than the second, else 0; 0 with a NaN."""

    def f32_le(self) -> None:
        """f32.le ( f32 f32 -- i32 )

        1 if the first is at most the second, else 0; 0 with a NaN."""

    def f32_ge(self) -> None:
        """f32.ge ( f32 f32 -- i32 )

        1 if the first is at least the second, else 0; 0 with a NaN."""

    def f32_abs(self) -> None:
        """f32.abs ( f32 -- f32 )

        The operand with its sign bit clear."""

    def f32_neg(self) -> None:
        """f32.neg ( f32 -- f32 )

        The operand with its sign bit inverted."""

    def f32_ceil(self) -> None:
        """f32.ceil ( f32 -- f32 )

        Nearest integral value not below."""

    def f32_floor(self) -> None:
        """f32.floor ( f32 -- f32 )

        Nearest integral value not above."""

    def f32_trunc(self) -> None:
        """f32.trunc ( f32 -- f32 )

        Integral value toward zero."""

    def f32_nearest(self) -> None:
        """f32.nearest ( f32 -- f32 )

        Nearest integral value, ties to even."""

    def f32_sqrt(self) -> None:
        """f32.sqrt ( f32 -- f32 )

        Square root, correctly rounded."""

    def f32_add(self) -> None:
        """f32.add ( f32 f32 -- f32 )

        Sum, rounded to nearest even."""

    def f32_sub(self) -> None:
        """f32.sub ( f32 f32 -- f32 )

        Difference, rounded to nearest even."""

    def f32_mul(self) -> None:
        """f32.mul ( f32 f32 -- f32 )

        Product, rounded to nearest even."""

    def f32_div(self) -> None:
        """f32.div ( f32 f32 -- f32 )

        Quotient, rounded to nearest even."""

    def f32_fma(self) -> None:
        """f32.fma ( f32 f32 f32 -- f32 )

        Product of the first two plus the third, rounded once to nearest even."""

    def f32_min(self) -> None:
        """f32.min ( f32 f32 -- f32 )

        The lesser operand, -0 below +0; NaN if one is."""

    def f32_min_number(self) -> None:
        """f32.min_number ( f32 f32 -- f32 )

        The lesser operand, -0 below +0; the other one if one is NaN."""

    def f32_max(self) -> None:
        """f32.max ( f32 f32 -- f32 )

        The greater operand, +0 above -0; NaN if one is."""

    def f32_max_number(self) -> None:
        """f32.max_number ( f32 f32 -- f32 )

        The greater operand, +0 above -0; the other one if one is NaN."""

    def f32_copysign(self) -> None:
        """f32.copysign ( f32 f32 -- f32 )

        The first operand with the second's sign bit."""

    def f64_eq(self) -> None:
        """f64.eq ( f64 f64 -- i32 )

        1 if the operands are equal, else 0; 0 with a NaN."""

    def f64_ne(self) -> None:
        """f64.ne ( f64 f64 -- i32 )

        1 if the operands differ, else 0; 1 with a NaN."""

    def f64_lt(self) -> None:
        """f64.lt ( f64 f64 -- i32 )

        1 if the first is less than the second, else 0; 0 with a NaN."""

    def f64_gt(self) -> None:
        """f64.gt ( f64 f64 -- i32 )

        1 if the first is greater than the second, else 0; 0 with a NaN."""

    def f64_le(self) -> None:
        """f64.le ( f64 f64 -- i32 )

        1 if the first is at most the second, else 0; 0 with a NaN."""

    def f64_ge(self) -> None:
        """f64.ge ( f64 f64 -- i32 )

        1 if the first is at least the second, else 0; 0 with a NaN."""

    def f64_abs(self) -> None:
        """f64.abs ( f64 -- f64 )

        The operand with its sign bit clear."""

    def f64_neg(self) -> None:
        """f64.neg ( f64 -- f64 )

        The operand with its sign bit inverted."""

    def f64_ceil(self) -> None:
        """f64.ceil ( f64 -- f64 )

        Nearest integral value not below."""

    def f64_floor(self) -> None:
        """f64.floor ( f64 -- f64 )

        Nearest integral value not above."""

    def f64_trunc(self) -> None:
        """f64.trunc ( f64 -- f64 )

        Integral value toward zero."""

    def f64_nearest(self) -> None:
        """f64.nearest ( f64 -- f64 )

        Nearest integral value, ties to even."""

    def f64_sqrt(self) -> None:
        """f64.sqrt ( f64 -- f64 )

        Square root, correctly rounded."""

    def f64_add(self) -> None:
        """f64.add ( f64 f64 -- f64 )

        Sum, rounded to nearest even."""

    def f64_sub(self) -> None:
        """f64.sub ( f64 f64 -- f64 )

        Difference, rounded to nearest even."""

    def f64_mul(self) -> None:
        """f64.mul ( f64 f64 -- f64 )

        Product, rounded to nearest even."""

    def f64_div(self) -> None:
        """f64.div ( f64 f64 -- f64 )

        Quotient, rounded to nearest even."""

    def f64_fma(self) -> None:
        """f64.fma ( f64 f64 f64 -- f64 )

        Product of the first two plus the third, rounded once to nearest even."""

    def f64_min(self) -> None:
        """f64.min ( f64 f64 -- f64 )

        The lesser operand, -0 below +0; NaN if one is."""

    def f64_min_number(self) -> None:
        """f64.min_number ( f64 f64 -- f64 )

        The lesser operand, -0 below +0; the other one if one is NaN."""

    def f64_max(self) -> None:
        """f64.max ( f64 f64 -- f64 )

        The greater operand, +0 above -0; NaN if one is."""

    def f64_max_number(self) -> None:
        """f64.max_number ( f64 f64 -- f64 )

        The greater operand, +0 above -0; the other one if one is NaN."""

    def f64_copysign(self) -> None:
        """f64.copysign ( f64 f64 -- f64 )

        The first operand with the second's sign bit."""

    def f32_exp(self) -> None:
        """f32.exp ( f32 -- f32 )

        Power of e; the operand is the exponent."""

    def f32_exp2(self) -> None:
        """f32.exp2 ( f32 -- f32 )

        Power of 2; the operand is the exponent."""

    def f32_expm1(self) -> None:
        """f32.expm1 ( f32 -- f32 )

        Power of e minus 1; the operand is the exponent."""

    def f32_log(self) -> None:
        """f32.log ( f32 -- f32 )

        Natural logarithm; -inf of a zero, NaN of a negative number."""

    def f32_log2(self) -> None:
        """f32.log2 ( f32 -- f32 )

        Binary logarithm; -inf of a zero, NaN of a negative number."""

    def f32_log10(self) -> None:
        """f32.log10 ( f32 -- f32 )

        Decimal logarithm; -inf of a zero, NaN of a negative number."""

    def f32_log1p(self) -> None:
        """f32.log1p ( f32 -- f32 )

        Natural logarithm of 1 plus the operand; -inf of -1, NaN below."""

    def f32_sin(self) -> None:
        """f32.sin ( f32 -- f32 )

        Sine of an angle in radians; NaN of an infinity."""

    def f32_cos(self) -> None:
        """f32.cos ( f32 -- f32 )

        Cosine of an angle in radians; NaN of an infinity."""

    def f32_tan(self) -> None:
        """f32.tan ( f32 -- f32 )

        Tangent of an angle in radians; NaN of an infinity."""

    def f32_asin(self) -> None:
        """f32.asin ( f32 -- f32 )

        Angle in radians whose sine is the operand, from -pi/2 to pi/2; NaN beyond -1 and 1."""

    def f32_acos(self) -> None:
        """f32.acos ( f32 -- f32 )

        Angle in radians whose cosine is the operand, from 0 to pi; NaN beyond -1 and 1."""

    def f32_atan(self) -> None:
        """f32.atan ( f32 -- f32 )

        Angle in radians whose tangent is the operand, from -pi/2 to pi/2."""

    def f32_sinh(self) -> None:
        """f32.sinh ( f32 -- f32 )

        Hyperbolic sine."""

    def f32_cosh(self) -> None:
        """f32.cosh ( f32 -- f32 )

        Hyperbolic cosine."""

    def f32_tanh(self) -> None:
        """f32.tanh ( f32 -- f32 )

        Hyperbolic tangent."""

    def f32_cbrt(self) -> None:
        """f32.cbrt ( f32 -- f32 )

        Cube root."""

    def f32_hypot(self) -> None:
        """f32.hypot ( f32 f32 -- f32 )

        Root of the sum of the squares of two numbers, without overflow on the way."""

    def f32_erf(self) -> None:
        """f32.erf ( f32 -- f32 )

        Error function."""

    def f32_erfc(self) -> None:
        """f32.erfc ( f32 -- f32 )

        1 minus the error function."""

    def f32_atan2(self) -> None:
        """f32.atan2 ( f32 f32 -- f32 )

        Angle in radians of the point with the first operand as y and the second as x."""

    def f32_pow(self) -> None:
        """f32.pow ( f32 f32 -- f32 )

        The first operand to the power of the second."""

    def f32_fmod(self) -> None:
        """f32.fmod ( f32 f32 -- f32 )

        The first operand minus n times the second, exact; n is their quotient toward zero."""

    def f32_remainder(self) -> None:
        """f32.remainder ( f32 f32 -- f32 )

        The first operand minus n times the second, exact; n is nearest to their quotient."""

    def f64_exp(self) -> None:
        """f64.exp ( f64 -- f64 )

        Power of e; the operand is the exponent."""

    def f64_exp2(self) -> None:
        """f64.exp2 ( f64 -- f64 )

        Power of 2; the operand is the exponent."""

    def f64_expm1(self) -> None:
        """f64.expm1 ( f64 -- f64 )

        Power of e minus 1; the operand is the exponent."""

    def f64_log(self) -> None:
        """f64.log ( f64 -- f64 )

        Natural logarithm; -inf of a zero, NaN of a negative number."""

    def f64_log2(self) -> None:
        """f64.log2 ( f64 -- f64 )

        Binary logarithm; -inf of a zero, NaN of a negative number."""

    def f64_log10(self) -> None:
        """f64.log10 ( f64 -- f64 )

        Decimal logarithm; -inf of a zero, NaN of a negative number."""

    def f64_log1p(self) -> None:
        """f64.log1p ( f64 -- f64 )

        Natural logarithm of 1 plus the operand; -inf of -1, NaN below."""

    def f64_sin(self) -> None:
        """f64.sin ( f64 -- f64 )

        Sine of an angle in radians; NaN of an infinity."""

    def f64_cos(self) -> None:
        """f64.cos ( f64 -- f64 )

        Cosine of an angle in radians; NaN of an infinity."""

    def f64_tan(self) -> None:
        """f64.tan ( f64 -- f64 )

        Tangent of an angle in radians; NaN of an infinity."""

    def f64_asin(self) -> None:
        """f64.asin ( f64 -- f64 )

        Angle in radians whose sine is the operand, from -pi/2 to pi/2; NaN beyond -1 and 1."""

    def f64_acos(self) -> None:
        """f64.acos ( f64 -- f64 )

        Angle in radians whose cosine is the operand, from 0 to pi; NaN beyond -1 and 1."""

    def f64_atan(self) -> None:
        """f64.atan ( f64 -- f64 )

        Angle in radians whose tangent is the operand, from -pi/2 to pi/2."""

    def f64_atan2(self) -> None:
        """f64.atan2 ( f64 f64 -- f64 )

        Angle in radians of the point with the first operand as y and the second as x."""

    def f64_sinh(self) -> None:
        """f64.sinh ( f64 -- f64 )

        Hyperbolic sine."""

    def f64_cosh(self) -> None:
        """f64.cosh ( f64 -- f64 )

        Hyperbolic cosine."""

    def f64_tanh(self) -> None:
        """f64.tanh ( f64 -- f64 )

        Hyperbolic tangent."""

    def f64_cbrt(self) -> None:
        """f64.cbrt ( f64 -- f64 )

        Cube root."""

    def f64_hypot(self) -> None:
        """f64.hypot ( f64 f64 -- f64 )

        Root of the sum of the squares of two numbers, without overflow on the way."""

    def f64_erf(self) -> None:
        """f64.erf ( f64 -- f64 )

        Error function."""

    def f64_erfc(self) -> None:
        """f64.erfc ( f64 -- f64 )

        1 minus the error function."""

    def f64_fmod(self) -> None:
        """f64.fmod ( f64 f64 -- f64 )

        The first operand minus n times the second, exact; n is their quotient toward zero."""

    def f64_remainder(self) -> None:
        """f64.remainder ( f64 f64 -- f64 )

        The first operand minus n times the second, exact; n is nearest to their quotient."""

    def f64_pow(self) -> None:
        """f64.pow ( f64 f64 -- f64 )

        The first operand to the power of the second."""

    def i32_wrap_i64(self) -> None:
        """i32.wrap_i64 ( i64 -- i32 )

        The low 32 bits."""

    def i64_extend_i32_s(self) -> None:
        """i64.extend_i32_s ( i32 -- i64 )

        The operand, extended by its sign."""

    def i64_extend_i32_u(self) -> None:
        """i64.extend_i32_u ( i32 -- i64 )

        The operand, extended by zeros."""

    def i32_trunc_f32_s(self) -> None:
        """i32.trunc_f32_s ( f32 -- i32 )

        The operand toward zero, as a signed integer; traps on NaN and where it does not fit."""

    def i32_trunc_sat_f32_s(self) -> None:
        """i32.trunc_sat_f32_s ( f32 -- i32 )

        The operand toward zero, as a signed integer; the nearest one where it does not fit, 0 for NaN."""

    def i32_trunc_f32_u(self) -> None:
        """i32.trunc_f32_u ( f32 -- i32 )

        The operand toward zero, as an unsigned integer; traps on NaN and where it does not fit."""

    def i32_trunc_sat_f32_u(self) -> None:
        """i32.trunc_sat_f32_u ( f32 -- i32 )

        The operand toward zero, as an unsigned integer; the nearest one where it does not fit, 0 for NaN."""

    def i32_trunc_f64_s(self) -> None:
        """i32.trunc_f64_s ( f64 -- i32 )

        The operand toward zero, as a signed integer; traps on NaN and where it does not fit."""

    def i32_trunc_sat_f64_s(self) -> None:
        """i32.trunc_sat_f64_s ( f64 -- i32 )

        The operand toward zero, as a signed integer; the nearest one where it does not fit, 0 for NaN."""

    def i32_trunc_f64_u(self) -> None:
        """i32.trunc_f64_u ( f64 -- i32 )

        The operand toward zero, as an unsigned integer; traps on NaN and where it does not fit."""

    def i32_trunc_sat_f64_u(self) -> None:
        """i32.trunc_sat_f64_u ( f64 -- i32 )

        The operand toward zero, as an unsigned integer; the nearest one where it does not fit, 0 for NaN."""

    def i64_trunc_f32_s(self) -> None:
        """i64.trunc_f32_s ( f32 -- i64 )

        The operand toward zero, as a signed integer; traps on NaN and where it does not fit."""

    def i64_trunc_sat_f32_s(self) -> None:
        """i64.trunc_sat_f32_s ( f32 -- i64 )

        The operand toward zero, as a signed integer; the nearest one where it does not fit, 0 for NaN."""

    def i64_trunc_f32_u(self) -> None:
        """i64.trunc_f32_u ( f32 -- i64 )

        The operand toward zero, as an unsigned integer; traps on NaN and where it does not fit."""

    def i64_trunc_sat_f32_u(self) -> None:
        """i64.trunc_sat_f32_u ( f32 -- i64 )

        The operand toward zero, as an unsigned integer; the nearest one where it does not fit, 0 for NaN."""

    def i64_trunc_f64_s(self) -> None:
        """i64.trunc_f64_s ( f64 -- i64 )

        The operand toward zero, as a signed integer; traps on NaN and where it does not fit."""

    def i64_trunc_sat_f64_s(self) -> None:
        """i64.trunc_sat_f64_s ( f64 -- i64 )

        The operand toward zero, as a signed integer; the nearest one where it does not fit, 0 for NaN."""

    def i64_trunc_f64_u(self) -> None:
        """i64.trunc_f64_u ( f64 -- i64 )

        The operand toward zero, as an unsigned integer; traps on NaN and where it does not fit."""

    def i64_trunc_sat_f64_u(self) -> None:
        """i64.trunc_sat_f64_u ( f64 -- i64 )

        The operand toward zero, as an unsigned integer; the nearest one where it does not fit, 0 for NaN."""

    def f32_convert_i32_s(self) -> None:
        """f32.convert_i32_s ( i32 -- f32 )

        The signed operand, rounded to nearest even."""

    def f32_convert_i32_u(self) -> None:
        """f32.convert_i32_u ( i32 -- f32 )

        The unsigned operand, rounded to nearest even."""

    def f32_convert_i64_s(self) -> None:
        """f32.convert_i64_s ( i64 -- f32 )

        The signed operand, rounded to nearest even."""

    def f32_convert_i64_u(self) -> None:
        """f32.convert_i64_u ( i64 -- f32 )

        The unsigned operand, rounded to nearest even."""

    def f64_convert_i32_s(self) -> None:
        """f64.convert_i32_s ( i32 -- f64 )

        The signed operand, rounded to nearest even."""

    def f64_convert_i32_u(self) -> None:
        """f64.convert_i32_u ( i32 -- f64 )

        The unsigned operand, rounded to nearest even."""

    def f64_convert_i64_s(self) -> None:
        """f64.convert_i64_s ( i64 -- f64 )

        The signed operand, rounded to nearest even."""

    def f64_convert_i64_u(self) -> None:
        """f64.convert_i64_u ( i64 -- f64 )

        The unsigned operand, rounded to nearest even."""

    def f32_demote_f64(self) -> None:
        """f32.demote_f64 ( f64 -- f32 )

        The operand, rounded to nearest even."""

    def f64_promote_f32(self) -> None:
        """f64.promote_f32 ( f32 -- f64 )

        The operand, exactly."""

    def i32_reinterpret_f32(self) -> None:
        """i32.reinterpret_f32 ( f32 -- i32 )

        The same bits."""

    def i64_reinterpret_f64(self) -> None:
        """i64.reinterpret_f64 ( f64 -- i64 )

        The same bits."""

    def f32_reinterpret_i32(self) -> None:
        """f32.reinterpret_i32 ( i32 -- f32 )

        The same bits."""

    def f64_reinterpret_i64(self) -> None:
        """f64.reinterpret_i64 ( i64 -- f64 )

        The same bits."""

    def i32_load(self, offset: int = 0) -> None:
        """i32.load ( i64 -- i32 )

        The 4 bytes at address + offset."""

    def i64_load(self, offset: int = 0) -> None:
        """i64.load ( i64 -- i64 )

        The 8 bytes at address + offset."""

    def f32_load(self, offset: int = 0) -> None:
        """f32.load ( i64 -- f32 )

        The 4 bytes at address + offset."""

    def f64_load(self, offset: int = 0) -> None:
        """f64.load ( i64 -- f64 )

        The 8 bytes at address + offset."""

    def i32_load8_s(self, offset: int = 0) -> None:
        """i32.load8_s ( i64 -- i32 )

        The byte at address + offset, extended by sign."""

    def i32_load8_u(self, offset: int = 0) -> None:
        """i32.load8_u ( i64 -- i32 )

        The byte at address + offset, extended by zeros."""

    def i32_load16_s(self, offset: int = 0) -> None:
        """i32.load16_s ( i64 -- i32 )

        The 2 bytes at address + offset, extended by sign."""

    def i32_load16_u(self, offset: int = 0) -> None:
        """i32.load16_u ( i64 -- i32 )

        The 2 bytes at address + offset, extended by zeros."""

    def i64_load8_s(self, offset: int = 0) -> None:
        """i64.load8_s ( i64 -- i64 )

        The byte at address + offset, extended by sign."""

    def i64_load8_u(self, offset: int = 0) -> None:
        """i64.load8_u ( i64 -- i64 )

        The byte at address + offset, extended by zeros."""

    def i64_load16_s(self, offset: int = 0) -> None:
        """i64.load16_s ( i64 -- i64 )

        The 2 bytes at address + offset, extended by sign."""

    def i64_load16_u(self, offset: int = 0) -> None:
        """i64.load16_u ( i64 -- i64 )

        The 2 bytes at address + offset, extended by zeros."""

    def i64_load32_s(self, offset: int = 0) -> None:
        """i64.load32_s ( i64 -- i64 )

        The 4 bytes at address + offset, extended by sign."""

    def i64_load32_u(self, offset: int = 0) -> None:
        """i64.load32_u ( i64 -- i64 )

        The 4 bytes at address + offset, extended by zeros."""

    def i32_store(self, offset: int = 0) -> None:
        """i32.store ( i64 i32 -- )

        Store the low 4 bytes of the second operand at address + offset."""

    def i64_store(self, offset: int = 0) -> None:
        """i64.store ( i64 i64 -- )

        Store the low 8 bytes of the second operand at address + offset."""

    def f32_store(self, offset: int = 0) -> None:
        """f32.store ( i64 f32 -- )

        Store the low 4 bytes of the second operand at address + offset."""

    def f64_store(self, offset: int = 0) -> None:
        """f64.store ( i64 f64 -- )

        Store the low 8 bytes of the second operand at address + offset."""

    def i32_store8(self, offset: int = 0) -> None:
        """i32.store8 ( i64 i32 -- )

        Store the low byte of the second operand at address + offset."""

    def i32_store16(self, offset: int = 0) -> None:
        """i32.store16 ( i64 i32 -- )

        Store the low 2 bytes of the second operand at address + offset."""

    def i64_store8(self, offset: int = 0) -> None:
        """i64.store8 ( i64 i64 -- )

        Store the low byte of the second operand at address + offset."""

    def i64_store16(self, offset: int = 0) -> None:
        """i64.store16 ( i64 i64 -- )

        Store the low 2 bytes of the second operand at address + offset."""

    def i64_store32(self, offset: int = 0) -> None:
        """i64.store32 ( i64 i64 -- )

        Store the low 4 bytes of the second operand at address + offset."""

    def heap_alloc(self) -> None:
        """heap.alloc ( i64 -- i64 )

        Address of that many fresh zero bytes (unsigned), aligned to 8; traps if there is no space."""

    def heap_size(self) -> None:
        """heap.size ( -- i64 )

        Bytes of the heap in use."""

    def jump(self, label: Label) -> None:
        """jump ( -- )

        Jump to the label."""

    def jump_if(self, label: Label) -> None:
        """jump_if ( i32 -- )

        Jump to the label if the operand is not 0."""

    def jump_unless(self, label: Label) -> None:
        """jump_unless ( i32 -- )

        Jump to the label if the operand is 0."""

    def jump_table(self, *labels: Label) -> None:
        """jump_table ( i32 -- )

        Jump to the label that the operand selects (unsigned), to the last one if there is none. In code the immediate is the number of labels without the last, and one `jump` for each label follows."""

    def call(self, function: Body) -> None:
        """call ( arguments -- results )

        Call a function; traps if its frame does not fit on the stack."""

    def call_indirect(self, signature: Signature) -> None:
        """call_indirect ( arguments i32 -- results )

        Call the function table's entry with that number (unsigned); traps if there is none or its signature differs."""

    def return_(self) -> None:
        """return ( results -- )

        Return the function's results to the caller. In code the immediate also holds, above bit 31, the function's number of parameters."""

    def host(self, host: Host) -> None:
        """host ( arguments -- results )

        Call a host function that the program imports."""

    def enter_jit(self) -> None:
        """enter_jit ( -- )

        No effect: marks the start of a scope worth compiling."""

    def leave_jit(self) -> None:
        """leave_jit ( -- )

        No effect: marks the end of a scope worth compiling."""

    def nop(self) -> None:
        """nop ( -- )

        No effect."""

    def halt(self) -> None:
        """halt ( -- )

        End the program; its result is the operand on top of the stack, if there is one."""

    def trap(self) -> None:
        """trap ( -- )

        Trap: the program declares this point unreachable."""

    def throw(self, tag: Tag) -> None:
        """throw ( values -- )

        Throw an exception of the tag, with its values; traps if no clause catches it."""

    def throw_record(self) -> None:
        """throw_record ( i64 i64 i64 i64 i64 -- )

        Throw the exception of a record; traps if no clause catches it or the record is not valid. If tags of the program have references, the record begins with some, below the number of the tag."""

    def ref_null(self, type: OperandType) -> None:
        """ref.null ( -- ref )

        The null reference, as one of the type."""

    def ref_is_null(self) -> None:
        """ref.is_null ( anyref -- i32 )

        1 if the reference is null, else 0."""

    def ref_eq(self) -> None:
        """ref.eq ( anyref anyref -- i32 )

        1 if the references are the same object, the same small integer or both null, else 0."""

    def ref_test(self, type: OperandType) -> None:
        """ref.test ( anyref -- i32 )

        1 if the reference is of the type and not null, else 0."""

    def ref_cast(self, type: OperandType) -> None:
        """ref.cast ( anyref -- ref )

        The reference, as one of the type; traps if it is neither of the type nor null."""

    def ref_i31(self) -> None:
        """ref.i31 ( i32 -- i31ref )

        The low 31 bits of the operand as a reference without memory."""

    def i31_get_s(self) -> None:
        """i31.get_s ( i31ref -- i32 )

        The integer of 31 bits, extended by sign; traps on null."""

    def i31_get_u(self) -> None:
        """i31.get_u ( i31ref -- i32 )

        The integer of 31 bits, extended by zero; traps on null."""

    def struct_new(self, struct: Struct) -> None:
        """struct.new ( fields -- ref )

        A new struct with the operands as its fields, the first one deepest."""

    def struct_new_default(self, struct: Struct) -> None:
        """struct.new_default ( -- ref )

        A new struct whose fields are zero or null."""

    def struct_get(self, field: Field) -> None:
        """struct.get ( ref -- t )

        The value of a field; traps on null."""

    def struct_set(self, field: Field) -> None:
        """struct.set ( ref t -- )

        Store into a field; traps on null."""

    def array_length(self) -> None:
        """array.length ( arrayref -- i64 )

        The number of elements; traps on null."""

    def array_index(self) -> None:
        """array.index ( i64 i64 -- i64 )

        The first operand, an index; traps unless it is below the second, a length (unsigned)."""

    def array_new_i8(self) -> None:
        """array.new_i8 ( i32 i64 -- i8[] )

        A new array of `i8`, all the first operand."""

    def array_new_default_i8(self) -> None:
        """array.new_default_i8 ( i64 -- i8[] )

        A new array of `i8` zeros."""

    def array_get_i8(self) -> None:
        """array.get_i8 ( i8[] i64 -- i32 )

        The element at an index in an array of `i8`."""

    def array_set_i8(self) -> None:
        """array.set_i8 ( i8[] i64 i32 -- )

        Store into an array of `i8`."""

    def array_fill_i8(self) -> None:
        """array.fill_i8 ( i8[] i64 i32 i64 -- )

        Store the third operand into a number of `i8` from an index on."""

    def array_copy_i8(self) -> None:
        """array.copy_i8 ( i8[] i64 i8[] i64 i64 -- )

        Copy a number of `i8` to the first array from those of the second, each from an index on; as if through a copy if they overlap."""

    def array_load_i8(self) -> None:
        """array.load_i8 ( i8[] i64 i64 i64 -- )

        Copy a number of `i8`, from an index on, from the bytes at a heap address."""

    def array_store_i8(self) -> None:
        """array.store_i8 ( i8[] i64 i64 i64 -- )

        Copy a number of `i8`, from an index on, to the bytes at a heap address."""

    def array_new_u8(self) -> None:
        """array.new_u8 ( i32 i64 -- u8[] )

        A new array of `u8`, all the first operand."""

    def array_new_default_u8(self) -> None:
        """array.new_default_u8 ( i64 -- u8[] )

        A new array of `u8` zeros."""

    def array_get_u8(self) -> None:
        """array.get_u8 ( u8[] i64 -- i32 )

        The element at an index in an array of `u8`."""

    def array_set_u8(self) -> None:
        """array.set_u8 ( u8[] i64 i32 -- )

        Store into an array of `u8`."""

    def array_fill_u8(self) -> None:
        """array.fill_u8 ( u8[] i64 i32 i64 -- )

        Store the third operand into a number of `u8` from an index on."""

    def array_copy_u8(self) -> None:
        """array.copy_u8 ( u8[] i64 u8[] i64 i64 -- )

        Copy a number of `u8` to the first array from those of the second, each from an index on; as if through a copy if they overlap."""

    def array_load_u8(self) -> None:
        """array.load_u8 ( u8[] i64 i64 i64 -- )

        Copy a number of `u8`, from an index on, from the bytes at a heap address."""

    def array_store_u8(self) -> None:
        """array.store_u8 ( u8[] i64 i64 i64 -- )

        Copy a number of `u8`, from an index on, to the bytes at a heap address."""

    def array_new_i16(self) -> None:
        """array.new_i16 ( i32 i64 -- i16[] )

        A new array of `i16`, all the first operand."""

    def array_new_default_i16(self) -> None:
        """array.new_default_i16 ( i64 -- i16[] )

        A new array of `i16` zeros."""

    def array_get_i16(self) -> None:
        """array.get_i16 ( i16[] i64 -- i32 )

        The element at an index in an array of `i16`."""

    def array_set_i16(self) -> None:
        """array.set_i16 ( i16[] i64 i32 -- )

        Store into an array of `i16`."""

    def array_fill_i16(self) -> None:
        """array.fill_i16 ( i16[] i64 i32 i64 -- )

        Store the third operand into a number of `i16` from an index on."""

    def array_copy_i16(self) -> None:
        """array.copy_i16 ( i16[] i64 i16[] i64 i64 -- )

        Copy a number of `i16` to the first array from those of the second, each from an index on; as if through a copy if they overlap."""

    def array_load_i16(self) -> None:
        """array.load_i16 ( i16[] i64 i64 i64 -- )

        Copy a number of `i16`, from an index on, from the bytes at a heap address."""

    def array_store_i16(self) -> None:
        """array.store_i16 ( i16[] i64 i64 i64 -- )

        Copy a number of `i16`, from an index on, to the bytes at a heap address."""

    def array_new_u16(self) -> None:
        """array.new_u16 ( i32 i64 -- u16[] )

        A new array of `u16`, all the first operand."""

    def array_new_default_u16(self) -> None:
        """array.new_default_u16 ( i64 -- u16[] )

        A new array of `u16` zeros."""

    def array_get_u16(self) -> None:
        """array.get_u16 ( u16[] i64 -- i32 )

        The element at an index in an array of `u16`."""

    def array_set_u16(self) -> None:
        """array.set_u16 ( u16[] i64 i32 -- )

        Store into an array of `u16`."""

    def array_fill_u16(self) -> None:
        """array.fill_u16 ( u16[] i64 i32 i64 -- )

        Store the third operand into a number of `u16` from an index on."""

    def array_copy_u16(self) -> None:
        """array.copy_u16 ( u16[] i64 u16[] i64 i64 -- )

        Copy a number of `u16` to the first array from those of the second, each from an index on; as if through a copy if they overlap."""

    def array_load_u16(self) -> None:
        """array.load_u16 ( u16[] i64 i64 i64 -- )

        Copy a number of `u16`, from an index on, from the bytes at a heap address."""

    def array_store_u16(self) -> None:
        """array.store_u16 ( u16[] i64 i64 i64 -- )

        Copy a number of `u16`, from an index on, to the bytes at a heap address."""

    def array_new_i32(self) -> None:
        """array.new_i32 ( i32 i64 -- i32[] )

        A new array of `i32`, all the first operand."""

    def array_new_default_i32(self) -> None:
        """array.new_default_i32 ( i64 -- i32[] )

        A new array of `i32` zeros."""

    def array_get_i32(self) -> None:
        """array.get_i32 ( i32[] i64 -- i32 )

        The element at an index in an array of `i32`."""

    def array_set_i32(self) -> None:
        """array.set_i32 ( i32[] i64 i32 -- )

        Store into an array of `i32`."""

    def array_fill_i32(self) -> None:
        """array.fill_i32 ( i32[] i64 i32 i64 -- )

        Store the third operand into a number of `i32` from an index on."""

    def array_copy_i32(self) -> None:
        """array.copy_i32 ( i32[] i64 i32[] i64 i64 -- )

        Copy a number of `i32` to the first array from those of the second, each from an index on; as if through a copy if they overlap."""

    def array_load_i32(self) -> None:
        """array.load_i32 ( i32[] i64 i64 i64 -- )

        Copy a number of `i32`, from an index on, from the bytes at a heap address."""

    def array_store_i32(self) -> None:
        """array.store_i32 ( i32[] i64 i64 i64 -- )

        Copy a number of `i32`, from an index on, to the bytes at a heap address."""

    def array_new_u32(self) -> None:
        """array.new_u32 ( i32 i64 -- u32[] )

        A new array of `u32`, all the first operand."""

    def array_new_default_u32(self) -> None:
        """array.new_default_u32 ( i64 -- u32[] )

        A new array of `u32` zeros."""

    def array_get_u32(self) -> None:
        """array.get_u32 ( u32[] i64 -- i32 )

        The element at an index in an array of `u32`."""

    def array_set_u32(self) -> None:
        """array.set_u32 ( u32[] i64 i32 -- )

        Store into an array of `u32`."""

    def array_fill_u32(self) -> None:
        """array.fill_u32 ( u32[] i64 i32 i64 -- )

        Store the third operand into a number of `u32` from an index on."""

    def array_copy_u32(self) -> None:
        """array.copy_u32 ( u32[] i64 u32[] i64 i64 -- )

        Copy a number of `u32` to the first array from those of the second, each from an index on; as if through a copy if they overlap."""

    def array_load_u32(self) -> None:
        """array.load_u32 ( u32[] i64 i64 i64 -- )

        Copy a number of `u32`, from an index on, from the bytes at a heap address."""

    def array_store_u32(self) -> None:
        """array.store_u32 ( u32[] i64 i64 i64 -- )

        Copy a number of `u32`, from an index on, to the bytes at a heap address."""

    def array_new_i64(self) -> None:
        """array.new_i64 ( i64 i64 -- i64[] )

        A new array of `i64`, all the first operand."""

    def array_new_default_i64(self) -> None:
        """array.new_default_i64 ( i64 -- i64[] )

        A new array of `i64` zeros."""

    def array_get_i64(self) -> None:
        """array.get_i64 ( i64[] i64 -- i64 )

        The element at an index in an array of `i64`."""

    def array_set_i64(self) -> None:
        """array.set_i64 ( i64[] i64 i64 -- )

        Store into an array of `i64`."""

    def array_fill_i64(self) -> None:
        """array.fill_i64 ( i64[] i64 i64 i64 -- )

        Store the third operand into a number of `i64` from an index on."""

    def array_copy_i64(self) -> None:
        """array.copy_i64 ( i64[] i64 i64[] i64 i64 -- )

        Copy a number of `i64` to the first array from those of the second, each from an index on; as if through a copy if they overlap."""

    def array_load_i64(self) -> None:
        """array.load_i64 ( i64[] i64 i64 i64 -- )

        Copy a number of `i64`, from an index on, from the bytes at a heap address."""

    def array_store_i64(self) -> None:
        """array.store_i64 ( i64[] i64 i64 i64 -- )

        Copy a number of `i64`, from an index on, to the bytes at a heap address."""

    def array_new_f32(self) -> None:
        """array.new_f32 ( f32 i64 -- f32[] )

        A new array of `f32`, all the first operand."""

    def array_new_default_f32(self) -> None:
        """array.new_default_f32 ( i64 -- f32[] )

        A new array of `f32` zeros."""

    def array_get_f32(self) -> None:
        """array.get_f32 ( f32[] i64 -- f32 )

        The element at an index in an array of `f32`."""

    def array_set_f32(self) -> None:
        """array.set_f32 ( f32[] i64 f32 -- )

        Store into an array of `f32`."""

    def array_fill_f32(self) -> None:
        """array.fill_f32 ( f32[] i64 f32 i64 -- )

        Store the third operand into a number of `f32` from an index on."""

    def array_copy_f32(self) -> None:
        """array.copy_f32 ( f32[] i64 f32[] i64 i64 -- )

        Copy a number of `f32` to the first array from those of the second, each from an index on; as if through a copy if they overlap."""

    def array_load_f32(self) -> None:
        """array.load_f32 ( f32[] i64 i64 i64 -- )

        Copy a number of `f32`, from an index on, from the bytes at a heap address."""

    def array_store_f32(self) -> None:
        """array.store_f32 ( f32[] i64 i64 i64 -- )

        Copy a number of `f32`, from an index on, to the bytes at a heap address."""

    def array_new_f64(self) -> None:
        """array.new_f64 ( f64 i64 -- f64[] )

        A new array of `f64`, all the first operand."""

    def array_new_default_f64(self) -> None:
        """array.new_default_f64 ( i64 -- f64[] )

        A new array of `f64` zeros."""

    def array_get_f64(self) -> None:
        """array.get_f64 ( f64[] i64 -- f64 )

        The element at an index in an array of `f64`."""

    def array_set_f64(self) -> None:
        """array.set_f64 ( f64[] i64 f64 -- )

        Store into an array of `f64`."""

    def array_fill_f64(self) -> None:
        """array.fill_f64 ( f64[] i64 f64 i64 -- )

        Store the third operand into a number of `f64` from an index on."""

    def array_copy_f64(self) -> None:
        """array.copy_f64 ( f64[] i64 f64[] i64 i64 -- )

        Copy a number of `f64` to the first array from those of the second, each from an index on; as if through a copy if they overlap."""

    def array_load_f64(self) -> None:
        """array.load_f64 ( f64[] i64 i64 i64 -- )

        Copy a number of `f64`, from an index on, from the bytes at a heap address."""

    def array_store_f64(self) -> None:
        """array.store_f64 ( f64[] i64 i64 i64 -- )

        Copy a number of `f64`, from an index on, to the bytes at a heap address."""

    def array_new_ref(self, array: Array) -> None:
        """array.new_ref ( t i64 -- ref )

        A new array of references, all the first operand."""

    def array_new_default_ref(self, array: Array) -> None:
        """array.new_default_ref ( i64 -- ref )

        A new array of null references."""

    def array_get_ref(self, array: Array) -> None:
        """array.get_ref ( ref i64 -- t )

        The element at an index in an array of references."""

    def array_set_ref(self, array: Array) -> None:
        """array.set_ref ( ref i64 t -- )

        Store into an array of references."""

    def array_fill_ref(self, array: Array) -> None:
        """array.fill_ref ( ref i64 t i64 -- )

        Store the third operand into a number of references from an index on."""

    def array_copy_ref(self, array: Array) -> None:
        """array.copy_ref ( ref i64 ref i64 i64 -- )

        Copy a number of references to the first array from those of the second, each from an index on; as if through a copy if they overlap."""

    def launch_begin(self) -> None:
        """launch.begin ( i64 -- i64 i64 launch.piece )

        Begin a launch of so many items: its limit, the first item, no record; traps if the number is negative."""

    def launch_test(self) -> None:
        """launch.test ( i64 i64 launch.piece -- i64 i64 launch.piece i32 )

        Push 1 above the launch if it has an item left, else 0. Leaves for the engine if the items of the range are done and the record has more."""

    def launch_item(self, function: Body) -> None:
        """launch.item ( arguments i64 i64 launch -- arguments i64 i64 launch i64 arguments )

        Push the next item of the launch and the launch's arguments, which a call of the function takes; the item counts as done from then on."""

    def launch_barrier(self) -> None:
        """launch.barrier ( i32 -- )

        Wait, where the operand is 0, until every item of the innermost launch waits at this barrier; each then goes on from here with 1. Leaves for the engine, which traps outside of a launch, and where items end or wait elsewhere meanwhile."""

    def array_atomic_add_i32(self) -> None:
        """array.atomic_add_i32 ( i32[] i64 i32 -- i32 )

        The element at an index in an array of `i32`, which is atomically replaced by its sum with the operand, modulo 2^width."""

    def array_atomic_min_i32(self) -> None:
        """array.atomic_min_i32 ( i32[] i64 i32 -- i32 )

        The element at an index in an array of `i32`, which is atomically replaced by the minimum of it and the operand."""

    def array_atomic_max_i32(self) -> None:
        """array.atomic_max_i32 ( i32[] i64 i32 -- i32 )

        The element at an index in an array of `i32`, which is atomically replaced by the maximum of it and the operand."""

    def array_atomic_and_i32(self) -> None:
        """array.atomic_and_i32 ( i32[] i64 i32 -- i32 )

        The element at an index in an array of `i32`, which is atomically replaced by the bitwise and of it and the operand."""

    def array_atomic_or_i32(self) -> None:
        """array.atomic_or_i32 ( i32[] i64 i32 -- i32 )

        The element at an index in an array of `i32`, which is atomically replaced by the bitwise or of it and the operand."""

    def array_atomic_exchange_i32(self) -> None:
        """array.atomic_exchange_i32 ( i32[] i64 i32 -- i32 )

        The element at an index in an array of `i32`, which is atomically replaced by the operand."""

    def array_atomic_compare_exchange_i32(self) -> None:
        """array.atomic_compare_exchange_i32 ( i32[] i64 i32 i32 -- i32 )

        The element at an index in an array of `i32`, which is atomically replaced by the last operand if it equals the one before."""

    def array_atomic_add_u32(self) -> None:
        """array.atomic_add_u32 ( u32[] i64 i32 -- i32 )

        The element at an index in an array of `u32`, which is atomically replaced by its sum with the operand, modulo 2^width."""

    def array_atomic_min_u32(self) -> None:
        """array.atomic_min_u32 ( u32[] i64 i32 -- i32 )

        The element at an index in an array of `u32`, which is atomically replaced by the minimum of it and the operand."""

    def array_atomic_max_u32(self) -> None:
        """array.atomic_max_u32 ( u32[] i64 i32 -- i32 )

        The element at an index in an array of `u32`, which is atomically replaced by the maximum of it and the operand."""

    def array_atomic_and_u32(self) -> None:
        """array.atomic_and_u32 ( u32[] i64 i32 -- i32 )

        The element at an index in an array of `u32`, which is atomically replaced by the bitwise and of it and the operand."""

    def array_atomic_or_u32(self) -> None:
        """array.atomic_or_u32 ( u32[] i64 i32 -- i32 )

        The element at an index in an array of `u32`, which is atomically replaced by the bitwise or of it and the operand."""

    def array_atomic_exchange_u32(self) -> None:
        """array.atomic_exchange_u32 ( u32[] i64 i32 -- i32 )

        The element at an index in an array of `u32`, which is atomically replaced by the operand."""

    def array_atomic_compare_exchange_u32(self) -> None:
        """array.atomic_compare_exchange_u32 ( u32[] i64 i32 i32 -- i32 )

        The element at an index in an array of `u32`, which is atomically replaced by the last operand if it equals the one before."""

    def array_atomic_add_i64(self) -> None:
        """array.atomic_add_i64 ( i64[] i64 i64 -- i64 )

        The element at an index in an array of `i64`, which is atomically replaced by its sum with the operand, modulo 2^width."""

    def array_atomic_min_i64(self) -> None:
        """array.atomic_min_i64 ( i64[] i64 i64 -- i64 )

        The element at an index in an array of `i64`, which is atomically replaced by the minimum of it and the operand."""

    def array_atomic_max_i64(self) -> None:
        """array.atomic_max_i64 ( i64[] i64 i64 -- i64 )

        The element at an index in an array of `i64`, which is atomically replaced by the maximum of it and the operand."""

    def array_atomic_and_i64(self) -> None:
        """array.atomic_and_i64 ( i64[] i64 i64 -- i64 )

        The element at an index in an array of `i64`, which is atomically replaced by the bitwise and of it and the operand."""

    def array_atomic_or_i64(self) -> None:
        """array.atomic_or_i64 ( i64[] i64 i64 -- i64 )

        The element at an index in an array of `i64`, which is atomically replaced by the bitwise or of it and the operand."""

    def array_atomic_exchange_i64(self) -> None:
        """array.atomic_exchange_i64 ( i64[] i64 i64 -- i64 )

        The element at an index in an array of `i64`, which is atomically replaced by the operand."""

    def array_atomic_compare_exchange_i64(self) -> None:
        """array.atomic_compare_exchange_i64 ( i64[] i64 i64 i64 -- i64 )

        The element at an index in an array of `i64`, which is atomically replaced by the last operand if it equals the one before."""

    def i32_add_checked(self) -> None:
        """i32.add_checked ( i32 i32 -- i32 )

        Sum, signed; traps on overflow."""

    def i32_sub_checked(self) -> None:
        """i32.sub_checked ( i32 i32 -- i32 )

        Difference, signed; traps on overflow."""

    def i32_mul_checked(self) -> None:
        """i32.mul_checked ( i32 i32 -- i32 )

        Product, signed; traps on overflow."""

    def i32_div_floor(self) -> None:
        """i32.div_floor ( i32 i32 -- i32 )

        Signed quotient, rounded down; traps on division by zero and on overflow."""

    def i32_mod_floor(self) -> None:
        """i32.mod_floor ( i32 i32 -- i32 )

        Remainder of the quotient that is rounded down, with the divisor's sign; traps on division by zero."""

    def i64_add_checked(self) -> None:
        """i64.add_checked ( i64 i64 -- i64 )

        Sum, signed; traps on overflow."""

    def i64_sub_checked(self) -> None:
        """i64.sub_checked ( i64 i64 -- i64 )

        Difference, signed; traps on overflow."""

    def i64_mul_checked(self) -> None:
        """i64.mul_checked ( i64 i64 -- i64 )

        Product, signed; traps on overflow."""

    def i64_div_floor(self) -> None:
        """i64.div_floor ( i64 i64 -- i64 )

        Signed quotient, rounded down; traps on division by zero and on overflow."""

    def i64_mod_floor(self) -> None:
        """i64.mod_floor ( i64 i64 -- i64 )

        Remainder of the quotient that is rounded down, with the divisor's sign; traps on division by zero."""
