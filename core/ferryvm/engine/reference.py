# SPDX-License-Identifier: Apache-2.0
"""References between one program and Python: a word of either side as a value of the other.

    null                          None
    i31                           int
    array of numbers              ndarray of the same memory; any object with memory goes in
    struct                        StructView
    array of references           ArrayView

What a value becomes depends on the object, not on the type that is declared for it: an `anyref` is
any of these.
"""

from __future__ import annotations

import ctypes
import functools
import operator
import re
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from ferryvm.engine.array_argument import (
    NUMBER_ARRAYS,
    FreshArray,
    NumberArray,
    Place,
    address_of,
    has_memory,
    host_array,
    ndarray,
)
from ferryvm.engine.interrupt import interruptible
from ferryvm.engine.marshal import CallError, bits_of
from ferryvm.engine.object_view import ArrayView, Item, ObjectView, StructView, type_name
from ferryvm.failure import shown
from ferryvm.isa.declared_type import StructType
from ferryvm.isa.object import (
    LENGTH_OFFSET,
    PLACE_OFFSET,
    STRUCT_HEADER_BYTES,
    type_number,
)
from ferryvm.isa.type import (
    ANYREF,
    ARRAYREF,
    F64,
    I31REF,
    I32,
    WORD_BYTES,
    Reference,
    ValueType,
    as_number,
    signed,
    to_python,
    with_article,
)
from ferryvm.machine.control import ControlBlock, Status
from ferryvm.machine.host_array import HostArray
from ferryvm.machine.host_object import HostObjects, OverlapError
from ferryvm.machine.memory import AddressSpaceError
from ferryvm.machine.object_memory import ObjectMemory
from ferryvm.machine.object_text import object_text
from ferryvm.machine.state import Machine
from ferryvm.machine.unwind import Thrown

if TYPE_CHECKING:
    import numpy.typing as npt

_R = TypeVar("_R")
_MASK = (1 << 64) - 1
_HALF_I31 = 1 << 30


class Slot(NamedTuple):
    """A field of a struct, or an element of an array."""

    at: int
    """Its number."""
    type: ValueType
    place: Place


Alone = Callable[[Callable[[bool], _R]], _R]
"""Runs an action during which other threads are excluded; its argument is of no interest here."""

# A signal during these steps is raised after them, as at the end of a program.
_protected = functools.partial(interruptible, ControlBlock(status=Status.HALT))


