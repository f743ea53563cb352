# SPDX-License-Identifier: Apache-2.0
"""Launches of two or three dimensions: an item function that takes an index for each.

    (i, j) of (rows, columns)  <──  item = i * columns + j, in a launch of rows * columns items

The indices follow from the item by division. Up to 2^31 items a division by n is a multiplication
and a shift, with l the binary logarithm of n, rounded up:

    item / n = item * m >> 31 + l, where m is 2^(31 + l) / n, rounded down, + 1

It is exact since 0 < m * n - 2^(31 + l) <= 2^l, and the product is below 2^63. (Granlund,
Montgomery: Division by Invariant Integers using Multiplication, PLDI 1994, theorem 4.2.) Launches
of launches would need no division; their outer items alone would be independent for backends.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ferryvm.isa.type import F64, I64, Type, ValueType, from_float
from ferryvm.listing import FunctionListing
from ferryvm.named_tuple import NamedTuple
from ferryvm.program import Signature
from ferryvm.skeleton.stated_trap import TOO_MANY, stated_trap
from ferryvm.skeleton.writer import Writer

_FEW_BITS = 31
"""Items, as a power of 2, whose indices need no division."""

_MOST_BITS = 62
"""The largest number of items, as a power of 2."""


class Grid(NamedTuple):
    """A launch of a function that takes an index for each dimension, then shared arguments."""

    function: str
    signature: Signature
    dimensions: int

    @property
    def name(self) -> str:
        """The name of the function that launches."""
        return f"launch {self.function} in {self.dimensions} dimensions"

    @property
    def shared(self) -> tuple[ValueType, ...]:
        """The types of the arguments that all items share."""
        return tuple(self.signature.parameters)[self.dimensions :]


_ITEM_NAME = re.compile(r"launch .* in (?P<dimensions>[23]) dimensions: item(?P<divides> of many)?")


def item_indices(name: str, words: Sequence[int]) -> tuple[int, ...] | None:
    """The indices of an item, from the name of the item function and its arguments; None if it is
    none of a launch of dimensions."""
    found = _ITEM_NAME.fullmatch(name)
    if found is None:
        return None
    inner = int(found["dimensions"]) - 1
    first = len(words) - (inner if found["divides"] else 3 * inner)
    sizes = words[first : first + inner] if first > 0 else ()
    if len(sizes) < inner or not all(sizes):
        return None
    left, indices = words[0], list[int]()
    for size in reversed(sizes):
        left, index = divmod(left, size)
        indices.insert(0, index)
    return (left, *indices)


def grid(of: Grid) -> list[FunctionListing]:
    """The function that launches, ( shared sizes -- ), and those that it needs. It traps for a
    negative size, and for more than 2^62 items."""
    shared = len(of.shared)
    writer = Writer(of.name, [*of.shared, *([I64] * of.dimensions)])
    sizes = range(shared, shared + of.dimensions)
    count = writer.local(I64)
    many, none, divided = writer.label(), writer.label(), f"{of.name}: item of many"
    few, too_many = f"{of.name}: item", f"{TOO_MANY}{of.function} in dimensions"
    for size in sizes:  # a negative size is a negative number of items
        writer.get(size)
        writer.set(count)
        writer.get(size)
        writer.i64(0)
        writer.emit("i64.lt_s")
        writer.emit("jump_if", many)
    for size in sizes:
        writer.get(size)
        writer.emit("i64.eqz")
        writer.emit("jump_if", none)
    _check_count(writer, sizes, too_many)
    writer.get(sizes[0])
    for size in sizes[1:]:
        writer.get(size)
        writer.emit("i64.mul")
    writer.set(count)
    writer.get(count)
    writer.i64(1 << _FEW_BITS)
    writer.emit("i64.gt_s")
    writer.emit("jump_if", many)
    arguments = [*range(shared), *sizes[1:]]
    for size in sizes[1:]:
        arguments += _divisor(writer, size)
    writer.launch(few, arguments, count)
    writer.emit("return", 0)
    writer.place(many)
    writer.launch(divided, [*range(shared), *sizes[1:]], count)
    writer.place(none)
    return [
        writer.listing(),
        _item(few, of, divides=False),
        _item(divided, of, divides=True),
        stated_trap(too_many, of.dimensions),
    ]


def _check_count(writer: Writer, sizes: range, too_many: str) -> None:
    """Trap if the product of sizes, which are not negative, is beyond the largest number of
    items."""
    possible = writer.label()
    for number, size in enumerate(sizes):
        writer.get(size)
        writer.emit("f64.convert_i64_s")
        if number:
            writer.emit("f64.mul")
    writer.emit("f64.const", from_float(F64, float(1 << _MOST_BITS)))
    writer.emit("f64.le")
    writer.emit("jump_if", possible)
    writer.get(*sizes)
    writer.emit("call", too_many)
    writer.place(possible)


def _divisor(writer: Writer, size: int) -> list[int]:
    """New locals with the multiplier and the shift of divisions by a local, which is above 0."""
    multiplier, shift = writer.local(I64), writer.local(I64)
    writer.i64(64 + _FEW_BITS)
    writer.get(size)
    writer.i64(1)
    writer.emit("i64.sub")
    writer.emit("i64.clz")
    writer.emit("i64.sub")
    writer.set(shift)
    writer.i64(1)
    writer.get(shift)
    writer.emit("i64.shl")
    writer.get(size)
    writer.emit("i64.div_u")
    writer.i64(1)
    writer.emit("i64.add")
    writer.set(multiplier)
    return [multiplier, shift]


def _item(name: str, of: Grid, *, divides: bool) -> FunctionListing:
    """The item function: ( item shared sizes -- ) without the first size, with the multiplier and
    the shift for each unless it divides."""
    inner, shared = of.dimensions - 1, len(of.shared)
    numbers: list[Type] = [I64] * (inner if divides else 3 * inner)
    writer = Writer(name, [I64, *of.shared, *numbers])
    first = 1 + shared
    indices = [writer.local(I64) for _ in range(of.dimensions)]
    left = 0
    for dimension in reversed(range(inner)):  # the last one changes fastest
        size, quotient = first + dimension, indices[dimension]
        writer.get(left)
        if divides:
            writer.get(size)
            writer.emit("i64.div_u")
        else:
            multiplier = first + inner + 2 * dimension
            writer.get(multiplier)
            writer.emit("i64.mul")
            writer.get(multiplier + 1)
            writer.emit("i64.shr_u")
        writer.set(quotient)
        writer.get(left, quotient, size)
        writer.emit("i64.mul")
        writer.emit("i64.sub")
        writer.set(indices[dimension + 1])
        left = quotient
    writer.get(*indices, *range(1, first))
    writer.emit("call", of.function)
    return writer.listing()
