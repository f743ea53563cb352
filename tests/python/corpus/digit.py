# SPDX-License-Identifier: Apache-2.0
"""Functions of digits, of folds, and with integers that are written out and leave 64 bits."""

from __future__ import annotations

import functools

import numpy as np

from .case import case


@case((99,))
def greatest_palindrome(top):
    best = 0
    for a in range(top, 9, -1):
        for b in range(a, 9, -1):
            p = a * b
            if p <= best:
                break
            if str(p) == str(p)[::-1]:
                best = p
    return best


@case((15,), (1000,))
def digits_of_a_power(n):
    return sum(int(d) for d in str(2**n))


@case((0,), (-1234567,), (2**63 - 1,), (-(2**63),), (True,), (2.5,))
def text_of_integer(n):
    s = str(n)
    return s, len(s), s == s[::-1]


@case((np.int64(-5),), ("abc",))
def text_of_value(n):
    return str(n) + "!"


@case(([3, 1, 2],), ([],), ([2.5, 1],))
def folds(xs):
    m = functools.reduce(lambda a, b: max(b, a), xs)
    return m, functools.reduce(lambda a, b: a + b, xs, 0), functools.reduce(max, xs)


@case((5,), (2**40,))
def masked_to_64_bits(x):
    s = 0
    for _ in range(4):
        x = (x * 6364136223846793005 + 1442695040888963407) & 0xFFFFFFFFFFFFFFFF
        s += x >> 40
    return s


@case(([1, 2, 3, 4],), ([1, 2],), ([5],))
def fold_to_none(xs):
    return functools.reduce(lambda a, b: None if a is None or b == 3 else a + b, xs)
