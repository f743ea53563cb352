# SPDX-License-Identifier: Apache-2.0
"""Maps: a function of the program is called for the elements of arrays at each index.

    item i:   to[i] = f(xs[i], ys[i], shared arguments …)

Each item writes its own elements, and reads those of its index, so an array may be the result, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ferryvm.isa.type import I64, ValueType
from ferryvm.listing import FunctionListing
from ferryvm.program import Signature
from ferryvm.skeleton.array_type import ArrayType
from ferryvm.skeleton.writer import Writer

UNEQUAL = "unequal lengths of "
"""The start of the names of functions that get two lengths that differ, and trap. The engine shows
their names with the lengths in place of the trap's message."""


class Mapping(NamedTuple):
    """A map: the function takes the elements of `arrays`, then arguments that all items share; its
    results are the elements of `to`."""

    function: str
    signature: Signature
    arrays: tuple[ArrayType, ...]
    to: tuple[ArrayType, ...]
    in_place: bool = False
    """True if the arrays for the results are given."""

    @property
    def form(self) -> str:
        """Its name in messages."""
        return "map!" if self.in_place else "map"

    @property
    def name(self) -> str:
        """The name of the function that maps."""
        return f"{self.form} {self._described}"

    @property
    def item(self) -> str:
        """The name of the item function."""
        return f"map {self._described}: item"

    @property
    def _described(self) -> str:
        of, to = (" ".join(map(str, types)) for types in (self.arrays, self.to))
        return f"{self.function} {of} to {to}"

    @property
    def shared(self) -> tuple[ValueType, ...]:
        """The types of the arguments that all items share."""
        return tuple(self.signature.parameters)[len(self.arrays) :]


def mapping(of: Mapping) -> list[FunctionListing]:
    """The function that maps, ( shared arrays -- to ), or in place ( to shared arrays -- ), and
    those that it needs. It traps unless all lengths are equal."""
    results = [array.reference for array in of.to]
    arrays = [array.reference for array in of.arrays]
    given: list[ValueType] = [*(results if of.in_place else ()), *of.shared, *arrays]
    writer = Writer(of.name, given, () if of.in_place else results)
    count = writer.local(I64)
    before = len(given) - len(arrays)
    shared, read = range(before - len(of.shared), before), range(before, len(given))
    to: Sequence[int] = range(len(results))
    functions = _check_lengths(writer, of, [*(to if of.in_place else ()), *read], count)
    if not of.in_place:
        to = [writer.local(type_) for type_ in results]
        for local, array in zip(to, of.to, strict=True):
            writer.get(count)
            array.make(writer)
            writer.set(local)
    writer.launch(of.item, [*to, *read, *shared], count)
    if not of.in_place:
        writer.get(*to)
    return [writer.listing(), _item(of), *functions]


def _check_lengths(
    writer: Writer, of: Mapping, given: Sequence[int], count: int
) -> list[FunctionListing]:
    """Set a local to the length of the first array, and trap if another one has a different one;
    the functions that this needs."""
    functions = []
    names = _names(of)
    writer.get(given[0])
    writer.emit("array.length")
    writer.set(count)
    for name, local in zip(names[1:], given[1:], strict=True):
        equal, check = writer.label(), f"{UNEQUAL}{names[0]} and {name} of {of.form}"
        functions.append(_trap(check))
        writer.get(local)
        writer.emit("array.length")
        writer.get(count)
        writer.emit("i64.eq")
        writer.emit("jump_if", equal)
        writer.get(count, local)
        writer.emit("array.length")
        writer.emit("call", check)
        writer.place(equal)
    return functions


def _names(of: Mapping) -> list[str]:
    """The arrays that are given, as messages name them."""
    single, several = len(of.to) == 1, range(1, len(of.to) + 1)
    results = ["the result"] if single else [f"result {number}" for number in several]
    arrays = [f"array {number}" for number in range(1, len(of.arrays) + 1)]
    return [*(results if of.in_place else ()), *arrays]


def _item(of: Mapping) -> FunctionListing:
    arrays = [array.reference for array in (*of.to, *of.arrays)]
    writer = Writer(of.item, [I64, *arrays, *of.shared])
    to, first = range(1, 1 + len(of.to)), 1 + len(of.to)
    is_single = len(of.to) == 1
    if is_single:  # array and index are below the value
        writer.get(to[0], 0)
    for number, array in enumerate(of.arrays):
        writer.get(first + number, 0)
        array.load(writer, of.signature.parameters[number])
    writer.get(*range(first + len(of.arrays), 1 + len(arrays) + len(of.shared)))
    writer.emit("call", of.function)
    types = tuple(of.signature.results)
    if is_single:
        of.to[0].store(writer, types[0])
        return writer.listing()
    found = [writer.local(type_) for type_ in types]
    for local in reversed(found):
        writer.set(local)
    for number, local in enumerate(found):
        writer.get(to[number], 0, local)
        of.to[number].store(writer, types[number])
    return writer.listing()


def _trap(name: str) -> FunctionListing:
    """A function that gets two lengths, and traps."""
    writer = Writer(name, [I64, I64])
    writer.emit("trap")
    return writer.endless()
