# SPDX-License-Identifier: Apache-2.0
"""Functions that are values: chosen by a condition, passed on, in tuples; `nonlocal`; `map` and
`filter`."""

from __future__ import annotations

import math

import numpy as np

from .case import case


def _twice(f, x):
    return f(f(x))


def _later(f, x, n):
    return _twice(f, x) + n


def _root(f, slope, x):
    for _ in range(30):
        step = f(x) / slope(x)
        x -= step
        if abs(step) < 1e-12:
            break
    return x


@case((2.0, "sin"), (2.0, "cos"), (2.0, "tan"))
def chosen_by_name(x, name):
    if name == "sin":
        f = math.sin
    elif name == "cos":
        f = math.cos
    else:
        raise ValueError(name)
    return f(x) + _twice(f, x)


@case((2.0,), (0.0,))
def root_of_a_lambda(a):
    return _root(lambda x: x * x - a, lambda x: 2 * x, 1.0)


@case((3,), (10**10,), (10**12,))
def lambda_beyond_64_bits(k):
    total = 0
    for i in range(3):
        total += _later(lambda x: x * k, k, i)
    return total


@case((np.arange(3.0), 1), (np.arange(3.0), 5))
def exception_in_a_lambda(xs, i):
    return _twice(lambda j: int(xs[j]), i)


@case((3, True), (3, False), (10**15, False))
def inner_function_by_a_condition(n, c):
    def added(x):
        return x + n

    def scaled(x, k=1):
        return x * n * n * k

    f = added if c else lambda x: scaled(x, 2)
    return f(2) + _twice(f, 2), f is None


@case((4,))
def functions_in_a_tuple(n):
    def scaled(x, *, k=2):
        return x * n * k

    functions = (scaled, math.sqrt, lambda x: x - n, max)
    total = functions[3](1.5, n)
    for f in functions[:3]:
        total += f(4)
    g = scaled
    return total, g(k=1, x=3), (lambda y, z=2: y * z)(n)  # noqa: PLC3002  # that is what is tested


@case((3,), (10**9,))
def closure_over_a_variable_that_changes(n):
    k = 1
    f = lambda x: x * k
    total = 0
    for i in range(4):
        k = k * n
        total += f(i) + _twice(f, i)
    return total


@case(([1, 3, 2], 2), ([1, 10**10], 10**10))
def lambdas_in_comprehensions(xs, k):
    products = [_twice(lambda y: x * y, k) for x in xs]  # noqa: B023  # it is called at once
    return products, [min(xs, key=lambda x: -x) for x in xs]


@case(([1, 2],), ([],))
def lambda_beside_a_variable_of_the_name_of_an_item(xs):
    x = 100
    add = lambda y: x + y
    return [_twice(lambda y: add(y) + x, 1) for x in xs], x  # noqa: B023  # it is called at once


@case(([1, 5, 2],), ([4, 0, 1],))
def map_and_filter(xs):
    total = 0
    for y in map(lambda x, i: x * i, xs, range(5)):
        if y > 7:
            continue
        total += y
    for y in filter(None, xs):
        total += y
    for y in (x * i for i in range(3) for x in xs if x > i):
        total -= y
    halves = list(map(lambda x: 6 / x, xs))  # noqa: C417  # that is what is tested
    return total, halves, sum(map(abs, xs)), max(map(max, xs, [2, 2, 2])), any(map(bool, xs))


@case((5,), (70,))
def counter(n):
    total, calls = 1, 0

    def scale(k):
        nonlocal total, calls
        calls += 1
        total *= k
        return calls

    for _ in range(n):
        scale(2)
    return total + scale(1) * total, calls


@case((0,), (5,))
def closure_over_a_variable_that_may_be_missing(n):
    f = lambda x: x * k
    if n > 3:
        k = 2
    g = f
    return g(n)


@case((4,))
def random_numbers(n):
    state = 12345

    def random():
        nonlocal state
        state = (state * 1103515245 + 12345) % 2147483648
        return state / 2147483648

    return [random() for _ in range(n)], random() - random(), state


@case((3,))
def visits(n):
    count, depth = 0, 0.5

    def visit(k):
        nonlocal count
        count += 1
        if k > 0:
            visit(k - 1)
            visit(k - 1)

    def around(k):
        nonlocal depth
        visit(k)
        depth += count
        return count

    return around(n), around(1), count, depth


@case((3,))
def variables_of_two_functions(n):
    x = 0

    def outer(k):
        y = n

        def inner():
            nonlocal x, y
            x += k
            y += x
            return y

        inner()
        return inner() + y

    return outer(1) + outer(2), x


@case((np.zeros(3), 1), (np.zeros(3), 7))
def exception_after_an_assignment(xs, i):
    x = 0

    def put(k):
        nonlocal x
        x += 1
        try:
            xs[k] = x
        finally:
            x += 10

    put(0)
    put(i)
    return x