class References:
    """The references of one machine."""

    def __init__(self, machine: Machine, alone: Alone[Any]) -> None:
        """`alone`: excludes other threads from the machine."""
        assert machine.objects is not None
        self.objects: ObjectMemory = machine.objects
        self._host = HostObjects(self.objects, _protected)
        self._types, self._alone = machine.verified.types, alone
        self._statics = machine.memory.statics
        self._views: weakref.WeakValueDictionary[int, StructView | ArrayView] = (
            weakref.WeakValueDictionary()
        )
        self._fields: dict[int, dict[str, Slot]] = {}

    # --- to Python ------------------------------------------------------------------------------

    def value(self, word: int) -> Item:
        """The value of a reference, for a caller that excludes other threads. Raises CallError if
        the system has no memory for an array."""
        if not word:
            return None
        if word & 1:
            return signed(I32, word & I32.mask) >> 1
        objects = self.objects
        number = type_number(objects.space.words[word // WORD_BYTES])
        kind = NUMBER_ARRAYS.get(number)
        if kind is not None:
            try:
                view = self._host.share(word, kind.typestr, ndarray)
            except AddressSpaceError as error:
                raise CallError(str(error)) from None
            assert isinstance(view, np.ndarray)
            return view
        handle = objects.handles.find(word)
        known = None if handle is None else self._views.get(handle)
        if known is None:
            made = StructView if self._is_struct(number) else ArrayView
            handle = objects.handles.hold(word)
            known = self._views[handle] = made(self, handle, number)
        return known

    def values(self, types: Sequence[ValueType], words: Sequence[int]) -> list[Item]:
        """The values of words of these types; as `value`."""
        return [
            self.value(word) if isinstance(t, Reference) else to_python(as_number(t), word & t.mask)
            for t, word in zip(types, words, strict=True)
        ]

    def look(self, view: ObjectView, action: Callable[[int], _R]) -> _R:
        """The result of an action with the reference of an object, while other threads are
        excluded; it must not run the machine. Raises CallError as `alone` does."""
        found: _R = self._alone(lambda _: action(self.objects.handles.words[view._handle]))
        return found

    def fields_at(self, word: int, count: int) -> list[int]:
        """The words of the fields of a struct, for a caller that excludes other threads."""
        address = self.objects.space.base + word + STRUCT_HEADER_BYTES
        return [*(ctypes.c_uint64 * count).from_address(address)]

    def elements_at(self, word: int, count: int | None = None) -> list[int]:
        """The words of an array of references, or so many of them; as `fields_at`."""
        space = self.objects.space
        if count is None:
            count = space.words[(word + LENGTH_OFFSET) // WORD_BYTES]
        place = space.words[(word + PLACE_OFFSET) // WORD_BYTES]
        return [*(ctypes.c_uint64 * count).from_address((place + space.base) & _MASK)]

    # --- to the program -------------------------------------------------------------------------

    def words(
        self, wanted: Sequence[tuple[Place, Reference]], values: Sequence[object]
    ) -> list[int]:
        """The references of values for places of these types, for a caller that excludes other
        threads. A collection may come first; they are valid until the next one.

        Raises CallError for values that do not fit, and for arrays that overlap.
        """
        values = [each.array if type(each) is FreshArray else each for each in values]
        found = [0] * len(values)
        numbers: list[int] = []
        arrays: list[HostArray] = []
        has_views = False
        for number, ((place, t), value) in enumerate(zip(wanted, values, strict=True)):
            if value is None:
                continue
            if isinstance(value, ObjectView):
                self._check_view(place, t, value)
                has_views = True
            elif t.number in NUMBER_ARRAYS:
                numbers.append(number)
                arrays.append(host_array(place, t, value))
            elif self._is_small(place, t, value):
                found[number] = (operator.index(value) << 1 & I32.mask) | 1  # type: ignore[arg-type]  # it is
            elif t in (ANYREF, ARRAYREF) and has_memory(value):
                numbers.append(number)
                arrays.append(host_array(place, t, value))
            else:
                raise self._misfit(place, t, shown(value))
        try:
            references = self._host.lend(arrays)
        except OverlapError as error:
            places = [wanted[number][0] for number in numbers]
            raise _overlap(places, *error.args) from None
        except AddressSpaceError as error:
            name = wanted[0][0].name if wanted else "the call"
            raise CallError(f"{name}: {error}") from None
        for number, reference in zip(numbers, references, strict=True):
            found[number] = reference
        if has_views:  # their objects may have moved
            for number, value in enumerate(values):
                if isinstance(value, ObjectView):
                    found[number] = self.objects.handles.words[value._handle]
        return found

    def pass_soon(self, wanted: Sequence[tuple[int, NumberArray]], found: list[Any]) -> bool:
        """Put references in the place of arrays, arguments of these numbers: the common case of
        calls in a loop, where each is an ndarray that the program has as it is, or fresh. False if
        some are something else, or a collection should come first."""
        objects = self.objects
        hosts = objects.space.hosts
        if objects.is_forced or hosts.is_full:
            return False
        known, references = hosts.known, hosts.references
        for number, kind in wanted:
            value = found[number]
            if type(value) is FreshArray:
                reference = self._lent(kind, value.array)
                if reference is None:
                    return False
                found[number] = reference
                continue
            if type(value) is not np.ndarray:
                return False
            one = known.get(address_of(value))
            if one is None or one.view is not value or one.type != kind.number:
                return False
            # It may have got another dtype or shape since.
            is_like = value.dtype is kind.dtype and value.shape == (one.length,)
            if not is_like or not one.length or one.is_read_only or not value.flags.carray:
                return False
            found[number] = references[one.address]
        return True

    def _lent(self, kind: NumberArray, array: npt.NDArray[Any]) -> int | None:
        """The reference of a fresh array; None if the program has no object for it."""
        address, length = address_of(array), len(array)
        return self._host.lend_fresh(
            HostArray(address, kind.number, length, kind.bytes, False, array, ())
        )

    def thrown(
        self, exception: Thrown, types: Sequence[ValueType], values: Sequence[Item]
    ) -> Thrown | None:
        """An exception with the references that its values have now, for a caller that excludes
        other threads; None if one is an object of another machine."""
        wanted, given = list[tuple[Place, Reference]](), list[Item]()
        for t, value in zip(types, values, strict=True):
            if isinstance(t, Reference):
                wanted.append((Place("an exception"), t))
                given.append(value)
        try:
            references = iter(self.words(wanted, given))
        except CallError:
            return None
        words = [
            next(references) if isinstance(t, Reference) else word
            for t, word in zip(types, exception.words, strict=True)
        ]
        return Thrown(exception.tag, tuple(words))

    def _check_view(self, place: Place, t: Reference, view: ObjectView) -> None:
        name = view._references.type_name(view._type)
        if view._references is not self:
            raise self._misfit(place, t, f"{with_article(name)} of another instance")
        if not self._types.is_subtype(view._type, t.number):
            raise self._misfit(place, t, with_article(name))

    def _is_small(self, place: Place, t: Reference, value: object) -> bool:
        """True if a value goes in as an i31. Raises CallError for an int that is too large."""
        if not self._types.is_subtype(I31REF.number, t.number) or not hasattr(value, "__index__"):
            return False
        try:
            number = operator.index(value)
        except TypeError:  # as an ndarray of several elements says
            return False
        if not -_HALF_I31 <= number < _HALF_I31:
            raise self._misfit(place, t, shown(value))
        return True

    def _misfit(self, place: Place, t: Reference, found: str) -> CallError:
        return CallError(f"{place.name} is {found}; {self._expected(t)} is expected for {t}")

    def _expected(self, t: Reference) -> str:
        """The values that can become a reference of a type, in words."""
        small = f"an int from {-_HALF_I31} to {_HALF_I31 - 1}"
        if t is I31REF:
            return f"{small}, or None,"
        if t is ANYREF:
            return f"a struct or an array of this instance, an array of numbers, {small}, or None,"
        if t is ARRAYREF:
            return "an array of numbers, an array of this instance, or None,"
        if t.number in NUMBER_ARRAYS:
            return f"a contiguous array of {NUMBER_ARRAYS[t.number].dtype.name}"
        return f"{with_article(t)} of this instance, or None,"

    # --- new objects ----------------------------------------------------------------------------

    def make(
        self, number: int, length: int, parts: Sequence[tuple[Slot, object]]
    ) -> StructView | ArrayView:
        """A new struct, or array of references with `length` elements, and these values; others
        are zero or null. Raises CallError for values that do not fit, and if the limit of objects
        or the system has no memory for it."""
        found: StructView | ArrayView = self._alone(lambda _: self._made(number, length, parts))
        return found

    def _made(
        self, number: int, length: int, parts: Sequence[tuple[Slot, object]]
    ) -> StructView | ArrayView:
        words, wanted, given = dict[int, int](), list[tuple[Place, Reference]](), []
        for slot, value in parts:
            at, t, place = slot
            if isinstance(t, Reference):
                wanted.append((place, t))
                given.append((at, value))
            else:
                words[at] = bits_of(t, value, place.name)
        try:
            reference = self._host.make(number, length)
        except AddressSpaceError as error:
            raise CallError(f"{self.type_name(number)}: {error}") from None
        handle = self.objects.handles.hold(reference)
        is_struct = number in self._fields or self._is_struct(number)
        view = self._views[handle] = (StructView if is_struct else ArrayView)(self, handle, number)
        if wanted:  # the object may move
            found = self.words(wanted, [value for _, value in given])
            words.update(zip((at for at, _ in given), found, strict=True))
        if words:
            address = (
                self._field_address(view, 0)
                if isinstance(view, StructView)
                else self._element_address(view, 0)
            )
            content = (ctypes.c_uint64 * (max(words) + 1)).from_address(address)
            for at, word in words.items():
                content[at] = word
        return view

    # --- statics --------------------------------------------------------------------------------

    def static(self, number: int) -> Item:
        """The value of a static. Raises CallError as `alone` does."""
        value: Item = self._alone(lambda _: self.value(self._statics[number]))
        return value

    def set_static(self, number: int, name: str, t: Reference, value: object) -> None:
        """Set a static. Raises CallError for a value of another type."""

        def write(_: bool) -> None:
            (word,) = self.words([(Place(f"static {name}", verb="set it to"), t)], [value])
            self._statics[number] = word

        self._alone(write)

    # --- views ----------------------------------------------------------------------------------

    def type_name(self, number: int) -> str:
        """The name of a type."""
        return self._types.references[number].name

    def text(self, view: ObjectView) -> str:
        """The text of an object, see `ferryvm.machine.object_text`."""
        words = self.objects.handles.words
        found: str = self._alone(lambda _: object_text(self.objects, words[view._handle]))
        return found

    def _is_struct(self, number: int) -> bool:
        return isinstance(self._types.declared(number), StructType)

    def fields(self, number: int) -> dict[str, Slot]:
        """The fields of a struct type by name."""
        found = self._fields.get(number)
        if found is None:
            declared = self._types.declared(number)
            assert isinstance(declared, StructType)
            found = {}
            for at, (name, t) in enumerate(declared.fields):
                place = Place(f"{declared.name}.{name}", verb="set it to")
                found[name] = Slot(at, t, place)
            self._fields[number] = found
        return found

    def field_names(self, number: int) -> list[str]:
        """The names of the fields of a struct type."""
        return list(self.fields(number))

    def release(self, handle: int) -> None:
        """Give a handle back; any thread may do so at any time."""
        self.objects.handles.release(handle)

    def field(self, view: StructView, name: str) -> Item:
        """The value of a field. Raises KeyError, CallError as `alone` does."""
        at, t, _ = self.fields(view._type)[name]
        value: Item = self._alone(lambda _: self._read(self._field_address(view, at), t))
        return value

    def set_field(self, view: StructView, name: str, value: object) -> None:
        """Set a field. Raises KeyError, CallError for a value of another type."""
        at, t, place = self.fields(view._type)[name]
        self._alone(lambda _: self._write(place, t, value, lambda: self._field_address(view, at)))

    def length(self, view: ArrayView) -> int:
        """The number of elements."""
        found: int = self._alone(lambda _: self._length(view))
        return found

    def element(self, view: ArrayView, index: object) -> Item:
        """The element at an index. Raises IndexError, TypeError."""

        def read(_: bool) -> Item:
            return self._read(self._element_address(view, self._index(view, index)), ANYREF)

        value: Item = self._alone(read)
        return value

    def set_element(self, view: ArrayView, index: object, value: object) -> None:
        """Set the element at an index. Raises IndexError, TypeError, CallError for a value of
        another type."""

        def write(_: bool) -> None:
            at = self._index(view, index)
            place = Place(f"element {at} of {with_article(type_name(view))}", verb="set it to")
            (t,) = self.objects.shapes.fields[view._type]
            self._write(place, t, value, lambda: self._element_address(view, at))

        self._alone(write)

    def _read(self, address: int, t: ValueType) -> Item:
        if t is F64:  # moved, no arithmetic
            return ctypes.c_double.from_address(address).value
        word = ctypes.c_uint64.from_address(address).value
        if isinstance(t, Reference):
            return self.value(word)
        return to_python(t, word & t.mask)

    def _write(self, place: Place, t: ValueType, value: object, address: Callable[[], int]) -> None:
        """Store a value; `address`: where, after a collection."""
        if isinstance(t, Reference):
            (word,) = self.words([(place, t)], [value])
        else:
            word = bits_of(t, value, place.name)
        ctypes.c_uint64.from_address(address()).value = word

    def _field_address(self, view: StructView, at: int) -> int:
        reference = self.objects.handles.words[view._handle]
        return self.objects.space.base + reference + STRUCT_HEADER_BYTES + WORD_BYTES * at

    def _length(self, view: ArrayView) -> int:
        at = (self.objects.handles.words[view._handle] + LENGTH_OFFSET) // WORD_BYTES
        found: int = self.objects.space.words[at]
        return found

    def _index(self, view: ArrayView, index: object) -> int:
        number = operator.index(index)  # type: ignore[arg-type]  # it says so by TypeError
        count = self._length(view)
        at = number + count if number < 0 else number
        if not 0 <= at < count:
            raise IndexError(
                f"index {number}, {with_article(type_name(view))} has {count} elements"
            )
        return at

    def _element_address(self, view: ArrayView, index: int) -> int:
        space = self.objects.space
        at = (self.objects.handles.words[view._handle] + PLACE_OFFSET) // WORD_BYTES
        found: int = (space.words[at] + space.base + WORD_BYTES * index) & _MASK
        return found


def _overlap(places: Sequence[Place], first: int, second: int | None) -> CallError:
    one = places[first]
    other, copied = "an array that the program has", one
    if second is not None:
        other = places[second].name.rpartition(": ")[2]
        if _is_result(one) and _is_result(places[second]):
            return CallError(
                f"{one.name} shares memory with {other}; each result needs its own array"
            )
        if _is_result(one):  # results in a copy of it would be lost
            copied = places[second]
    return CallError(
        f"{one.name} shares memory with {other}; arrays may only if all are read-only and begin "
        f"apart: {copied.verb} {copied.given}.copy()"
    )


def _is_result(place: Place) -> bool:
    """True for an array that gets results of a map."""
    return re.search(r"\(out(\[\d+\])?\)$", place.name) is not None


class Passing:
    """Passes the arguments of calls of one function and returns its results."""

    def __init__(
        self,
        references: References,
        name: str,
        names: Sequence[str],
        parameters: Sequence[ValueType],
        results: Sequence[ValueType],
    ) -> None:
        """`names`: those of the parameters, as far as they are known."""
        self._references, self._name, self._results = references, name, results
        self._numbers = [n for n, t in enumerate(parameters) if isinstance(t, Reference)]
        self._arrays = [
            (number, NUMBER_ARRAYS[t.number])
            for number, t in enumerate(parameters)
            if isinstance(t, Reference) and t.number in NUMBER_ARRAYS
        ]
        self._has_others = len(self._arrays) < len(self._numbers)
        self._wanted = [
            (_argument(name, number, names[number] if number < len(names) else ""), t)
            for number, t in enumerate(parameters)
            if isinstance(t, Reference)
        ]

    def words(self, arguments: Sequence[object]) -> list[object]:
        """The arguments with references for objects; as `References.words`."""
        found = list(arguments)
        if not self._has_others and self._references.pass_soon(self._arrays, found):
            return found
        values = [arguments[number] for number in self._numbers]
        references = self._references.words(self._wanted, values)
        for number, reference in zip(self._numbers, references, strict=True):
            found[number] = reference
        return found

    def values(self, words: Sequence[int]) -> list[Item]:
        """The Python values of the results. Raises CallError if there is no memory for an array."""
        try:
            return self._references.values(self._results, words)
        except CallError as error:
            raise CallError(f"{self._name}: {error}") from None


def _argument(name: str, number: int, parameter: str) -> Place:
    described = f" ({parameter})" if parameter else ""
    given = parameter if parameter.isidentifier() else "a"
    return Place(f"{name}: argument {number + 1}{described}", given)
