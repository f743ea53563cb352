# SPDX-License-Identifier: Apache-2.0
"""Functions of mixtures of int, float and bool."""

from __future__ import annotations

import math

import numpy as np

from .case import case


@case((3,), (0,))
def halves(n):
    total = 0
    for _ in range(n):
        total += 0.5
    return total


@case((7,), (7.5,), (True,), (np.float64(7.25),), (np.int32(7),))
def clamp(x):
    return max(0, min(x, 10)) if -5 <= x < 50 else x


@case((3, None), (3, 4), (3.0, 0), (3, 0))
def divided(x, y):
    if y is None:
        return x
    return x / y


@case((7, 2), (-7, 2), (7, -2), (True, 2), (7, 0), (-(2**63), -1))
def floored(a, b):
    return a // b, a % b


@case((7, 2), (-7, 62), (-1, 70), (1, 62), (1, 63), (1, -1))
def shifted(a, b):
    return a >> b, a << b


@case((12, 10), (True, False), (True, 6), (-1, 255))
def bits(a, b):
    return a & b, a | b, a ^ b


@case((5, 2.0), (2, 2.5), (2**53, 0.5), (True, 1.0), (float("nan"), 1.0))
def compared(a, b):
    return a < b, a <= b, a == b, a != b, a > b, a >= b


@case((1.5,), (-1.5,), (2.5,), (-0.0,), (float("nan"),), (float("inf"),), (1e300,), (3,))
def rounded(x):
    return math.floor(x), math.ceil(x), int(x), round(x)


@case((3,), (-3.5,), (True,), (np.float32(-2),), (-(2**63),))
def magnitude(x):
    return abs(x), -x, +x


@case((1, 2.0, True), (False, 0, 0.0))
def logic(a, b, c):
    return a and b, b or c, not c, (a or b) and c


@case((3,))
def chained(x):
    return 1 < x < 5, 1 < x > 5, (x > 1) == 1


@case((np.float32(1.5), 2), (np.float32(1.5), 0.1), (np.float64(0.1), 3), (np.int32(2**30), 4))
def numpy_scalars(x, y):
    return x + y, x - y, x * y


@case((np.int64(7), np.int64(0)), (np.int64(-(2**63)), np.int64(-1)), (np.int64(-7), 2))
def numpy_division(x, y):
    return x // y, x % y


@case((np.float64(1.0), 0.0), (np.float64(0.0), 0), (np.float64(-1.0), np.float64(0.0)))
def numpy_by_zero(x, y):
    return x / y


@case((4,), (1,), (0,), (-1,))
def early(n):
    for i in range(n):
        if i == 2:
            break
    else:
        return False, i
    return True, i


@case((3.0, 4.0))
def hypotenuse(a, b):
    return math.sqrt(a * a + b * b)


@case((-1.0,), (4,), (float("inf"),))
def square_root(x):
    return math.sqrt(x)


@case((5, 0), (2, 7))
def asserted(a, b):
    assert b != 0, "b must not be 0"
    return a % b


@case((3,))
def later(n):
    total = 0
    for k in (1, 2.5, n):
        total += k
    return total
