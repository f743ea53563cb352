# SPDX-License-Identifier: Apache-2.0
"""Maps: a function of the program is called for the elements of arrays at each index.

    item i:   to[i] = f(xs[i], ys[i], start + i * step, shared arguments …)     unless mask[i]

Each item writes its own elements, and reads those of its index, so an array may be the result, too.
Sequences, masks and pairs come from outside only: there they are `range`, `numpy.ma`, and arrays of
complex numbers, whose parts stand side by side:

    to[2 * i], to[2 * i + 1] = f(zs[2 * i], zs[2 * i + 1])
"""

from __future__ import annotations

from collections.abc import Sequence

from ferryvm.isa.element import Element
from ferryvm.isa.type import I32, I64, ValueType
from ferryvm.listing import FunctionListing
from ferryvm.named_tuple import NamedTuple
from ferryvm.program import Signature
from ferryvm.skeleton.array_type import ArrayType
from ferryvm.skeleton.stated_trap import UNEQUAL, stated_trap
from ferryvm.skeleton.writer import Writer


class Mapping(NamedTuple):
    """A map: `arrays` has for each parameter of the function the type of the arrays whose elements
    it gets, or None if all items share one argument; the results are the elements of `to`. An
    array of pairs is for two parameters, the second of which has None, or for two results; only
    the adapter has them."""

    function: str
    signature: Signature
    arrays: tuple[ArrayType | None, ...]
    to: tuple[ArrayType, ...]
    in_place: bool = False
    """True if the arrays for the results are given."""
    sequences: tuple[int, ...] = ()
    """The numbers of the parameters of i64 that get the numbers of a sequence: start and step of it
    are given, for the adapter, and no array."""
    has_mask: bool = False
    """True if the adapter gets an array of u8 behind those for the results: items whose element is
    not 0 do nothing."""

    @property
    def form(self) -> str:
        """Its name in messages."""
        return "map!" if self.in_place else "map"

    @property
    def name(self) -> str:
        """The name of the function that maps."""
        return f"{self.form} {self._described}"

    @property
    def adapter(self) -> str:
        """The name of the function that maps for Python."""
        return f"map from outside {self._described}"

    @property
    def item(self) -> str:
        """The name of the item function."""
        return f"map {self._described}: item"

    @property
    def _described(self) -> str:
        to = map(str, self.to)
        given = [
            str(type_ if array is None else array)
            for array, type_ in zip(self.arrays, self.signature.parameters, strict=True)
        ]
        for number in self.sequences:
            given[number] = "sequence"
        masked = " unless masked" if self.has_mask else ""
        return f"{self.function} {' '.join(given)} to {' '.join(to)}{masked}"

    @property
    def parameters(self) -> tuple[ValueType, ...]:
        """The types of the arrays and shared arguments, in the order of the parameters."""
        pairs = zip(self.arrays, self.signature.parameters, strict=True)
        return tuple(type_ if array is None else array.reference for array, type_ in pairs)

    @property
    def outside(self) -> tuple[ValueType, ...]:
        """The types of the adapter's parameters for those of the function: two for a sequence, one
        for a pair."""
        return tuple(
            each
            for n, type_ in enumerate(self.parameters)
            if not self.is_second(n)
            for each in [type_] * (1 + (n in self.sequences))
        )

    @property
    def has_pairs(self) -> bool:
        """True if elements or results are pairs."""
        return any(array is not None and array.is_pair for array in (*self.arrays, *self.to))

    def is_second(self, number: int) -> bool:
        """True for the number of a parameter that gets the second part of a pair."""
        before = self.arrays[number - 1] if number else None
        return before is not None and before.is_pair

    @property
    def results(self) -> tuple[ValueType, ...]:
        """The types of the arrays for the results, and of the mask if there is one."""
        mask = (_MASK.reference,) if self.has_mask else ()
        return (*(array.reference for array in self.to), *mask)


_MASK = ArrayType.of(Element.U8)


