# SPDX-License-Identifier: Apache-2.0
"""Functions of `cmath` in the subset of Python that is compiled: they are compiled where they are
called.

They are composed of functions of real numbers as CPython's Modules/cmathmodule.c composes them.
Operands that are not finite, or near to the ends of the exponents, are left to CPython by `raise`
with a computed argument.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from typing import Any

_LARGE = 708.0
"""The exponential function of larger numbers may be infinite."""
_TINY = 2.2250738585072014e-308


def _checked(z: Any) -> Any:
    """A finite complex number."""
    value = complex(z)
    if not math.isfinite(value.real) or not math.isfinite(value.imag):
        raise OverflowError(z)
    return value


def phase(z: Any) -> Any:
    """`cmath.phase`."""
    value = complex(z)
    found = math.atan2(value.imag, value.real)
    if abs(found) < _TINY and value.imag != 0.0:
        raise OverflowError(z)
    return found


def polar(z: Any) -> Any:
    """`cmath.polar`."""
    value = _checked(z)
    return abs(value), phase(value)


def rectangular(r: Any, phi: Any) -> Any:
    """`cmath.rect`."""
    size, angle = float(r), float(phi)
    if not math.isfinite(size) or not math.isfinite(angle):
        raise OverflowError(r)
    if angle == 0.0:
        return complex(size, size * angle)
    return complex(size * math.cos(angle), size * math.sin(angle))


def exponential(z: Any) -> Any:
    """`cmath.exp`."""
    value = _checked(z)
    if value.real > _LARGE:
        raise OverflowError(z)
    size = math.exp(value.real)
    return complex(size * math.cos(value.imag), size * math.sin(value.imag))


def square_root(z: Any) -> Any:
    """`cmath.sqrt`."""
    value = _checked(z)
    if value.real == 0.0 and value.imag == 0.0:
        return complex(0.0, value.imag)
    x, y = abs(value.real), abs(value.imag)
    if x < _TINY and y < _TINY:
        raise OverflowError(z)
    x /= 8.0
    root = 2.0 * math.sqrt(x + math.hypot(x, y / 8.0))
    other = y / (2.0 * root)
    if value.real >= 0.0:
        return complex(root, math.copysign(other, value.imag))
    return complex(other, math.copysign(root, value.imag))


def _logarithm_of_size(x: Any, y: Any) -> Any:
    if x > 1e300 or y > 1e300 or (x < _TINY and y < _TINY):
        raise OverflowError(x)
    size = math.hypot(x, y)
    if size < 0.71 or size > 1.73:
        return math.log(size)
    greater, less = max(x, y), min(x, y)
    return math.log1p((greater - 1.0) * (greater + 1.0) + less * less) / 2.0


def logarithm(z: Any) -> Any:
    """`cmath.log` without a base."""
    value = _checked(z)
    size = _logarithm_of_size(abs(value.real), abs(value.imag))
    return complex(size, math.atan2(value.imag, value.real))


def logarithm_of_base(z: Any, base: Any) -> Any:
    """`cmath.log` with a base."""
    return logarithm(z) / logarithm(base)


def decimal_logarithm(z: Any) -> Any:
    """`cmath.log10`."""
    value = logarithm(z)
    return complex(value.real / 2.302585092994046, value.imag / 2.302585092994046)


def _hyperbolic_cosine(x: Any, y: Any) -> Any:
    if abs(x) > _LARGE:
        raise OverflowError(x)
    return complex(math.cos(y) * math.cosh(x), math.sin(y) * math.sinh(x))


def _hyperbolic_sine(x: Any, y: Any) -> Any:
    if abs(x) > _LARGE:
        raise OverflowError(x)
    return complex(math.cos(y) * math.sinh(x), math.sin(y) * math.cosh(x))


def _hyperbolic_tangent(x: Any, y: Any) -> Any:
    if abs(x) > _LARGE:
        raise OverflowError(x)
    one, other = math.tanh(x), math.tan(y)
    secant = 1.0 / math.cosh(x)
    product = one * other
    divisor = 1.0 + product * product
    return complex(one * (1.0 + other * other) / divisor, other / divisor * secant * secant)


def hyperbolic_cosine(z: Any) -> Any:
    """`cmath.cosh`."""
    value = _checked(z)
    return _hyperbolic_cosine(value.real, value.imag)


def hyperbolic_sine(z: Any) -> Any:
    """`cmath.sinh`."""
    value = _checked(z)
    return _hyperbolic_sine(value.real, value.imag)


def hyperbolic_tangent(z: Any) -> Any:
    """`cmath.tanh`."""
    value = _checked(z)
    return _hyperbolic_tangent(value.real, value.imag)


def cosine(z: Any) -> Any:
    """`cmath.cos`."""
    value = _checked(z)
    return _hyperbolic_cosine(-value.imag, value.real)


def sine(z: Any) -> Any:
    """`cmath.sin`."""
    value = _checked(z)
    found = _hyperbolic_sine(-value.imag, value.real)
    return complex(found.imag, -found.real)


def tangent(z: Any) -> Any:
    """`cmath.tan`."""
    value = _checked(z)
    found = _hyperbolic_tangent(-value.imag, value.real)
    return complex(found.imag, -found.real)


def is_nan(z: Any) -> Any:
    """`cmath.isnan`."""
    value = complex(z)
    return math.isnan(value.real) or math.isnan(value.imag)


def is_infinite(z: Any) -> Any:
    """`cmath.isinf`."""
    value = complex(z)
    return math.isinf(value.real) or math.isinf(value.imag)


def is_finite(z: Any) -> Any:
    """`cmath.isfinite`."""
    value = complex(z)
    return math.isfinite(value.real) and math.isfinite(value.imag)


def is_close(a: Any, b: Any, *, rel_tol: Any = 1e-09, abs_tol: Any = 0.0) -> Any:
    """`cmath.isclose`."""
    one, other, relative, absolute = complex(a), complex(b), float(rel_tol), float(abs_tol)
    if relative < 0.0 or absolute < 0.0:
        raise ValueError("tolerances must be non-negative")
    if one == other:
        return True
    if is_infinite(one) or is_infinite(other):
        return False
    distance = abs(one - other)
    if distance <= relative * abs(other) or distance <= relative * abs(one):
        return True
    return distance <= absolute


HOSTED: dict[object, Callable[..., Any]] = {
    cmath.phase: phase,
    cmath.polar: polar,
    cmath.rect: rectangular,
    cmath.exp: exponential,
    cmath.sqrt: square_root,
    cmath.log: logarithm,
    cmath.log10: decimal_logarithm,
    cmath.cosh: hyperbolic_cosine,
    cmath.sinh: hyperbolic_sine,
    cmath.tanh: hyperbolic_tangent,
    cmath.cos: cosine,
    cmath.sin: sine,
    cmath.tan: tangent,
    cmath.isnan: is_nan,
    cmath.isinf: is_infinite,
    cmath.isfinite: is_finite,
    cmath.isclose: is_close,
}
"""The functions by the objects whose calls they stand for."""
OF_TWO: dict[object, Callable[..., Any]] = {cmath.log: logarithm_of_base}
"""Functions for calls with two arguments."""
ORIGINAL: dict[object, Callable[..., Any]] = {
    logarithm_of_base: cmath.log,
    is_close: lambda a, b, relative, absolute: cmath.isclose(
        a, b, rel_tol=relative, abs_tol=absolute
    ),
}
"""Calls of the built-in functions that take arguments in another form."""
