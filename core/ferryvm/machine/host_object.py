# SPDX-License-Identifier: Apache-2.0
"""Objects of a machine that the host makes, lends or takes: structs and arrays for Python, memory
of Python as arrays, elements of arrays as memory of Python.

    make     a new struct, or array of references, in the object space
    lend     host memory ──> the array of the program that has it
    share    an array of numbers ──> its elements as memory of both sides

The program allocates in code (see `ObjectMemory.allocate`); here nothing is in the middle of an
instruction. Each of them may collect, so references that the caller has are invalid afterwards.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence

from ferryvm.isa.object import (
    ARRAY_HEADER_BYTES,
    LENGTH_OFFSET,
    PLACE_OFFSET,
    READ_ONLY,
    header,
    outside_bytes,
    padded,
    type_number,
)
from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine.collection import SHAPE_WORDS, ShapeKind
from ferryvm.machine.host_array import HostArray, SharedBlock
from ferryvm.machine.memory import AddressSpaceError
from ferryvm.machine.object_memory import ObjectMemory

Protected = Callable[[Callable[[], None]], None]
"""Runs a function in which no signal handler raises."""

_MASK = (1 << 64) - 1


class OverlapError(Exception):
    """Host arrays overlap, and one of them is written; its arguments are the number of the first
    one that does, and that of the other one, or None if the program has that already."""


class HostObjects:
    """The host's side of the objects of one machine."""

    def __init__(self, objects: ObjectMemory, protected: Protected) -> None:
        """`protected`: runs a function in which no signal handler raises."""
        self._objects, self._protected = objects, protected
        self._space, self._control = objects.space, objects.control
        self._shapes = objects.shapes

    def make(self, number: int, length: int = 0) -> int:
        """A reference to a new struct of a type number, or an array of references with `length`
        elements; zero or null all over, and alive until the next collection.

        Raises AddressSpaceError if the limit forbids it or the system has no memory for it,
        ValueError as `ObjectMemory.collect`.
        """
        kind, bytes_ = self._shapes.rows[SHAPE_WORDS * number : SHAPE_WORDS * number + 2]
        is_array = kind != ShapeKind.STRUCT
        size = ARRAY_HEADER_BYTES + padded(length * bytes_) if is_array else bytes_
        outside = outside_bytes(size, is_array)
        if self._objects.is_forced or self._control.object_top + size > self._space.end:
            self._protected(lambda: self._collect(size))
        made = list[int]()
        if outside:
            self._protected(lambda: made.append(self._made(number, length, size, outside)))
            return made[0]
        return self._made(number, length if is_array else None, size, 0)

    def _made(self, number: int, length: int | None, size: int, outside: int) -> int:
        """The reference of a new object, for which there is memory; `length`: None for a struct;
        `outside`: those of its bytes that are outside of the space."""
        space, control = self._space, self._control
        place = self._objects.new_block(outside) if outside else None
        if outside and place is None:
            raise AddressSpaceError(f"no memory for an array of {outside} bytes")
        reference: int = control.object_top
        words = [header(number)]
        if length is not None:
            words += [length, reference + ARRAY_HEADER_BYTES if place is None else place]
        at = reference // WORD_BYTES
        content, end = memoryview(array("Q", words)), at + len(words)
        top = reference + size - outside
        # No call stands between these two: a signal handler that raises comes before or after both.
        space.words[at:end] = content
        control.object_top = top
        control.object_end = top if self._objects.is_forced else space.end
        return reference

    def lend(self, arrays: Sequence[HostArray]) -> list[int]:
        """References to host arrays, made where they are not known.

        They are valid until the next collection; call this also for none. Raises OverlapError,
        AddressSpaceError if the limit leaves no memory for their headers, ValueError as
        `ObjectMemory.collect`.
        """
        space, control = self._space, self._control
        hosts = space.hosts
        if not self._objects.is_forced:
            known = hosts.references_of(arrays)
            if known is not None:
                return known
        for number, one in enumerate(arrays):
            for other_number, other in enumerate(arrays[:number]):
                if not one.is_same(other) and one.excludes(other):
                    raise OverlapError(number, other_number)
        wanted = ARRAY_HEADER_BYTES * len(arrays)
        if (
            control.object_top + wanted > control.object_end
            or hosts.is_due(arrays)
            or any(hosts.excluding(one) for one in arrays)
        ):
            self._protected(lambda: self._collect(wanted))
            for number, one in enumerate(arrays):
                if hosts.excluding(one):
                    raise OverlapError(number, None)
        control.object_end = max(control.object_end, control.object_top + wanted)
        found = [self._lent(one) for one in arrays]
        if self._objects.is_forced:
            control.object_end = control.object_top
        return found

    def lend_fresh(self, one: HostArray) -> int | None:
        """The reference of a host array that is not known, and whose memory no known one can
        overlap; None if the program has no object for it, or a collection should come first."""
        space = self._space
        reference = None if space.hosts.is_due((one,)) else space.hosts.take(one)
        if reference is not None:
            space.set_elements(reference, one.length, space.place(one))
        return reference

    def _collect(self, wanted: int) -> None:
        """Collect, so that `wanted` more bytes fit."""
        if not self._objects.collect_for(wanted):
            raise AddressSpaceError(
                f"no memory for {wanted} more bytes of objects: live objects may take "
                f"{self._space.limit} bytes; raise Limits.objects"
            )

    def _lent(self, one: HostArray) -> int:
        """The reference of a host array, for which there is memory."""
        hosts, control = self._space.hosts, self._control
        known = hosts.get(one.address) if one.size else None
        if known is not None:
            return hosts.references[one.address]
        vacant = hosts.take(one)
        if vacant is not None:
            self._space.set_elements(vacant, one.length, self._space.place(one))
            return vacant
        reference: int = control.object_top
        at = reference // WORD_BYTES
        content = reference + ARRAY_HEADER_BYTES
        flags = READ_ONLY if one.is_read_only else 0
        place = self._space.place(one) if one.size else content
        self._space.words[at : at + 3] = memoryview(
            array("Q", (header(one.type) | flags, one.length, place))
        )
        control.object_top = content
        if one.size:
            hosts.add(one, reference)
        return reference

    def share(
        self, reference: int, typestr: str, view_of: Callable[[SharedBlock], object]
    ) -> object:
        """The elements of an array of numbers as an object of Python, without a copy: for a host
        array the ndarray that it is, else what `view_of` makes of its memory. Elements inside the
        space are moved out of it once. Raises AddressSpaceError if the system has no memory."""
        space = self._space
        words, at = space.words, reference // WORD_BYTES
        place: int = words[at + PLACE_OFFSET // WORD_BYTES]
        known = space.hosts.get((place + space.base) & _MASK)
        if known is None:
            self._protected(lambda: self._share(reference, typestr, view_of))
            place = words[at + PLACE_OFFSET // WORD_BYTES]
            known = space.hosts.get((place + space.base) & _MASK)
            assert known is not None
        return known.view

    def _share(
        self, reference: int, typestr: str, view_of: Callable[[SharedBlock], object]
    ) -> None:
        """Make the elements of an array a host array."""
        space = self._space
        words, at = space.words, reference // WORD_BYTES
        first, length = words[at], words[at + LENGTH_OFFSET // WORD_BYTES]
        at_place = at + PLACE_OFFSET // WORD_BYTES
        place: int = words[at_place]
        number = type_number(first)
        element_bytes = self._shapes.rows[SHAPE_WORDS * number + 1]
        size = padded(length * element_bytes)
        content = reference + ARRAY_HEADER_BYTES
        if place == content:
            moved = space.make_block(size)
            if moved is None:
                raise AddressSpaceError(f"no memory for an array of {size} bytes")
            space.block(moved)[:] = space.bytes[content : content + size]
            words[at_place] = place = moved
            space.gaps[reference] = size
        is_read_only = bool(first & READ_ONLY)
        block = space.share_block(place, typestr, length, is_read_only)
        address = (place + space.base) & _MASK
        one = HostArray(
            address, number, length, element_bytes, is_read_only, view_of(block), (block,)
        )
        space.hosts.add(one, reference, is_shared=True)
        if not self._objects.is_forced:
            self._control.object_end = space.end