def mapping(of: Mapping) -> list[FunctionListing]:
    """The function that maps, ( shared arrays -- to ), or in place ( to shared arrays -- ), and
    those that it needs. It traps unless all lengths are equal."""
    results = [array.reference for array in of.to]
    given: list[ValueType] = [*(results if of.in_place else ())]
    local_of: dict[int, int] = {}
    for is_shared in (True, False):
        for number, (array, type_) in enumerate(zip(of.arrays, of.parameters, strict=True)):
            if (array is None) == is_shared:
                local_of[number] = len(given)
                given.append(type_)
    writer = Writer(of.name, given, () if of.in_place else results)
    count = writer.local(I64)
    to: Sequence[int] = range(len(results))
    read = [local_of[number] for number, array in enumerate(of.arrays) if array is not None]
    functions = _check_lengths(writer, of, [*(to if of.in_place else ()), *read], count)
    if not of.in_place:
        to = [writer.local(type_) for type_ in results]
        for local, array in zip(to, of.to, strict=True):
            writer.get(count)
            array.make(writer)
            writer.set(local)
    arguments = [local_of[number] for number in range(len(of.arrays))]
    writer.launch(of.item, [*to, *arguments], count)
    if not of.in_place:
        writer.get(*to)
    return [writer.listing(), item(of), *functions]


def adapter(of: Mapping) -> list[FunctionListing]:
    """The function that maps in place for Python, ( outside to -- ), and its item function. The
    caller has checked that all lengths are equal."""
    given = [*of.outside, *of.results]
    writer = Writer(of.adapter, given)
    count, first = writer.local(I64), len(of.outside)
    of.to[0].push_count(writer, first)
    writer.set(count)
    writer.launch(of.item, [*range(first, len(given)), *range(first)], count)
    return [writer.listing(), item(of)]


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
        functions.append(stated_trap(check, 2))
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
    count = sum(array is not None for array in of.arrays)
    arrays = [f"array {number}" for number in range(1, count + 1)]
    return [*(results if of.in_place else ()), *arrays]


def item(of: Mapping) -> FunctionListing:
    """The item function: ( item to outside -- )."""
    types = tuple(of.signature.results)
    writer = Writer(of.item, [I64, *of.results, *of.outside])
    to = range(1, 1 + len(of.to))
    over = writer.label()
    if of.has_mask:
        writer.get(len(of.results), 0)
        _MASK.load(writer, I32)
        writer.emit("jump_if", over)
    places = _places_of_pair(writer) if of.has_pairs else ()
    if len(types) == 1:  # array and index are below the value
        writer.get(to[0], 0)
    _push_arguments(writer, of, places)
    writer.emit("call", of.function)
    if len(types) == 1:
        of.to[0].store(writer, types[0])
    else:
        found = [writer.local(type_) for type_ in types]
        for local in reversed(found):
            writer.set(local)
        values = iter(zip(found, types, strict=True))
        for target, array_type in zip(to, of.to, strict=True):
            for place in places if array_type.is_pair else (0,):
                local, type_ = next(values)
                writer.get(target, place, local)
                array_type.store(writer, type_)
    if of.has_mask:
        writer.place(over)
    return writer.listing()


def _places_of_pair(writer: Writer) -> tuple[int, int]:
    """Locals with the indices of the parts of the item's pair."""
    first, second = writer.local(I64), writer.local(I64)
    writer.get(0)
    writer.i64(1)
    writer.emit("i64.shl")
    writer.set(first)
    writer.get(first)
    writer.i64(1)
    writer.emit("i64.add")
    writer.set(second)
    return first, second


def _push_arguments(writer: Writer, of: Mapping, places: Sequence[int]) -> None:
    """Push the arguments of an item's call. `places`: the indices of the parts of its pairs."""
    at = 1 + len(of.results)
    pairs = zip(of.arrays, of.signature.parameters, strict=True)
    for number, (array, type_) in enumerate(pairs):
        if of.is_second(number):
            continue
        if array is not None and array.is_pair:
            for place in places:
                writer.get(at, place)
                array.load(writer, type_)
            at += 1
            continue
        writer.get(at)
        at += 1
        if number in of.sequences:
            writer.get(0, at)
            writer.emit("i64.mul")
            writer.emit("i64.add")
            at += 1
        elif array is not None:
            writer.get(0)
            array.load(writer, type_)
