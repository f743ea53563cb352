# SPDX-License-Identifier: Apache-2.0
"""Make the coefficients of the functions of f64.

python -m tests.mathematics.double > core/ferryvm/isa/mathematics/double/coefficient.py
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from mpmath import mp, mpf
from tests.mathematics.chebyshev import bits, interpolate
from tests.mathematics.double.minimax import Number, minimax

_HEAD = '''\
# SPDX-License-Identifier: Apache-2.0
"""Coefficients of the functions of f64, written by `python -m tests.mathematics.double`."""

from __future__ import annotations

'''
Function = Callable[[Number], Number]
_WIDER = 1 + mpf(2) ** -20
"""Reduced operands may exceed their interval by rounding errors."""
_QUOTIENT_WORDS = 19
"""Words of 2/pi: for the largest f64 the last 192 of 1195 bits."""


def _exp(r: Number) -> Number:
    """(e^r - 1 - r) / r^2."""
    return (mp.exp(r) - 1 - r) / r**2 if abs(r) > mpf(2) ** -60 else mpf(1) / 2 + r / 6


def _sinh(z: Number) -> Number:
    """(sinh r - r) / r^3, where z = r^2."""
    if z < mpf(2) ** -80:
        return mpf(1) / 6
    r = mp.sqrt(z)
    return (mp.sinh(r) - r) / (r * z)


def _cosh(z: Number) -> Number:
    """(cosh r - 1) / r^2, where z = r^2."""
    return (mp.cosh(mp.sqrt(z)) - 1) / z if z > mpf(2) ** -60 else mpf(1) / 2 + z / 24


def _sin(w: Number) -> Number:
    """(sin r / r - 1 - w) / w, where w = -r^2 / 8."""
    if abs(w) < mpf(2) ** -80:
        return mpf(1) / 3
    r = mp.sqrt(-8 * w)
    return (mp.sin(r) / r - 1 - w) / w


def _cos(w: Number) -> Number:
    """(cos r - 1 - w) / w^2, where w = -r^2 / 2."""
    return (mp.cos(mp.sqrt(-2 * w)) - 1 - w) / w**2 if abs(w) > mpf(2) ** -60 else mpf(1) / 6


def _tan(w: Number) -> Number:
    """(tan r / r - 1 - w) / w, where w = r^2 / 2."""
    if abs(w) < mpf(2) ** -80:
        return -mpf(1) / 3
    r = mp.sqrt(2 * w)
    return (mp.tan(r) / r - 1 - w) / w


def _words_of_quotient() -> list[int]:
    """34 zero bits and 1182 bits of 2/pi, in words of 64 bits."""
    with mp.workprec(1400):
        bits = int(mp.floor(2 / mp.pi * mpf(2) ** (_QUOTIENT_WORDS * 64 - 34)))
    return [bits >> 64 * n & (1 << 64) - 1 for n in reversed(range(_QUOTIENT_WORDS))]


def _powers() -> tuple[list[int], list[float]]:
    """2^(j/16) for j from 0 to 15: the bits of the f64, less j 2^48, and its relative error."""
    exact = [mpf(2) ** (mpf(j) / 16) for j in range(16)]
    words = [bits(value) - (j << 48) for j, value in enumerate(exact)]
    return words, [float((value - float(value)) / float(value)) for value in exact]


def _log(z: Number) -> Number:
    """(ln((1 + s) / (1 - s)) - 2 s) / s^3, where z = s^2."""
    if z < mpf(2) ** -80:
        return mpf(2) / 3
    s = mp.sqrt(z)
    return (mp.log((1 + s) / (1 - s)) - 2 * s) / (s * z)


_ERF_STEP = mpf(25) / 64
"""The distance of the centers of erf: see `ferryvm.isa.mathematics.double.error`."""


def _terms(
    f: Function,
    slope: Function,
    bend: Function,
    ranges: list[tuple[Number, Number, Number]],
    count: int,
) -> list[list[float]]:
    """For each power of t the coefficients of f(c + t) for centers c, with the least and the
    largest t for each: value and slope as pairs, and `count` terms of what is left over t^2.
    `bend`: half of the second derivative."""
    columns = []
    for center, low, high in ranges:
        column = []
        for exact in (f(center), slope(center)):
            column += [float(exact), float(exact - float(exact))]
        rest = functools.partial(_rest, f, slope, bend, center)
        columns.append([*column, *map(float, interpolate(rest, low, high, count))])
    return [list(row) for row in zip(*columns, strict=True)]


def _rest(f: Function, slope: Function, bend: Function, center: Number, t: Number) -> Number:
    """(f(c + t) - f(c) - t f'(c)) / t^2."""
    if abs(t) < mpf(2) ** -60:
        return bend(center)
    return (f(center + t) - f(center) - slope(center) * t) / t**2


def _erf_terms() -> list[list[float]]:
    """erf at multiples of 25/64."""
    half = _ERF_STEP / 2 * _WIDER
    ranges = [(place * _ERF_STEP, -half if place else mpf(0), half) for place in range(16)]
    slope: Function = lambda x: 2 / mp.sqrt(mp.pi) * mp.exp(-(x**2))
    return _terms(mp.erf, slope, lambda x: -x * slope(x), ranges, 13)


def _erfcx(a: Number) -> Number:
    """e^(a^2) erfc(a)."""
    return mp.exp(a**2) * mp.erfc(a)


def _erfcx_terms() -> tuple[list[Number], list[list[float]]]:
    """Centers of quarters of the octaves of a + 2, from 2 to 32, and erfcx at them."""
    ranges = []
    for octave in (2, 4, 8, 16):
        half = mpf(octave) / 8
        ranges += [(octave + half * (2 * n + 1) - 2, -half, half) for n in range(4)]
    slope: Function = lambda a: 2 * a * _erfcx(a) - 2 / mp.sqrt(mp.pi)
    terms = _terms(_erfcx, slope, lambda a: _erfcx(a) + a * slope(a), ranges, 14)
    return [center for center, _, _ in ranges], terms


def _atan(z: Number) -> Number:
    """(atan s - s) / s^3, where z = s^2."""
    if z < mpf(2) ** -80:
        return -mpf(1) / 3
    s = mp.sqrt(z)
    return (mp.atan(s) - s) / (s * z)


def _asin(z: Number) -> Number:
    """(asin s - s) / s^3, where z = s^2."""
    if z < mpf(2) ** -80:
        return mpf(1) / 6
    s = mp.sqrt(z)
    return (mp.asin(s) - s) / (s * z)


def _pow_log(z: Number) -> Number:
    """(ln((2 + s) / (2 - s)) - s - s^3 / 12 - s^5 / 80) / s^7, where z = s^2."""
    if z < mpf(2) ** -30:
        return mpf(1) / 448 + z / 2304 + z**2 / 11264
    s = mp.sqrt(z)
    return (mp.log((2 + s) / (2 - s)) / s - 1 - z / 12 - z**2 / 80) / z**3


def _inverse_root(d: Number) -> Number:
    """((1 - d)^(-1/2) - 1) / d."""
    return (1 / mp.sqrt(1 - d) - 1) / d if abs(d) > mpf(2) ** -80 else mpf(1) / 2


def _pair(divisor: int) -> list[float]:
    """The reciprocal of an integer as a pair."""
    inverse = 1 / mpf(divisor)
    return [float(inverse), float(inverse - float(inverse))]


def _hex(value: float) -> str:
    return f'float.fromhex("{value.hex()}")'


def text() -> str:
    """The text of the module."""
    mp.prec = 300
    ln2, root = mp.log(2), mp.sqrt(2)
    high = mp.floor(ln2 * 2**42) / 2**42
    decimal = mp.log10(2)
    decimal_high = mp.floor(decimal * 2**43) / 2**43
    middle_unit = mpf(2) ** 86
    middle = mp.floor((mp.pi / 2 - float(mp.pi / 2)) * middle_unit) / middle_unit
    numbers = {
        "LN2": ln2,
        "LN2_HIGH": high,
        "LN2_LOW": ln2 - high,
        "LOG2_E": 1 / ln2,
        "LOG2_E_REST": 1 / ln2 - float(1 / ln2),
        "SIXTEENTHS_E": 16 / ln2,
        "LN2_16_HIGH": high / 16,
        "LN2_16_LOW": (ln2 - high) / 16,
        "LOG10_2_HIGH": decimal_high,
        "LOG10_2_LOW": decimal - decimal_high,
        "LOG10_E": mp.log10(mp.e),
        "LOG10_E_REST": mp.log10(mp.e) - float(mp.log10(mp.e)),
        "PI_2": mp.pi / 2,
        "PI_2_REST": mp.pi / 2 - float(mp.pi / 2),
        "PI_2_MIDDLE": middle,
        "PI_2_LOW": mp.pi / 2 - float(mp.pi / 2) - middle,
        "TWO_OVER_PI": 2 / mp.pi,
        "ERF_STEP": _ERF_STEP,
    }
    half = ln2 / 2 * _WIDER
    quarter = mp.pi / 4 * _WIDER
    most = ((root - 1) / (root + 1)) ** 2 * _WIDER
    polynomials = {
        "EXP_SIXTEENTH": minimax(_exp, -half / 16, half / 16, 5),
        "SINH": minimax(_sinh, 0, (half / 16) ** 2, 2),
        "COSH": minimax(_cosh, 0, (half / 16) ** 2, 3),
        "SIN": minimax(_sin, -(quarter**2) / 8, 0, 6),
        "COS": [0.0, *minimax(_cos, -(quarter**2) / 2, 0, 5)],
        "TAN": minimax(_tan, 0, quarter**2 / 2, 14),
        "LOG": minimax(_log, 0, most, 7),
        "POW_LOG": [*_pair(12), *_pair(80), *minimax(_pow_log, 0, 4 * most, 6)],
        "ATAN": minimax(_atan, 0, (root - 1) ** 2 * _WIDER, 11),
        "ASIN": minimax(_asin, 0, mpf(1) / 4 * _WIDER, 12),
        "INVERSE_ROOT": minimax(_inverse_root, -mpf("0.069"), mpf("0.069"), 4),
    }
    powers, tails = _powers()
    polynomials["POWER_TAILS"] = tails
    whole = {"TWO_OVER_PI_WORDS": _words_of_quotient(), "POWER_WORDS": powers}
    centers, erfcx = _erfcx_terms()
    polynomials["ERFCX_CENTERS"] = [float(center) for center in centers]
    rows = {"ERF_TERMS": _erf_terms(), "ERFCX_TERMS": erfcx}
    lines = [f"{name} = {_hex(float(value))}\n" for name, value in numbers.items()]
    for name, coefficients in polynomials.items():
        inner = "".join(f"    {_hex(each)},\n" for each in coefficients)
        lines.append(f"\n{name} = (\n{inner})\n")
    for name, terms in rows.items():
        inner = "".join(
            "    (\n" + "".join(f"        {_hex(each)},\n" for each in row) + "    ),\n"
            for row in terms
        )
        lines.append(f"\n{name} = (\n{inner})\n")
    for name, words in whole.items():
        inner = "".join(f"    0x{each:016X},\n" for each in words)
        lines.append(f"\n{name} = (\n{inner})\n")
    return _HEAD + "".join(lines)


if __name__ == "__main__":
    print(text(), end="")
