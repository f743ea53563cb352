# SPDX-License-Identifier: Apache-2.0
"""Mathematical functions, f32 and f64: the bits are the same on every backend.

Each meaning is written in exact operations of the emitter, and is the only definition. docs/math.md
says how accurate the results are, and by which command that is known. Zeros, infinities and NaN are
as IEEE 754-2019, clause 9.2, says.
"""

from __future__ import annotations

from ferryvm.isa.pure_function import PureFunction
from ferryvm.isa.type import F32, F64

_SUMMARIES = {
    "exp": "Power of e; the operand is the exponent.",
    "exp2": "Power of 2; the operand is the exponent.",
    "expm1": "Power of e minus 1; the operand is the exponent.",
    "log": "Natural logarithm; -inf of a zero, NaN of a negative number.",
    "log10": "Decimal logarithm; -inf of a zero, NaN of a negative number.",
    "log1p": "Natural logarithm of 1 plus the operand; -inf of -1, NaN below.",
    "log2": "Binary logarithm; -inf of a zero, NaN of a negative number.",
}
"""Functions of one operand."""

_F32 = {
    "exp": "exponential:exp_f32",
    "exp2": "exponential:exp2_f32",
    "expm1": "exponential:expm1_f32",
    "log": "logarithm:log_f32",
    "log2": "logarithm:log2_f32",
}
_F64 = {
    "exp": "exponential:exp",
    "exp2": "exponential:exp2",
    "expm1": "exponential:expm1",
    "log": "logarithm:log",
    "log10": "logarithm:log10",
    "log1p": "logarithm:log1p",
    "log2": "logarithm:log2",
}
"""Meanings: module and function."""

FUNCTIONS: dict[str, PureFunction] = {
    f"{t}.{name}": PureFunction(
        f"{t}.{name}", (t,), t, _SUMMARIES[name], f"ferryvm.isa.mathematics.{folder}.{where}"
    )
    for t, folder, meanings in ((F32, "single", _F32), (F64, "double", _F64))
    for name, where in meanings.items()
}
"""All of them, by mnemonic."""
