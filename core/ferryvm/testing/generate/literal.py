# SPDX-License-Identifier: Apache-2.0
"""Literals at which something changes: the edges of each type, and pairs that lie close together.

Types are numbers in this package (`I32` is 0 ...): indexes of lists, which cost less than enums.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from ferryvm.isa.type import Type, ValueType, from_float, to_float
from ferryvm.testing.generate.chance import Chance

TYPES = tuple(Type)
I32, I64, F32, F64 = range(4)
NUMBER: dict[ValueType, int] = {t: number for number, t in enumerate(TYPES)}
BITS = tuple(t.bits for t in TYPES)
MASK = tuple(t.mask for t in TYPES)


Groups = tuple[tuple[int, ...], ...]
"""Bit patterns of one type, grouped by their property; none is empty."""


def _integers(bits: int) -> Groups:
    powers = []
    for power in (7, 8, 15, 16, 24, 31, 32, 33, 48, 52, 53, 62, 63):
        powers += [(1 << power) - 1, 1 << power, (1 << power) + 1, -(1 << power)]
    groups = (
        (0, 1, -1),
        (2, -2, 3, 5, 7, 10, 100),
        (31, 32, 33, 63, 64, 65),  # counts of shifts
        tuple(value for value in powers if -(1 << (bits - 1)) <= value < 1 << bits),
        ((1 << (bits - 1)) - 1, 1 << (bits - 1), (1 << (bits - 1)) + 1, -1, -2),
        (0x5555_5555_5555_5555, -0x5555_5555_5555_5556, 0x0123_4567_89AB_CDEF, 0xF0F0_7F80),
        tuple(halfway(bits, 24)) + tuple(halfway(bits, 53)),
    )
    return tuple(_distinct(value & ((1 << bits) - 1) for value in group) for group in groups)


def halfway(bits: int, mantissa: int) -> Iterator[int]:
    """Integers at or next to the middle between two floats of that mantissa.

    Some are so near it that rounding to 53 bits first moves them onto it, which shows double
    rounding.
    """
    for power in (mantissa, mantissa + 1, mantissa + 6, bits - 2, bits - 1):
        if mantissa <= power < bits:
            middle = (1 << power) + (1 << (power - mantissa))
            yield from (middle - 1, middle, middle + 1, middle + (1 << (power - mantissa + 1)))


def _floats(t: Type) -> Groups:
    sign = 1 << (t.bits - 1)
    mantissa = 52 if t is Type.F64 else 23
    infinity = sign - (1 << mantissa)
    quiet = infinity | 1 << (mantissa - 1)
    powers = []
    for power in (7, 8, 15, 16, 23, 24, 31, 32, 52, 53, 63, 64, 100):
        middle = from_float(t, math.ldexp(1.0, power))
        powers += [middle - 1, middle, middle + 1]
    halves = [from_float(t, value) for value in (0.5, 1.5, 2.5, 3.5, 4.5, 0.75, 0.9999999)]
    usual = (1.0, 2.0, 3.0, 10.0, 100.0, 0.1, 1 / 3, math.pi, 1e10, 1e-10)
    groups = (
        (0,),
        (quiet, quiet | 0x5A << (mantissa - 8), infinity | 1, infinity | 0x1234, sign - 1),
        (infinity, infinity - 1),
        (1, (1 << mantissa) - 1, 1 << mantissa, (1 << mantissa) + 1),  # around subnormals' end
        (*halves, halves[0] - 1),
        tuple(powers),
        tuple(from_float(t, value) for value in usual),
    )
    return tuple(_distinct((*group, *(bits | sign for bits in group))) for group in groups)


def _distinct(values: Iterable[int]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(values))


GROUPS = tuple(_floats(t) if t.is_float else _integers(t.bits) for t in TYPES)
"""Bit patterns at which something changes, of each type."""

EDGES = tuple(_distinct(bits for group in groups for bits in group) for groups in GROUPS)
"""The same without groups."""

ZEROS, NANS = (tuple(groups[number] for groups in GROUPS) for number in range(2))
"""Of float types; something else of integers."""

SHIFTS = tuple(
    tuple(count & t.mask for count in (0, 1, 7, t.bits - 1, t.bits, t.bits + 1, 2 * t.bits, -1))
    for t in TYPES
)
"""Counts of shifts around each type's width."""


def edge(chance: Chance, t: int) -> int:
    """One of the type's edges."""
    groups = GROUPS[t]
    group = groups[int(chance.random() * len(groups))]
    return group[int(chance.random() * len(group))]


def small(chance: Chance, t: int) -> int:
    """A small integer, as a number of the type."""
    value = int(chance.random() * 40) - 8
    return from_float(TYPES[t], float(value)) if t >= F32 else value & MASK[t]


def ordinary(chance: Chance, t: int) -> int:
    """A number of medium size; a float with a full mantissa, so that every rounding shows."""
    if t < F32:
        return chance.bits(8 + 8 * int(chance.random() * (BITS[t] // 8)))
    mantissa, bias = (52, 1023) if t == F64 else (23, 127)
    exponent = bias - 4 + int(chance.random() * 12)
    negative = int(chance.random() * 2) << (BITS[t] - 1)
    return negative | exponent << mantissa | chance.bits(mantissa)


def any_bits(chance: Chance, t: int) -> int:
    """Any bit pattern at all."""
    return chance.bits(BITS[t])


def near(chance: Chance, t: int, bits: int) -> int:
    """A literal that lies close to another one, as integers or in its bits."""
    choice = int(chance.random() * 6)
    if choice == 0:
        return bits
    if choice == 1:
        return (bits + 1) & MASK[t]
    if choice == 2:
        return (bits - 1) & MASK[t]
    if choice == 3:
        return bits ^ 1 << (BITS[t] - 1)
    if choice == 4:
        return bits ^ MASK[t] if t < F32 else bits
    return -bits & MASK[t] if t < F32 else edge(chance, t)


def fits(to: Type, is_signed: bool, t: Type, bits: int) -> bool:
    """True if the float, truncated, is an integer that `to` can hold."""
    value = to_float(t, bits)
    if not math.isfinite(value):
        return False
    half = 1 << (to.bits - 1)
    return -half <= int(value) < half if is_signed else 0 <= int(value) < 2 * half


def bounds(to: Type, is_signed: bool, t: Type) -> tuple[int, ...]:
    """Bits of the floats of type `t` around the ends of the range of `to`."""
    half = 1 << (to.bits - 1)
    ends = (-half - 1, -half, half, 0, -1) if is_signed else (-1, 0, 2 * half, 2 * half - 1)
    found = []
    for end in ends:
        bits = from_float(t, float(end))
        found += [max(0, bits - 1), bits, bits + 1]
    return _distinct(found)


def is_nan(t: int, bits: int) -> bool:
    """True if the bits are a NaN of the type, which is a float's."""
    return math.isnan(to_float(TYPES[t], bits))
