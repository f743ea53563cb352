# SPDX-License-Identifier: Apache-2.0
"""Inputs for golden vectors: edge values of each type and random ones, by a seed."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from ferryvm.isa.element import Element
from ferryvm.isa.type import F32, F64, I32, I64, Type, from_float

LENGTHS = (0, 1, 2, 3, 7, 16, 64)
"""Numbers of elements of arrays."""

STYLES = ("plain", "beyond", "edge", "small", "random")
"""Kinds of elements of arrays, call by call."""

_INTEGERS = (0, 1, -1, 2, -2, 3, 5, 10, 64, 100, 127, 128, 255, -128, 32767, 65535, 1000003)
_FLOATS = (0.0, 1.0, -1.0, 0.5, -0.0, 2.0, 0.1, -3.75, 1e-3, 1e10, -1e300, 1e300, 4e-324)

_EDGES = {
    I32: (*_INTEGERS, -(1 << 31), (1 << 31) - 1),
    I64: (*_INTEGERS, 1 << 31, (1 << 32) - 1, 1 << 53, (1 << 53) + 1, -(1 << 63), (1 << 63) - 1),
}
_FLOAT_BITS = {
    F32: (0x7F800000, 0xFF800000, 0x7FC00000, 1, 0x007FFFFF, 0x00800000, 0x7F7FFFFF, 0x4B000001),
    F64: (
        *(0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000000, 1, 0x000FFFFFFFFFFFFF),
        *(0x0010000000000000, 0x7FEFFFFFFFFFFFFF, 0x4330000000000001, 0x41DFFFFFFFC00000),
    ),
}


_NO_SHAPES: Mapping[int, tuple[int, ...]] = MappingProxyType({})
_NONE: Mapping[int, int] = MappingProxyType({})


class ArrayInput(NamedTuple):
    """The elements of an array argument before the call, as bits."""

    bits: list[int]
    same: int | None = None
    """The index of the earlier argument that is the same array."""


Input = int | ArrayInput
"""An argument: the bits of a number, or an array."""


def edge_bits(t: Type) -> list[int]:
    """Bits of the edge values of a type, common ones first."""
    if not t.is_float:
        return [value & t.mask for value in _EDGES[t]]
    usual = [from_float(t, _fitting(t, value)) for value in _FLOATS]
    return list(dict.fromkeys([*usual, *_FLOAT_BITS[t]]))


def _fitting(t: Type, value: float) -> float:
    return value if t is F64 or abs(value) < 3e38 else value / abs(value) * 3e38


def inputs(
    kinds: Sequence[Type | Element],
    seed: int,
    shapes: Mapping[int, tuple[int, ...]] = _NO_SHAPES,
    axes: int = 0,
    folded: Mapping[int, int] = _NONE,
    pairs: Collection[int] = (),
) -> Iterator[list[Input]]:
    """Arguments of one call after another, without end: first those of a small one, then lengths
    and edge values in turn, then ever more of it by chance. `shapes`: the arguments that are
    lengths of the dimensions of an array; `axes`: so many of the first ones are numbers of items;
    `folded`: those that have one value; `pairs`: the arrays of pairs, whose lengths are even."""
    chance = random.Random(f"vectors {seed}")
    arrays = [kind for kind in kinds if isinstance(kind, Element)]
    number = 0
    while True:
        length = LENGTHS[number % len(LENGTHS)] if number else 3
        made = _call(kinds, pairs, chance, number, length, bool(arrays))
        if axes:
            _count(made, chance, length, axes)
        for at, dimensions in shapes.items():
            _shape(made, kinds, chance, at, dimensions, folded)
        for at, bits in folded.items():
            made[at] = bits
        yield made
        number += 1


def _count(made: list[Input], chance: random.Random, items: int, axes: int) -> None:
    """Choose the numbers of items along the axes, whose product is near to a number."""
    near = round(items ** (1 / axes))
    for axis in range(axes):
        made[axis] = max(0, near + chance.choice((0, 0, 0, -1, 2)))


def _shape(
    made: list[Input],
    kinds: Sequence[Type | Element],
    chance: random.Random,
    at: int,
    dimensions: tuple[int, ...],
    folded: Mapping[int, int],
) -> None:
    """Give an array a length that is the product of its dimensions."""
    element, array = kinds[at], made[at]
    assert isinstance(element, Element)
    assert isinstance(array, ArrayInput)
    longest = round(len(array.bits) ** (1 / len(dimensions)))
    size = 1
    for n in dimensions:
        dimension = folded.get(n, max(0, longest + chance.choice((0, 0, 0, 1, -1))))
        made[n] = dimension
        size *= dimension
    more = [element_bits(element, chance, "plain", size) for _ in range(size - len(array.bits))]
    made[at] = ArrayInput([*array.bits[:size], *more])


def _call(
    kinds: Sequence[Type | Element],
    pairs: Collection[int],
    chance: random.Random,
    number: int,
    length: int,
    has_array: bool,
) -> list[Input]:
    style = STYLES[number % 5] if number > 2 else "plain"
    is_uneven = number % 4 == 3
    is_shared = number % 6 == 5
    made: list[Input] = []
    for place, kind in enumerate(kinds):
        if not isinstance(kind, Element):
            made.append(_scalar(kind, chance, number, place, length if has_array else None))
            continue
        is_pair = place in pairs
        alike = (at for at, k in enumerate(kinds[:place]) if k is kind and (at in pairs) == is_pair)
        same = next(alike, None)
        if is_shared and same is not None:
            first = made[same]
            assert isinstance(first, ArrayInput)
            made.append(ArrayInput(first.bits, same if first.same is None else first.same))
            continue
        own = max(0, length + chance.choice((-2, -1, 1, 5))) if is_uneven else length
        own <<= is_pair
        made.append(ArrayInput([element_bits(kind, chance, style, own) for _ in range(own)]))
    return made


def _scalar(t: Type, chance: random.Random, number: int, place: int, length: int | None) -> int:
    """A number; integers are often lengths or indices."""
    edges = edge_bits(t)
    kind = (number + place) % 4
    if t.is_float:
        return float_bits(t, chance, number + place)
    if length is not None and kind != 3:
        return (length if kind != 1 else chance.randrange(length + 1)) & t.mask
    if kind == 1:
        return chance.randrange(1 << chance.randrange(1, 20)) & t.mask
    if kind == 2 and number > 8:
        return _random(t, chance)
    return edges[(number + place) % len(edges)]


def float_bits(t: Type, chance: random.Random, number: int) -> int:
    """A float: an edge value or a random one, by a number."""
    edges = edge_bits(t)
    return edges[number % len(edges)] if number % 4 < 2 else _random(t, chance)


def _random(t: Type, chance: random.Random) -> int:
    """A number of any magnitude."""
    if t.is_float and chance.random() < 0.8:
        return from_float(t, _fitting(t, chance.uniform(-8, 8)))
    return chance.getrandbits(t.bits)


def element_bits(element: Element, chance: random.Random, style: str, length: int) -> int:
    """The bits of an element. Integers are often indices into an array of the length. In the style
    "mixed" floats are mostly small ones that have to be rounded."""
    mask = (1 << element.bits) - 1
    t = element.type
    if style == "mixed":
        style = chance.choices(("small", "plain", "edge"), (40, 9, 1))[0] if t.is_float else "plain"
    match style:
        case "plain" | "beyond" if t.is_float:
            return from_float(t, chance.randrange(-64, 64) / 8)
        case "plain":
            return chance.randrange(max(1, length)) & mask
        case "beyond":
            return chance.randrange(length + 1) & mask
        case "small" if t.is_float:
            return from_float(t, _fitting(t, chance.uniform(-1, 1)))
        case "small":
            return chance.randrange(-10, 100) & mask
        case "edge":
            return chance.choice(edge_bits(t)) & mask
    return (_random(t, chance) if t.is_float else chance.getrandbits(element.bits)) & mask
