# SPDX-License-Identifier: Apache-2.0
"""Corners of Python's semantics: what is evaluated, in which order, and what is an error."""

from __future__ import annotations

import functools
import math

import numpy as np

from .case import CASES, case

# --- evaluation -----------------------------------------------------------------------------


@case((3,))
def assigned_twice(n):
    pair = (n, n + 1)
    x, x = pair  # noqa: PLW0128  # the last one counts
    return x


@case((0,), (1,))
def length_of_display(n):
    return len((1 // n, 2))


@case((0,), (1,))
def type_of_quotient(n):
    return type(1 // n) is int


@case((0,), (1,))
def quotient_is_none(n):
    return (1 // n) is None


@case((0,), (1,))
def item_of_display(n):
    return (1 // n, None)[1]


@case((0,), (1,))
def display_as_condition(n):
    if (1 // n,):  # noqa: F634  # its item is evaluated
        return 1
    return 2


@case((3,))
def walrus_between_operands(a):
    return a + (a := 5) + a, [a, (a := a + 1), a], (a, a := 7, a)


@case((0,))
def value_before_index(n):
    xs = [1, 2]
    try:
        xs[10] = 1 // n
    except IndexError:
        return 1
    except ZeroDivisionError:
        return 2
    return xs


@case((5,))
def finally_with_jumps(n):
    total = 0
    for i in range(n):
        try:
            total += 1
            if i >= 2:
                raise ValueError("x")
        finally:
            total += 100
            if i == 2:
                continue  # noqa: B012  # it swallows the exception
            if i == 3:
                break  # noqa: B012  # it swallows the exception
    return total


@case((0,), (1,), (2,))
def nested_clauses(n):
    total = 0
    try:
        try:
            if n == 0:
                raise ValueError("a")
            if n == 1:
                raise KeyError("a")
            total += 2
        except ValueError:
            total += 10
            raise
        else:
            total += 20
        finally:
            total += 100
    except ValueError:
        total += 1000
    except LookupError:
        total += 2000
    return total


@case((0,))
def exception_in_finally(n):
    try:
        try:
            raise ValueError("a")
        finally:
            n = 1 // n
    except ZeroDivisionError:
        return 1
    except ValueError:
        return 2


# --- numbers --------------------------------------------------------------------------------


@case((1e200,), (3.0,), (-1e154,), (float("inf"),))
def squared(x):
    return x**2


@case((4.0, 2), (4, 2.0), (np.int64(4), 2), (np.float32(4), 2), (True, 2))
def divisor_of_kinds(a, b):
    return math.gcd(a, b)


@case((np.int64(5), 2), (5, np.int32(2)))
def integers_of_numpy(a, b):
    return math.comb(a, b), math.isqrt(a), math.factorial(b)


@case((3, -1, 7), (3, 5, 0), (2.0, 3, 5), (2, 3, -5), (True, 3, 5), (2, -1, 4), (5, -3, -7))
def modular_power(a, b, m):
    return pow(a, b, m)


@case((2, 3), (2.0, 3), (0, -1), (0.0, -1))
def plain_power(a, b):
    return pow(a, b)


@case((np.int64(-3),), (-3.0,), (np.float32(-2),))
def absolute_of_numpy(x):
    return np.abs(x)


@case((np.int64(2**40),), (3,), (2**40,), (np.int32(3),))
def narrowed(x):
    return np.int32(x)


@case((np.uint8(5), 300), (np.int8(5), -200), (np.int32(5), 2**40), (np.uint8(5), 5))
def compared_with_any_int(a, b):
    return a < b, a == b, b >= a


# --- functions ------------------------------------------------------------------------------


@case((0,), (1,))
def defined_on_a_path(n):
    if n:

        def f():
            return 1

    return f()


@case((0,))
def called_before_definition(n):
    result = f()  # noqa: F821  # that is the error

    def f():
        return n

    return result


@case((0,))
def inner_functions_of_one_name(n):
    def a():
        def h():
            return 1

        return h()

    def h():
        return 2

    return a() + 10 * h() + n


# fmt: off
@case((3,))
def lambdas_on_one_line(n):
    a = 5; b = 7  # as it is written
    f = lambda x: x + a; g = lambda x: x + b  # as it is written
    return f(n), g(n)
# fmt: on


_LAMBDAS = [lambda x: x + 1, lambda x: x * 2, lambda x: x - 1]
CASES += [(each, (5,)) for each in _LAMBDAS]


def doubling(f):
    @functools.wraps(f)
    def wrapper(x):
        return 2 * f(x)

    return wrapper


@case((3,))
@doubling
def decorated(x):
    return x + 1


@case((3,))
def calls_decorated(x):
    return decorated(x)


# --- names that end, items that are looked for --------------------------------------------------


@case((0,), (1,))
def exception_name_ends(n):
    e = 5
    try:
        n = 1 // n
    except ZeroDivisionError as e:
        if n:
            raise e  # noqa: TRY201  # that is what is compiled
    return e


@case((3,), (9,))
def deleted(n):
    x = n
    if n > 5:
        del x
    return x


@case((3,), (3.0,), (True,), (2.5,), (float("nan"),), (np.int64(3),), (np.float64(9),))
def contained(x):
    return x in (1, 2, 3), x not in [2, 3], x in range(5), x in range(1, 9, 2), x in range(9, 0, -3)


@case((3.0, np.arange(6.0)), (7, np.arange(6.0)), (1, np.zeros(0)))
def contained_in_array(x, a):
    return x in a


@case((np.arange(6.0),), (np.zeros(0),), (np.array([-1.0, 2.0]),))
def generators(xs):
    return (
        sum(x * x for x in xs),
        any(x > 4 for x in xs),
        all(x >= 0 for x in xs),
        list(x for x in xs if x > 1),  # noqa: C400  # it is what is compiled
    )


@case((0,))
def generator_that_stops(n):
    return any(1 // (i - 2) > 5 or i == 1 for i in range(5 + n))


@case((np.arange(6.0),))
def backwards(a):
    total = 0
    for i, x in enumerate(a, start=3):
        total += i * x
    for i in reversed(range(3)):
        total = total * 2 + i
    for i in reversed(range(5, 2)):
        total += 1000 * i
    for x in reversed(a[1:]):
        total = total * 2 - x
    return total


def interpolated(x, how="linear"):
    if how == "linear":
        return x
    if how == "square":
        return x * x
    raise ValueError("an unknown way")


@case((2.5,), (-1,))
def by_constant_texts(x):
    best = float("inf") if x > 0 else -float("inf")
    return interpolated(x) + interpolated(x, "square"), best


@case((0,))
def by_unknown_text(x):
    return interpolated(x, how="cube")


@case((np.bool_(True), np.bool_(False)), (np.bool_(True), True), (np.bool_(False), 3))
def booleans_of_numpy(a, b):
    return not a, a and b, a or b, a == b, a != b


@case(
    (np.float64(-7.5), np.float64(2)),
    (np.float64(-1), np.float64(np.inf)),
    (np.float64(1), np.float64(0)),
    (np.float64(0), np.float64(-2)),
    (np.uint8(7), np.uint8(2)),
    (np.int8(-128), np.int8(-1)),
    (np.int64(7), 2.5),
)
def floored_of_numpy(a, b):
    return a // b, a % b


@case((2,))
def negative_default(n):
    def add(x, y=-1):
        return x + y

    return add(n) + add(n, y=3)


class _EmptyError(ValueError):
    """An exception of a user."""


@case((np.array([1.0, 2.0, 4.0]),), (np.zeros(0),))
def mean_or_message(xs):
    try:
        if len(xs) == 0:
            raise _EmptyError("no values", len(xs))
        return sum(xs) / len(xs)
    except ValueError as e:
        return float(len(str(e)))


@case((np.array([3, 0, 5]), 4), (np.array([3, 1, 5]), 4))
def quotients_with_cause(xs, n):
    total = 0
    for i in range(n):
        try:
            total += 60 // int(xs[i])
        except ZeroDivisionError as e:
            raise ValueError(f"item {i} is zero") from e
        except IndexError:
            total += 1000
    return total
