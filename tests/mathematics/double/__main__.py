# SPDX-License-Identifier: Apache-2.0
"""Make the coefficients of the functions of f64.

python -m tests.mathematics.double > core/ferryvm/isa/mathematics/double/coefficient.py
"""

from __future__ import annotations

from mpmath import mp, mpf
from tests.mathematics.double.minimax import Number, minimax

_HEAD = '''\
# SPDX-License-Identifier: Apache-2.0
"""Coefficients of the functions of f64, written by `python -m tests.mathematics.double`."""

from __future__ import annotations

'''
_WIDER = 1 + mpf(2) ** -20
"""Reduced operands may exceed their interval by rounding errors."""


def _exp(r: Number) -> Number:
    """(e^r - 1 - r) / r^2."""
    return (mp.exp(r) - 1 - r) / r**2 if abs(r) > mpf(2) ** -60 else mpf(1) / 2 + r / 6


def _log(z: Number) -> Number:
    """(ln((1 + s) / (1 - s)) - 2 s) / s^3, where z = s^2."""
    if z < mpf(2) ** -80:
        return mpf(2) / 3
    s = mp.sqrt(z)
    return (mp.log((1 + s) / (1 - s)) - 2 * s) / (s * z)


def _hex(value: float) -> str:
    return f'float.fromhex("{value.hex()}")'


def text() -> str:
    """The text of the module."""
    mp.prec = 300
    ln2, root = mp.log(2), mp.sqrt(2)
    high = mp.floor(ln2 * 2**42) / 2**42
    numbers = {"LOG2_E": 1 / ln2, "LN2_HIGH": high, "LN2_LOW": ln2 - high}
    half = ln2 / 2 * _WIDER
    most = ((root - 1) / (root + 1)) ** 2 * _WIDER
    polynomials = {
        "EXP": minimax(_exp, -half, half, 10),
        "LOG": minimax(_log, 0, most, 7),
    }
    lines = [f"{name} = {_hex(float(value))}\n" for name, value in numbers.items()]
    for name, coefficients in polynomials.items():
        inner = "".join(f"    {_hex(each)},\n" for each in coefficients)
        lines.append(f"\n{name} = (\n{inner})\n")
    return _HEAD + "".join(lines)


if __name__ == "__main__":
    print(text(), end="")
