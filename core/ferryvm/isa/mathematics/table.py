# SPDX-License-Identifier: Apache-2.0
"""The tables of constants that meanings look up."""

from __future__ import annotations

from collections.abc import Sequence

from ferryvm.isa.constant_table import ConstantTable
from ferryvm.isa.mathematics.double import coefficient as double
from ferryvm.isa.mathematics.single import coefficient as single
from ferryvm.isa.type import F32, F64, I32, I64, from_float


def _floats(name: str, values: tuple[float, ...]) -> ConstantTable:
    return ConstantTable(name, F64, [from_float(F64, value) for value in values])


POWER_WORDS = ConstantTable("power_words", I64, double.POWER_WORDS)
"""Bits of 2^(j/16), less j 2^48, for j from 0 to 15."""
POWER_TAILS = _floats("power_tails", double.POWER_TAILS)
"""The relative errors of these f64."""

ERF_TERMS = tuple(_floats(f"erf_{place}", values) for place, values in enumerate(double.ERF_TERMS))
"""Coefficients of erf near 16 centers: the first two as pairs."""

ERFCX_CENTERS = _floats("erfcx_centers", double.ERFCX_CENTERS)
ERFCX_TERMS = tuple(
    _floats(f"erfcx_{place}", values) for place, values in enumerate(double.ERFCX_TERMS)
)
"""The same of e^(a^2) erfc(a), near these centers."""

_BASES = "LOG", "LOG2", "LOG10"

EXP_WORDS = ConstantTable("exp_words", I32, single.EXP_WORDS)
"""Bits of 2^(j/32) as f32, less j 2^18, for j from 0 to 31."""
EXP_RESTS = ConstantTable("exp_rests", F32, single.EXP_RESTS)
"""Logarithms of 2^(j/32) over these f32."""

LOG_INVERSES = ConstantTable("log_inverses", F32, single.LOG_INVERSES)
"""Inverses of mantissas of f32."""
LOG_TOPS, LOG2_TOPS, LOG10_TOPS = (
    ConstantTable(f"{name.lower()}_tops", F32, getattr(single, f"{name}_TOPS")) for name in _BASES
)
"""The first parts of logarithms of their inverses."""
LOG_RESTS, LOG2_RESTS, LOG10_RESTS = (
    ConstantTable(f"{name.lower()}_rests", F32, getattr(single, f"{name}_RESTS")) for name in _BASES
)


def _columns(name: str, rows: Sequence[Sequence[int]]) -> tuple[ConstantTable, ...]:
    """A table for each column of rows of f32."""
    columns = zip(*rows, strict=True)
    return tuple(ConstantTable(f"{name}_{place}", F32, each) for place, each in enumerate(columns))


ASIN_SUMS = _columns("asin_sums", single.ASIN_SUMS)
"""Coefficients of asin near multiples of a width, each in two parts."""
ASIN_TERMS = _columns("asin_terms", single.ASIN_TERMS)
"""The others."""
ATAN_SUMS = _columns("atan_sums", single.ATAN_SUMS)
ATAN_TERMS = _columns("atan_terms", single.ATAN_TERMS)
ERF_SUMS = _columns("erf_sums", single.ERF_SUMS)
ERF_TERMS_SHORT = _columns("erf_terms", single.ERF_TERMS)

POW_INVERSES = ConstantTable("pow_inverses", F64, single.POW_INVERSES)
"""Inverses of mantissas, for f32.pow."""
POW_LOGARITHMS = ConstantTable("pow_logarithms", F64, single.POW_LOGARITHMS)
"""Binary logarithms of their inverses."""

TABLES: dict[str, ConstantTable] = {
    table.name: table
    for table in (
        POWER_WORDS,
        POWER_TAILS,
        *ERF_TERMS,
        ERFCX_CENTERS,
        *ERFCX_TERMS,
        EXP_WORDS,
        EXP_RESTS,
        LOG_INVERSES,
        LOG_TOPS,
        LOG2_TOPS,
        LOG10_TOPS,
        LOG_RESTS,
        LOG2_RESTS,
        LOG10_RESTS,
        *ASIN_SUMS,
        *ASIN_TERMS,
        *ATAN_SUMS,
        *ATAN_TERMS,
        *ERF_SUMS,
        *ERF_TERMS_SHORT,
        POW_INVERSES,
        POW_LOGARITHMS,
    )
}
"""All of them, by name."""
