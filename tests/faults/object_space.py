# SPDX-License-Identifier: Apache-2.0
"""Planted faults of the object space: when it collects, what it frees, what it clears."""

from __future__ import annotations

import ctypes
from typing import Any

from ferryvm.machine.collection import Request
from ferryvm.machine.object_memory import ObjectMemory
from ferryvm.machine.object_space import Collector, ObjectSpace

_libc = ctypes.CDLL(None)


class SpaceNotCleared(ObjectSpace):
    """The space that was left is not cleared: new objects are not zero."""

    def collect(self, request: Request, top: int, collector: Collector) -> int:
        half: Any = self._half
        content = bytes(half.bytes[:top])
        new = super().collect(request, top, collector)
        half.bytes[: len(content)] = content
        return new


class SpaceClearedInPart(ObjectSpace):
    """The last word of the space that was left is not cleared."""

    def collect(self, request: Request, top: int, collector: Collector) -> int:
        half: Any = self._half
        last = half.words[top // 8 - 1]
        new = super().collect(request, top, collector)
        half.words[top // 8 - 1] = last
        return new


class ElementsDoNotCount(ObjectSpace):
    """Elements outside do not count against the limit."""

    def enlarge(self, top: int, wanted: int) -> bool:
        bytes_, self.outside_bytes = self.outside_bytes, 0
        fits = super().enlarge(top, wanted)
        self.outside_bytes = bytes_
        return fits


class WantedDoesNotCount(ObjectSpace):
    """Whether an object fits is decided without its own size, if that is below the limit."""

    def enlarge(self, top: int, wanted: int) -> bool:
        fits = super().enlarge(top, wanted)
        return fits or (wanted <= self.limit // 2 and super().enlarge(top, 0))


class LimitTooLow(ObjectSpace):
    """An object that just fits does not."""

    def enlarge(self, top: int, wanted: int) -> bool:
        return super().enlarge(top, wanted + 4096)


class DeadElementsCount(ObjectSpace):
    """Elements that were given back count against the limit."""

    def _free(self, address: int) -> None:
        bytes_ = self.outside_bytes
        super()._free(address)
        self.outside_bytes = bytes_


class ElementsNotZero(ObjectSpace):
    """The elements of a large array are not zero."""

    def make_block(self, size: int) -> int | None:
        place = super().make_block(size)
        if place is not None:
            self.block(place)[:8] = b"\xff" * 8
        return place


class ElementsPlacedByTheOtherSpace(ObjectSpace):
    """The place of new elements is relative to the space that is not in use."""

    def make_block(self, size: int) -> int | None:
        place = super().make_block(size)
        return None if place is None else place + self._half.base - self._other.base & (1 << 64) - 1


class PreparedBeforeTheCollection(ObjectMemory):
    """Elements are prepared, then a collection takes them for dead and gives them back."""

    def allocate(self) -> bool:
        fits = super().allocate()
        control = self._control
        if fits and control.prepared:
            self.space._free(control.prepared + self.space.base & (1 << 64) - 1)
        return fits


class TopNotLowered(ObjectMemory):
    """The memory of dead objects is not used again."""

    def collect(self) -> None:
        top = self._control.object_top
        super().collect()
        self._control.object_top = max(top, self._control.object_top)


class ExhaustedAtOnce(ObjectMemory):
    """Memory counts as exhausted where a collection would have made some."""

    def allocate(self) -> bool:
        elements = self.outside_of_wanted()
        if not self.is_forced and self._control.object_top + elements > self.space.end:
            return False
        return super().allocate()


SPACE_FAULTS: list[type[ObjectSpace | ObjectMemory]] = [
    each
    for each in (*ObjectSpace.__subclasses__(), *ObjectMemory.__subclasses__())
    if each.__module__ == __name__
]
