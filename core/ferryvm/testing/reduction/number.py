# SPDX-License-Identifier: Apache-2.0
"""Literals as whole numbers, the simplest literal first, for the shrinker."""

from __future__ import annotations

from ferryvm.isa.type import Type, from_float

_FLOATS = (0.0, 1.0, 2.0, -1.0, 0.5, 3.0, -0.0)
"""Floats that are easier to read than any other."""


def simplicity(t: Type, bits: int) -> int:
    """The number of a literal: small where the literal is simple."""
    if t.is_float:
        simple = [from_float(t, value) for value in _FLOATS]
        return simple.index(bits) if bits in simple else len(simple)
    # 0, -1, 1, -2, 2 ...
    return bits << 1 & t.mask ^ (t.mask if bits >> (t.bits - 1) else 0)


def most(t: Type, coded: int) -> int:
    """The largest number that is worth trying for a literal that has this one."""
    return coded if not t.is_float else max(coded, 1)


def literal(t: Type, coded: int, original: int) -> int:
    """The literal of a number; `original` is the one past the simple floats."""
    if t.is_float:
        return from_float(t, _FLOATS[coded]) if coded < len(_FLOATS) else original
    return (coded >> 1) ^ (t.mask if coded & 1 else 0)
