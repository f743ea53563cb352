# SPDX-License-Identifier: Apache-2.0
"""Pseudo-random operands of all kinds, the same on every machine."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from ferryvm.isa.pure_function import PureFunction
from ferryvm.isa.type import Type

Words = NDArray[np.uint64]

KINDS = 8

_NUMBERS = (0.0, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 10.0, 27.0, 88.0, 710.0, 1e10, 1e30, math.inf)


def operands(function: PureFunction, first: int, count: int) -> list[Words]:
    """The bits of the operands with numbers from `first` up, an array for each parameter.

    Tuples of special operands are first. Of eight others each, one has any bits; two are between
    2^-10 and 2^10 in magnitude, one of these with few bits; one is near a multiple of 1/4, one near
    one of pi/4, one near one of ln(2)/2; one has an extreme exponent; one is as the first operand,
    but for 12 in the exponent and 3 in the last place."""
    t = function.result
    arity = len(function.parameters)
    numbers = np.arange(first, first + count, dtype=np.uint64)
    found: list[Words] = []
    for place in range(arity):
        seed = np.uint64(0x6A09_E667_F3BC_C908 * (place + 1) & (1 << 64) - 1)
        random = _mixed(numbers * np.uint64(0x9E37_79B9_7F4A_7C15) + seed)
        found.append(_of_kinds(t, numbers, random, found[0] if found else None))
    for number, special in enumerate(itertools.product(_special(t), repeat=arity)):
        if first <= number < first + count:
            for array, bits in zip(found, special, strict=True):
                array[number - first] = bits
    return found


def _special(t: Type) -> list[int]:
    kind = np.float64 if t.bits == 64 else np.float32
    word = np.uint64 if t.bits == 64 else np.uint32
    limits = np.finfo(kind)
    numbers = (*_NUMBERS, limits.max, limits.tiny, limits.smallest_subnormal, limits.eps)
    magnitudes = [int(kind(each).view(word)) for each in numbers]
    magnitudes += [int(kind(math.inf).view(word)) + 1, int(kind(math.nan).view(word)) + 0x123]
    return [each | sign for each in magnitudes for sign in (0, 1 << t.bits - 1)]


def _mixed(z: Words) -> Words:
    """splitmix64: Steele, Lea and Flood, OOPSLA 2014."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58_476D_1CE4_E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D0_49BB_1331_11EB)
    return z ^ (z >> np.uint64(31))


def _of_kinds(t: Type, numbers: Words, random: Words, other: Words | None) -> Words:
    fraction = 52 if t.bits == 64 else 23
    largest, sign = (1 << t.bits - 1 - fraction) - 1, np.uint64(1 << t.bits - 1)
    low, high = np.uint64((1 << fraction) - 1), np.uint64(fraction)
    more = _mixed(random + np.uint64(1))
    mask = np.uint64((1 << t.bits) - 1)
    bits = random & mask

    def exponent(biased: Words) -> Words:
        return (bits & (low | sign)) | biased << high

    middle = exponent(np.uint64(largest // 2 - 10) + more % np.uint64(20))
    few = middle & ~(low >> (more >> np.uint64(8)) % np.uint64(fraction))
    edges = np.array([0, 1, largest - 1, largest // 2 + fraction], dtype=np.uint64)
    extreme = exponent(edges[(more % np.uint64(len(edges))).astype(np.intp)])
    near = middle if other is None else other + ((more % np.uint64(25)) << high)
    near = (near - np.uint64((12 << fraction) - 1) + (more >> np.uint64(8)) % np.uint64(3)) & mask
    count = (more >> np.uint64(16) & np.uint64(0xFFFFF)).astype(np.float64) - 2.0**19
    count = np.trunc(count * 2.0 ** -(more >> np.uint64(40) & np.uint64(15)).astype(np.float64))
    multiples = [_near(t, count * step, more) for step in (0.25, math.pi / 4, math.log(2) / 2)]
    kinds = [bits, middle, few, *multiples, extreme, near]
    return np.choose((numbers % np.uint64(KINDS)).astype(np.intp), kinds)


def _near(t: Type, values: NDArray[np.float64], more: Words) -> Words:
    """The bits of floats, moved by at most 2 units in the last place."""
    if t.bits == 64:
        bits = values.view(np.uint64)
    else:
        bits = values.astype(np.float32).view(np.uint32).astype(np.uint64)
    return bits + more % np.uint64(5) - np.uint64(2) & np.uint64((1 << t.bits) - 1)
