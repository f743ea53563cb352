# SPDX-License-Identifier: Apache-2.0
"""Operators on complex numbers in the subset of Python that is compiled: they are compiled where
code needs them.

They take and return real and imaginary parts, and do what CPython's Objects/complexobject.c and
NumPy's scalars do, operation by operation. `raise` with a computed argument leaves the call to
CPython.
"""

from __future__ import annotations

import math
from typing import Any


def _message_of_power() -> str:
    """The message of the error for a negative power of zero in this Python."""
    try:
        return str(0j**-1)
    except ZeroDivisionError as error:
        return str(error)


def _message_of_quotient() -> str:
    try:
        return str(1j / 0j)
    except ZeroDivisionError as error:
        return str(error)


_POWER, _QUOTIENT = _message_of_power(), _message_of_quotient()


def absolute(x: Any, y: Any) -> Any:
    """The absolute value."""
    found = math.hypot(x, y)
    if math.isinf(found) and math.isfinite(x) and math.isfinite(y):
        raise OverflowError("absolute value too large")
    return found


def quotient(a: Any, b: Any, c: Any, d: Any) -> Any:
    """(a + bj) / (c + dj), by Smith's method (Communications of the ACM 5, 1962, algorithm 116)."""
    if abs(c) >= abs(d):
        if c == 0.0:
            raise ZeroDivisionError(_QUOTIENT)
        ratio = d / c
        divisor = c + d * ratio
        if divisor == 0.0:
            raise OverflowError(divisor)
        return (a + b * ratio) / divisor, (b - a * ratio) / divisor
    if abs(d) >= abs(c):
        ratio = c / d
        divisor = c * ratio + d
        if divisor == 0.0:
            raise OverflowError(divisor)
        return (a * ratio + b) / divisor, (b * ratio - a) / divisor
    return math.nan, math.nan


def quotient_of_numpy(a: Any, b: Any, c: Any, d: Any) -> Any:
    """(a + bj) / (c + dj) of NumPy's scalars, whose quotient by zero has infinities and NaNs."""
    if abs(c) >= abs(d):
        if c == 0.0 and d == 0.0:
            return a / abs(c), b / abs(c)
        ratio = d / c
        scale = 1.0 / (c + d * ratio)
        return (a + b * ratio) * scale, (b - a * ratio) * scale
    ratio = c / d
    scale = 1.0 / (d + c * ratio)
    return (a * ratio + b) * scale, (b * ratio - a) * scale


def power(a: Any, b: Any, c: Any, d: Any) -> Any:
    """(a + bj) ** (c + dj): by squaring for small integers."""
    if d == 0.0 and abs(c) <= 100.0 and c == math.floor(c):
        count = int(abs(c))
        x, y = 1.0, 0.0
        p, q = a, b
        bit = 1
        while bit <= count:
            if count & bit:
                x, y = x * p - y * q, x * q + y * p
            bit += bit
            p, q = p * p - q * q, p * q + q * p
        if c <= 0.0:
            if x == 0.0 and y == 0.0:
                raise ZeroDivisionError(_POWER)
            x, y = quotient(1.0, 0.0, x, y)
    else:
        x, y = _power(a, b, c, d)
    if math.isinf(x) or math.isinf(y):
        raise OverflowError("complex exponentiation")
    return x, y


def _power(a: Any, b: Any, c: Any, d: Any) -> Any:
    """By the polar form."""
    if a == 0.0 and b == 0.0:
        if d != 0.0 or c < 0.0:
            raise ZeroDivisionError(_POWER)
        return 0.0, 0.0
    length, angle = math.hypot(a, b), math.atan2(b, a)
    if not math.isfinite(length) or not math.isfinite(c) or not math.isfinite(d):
        raise OverflowError(length)
    size, phase = length**c, angle * c
    if d != 0.0:
        if abs(angle * d) > 700.0:
            raise OverflowError(length)
        size /= math.exp(angle * d)
        phase += d * math.log(length)
    if not math.isfinite(phase):
        raise OverflowError(length)
    return size * math.cos(phase), size * math.sin(phase)
