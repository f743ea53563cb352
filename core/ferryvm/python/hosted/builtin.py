# SPDX-License-Identifier: Apache-2.0
"""Built-in functions that are Python functions of the subset: they are compiled where they are
called.

They do what CPython's do, errors included.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ferryvm.python.hosted import builtin_array, cmath_function, number_function
from ferryvm.python.hosted.builtin_list import sort_by, sorted_by

_IS_COMPENSATED = sys.version_info >= (3, 12)
"""True if `sum` of floats carries the rounding errors along (Neumaier 1974), since Python 3.12."""


def _plain_sum(values: Any, start: Any = 0) -> Any:
    total = start
    for value in values:
        total = total + value
    return total


def _compensated_sum(values: Any, start: Any = 0) -> Any:
    total = start
    rest = 0.0
    for value in values:
        if type(total) is float and type(value) is float:
            longer = total + value
            if abs(total) >= abs(value):
                rest += (total - longer) + value
            else:
                rest += (value - longer) + total
            total = longer
        else:
            total = total + value
    if type(total) is float and rest and math.isfinite(rest):
        total = total + rest
    return total


def _any(values: Any) -> bool:
    for value in values:  # noqa: SIM110  # it is `any`
        if value:
            return True
    return False


def _all(values: Any) -> bool:
    for value in values:  # noqa: SIM110  # it is `all`
        if not value:
            return False
    return True


def _least(values: Any) -> Any:
    best = None
    for value in values:
        if best is None or value < best:
            best = value
    if best is None:
        raise ValueError("min() arg is an empty sequence")
    return best


def _greatest(values: Any) -> Any:
    best = None
    for value in values:
        if best is None or value > best:
            best = value
    if best is None:
        raise ValueError("max() arg is an empty sequence")
    return best


def _lesser(one: Any, other: Any) -> Any:
    return min(one, other)


def _greater(one: Any, other: Any) -> Any:
    return max(one, other)


def _product(values: Any, start: Any = 1) -> Any:
    total = start
    for value in values:
        total = total * value
    return total


def _reduced(function: Any, values: Any) -> Any:
    """`functools.reduce`."""
    total = None
    for at, value in enumerate(values):
        if total is None:  # kinds determine it
            total = value
        else:
            total = function(total, value)
            if total is None:
                return _reduced_from_none(function, values, at + 1)
    if total is None:
        raise TypeError("reduce() of empty iterable with no initial value")
    return total


def _reduced_from_none(function: Any, values: Any, start: Any) -> Any:
    """The rest of `functools.reduce`, behind a call whose value was None."""
    total = None
    for at in range(start, len(values)):
        total = function(total, values[at])
    return total


def _reduced_from(function: Any, values: Any, start: Any) -> Any:
    """`functools.reduce` with an initial value."""
    total = start
    for value in values:
        total = function(total, value)
    return total


def _digits(value: Any) -> Any:
    """`str`, of an integer or a text."""
    if isinstance(value, str):
        return value
    if type(value) is not int and type(value) is not np.int64:
        raise TypeError("another text")
    rest = abs(int(value))
    found: list[str] = []
    while rest or not found:
        found.append(chr(48 + rest % 10))
        rest = rest // 10
    if value < 0:
        found.append(chr(45))
    found.reverse()
    return "".join(found)


def _quotient_and_rest(a: Any, b: Any) -> Any:
    return a // b, a % b


def _index(value: Any) -> Any:
    """The int that an operand of a function of integers is."""
    if type(value) is float or type(value) is np.float64 or type(value) is np.float32:
        raise TypeError("an operand cannot be interpreted as an integer")
    if type(value) is np.bool_:
        raise TypeError("an operand cannot be interpreted as an integer")
    return int(value)


def _power_modulo(base: Any, exponent: Any, modulus: Any) -> Any:
    for operand in (base, exponent, modulus):
        if type(operand) is not int and type(operand) is not bool:
            raise TypeError("pow() 3rd argument not allowed unless all arguments are integers")
    if modulus == 0:
        raise ValueError("pow() 3rd argument cannot be 0")
    result = 1 % modulus
    base = base % modulus
    if exponent < 0:
        base = _inverse(base, abs(modulus))
        exponent = -exponent
    while exponent > 0:
        if exponent & 1:
            result = result * base % modulus
        base = base * base % modulus
        exponent >>= 1
    return result


def _inverse(a: Any, modulus: Any) -> Any:
    """By Euclid's algorithm (Knuth, The Art of Computer Programming, volume 2, section 4.5.2)."""
    rest, found, last = modulus, 0, 1
    while rest:
        quotient = a // rest
        a, rest = rest, a % rest
        last, found = found, last - quotient * found
    if abs(a) != 1:
        raise ValueError("base is not invertible for the given modulus")
    return last * a


