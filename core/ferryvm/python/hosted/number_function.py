# SPDX-License-Identifier: Apache-2.0
"""Built-in functions and methods of numbers, and functions of `math`, in the subset of Python that is
compiled: they are compiled where they are called.

They do what CPython's do, bit for bit where those are exact. `raise` with a computed argument
leaves the call to CPython.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ferryvm.python.hosted import raw

_HUGE = 9007199254740992.0
"""2^53: floats from here on are integers."""


def _index(value: Any) -> Any:
    """The int that an argument is."""
    if type(value) is float or type(value) is np.float64 or type(value) is np.float32:
        raise TypeError(value)
    if type(value) is np.bool_ or type(value) is complex:
        raise TypeError(value)
    return int(value)


def rounded(number: Any, ndigits: Any = None) -> Any:
    """`round`."""
    if ndigits is None:
        return round(number)
    if type(number) is complex or type(number) is np.bool_:
        raise TypeError(ndigits)
    digits = _index(ndigits)
    if type(number) is float:
        return _rounded_float(number, digits)
    if type(number) is np.float64 or type(number) is np.float32:
        return _rounded_scalar(number, digits)
    if digits >= 0:
        if digits > 0x7FFFFFFF:
            raise OverflowError(digits)
        return number + 0
    if type(number) is int or type(number) is bool:
        return _rounded_integer(int(number), -digits)
    raise OverflowError(number)


def _rounded_integer(value: Any, digits: Any) -> Any:
    """To the nearest multiple of a power of ten, and to an even one of two."""
    if digits > 18:
        raise OverflowError(value)
    unit = 10**digits
    quotient = value // unit
    rest = value - quotient * unit
    if rest > unit - rest or (rest == unit - rest and quotient & 1):
        quotient += 1
    return quotient * unit


def _power_of_ten(count: Any) -> Any:
    unit = 1.0
    for _ in range(count):
        unit *= 10.0
    return unit


def _rounded_float(value: Any, digits: Any) -> Any:
    """The float nearest to the decimal number that is nearest to a float. Up to 10^22 powers of ten
    are exact, so that one division, or product, of exact numbers has the bits of CPython's
    conversion."""
    if value == 0.0 or not math.isfinite(value):
        return value
    size = abs(value)
    if digits < 0:
        return math.copysign(_rounded_to_tens(size, -digits), value)
    if digits > 22:
        if size >= 1e-6:  # its own digits end before
            return value
        raise OverflowError(value)
    unit = _power_of_ten(digits)
    scaled = size * unit
    if scaled >= _HUGE:  # the float is nearer than half a unit
        return value
    if scaled < 0.4:
        return math.copysign(0.0, value)
    error = raw.fma(size, unit, -scaled)
    whole = math.floor(scaled)
    part = scaled - whole
    if part > 0.5 or (part == 0.5 and (error > 0.0 or (error == 0.0 and whole & 1))):
        whole += 1
    elif part == 0.0 and whole & 1 and abs(error) == 0.5:
        whole += 1 if error > 0.0 else -1
    return math.copysign(whole / unit, value)


def _rounded_to_tens(size: Any, digits: Any) -> Any:
    if digits > 22 and size < 1e22:
        return 0.0
    if digits > 22 or size >= _HUGE:
        raise OverflowError(size)
    unit = _power_of_ten(digits)
    rest = raw.fmod(size, unit)
    quotient = (size - rest) / unit
    if rest > unit - rest or (rest == unit - rest and raw.fmod(quotient, 2.0) == 1.0):
        quotient += 1.0
    return quotient * unit


def _rounded_scalar(value: Any, digits: Any) -> Any:
    """As `numpy.round`: scaled, rounded and scaled again."""
    if digits > 22 or digits < -22:
        raise OverflowError(digits)
    unit = _power_of_ten(abs(digits))
    if digits >= 0:
        return np.rint(value * unit) / unit
    return np.rint(value / unit) * unit


# --- functions of `math` --------------------------------------------------------------------


def logarithm(x: Any, base: Any) -> Any:
    """`math.log` with a base."""
    return math.log(x) / math.log(base)


def power(x: Any, y: Any) -> Any:
    """`math.pow`."""
    base, exponent = float(x), float(y)
    found = raw.power(base, exponent)
    if not math.isfinite(found) and math.isfinite(base) and math.isfinite(exponent):
        if math.isnan(found) or base == 0.0:
            raise ValueError("math domain error")
        raise OverflowError("math range error")
    return found


def float_modulus(x: Any, y: Any) -> Any:
    """`math.fmod`."""
    dividend, divisor = float(x), float(y)
    if divisor == 0.0 or math.isinf(dividend):
        if math.isnan(dividend) or math.isnan(divisor):
            return dividend + divisor
        raise ValueError("math domain error")
    if math.isinf(divisor):
        return dividend
    return raw.fmod(dividend, divisor)


def remainder(x: Any, y: Any) -> Any:
    """`math.remainder`."""
    dividend, divisor = float(x), float(y)
    if math.isnan(dividend) or math.isnan(divisor):
        return dividend + divisor
    if divisor == 0.0 or math.isinf(dividend):
        raise ValueError("math domain error")
    if math.isinf(divisor):
        return dividend
    return raw.remainder(dividend, divisor)


def is_close(a: Any, b: Any, *, rel_tol: Any = 1e-09, abs_tol: Any = 0.0) -> Any:
    """`math.isclose`."""
    one, other, relative, absolute = float(a), float(b), float(rel_tol), float(abs_tol)
    if relative < 0.0 or absolute < 0.0:
        raise ValueError("tolerances must be non-negative")
    if one == other:
        return True
    if math.isinf(one) or math.isinf(other):
        return False
    distance = abs(other - one)
    if distance <= abs(relative * other) or distance <= abs(relative * one):
        return True
    return distance <= absolute


def norm(coordinates: Any) -> Any:
    """`math.hypot` of a tuple: the sum of squares in twice the precision, and one step of Newton's
    method."""
    largest = 0.0
    has_nan = False
    for coordinate in coordinates:
        size = abs(float(coordinate))
        has_nan = has_nan or math.isnan(size)
        largest = max(largest, size)
    if math.isinf(largest):
        return largest
    if has_nan:
        return math.nan
    if largest == 0.0 or len(coordinates) == 1:
        return largest
    if largest < 1e-300:
        raise OverflowError(largest)
    scale = 1.0
    if largest > 1e150:
        scale = 2.0**-600
    elif largest < 1e-120:
        scale = 2.0**600
    high, low = 0.0, 0.0
    for coordinate in coordinates:
        x = float(coordinate) * scale
        square = x * x
        longer = high + square
        rest = longer - high
        low += ((high - (longer - rest)) + (square - rest)) + raw.fma(x, x, -square)
        high = longer
    root = math.sqrt(high + low)
    return (root + (raw.fma(-root, root, high) + low) / (2.0 * root)) / scale


def distance(p: Any, q: Any) -> Any:
    """`math.dist`."""
    if len(p) != len(q):
        raise ValueError("both points must have the same number of dimensions")
    return norm([float(a) - float(b) for a, b in zip(p, q)])  # noqa: B905  # of one length


def permutations(n: Any, k: Any = None) -> Any:
    """`math.perm`."""
    if k is None:
        return math.factorial(n)
    n, k = _index(n), _index(k)
    if n < 0:
        raise ValueError("n must be a non-negative integer")
    if k < 0:
        raise ValueError("k must be a non-negative integer")
    if k > n:
        return 0
    result = 1
    for factor in range(n, n - k, -1):
        result *= factor
    return result


def fraction_and_exponent(x: Any) -> Any:
    """`math.frexp`."""
    value = float(x)
    if value == 0.0 or not math.isfinite(value):
        return value, 0
    shift = -1022
    if abs(value) < 2.2250738585072014e-308:
        value *= 18014398509481984.0
        shift -= 54
    bits = raw.bits(value)
    exponent = (bits >> 52 & 0x7FF) + shift
    return raw.from_bits((bits & -0x7FF0000000000001) | 0x3FE0000000000000), exponent


def fraction_and_whole(x: Any) -> Any:
    """`math.modf`."""
    value = float(x)
    if math.isinf(value):
        return math.copysign(0.0, value), value
    whole = raw.trunc(value)
    return math.copysign(value - whole, value), whole


def scaled(x: Any, i: Any) -> Any:
    """`math.ldexp`: scaled in steps, of which the last one alone rounds."""
    if type(i) is not int and type(i) is not bool:
        raise TypeError(i)
    value, count = float(x), int(i)
    if value == 0.0 or not math.isfinite(value):
        return value
    for _ in range(2):
        if count > 1023:
            value *= 8.98846567431158e307
            count -= 1023
        elif count < -1022:
            value *= 2.004168360008973e-292
            count += 969
    count = min(max(count, -1022), 1023)
    value *= raw.from_bits((count + 1023) << 52)
    if math.isinf(value):
        raise OverflowError("math range error")
    return value


def next_after(x: Any, y: Any) -> Any:
    """`math.nextafter`."""
    value, towards = float(x), float(y)
    if math.isnan(value) or math.isnan(towards):
        return value + towards
    if value == towards:
        return towards
    if value == 0.0:
        return math.copysign(5e-324, towards)
    step = 1 if (towards > value) == (value > 0.0) else -1
    return raw.from_bits(raw.bits(value) + step)


def unit_in_last_place(x: Any) -> Any:
    """`math.ulp`."""
    size = abs(float(x))
    if not math.isfinite(size):
        return size
    if size == 1.7976931348623157e308:
        return 1.99584030953472e292
    return raw.from_bits(raw.bits(size) + 1) - size


def exact_sum(seq: Any) -> Any:
    """`math.fsum`, by Shewchuk's partial sums (Discrete & Computational Geometry 18, 1997), rounded
    once."""
    partials = [0.0] * 64
    length = 0
    for item in seq:
        x = float(item)
        if not math.isfinite(x):
            raise OverflowError(x)
        count = 0
        for k in range(length):
            y = partials[k]
            if abs(x) < abs(y):
                x, y = y, x
            high = x + y
            low = y - (high - x)
            if low != 0.0:
                partials[count] = low
                count += 1
            x = high
        if math.isinf(x):
            raise OverflowError(x)
        partials[count] = x
        length = count + 1
    total, rest = 0.0, 0.0
    while length > 0 and rest == 0.0:
        length -= 1
        x, y = total, partials[length]
        total = x + y
        rest = y - (total - x)
    is_beyond = length > 0 and rest != 0.0 and (rest > 0.0) == (partials[length - 1] > 0.0)
    if is_beyond and partials[length - 1] != 0.0:  # half a unit, and more
        double = rest * 2.0
        x = total + double
        if double == x - total:
            total = x
    return total


# --- methods --------------------------------------------------------------------------------


class Method:
    """A method, as a function of the object."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.__name__ = f".{name}"

    def __call__(self, value: Any, *arguments: Any) -> Any:
        """The value that CPython computes."""
        return getattr(value, self.name)(*arguments)


