# SPDX-License-Identifier: Apache-2.0
"""Functions with `match`."""

from __future__ import annotations

import math

import numpy as np

from .case import case


@case((0,), (2,), (500,), (50,), (2.0,), (0.5,), (True,))
def kind_of_number(x):
    match x:
        case 0:
            return 10
        case 1 | 2:
            return 20
        case int(n) if n > 100:
            return n
        case float():
            return 30
        case _:
            return -1


@case(("+", 1, 2), ("minus", 5, 3), ("?", 1, 1))
def calculate(operator, a, b):
    match operator:
        case "+" | "plus":
            return a + b
        case "-" | "minus":
            return a - b
        case _:
            raise ValueError("unknown operator")


@case(((0, 0),), ((3, 0),), ((0, 4),), ((2, 2),), ((1, 2, 3),), ((1, 2, 3, 4),), (5,))
def size_of_shape(shape):
    match shape:
        case (0, 0):
            return 0
        case (x, 0) | (0, x):
            return x
        case (x, y) if x == y:
            return 2 * x
        case (x, y, _) as whole:
            return x * y + len(whole)
        case int(x):
            return x


@case(([],), ([4],), ([4, 5],), ([1, 2, 3],), ([2, 3, 9],), ((1, 2, 5),), (np.arange(3),))
def sum_of_ends(xs):
    match xs:
        case []:
            return 0
        case [x] | [x, _]:
            return x
        case [1, *rest]:
            return sum(rest)
        case [first, *_, last]:
            return first + last
    return -1


@case((15,), (4,))
def fizz_buzz(n):
    found = 0
    for i in range(n):
        match i % 3, i % 5:
            case 0, 0:
                found += 100
            case 0, _:
                found += 10
            case _, 0:
                continue
            case a, b if a == b:
                break
        found += 1
    return found


@case((None,), (True,), (False,), (1,), (2 + 3j,), (math.pi,), (-1,), (np.float32(1),))
def special_value(x):
    match x:
        case None:
            return 0
        case True:
            return 1
        case False:
            return 2
        case complex(real=r, imag=3):
            return r
        case math.pi:
            return 3
        case -1:
            return 4
        case "one" | (1, _):
            return 5
        case _:
            return x
