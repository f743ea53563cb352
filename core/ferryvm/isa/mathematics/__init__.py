# SPDX-License-Identifier: Apache-2.0
"""Mathematical functions, f32 and f64: the bits are the same on every backend.

Each meaning is written in exact operations of the emitter, and is the only definition. docs/math.md
says how accurate the results are, and by which command that is known. Zeros, infinities and NaN are
as IEEE 754-2019, clause 9.2, says.
"""

from __future__ import annotations

from collections.abc import Iterator

from ferryvm.isa.pure_function import PureFunction
from ferryvm.isa.type import F32, F64, Type

_SUMMARIES = {
    "exp": "Power of e; the operand is the exponent.",
    "exp2": "Power of 2; the operand is the exponent.",
    "expm1": "Power of e minus 1; the operand is the exponent.",
    "log": "Natural logarithm; -inf of a zero, NaN of a negative number.",
    "log2": "Binary logarithm; -inf of a zero, NaN of a negative number.",
    "log10": "Decimal logarithm; -inf of a zero, NaN of a negative number.",
    "log1p": "Natural logarithm of 1 plus the operand; -inf of -1, NaN below.",
    "sin": "Sine of an angle in radians; NaN of an infinity.",
    "cos": "Cosine of an angle in radians; NaN of an infinity.",
    "tan": "Tangent of an angle in radians; NaN of an infinity.",
    "asin": "Angle in radians whose sine is the operand, from -pi/2 to pi/2; NaN beyond -1 and 1.",
    "acos": "Angle in radians whose cosine is the operand, from 0 to pi; NaN beyond -1 and 1.",
    "atan": "Angle in radians whose tangent is the operand, from -pi/2 to pi/2.",
    "sinh": "Hyperbolic sine.",
    "cosh": "Hyperbolic cosine.",
    "tanh": "Hyperbolic tangent.",
    "cbrt": "Cube root.",
    "erf": "Error function.",
    "erfc": "1 minus the error function.",
    "atan2": "Angle in radians of the point with the first operand as y and the second as x.",
    "hypot": "Root of the sum of the squares of two numbers, without overflow on the way.",
    "pow": "The first operand to the power of the second.",
    "fmod": "The first operand minus n times the second, exact; n is their quotient toward zero.",
    "remainder": "The first operand minus n times the second, exact; n is nearest to their quotient.",
}
"""Functions by name."""

_BINARY = frozenset({"atan2", "hypot", "pow", "fmod", "remainder"})
"""Functions of two operands."""

_F32 = {
    "exponential": "exp exp2 expm1",
    "logarithm": "log log2 log10 log1p",
    "trigonometric": "sin cos tan",
    "inverse_trigonometric": "asin acos atan",
    "hyperbolic": "sinh cosh tanh",
    "root": "cbrt hypot",
    "error": "erf erfc",
    "angle": "atan2",
    "power": "pow",
    "remainder": "fmod remainder",
}
_F64 = {
    "exponential": "exp exp2 expm1",
    "logarithm": "log log2 log10 log1p",
    "trigonometric": "sin cos tan",
    "inverse_trigonometric": "asin acos atan atan2",
    "hyperbolic": "sinh cosh tanh",
    "root": "cbrt hypot",
    "error": "erf erfc",
    "remainder": "fmod remainder",
    "power": "pow",
}
"""Functions of a type, by the module that has their meanings."""


def _declared(t: Type, place: str, modules: dict[str, str], suffix: str) -> Iterator[PureFunction]:
    for module, names in modules.items():
        for name in names.split():
            where = f"ferryvm.isa.mathematics.{place}.{module}:{name}{suffix}"
            operands = (t, t) if name in _BINARY else (t,)
            yield PureFunction(f"{t}.{name}", operands, t, _SUMMARIES[name], where)


FUNCTIONS: dict[str, PureFunction] = {
    function.name: function
    for function in (
        *_declared(F32, "single", _F32, "_f32"),
        *_declared(F64, "double", _F64, ""),
    )
}
"""All of them, by mnemonic."""

_EXCEPTIONAL = frozenset(
    [
        "f64.exp_rare",
        "f64.exp2_rare",
        "f64.expm1_rare",
        "f64.sinh_rare",
        "f64.cosh_rare",
        "f64.hypot_rare",
    ]
)
"""Functions whose finite operands are near overflow or underflow."""

_PARTS: tuple[tuple[str, int, str, str], ...] = (
    ("f64.sin_huge f64.cos_huge f64.tan_huge", 1, "trigonometric", "of operands from 2^20 on"),
    (
        "f64.fmod_long f64.remainder_long",
        2,
        "remainder",
        "of magnitudes whose quotient is 2^52 or more",
    ),
    (
        "f64.exp_rare f64.exp2_rare f64.expm1_rare",
        1,
        "exponential",
        "of operands that are large or NaN",
    ),
    ("f64.sinh_rare f64.cosh_rare", 1, "hyperbolic", "of operands that are large or NaN"),
    ("f64.erfc_rare", 1, "error", "whose power of e may be subnormal, or NaN"),
    (
        "f64.pow_rare",
        2,
        "power",
        "of bases that are no positive normal numbers, and of powers that are none",
    ),
    ("f32.exp_rare f32.exp2_rare", 1, "exponential", "of operands that take f64"),
    (
        "f32.log_rare f32.log2_rare f32.log10_rare f32.log1p_rare",
        1,
        "logarithm",
        "of operands that take f64",
    ),
    ("f32.sin_rare f32.cos_rare f32.tan_rare", 1, "trigonometric", "of large operands and NaN"),
    ("f32.asin_rare f32.acos_rare", 1, "inverse_trigonometric", "of operands that take f64"),
    ("f32.atan_rare", 1, "inverse_trigonometric", "likewise"),
    ("f32.erf_rare", 1, "error", "of operands that take f64"),
    ("f32.atan2_rare", 2, "angle", "of operands that take f64"),
    ("f32.sinh_rare f32.cosh_rare", 1, "hyperbolic", "of operands that take f64"),
    ("f32.pow_rare", 2, "power", "of operands and results that take more than f64"),
    (
        "f32.cbrt_rare",
        1,
        "root",
        "of operands that take f64",
    ),
    ("f32.hypot_rare", 2, "root", "likewise"),
    ("f64.hypot_rare", 2, "root", "where a sum of squares would overflow or be subnormal"),
)
"""Names, number of operands, the module that has their meanings, and their operands."""

PARTS: dict[str, PureFunction] = {
    name: PureFunction(
        name,
        (t,) * count,
        t,
        f"For the function of that name, {which}.",
        f"ferryvm.isa.mathematics.{place}.{module}:{name.partition('.')[2]}",
        name in _EXCEPTIONAL,
    )
    for names, count, module, which in _PARTS
    for name in names.split()
    for t, place in [(F32, "single") if name.startswith("f32") else (F64, "double")]
}
"""Functions that meanings of others apply, and that are no instructions."""
