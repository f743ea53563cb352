# SPDX-License-Identifier: Apache-2.0
"""Functions that raise and catch exceptions."""

from __future__ import annotations

import numpy as np

from .case import case


@case((7, 2), (7, 0))
def safe_quotient(a, b):
    try:
        return a // b
    except ZeroDivisionError:
        return None


@case((np.arange(3.0), 1), (np.arange(3.0), 5), (np.arange(3.0), 7))
def looked_up(xs, i):
    try:
        if i == 7:
            raise KeyError("seven")
        return xs[i]
    except IndexError:
        return -1.0
    except (KeyError, ValueError):
        return -2.0


def below_three(n):
    if n > 2:
        raise ValueError("too big")
    return n


@case((5,))
def all_clauses(n):
    total = 0
    for i in range(n):
        try:
            total += below_three(i)
        except ValueError:
            total += 100
            continue
        else:
            total += 1000
        finally:
            total += 1
    return total


@case((np.zeros(1), 2), (np.zeros(1), 0))
def finally_after_return(xs, n):
    try:
        return 10 // n
    finally:
        xs[0] = 5


@case((0,), (2,))
def raised_again(n):
    try:
        return 1.0 / n
    except ArithmeticError as error:
        if n == 0:
            raise error  # noqa: TRY201  # that is what is compiled
        return 0.0


@case((1 << 40,), (3,))
def overflow_is_none(n):
    try:
        return n * n
    except OverflowError:
        return 0
