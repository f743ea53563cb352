# SPDX-License-Identifier: Apache-2.0
"""Correctly rounded values of the f32 functions, by MPFR."""

from __future__ import annotations

import struct

import gmpy2
from tests.mathematics.meaning import FUNCTIONS

from ferryvm.isa.type import CANONICAL_NAN, F32

__all__ = ["FUNCTIONS", "exact", "number"]

_ROUNDED = gmpy2.context(
    precision=24, emin=-148, emax=128, subnormalize=True, round=gmpy2.RoundToNearest
)
"""binary32 in MPFR's terms."""


def number(bits: int) -> float:
    """The number of an f32's bits."""
    return float(struct.unpack("<f", struct.pack("<I", bits))[0])


def exact(name: str, *operands: int) -> int:
    """The bits of the correctly rounded result for operands as bits."""
    values = [gmpy2.mpfr(number(each), 24) for each in operands]
    with gmpy2.context(_ROUNDED):
        function = pow if name == "pow_f32" else getattr(gmpy2, name.removesuffix("_f32"))
        result = function(*values)
    if gmpy2.is_nan(result):
        return CANONICAL_NAN[F32]
    return int(struct.unpack("<I", struct.pack("<f", float(result)))[0])