def contains(wanted: Any, values: Any) -> Any:
    """True if a value equals one of some. Raises ValueError where two are not numbers: Python asks
    if they are the same object."""
    for value in values:
        if value == wanted:
            return True
        if value != value and wanted != wanted:  # noqa: PLR0124  # that is a NaN
            raise ValueError("cannot tell if a NaN is in these values")
    return False


def in_range(wanted: Any, start: Any, stop: Any, step: Any) -> Any:
    """True if a value equals a number of a range."""
    start, stop, step = _index(start), _index(stop), _index(step)
    if step == 0:
        raise ValueError("range() arg 3 must not be zero")
    value = wanted
    if type(wanted) is not int and type(wanted) is not bool:
        if not abs(wanted) < 9e18:
            return False
        value = int(wanted)
        if value != wanted:
            return False
    if step > 0:
        return start <= value < stop and (value - start) % step == 0
    return stop < value <= start and (start - value) % -step == 0


def _multiple(a: Any, b: Any) -> Any:
    a, b = _index(a), _index(b)
    if a == 0 or b == 0:
        return 0
    return abs(a // _divisor(a, b) * b)


def _divisor(a: Any, b: Any) -> Any:
    a, b = _index(a), _index(b)
    while b:
        a, b = b, a % b
    return abs(a)


def _factorial(n: Any) -> Any:
    n = _index(n)
    if n < 0:
        raise ValueError("factorial() not defined for negative values")
    result = 1
    for factor in range(2, n + 1):
        result *= factor
    return result


def _combinations(n: Any, k: Any) -> Any:
    n, k = _index(n), _index(k)
    if n < 0:
        raise ValueError("n must be a non-negative integer")
    if k < 0:
        raise ValueError("k must be a non-negative integer")
    result = 1
    for step in range(1, min(k, n - k) + 1):
        result = result * (n - step + 1) // step
    return result if k <= n else 0


def _root(n: Any) -> Any:
    n = _index(n)
    if n < 0:
        raise ValueError("isqrt() argument must be nonnegative")
    if n == 0:
        return 0
    bits = 0
    rest = n
    while rest:
        rest >>= 1
        bits += 1
    root = 1 << ((bits + 1) // 2)
    while True:  # Newton's method from above
        better = (root + n // root) // 2
        if better >= root:
            return root
        root = better


def _degrees(x: Any) -> Any:
    return x * (180.0 / math.pi)


def _radians(x: Any) -> Any:
    return x * (math.pi / 180.0)


SELF_HOSTED: dict[object, Callable[..., Any]] = {
    any: _any,
    all: _all,
    divmod: _quotient_and_rest,
    math.prod: _product,
    str: _digits,
    math.gcd: _divisor,
    math.lcm: _multiple,
    math.factorial: _factorial,
    math.comb: _combinations,
    math.isqrt: _root,
    math.degrees: _degrees,
    math.radians: _radians,
}
"""The functions by the objects whose calls they stand for."""
SELF_HOSTED |= number_function.HOSTED | cmath_function.HOSTED
_OF_TWO = number_function.OF_TWO | cmath_function.OF_TWO
SELF_HOSTED[sum] = _compensated_sum if _IS_COMPENSATED else _plain_sum
ORIGINAL: dict[object, Any] = {each: of for of, each in SELF_HOSTED.items()}
"""The built-in functions that functions of this module stand for."""
ORIGINAL[sort_by] = sorted_by
ORIGINAL[contains] = lambda wanted, values: (
    wanted in values if isinstance(values, str | bytes) else contains(wanted, values)
)
ORIGINAL |= {_least: min, _greatest: max, _lesser: min, _greater: max, _power_modulo: pow}
ORIGINAL |= {_reduced: functools.reduce, _reduced_from: functools.reduce}
ORIGINAL[_product] = lambda values, start: math.prod(values, start=start)
ORIGINAL |= number_function.ORIGINAL | cmath_function.ORIGINAL | builtin_array.ORIGINAL


def replacement(function: object, arguments: int) -> Callable[..., Any] | None:
    """The function that is called in place of a built-in one with so many arguments."""
    if arguments == 1 and (function is min or function is max):
        return _least if function is min else _greatest
    if arguments == 2 and (function is min or function is max):
        return _lesser if function is min else _greater
    if function is pow and arguments == 3:
        return _power_modulo
    if function is functools.reduce:
        return _reduced if arguments == 2 else _reduced_from if arguments == 3 else None
    if arguments == 2 and any(function is each for each in _OF_TWO):
        return _OF_TWO[function]
    try:
        of_arrays = builtin_array.HOSTED.get(function)
        return SELF_HOSTED.get(function) if of_arrays is None else of_arrays.get(arguments)
    except TypeError:  # it cannot be hashed
        return None
