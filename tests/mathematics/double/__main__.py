# SPDX-License-Identifier: Apache-2.0
"""Make the coefficients of the functions of f64.

python -m tests.mathematics.double > core/ferryvm/isa/mathematics/double/coefficient.py
"""

from __future__ import annotations

from mpmath import mp, mpf
from tests.mathematics.chebyshev import bits
from tests.mathematics.double.minimax import Number, minimax

_HEAD = '''\
# SPDX-License-Identifier: Apache-2.0
"""Coefficients of the functions of f64, written by `python -m tests.mathematics.double`."""

from __future__ import annotations

'''
_WIDER = 1 + mpf(2) ** -20
"""Reduced operands may exceed their interval by rounding errors."""
_QUOTIENT_WORDS = 19
"""Words of 2/pi: for the largest f64 the last 192 of 1195 bits."""


def _exp(r: Number) -> Number:
    """(e^r - 1 - r) / r^2."""
    return (mp.exp(r) - 1 - r) / r**2 if abs(r) > mpf(2) ** -60 else mpf(1) / 2 + r / 6


def _exp2(r: Number) -> Number:
    """(2^r - 1 - r ln 2) / r^2."""
    ln2 = mp.log(2)
    if abs(r) < mpf(2) ** -60:
        return ln2**2 / 2 + ln2**3 / 6 * r
    return (mpf(2) ** r - 1 - r * ln2) / r**2


def _sinh(z: Number) -> Number:
    """(sinh r - r) / r^3, where z = r^2."""
    if z < mpf(2) ** -80:
        return mpf(1) / 6
    r = mp.sqrt(z)
    return (mp.sinh(r) - r) / (r * z)


def _cosh(z: Number) -> Number:
    """(cosh r - 1 - r^2 / 2) / r^4, where z = r^2."""
    return (mp.cosh(mp.sqrt(z)) - 1 - z / 2) / z**2 if z > mpf(2) ** -60 else mpf(1) / 24


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


def _erf(z: Number) -> Number:
    """(erf x / x - c0 - c1 z) / z^2, where z = x^2 and c0 and c1 are the first terms of the series."""
    c0 = 2 / mp.sqrt(mp.pi)
    if z < mpf(2) ** -60:
        return c0 / 10
    x = mp.sqrt(z)
    return (mp.erf(x) / x - c0 + c0 / 3 * z) / z**2


_POLE, _CENTER, _SCALE, _SHIFT = mpf(9) / 16, mpf(5) / 8, mpf(17) / 2, mpf(163) / 128
"""Of erfc: see `ferryvm.isa.mathematics.double.error`."""


def _erfc(t: Number) -> Number:
    """e^(a^2) erfc(a) (a + 9/16) - 5/8, where t = 17/2 / (a + 3) - 163/128."""
    a = _SCALE / (t + _SHIFT) - 3
    return mp.exp(a**2) * mp.erfc(a) * (a + _POLE) - _CENTER


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
    erf_0 = 2 / mp.sqrt(mp.pi)
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
        "ERF_0": erf_0,
        "ERF_0_REST": erf_0 - float(erf_0),
        "ERF_1": -erf_0 / 3,
        "ERF_1_REST": -erf_0 / 3 - float(-erf_0 / 3),
        "ERFC_POLE": _POLE,
        "ERFC_CENTER": _CENTER,
        "ERFC_SCALE": _SCALE,
        "ERFC_SHIFT": _SHIFT,
    }
    half = ln2 / 2 * _WIDER
    quarter = mp.pi / 4 * _WIDER
    most = ((root - 1) / (root + 1)) ** 2 * _WIDER
    polynomials = {
        "EXP": minimax(_exp, -half, half, 10),
        "EXP_SIXTEENTH": minimax(_exp, -half / 16, half / 16, 5),
        "EXP2_SIXTEENTH": minimax(_exp2, -_WIDER / 32, _WIDER / 32, 5),
        "SINH": minimax(_sinh, 0, half**2, 5),
        "COSH": minimax(_cosh, 0, half**2, 5),
        "SIN": minimax(_sin, -(quarter**2) / 8, 0, 6),
        "COS": [0.0, *minimax(_cos, -(quarter**2) / 2, 0, 5)],
        "TAN": minimax(_tan, 0, quarter**2 / 2, 14),
        "LOG": minimax(_log, 0, most, 7),
        "ERF": minimax(_erf, 0, mpf(9) / 16 * _WIDER, 9),
        "ERFC": minimax(_erfc, _SCALE / mpf(31) - _SHIFT, _SCALE / mpf("3.75") - _SHIFT, 22),
        "POW_LOG": [*_pair(12), *_pair(80), *minimax(_pow_log, 0, 4 * most, 6)],
        "ATAN": minimax(_atan, 0, (root - 1) ** 2 * _WIDER, 11),
        "ASIN": minimax(_asin, 0, mpf(1) / 4 * _WIDER, 12),
        "INVERSE_ROOT": minimax(_inverse_root, -mpf("0.069"), mpf("0.069"), 4),
    }
    powers, tails = _powers()
    polynomials["POWER_TAILS"] = tails
    whole = {"TWO_OVER_PI_WORDS": _words_of_quotient(), "POWER_WORDS": powers}
    lines = [f"{name} = {_hex(float(value))}\n" for name, value in numbers.items()]
    for name, coefficients in polynomials.items():
        inner = "".join(f"    {_hex(each)},\n" for each in coefficients)
        lines.append(f"\n{name} = (\n{inner})\n")
    for name, words in whole.items():
        inner = "".join(f"    0x{each:016X},\n" for each in words)
        lines.append(f"\n{name} = (\n{inner})\n")
    return _HEAD + "".join(lines)


if __name__ == "__main__":
    print(text(), end="")