METHODS = {name: Method(name) for name in ("is_integer", "bit_length", "bit_count", "conjugate")}
"""Methods of numbers, by their names."""


def is_whole(value: Any) -> Any:
    """`x.is_integer()`."""
    if type(value) is float or type(value) is np.float64 or type(value) is np.float32:
        number = float(value)
        return math.isfinite(number) and raw.trunc(number) == number
    raise AttributeError(value)


def bit_length(value: Any) -> Any:
    """`n.bit_length()`."""
    if type(value) is not int and type(value) is not bool:
        raise AttributeError(value)
    return 64 - raw.leading_zeros(abs(int(value)))


def bit_count(value: Any) -> Any:
    """`n.bit_count()`."""
    if type(value) is not int and type(value) is not bool:
        raise AttributeError(value)
    return raw.ones(abs(int(value)))


HOSTED: dict[object, Callable[..., Any]] = {
    math.pow: power,
    math.fmod: float_modulus,
    math.remainder: remainder,
    math.isclose: is_close,
    math.dist: distance,
    math.perm: permutations,
    math.frexp: fraction_and_exponent,
    math.modf: fraction_and_whole,
    math.ldexp: scaled,
    math.nextafter: next_after,
    math.ulp: unit_in_last_place,
    math.fsum: exact_sum,
    METHODS["is_integer"]: is_whole,
    METHODS["bit_length"]: bit_length,
    METHODS["bit_count"]: bit_count,
}
"""The functions by the objects whose calls they stand for."""
OF_TWO: dict[object, Callable[..., Any]] = {round: rounded, math.log: logarithm}
"""Functions for calls with two arguments."""
ORIGINAL: dict[object, Callable[..., Any]] = {
    rounded: round,
    logarithm: math.log,
    norm: lambda coordinates: math.hypot(*coordinates),
    is_close: lambda a, b, relative, absolute: math.isclose(
        a, b, rel_tol=relative, abs_tol=absolute
    ),
}
"""Calls of the built-in functions that take arguments in another form."""
