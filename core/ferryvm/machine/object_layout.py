# SPDX-License-Identifier: Apache-2.0
"""The objects of a machine as a device with memory of its own has them.

    host     space: │ 0 │ objects … │ top      elements outside: anywhere, at base + place
    device   │ 0 │ objects … │ top … │ first: elements of outside arrays, one after another │ size

References, headers, fields and inline elements are where the host has them. Only the *places* of
outside arrays are others: a copy of the host's words gets the device's places (`to_device`), words
that come back the host's (`to_host`).

The outside arrays are found by a walk over the headers. Nobody tells a device what was made,
collected or shared since its last entry, so each update compares all headers with those that the
walk has seen: equal headers mean equal objects, and only new ones at the end are walked. There is
no walk if nothing is outside. A change of an *element* is found by comparing contents; see the
backends.
"""

from __future__ import annotations

import ctypes
import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ferryvm.isa.object import (
    FIRST_OFFSET,
    LENGTH_OFFSET,
    PLACE_OFFSET,
    padded,
)
from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine.collection import ShapeKind
from ferryvm.machine.control import ControlBlock
from ferryvm.machine.object_memory import objects_at
from ferryvm.machine.object_shape import Shapes
from ferryvm.machine.object_walk import ImageFault, objects
from ferryvm.verify import Verified

Words = npt.NDArray[np.uint64]

_MASK = (1 << 64) - 1


@dataclasses.dataclass(frozen=True)
class PlacedArray:
    """An array whose elements are outside of the object space."""

    reference: int
    type: int
    address: int
    """Address of its elements in this process."""
    bytes: int
    """Bytes of its elements, without padding."""
    place: int
    """Offset of its elements on the device."""
    number: int
    """Of the copy: an array made later has a larger one."""


class ObjectLayout:
    """Layout of the objects of one machine in the memory of a device."""

    def __init__(self, verified: Verified, first: int) -> None:
        """`first`: the smallest offset on the device of elements that are outside; the object space
        must not reach it."""
        self._shapes = Shapes(verified.program)
        self.first = first
        self.arrays: dict[int, PlacedArray] = {}
        """The outside arrays by the address of their elements."""
        self._base = self._count = 0
        self._gaps: Mapping[int, int] = {}
        self._forget()

    @property
    def size(self) -> int:
        """The end of the elements on the device."""
        return max((a.place + padded(a.bytes) for a in self.arrays.values()), default=self.first)

    @property
    def outside_bytes(self) -> int:
        """Bytes that the elements take on the device."""
        return sum(padded(each.bytes) for each in self.arrays.values())

    def update(self, control: ControlBlock) -> None:
        """Find the outside arrays of a machine, and give the new ones places. Raises ValueError if
        there are some and the words of the object space are no objects."""
        words = _words(control.objects, control.object_top)
        memory = objects_at(ctypes.addressof(control))
        self._gaps = {} if memory is None else memory.space.gaps
        if memory is not None and not memory.has_outside:
            if self.arrays:
                self._forget()
                self._assign()
            return
        is_known = control.objects == self._base and self._is_known(words)
        if not is_known:
            self._base = control.objects
            self._forget()
        if self._walk(words) or not is_known:
            self._assign()

    def to_device(self, words: Words) -> Words:
        """A copy of words of the host's object space, from its start on, with the device's
        places."""
        found = words.copy()
        found[self._places] = self._device_places
        return found

    def to_host(self, words: Words) -> Words:
        """A copy of words of the device's object space, from its start on, with the host's
        places."""
        found = words.copy()
        found[self._places] = self._host_places
        return found

    # --- finding arrays ---------------------------------------------------------------------

    def _forget(self) -> None:
        self._end = FIRST_OFFSET
        """The end of the objects that are known."""
        self._at = np.zeros(0, np.int64)
        """Positions of all words of known headers."""
        self._seen = np.zeros(0, np.uint64)
        """These words."""
        self._large: list[tuple[int, int, int, int]] = []
        """Of the outside arrays among them: position of the place, type, bytes, place."""
        self._places = np.zeros(0, np.int64)
        self._device_places = np.zeros(0, np.uint64)
        self._host_places = np.zeros(0, np.uint64)

    def _is_known(self, words: Words) -> bool:
        """True if the known objects are those at the start of the space."""
        if self._end > WORD_BYTES * len(words):
            return False
        return bool(np.array_equal(words[self._at], self._seen))

    def _walk(self, words: Words) -> bool:
        """Find the objects that are not known; True if there are any."""
        offset, end = self._end, WORD_BYTES * len(words)
        if offset == end:
            return False
        at: list[int] = []
        try:
            for one in objects(
                words.data.cast("B").cast("Q"),
                self._shapes,
                offset,
                is_image=False,
                gaps=self._gaps,
            ):
                number = one.offset // WORD_BYTES
                at.append(number)
                if one.kind is not ShapeKind.STRUCT:
                    at += (
                        number + LENGTH_OFFSET // WORD_BYTES,
                        number + PLACE_OFFSET // WORD_BYTES,
                    )
                if one.outside is not None:
                    self._large.append(
                        (at[-1], one.type, one.length * one.element_bytes, one.outside)
                    )
        except ImageFault as fault:
            raise ValueError(f"the objects of the program are damaged: {fault}") from None
        self._end = end
        new = np.array(at, np.int64)
        self._at = np.concatenate([self._at, new])
        self._seen = np.concatenate([self._seen, words[new]])
        return True

    # --- places on the device ---------------------------------------------------------------

    def _assign(self) -> None:
        """Give places to arrays that have none; an array keeps its place while it is alive."""
        before, self.arrays = self.arrays, {}
        fresh = []
        for at, type_, size, place in self._large:
            address = (place + self._base) & _MASK
            reference = WORD_BYTES * at - PLACE_OFFSET
            known = before.get(address)
            if known is not None and (known.type, known.bytes) == (type_, size):
                self.arrays[address] = dataclasses.replace(known, reference=reference)
            else:
                self._count += 1
                fresh.append(PlacedArray(reference, type_, address, size, 0, self._count))
        taken = ((each.place, each.place + padded(each.bytes)) for each in self.arrays.values())
        starts = first_fit(taken, (padded(each.bytes) for each in fresh), self.first, _MASK)
        assert starts is not None  # the last gap has no end
        for each, start in zip(fresh, starts, strict=True):
            self.arrays[each.address] = dataclasses.replace(each, place=start)
        self._places = np.array([at for at, *_ in self._large], np.int64)
        self._host_places = np.array([place for *_, place in self._large], np.uint64)
        addresses = ((place + self._base) & _MASK for *_, place in self._large)
        self._device_places = np.array([self.arrays[a].place for a in addresses], np.uint64)


def first_fit(
    taken: Iterable[tuple[int, int]], sizes: Iterable[int], start: int, end: int
) -> list[int] | None:
    """Starts of ranges of these sizes from `start` to `end`, each the lowest that is free beside
    the `taken` ranges and those before it; None if one of them fits nowhere."""
    gaps: list[list[int]] = []
    for first, past in [*sorted(taken), (end, end)]:
        if first > start:
            gaps.append([start, first])
        start = past
    found: list[int] = []
    for size in sizes:
        gap = next((gap for gap in gaps if gap[1] - gap[0] >= size), None)
        if gap is None:
            return None
        found.append(gap[0])
        gap[0] += size
    return found


def _words(address: int, size: int) -> Words:
    content: Any = (ctypes.c_uint64 * (size // WORD_BYTES)).from_address(address)
    return np.ctypeslib.as_array(content)
