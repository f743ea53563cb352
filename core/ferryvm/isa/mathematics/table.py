# SPDX-License-Identifier: Apache-2.0
"""The tables of constants that meanings look up."""

from __future__ import annotations

from ferryvm.isa.constant_table import ConstantTable
from ferryvm.isa.mathematics.double import coefficient as double
from ferryvm.isa.type import F64, I64, from_float


def _floats(name: str, values: tuple[float, ...]) -> ConstantTable:
    return ConstantTable(name, F64, [from_float(F64, value) for value in values])


POWER_WORDS = ConstantTable("power_words", I64, double.POWER_WORDS)
"""Bits of 2^(j/16), less j 2^48, for j from 0 to 15."""
POWER_TAILS = _floats("power_tails", double.POWER_TAILS)
"""The relative errors of these f64."""

TABLES: dict[str, ConstantTable] = {table.name: table for table in (POWER_WORDS, POWER_TAILS)}
"""All of them, by name."""
