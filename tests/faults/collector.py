# SPDX-License-Identifier: Apache-2.0
"""Planted faults of the collector: each is the definition in Python with one mistake."""

from __future__ import annotations

import ctypes

from ferryvm.isa.object import ARRAY_HEADER_BYTES, FIRST_OFFSET, READ_ONLY
from ferryvm.machine.collection import MASK, Collection, Request

_NEGATIVE = 1 << 63
"""Offsets from here on are those of parameters, below the header."""


class StaticForgotten(Collection):
    """The last static is no root."""

    def roots(self) -> list[int]:
        last = self.request.static_count
        found = super().roots()
        return found[: max(last - 1, 0)] + found[last:]


class HandlesForgotten(Collection):
    """An object that only a host holds is freed."""

    def handles(self) -> list[int]:
        return []


class OtherOrderOfRoots(Collection):
    """Frames come before statics."""

    def roots(self) -> list[int]:
        count, found = self.request.static_count, super().roots()
        return found[count:] + found[:count]


class InnermostFrameFirst(Collection):
    """The roots of frames are taken from the innermost frame outwards."""

    def stack_slots(self) -> list[int]:
        return super().stack_slots()[::-1]


class CallersForgotten(Collection):
    """Only the running function's frame has roots."""

    def stack_slots(self) -> list[int]:
        return [slot for slot in super().stack_slots() if slot >= self.request.fp]


class ParametersForgotten(Collection):
    """Words below the header of the running function's frame are no roots."""

    def stack_slots(self) -> list[int]:
        fp = self.request.fp
        return [slot for slot in super().stack_slots() if slot >= fp or slot < fp - 2]


class TopOperandForgotten(Collection):
    """The uppermost reference of the running function's frame is no root."""

    def stack_slots(self) -> list[int]:
        return super().stack_slots()[1:]


class OutermostForgotten(Collection):
    """The lowest reference of the stack is no root."""

    def stack_slots(self) -> list[int]:
        return super().stack_slots()[:-1]


class FieldSkipped(Collection):
    """The last reference of a struct is not forwarded."""

    def fields(self, first: int, count: int) -> list[int]:
        return super().fields(first, count)[:-1]


class FieldsBackwards(Collection):
    """The references of a struct are forwarded from the last one back: the order is another."""

    def fields(self, first: int, count: int) -> list[int]:
        return super().fields(first, count)[::-1]


class ElementSkipped(Collection):
    """The last element of an array of references is not forwarded."""

    def elements(self, address: int, length: int, is_inline: bool) -> range:
        return super().elements(address, length, is_inline)[:-1]


class OutsideElementsSkipped(Collection):
    """References in elements outside of the space are not forwarded."""

    def elements(self, address: int, length: int, is_inline: bool) -> range:
        return super().elements(address, length if is_inline else 0, is_inline)


class ElementsBackwards(Collection):
    """Elements are forwarded from the last one back."""

    def elements(self, address: int, length: int, is_inline: bool) -> range:
        return super().elements(address, length, is_inline)[::-1]


class OutsideArrayFreed(Collection):
    """Elements outside are freed although their array is alive."""

    def mark(self, address: int, elements: int, offset: int) -> None:
        return


class FirstOutsideArrayFreed(Collection):
    """The elements of the array with the smallest offset are freed."""

    def run(self) -> None:
        super().run()
        marked = [row for row in range(2, len(self.outside), 3) if self.outside[row]]
        if marked:
            self.outside[min(marked, key=lambda row: self.outside[row])] = 0


class DeadArrayKept(Collection):
    """Elements of dead arrays are never given back: the limit is reached."""

    def run(self) -> None:
        super().run()
        for row in range(2, len(self.outside), 3):
            self.outside[row] = self.outside[row] or 8


class InlinePlaceNotAdjusted(Collection):
    """The place of inline elements is still that of the old array."""

    def moved_place(self, new: int, outside: int | None) -> int:
        return ARRAY_HEADER_BYTES + 8 if outside is None else super().moved_place(new, outside)


class OutsidePlaceNotAdjusted(Collection):
    """The place of elements outside is still relative to the old space."""

    def moved_place(self, new: int, outside: int | None) -> int:
        return super().moved_place(new, None) if outside is None else outside


class PlaceAdjustedBackwards(Collection):
    """The distance of the spaces is taken with the wrong sign."""

    def moved_place(self, new: int, outside: int | None) -> int:
        if outside is None:
            return super().moved_place(new, None)
        return (outside + self.request.to_base - self.request.from_base) & MASK


class ForwardingForgotten(Collection):
    """A copied object does not tell where its copy is, so it is copied once for each reference."""

    def forward(self, reference: int) -> int:
        is_object = reference and not reference & 1 and reference < self.request.from_top
        header = self.from_words[reference // 8] if is_object else 0
        new = super().forward(reference)
        if is_object and header & 1:
            self.from_words[reference // 8] = header
        return new


class FlagLost(Collection):
    """The flags of a header are lost: a read-only array can be written to."""

    def forward(self, reference: int) -> int:
        new = super().forward(reference)
        if new and not new & 1:
            self.to_words[new // 8] &= ~READ_ONLY
        return new


class SmallIntegerForwarded(Collection):
    """An i31 is taken for a reference, and cut to a multiple of 8."""

    def forward(self, reference: int) -> int:
        return reference & ~7 if reference & 1 else super().forward(reference)


class NullForwarded(Collection):
    """A null reference becomes one to the first object."""

    def forward(self, reference: int) -> int:
        return super().forward(reference) if reference else 8


class LastWordNotCopied(Collection):
    """The last word of each object is not copied."""

    def forward(self, reference: int) -> int:
        before = self.top
        new = super().forward(reference)
        if self.top > before + 8:
            self.to_words[self.top // 8 - 1] = 0
        return new


class TopTooLow(Collection):
    """The last object is taken for free memory."""

    def run(self) -> None:
        super().run()
        self.request.to_top = max(self.top - 16, 8)


class OddLengthNotPadded(Collection):
    """Elements are not padded to words."""

    @staticmethod
    def element_bytes(length: int, bytes_: int) -> int:
        return length * bytes_ // 8 * 8


class LaterSharingLost(Collection):
    """References that are equal become different where they are in one array."""

    def elements(self, address: int, length: int, is_inline: bool) -> range:
        words = (ctypes.c_uint64 * length).from_address(address)
        for number in range(1, length):
            if words[number] == words[number - 1]:
                words[number] = 0
        return super().elements(address, length, is_inline)


class FirstStaticForgotten(Collection):
    """The first static is no root."""

    def roots(self) -> list[int]:
        return super().roots()[1 if self.request.static_count else 0 :]


class FirstLocalForgotten(Collection):
    """The first reference behind the header of the running function's frame is no root."""

    def frame_slots(self, fp: int, offsets: list[int]) -> list[int]:
        behind = [offset for offset in offsets if offset < _NEGATIVE]
        if fp == self.request.fp and behind:
            offsets = [offset for offset in offsets if offset != behind[-1]]
        return super().frame_slots(fp, offsets)


class OperandsOfCallersForgotten(Collection):
    """The uppermost reference of a frame below a call is no root."""

    def frame_slots(self, fp: int, offsets: list[int]) -> list[int]:
        if fp != self.request.fp and offsets and offsets[0] < _NEGATIVE:
            offsets = offsets[1:]
        return super().frame_slots(fp, offsets)


class ParametersOfCallersForgotten(Collection):
    """The parameters of a frame below a call are no roots."""

    def frame_slots(self, fp: int, offsets: list[int]) -> list[int]:
        if fp != self.request.fp:
            offsets = [offset for offset in offsets if offset < _NEGATIVE]
        return super().frame_slots(fp, offsets)


class OutermostFrameForgotten(Collection):
    """The frame of main has no roots while another function runs."""

    def frame_slots(self, fp: int, offsets: list[int]) -> list[int]:
        return super().frame_slots(fp, offsets if fp == self.request.fp or fp else [])


class FramesBetweenForgotten(Collection):
    """Only the innermost and the outermost frame have roots."""

    def frame_slots(self, fp: int, offsets: list[int]) -> list[int]:
        return super().frame_slots(fp, offsets if fp in (0, self.request.fp) else [])


class HandlesFirst(Collection):
    """The objects of handles are copied before those of the program."""

    def run(self) -> None:
        for address in self.handles():
            self.forward_at(address)
        super().run()


class ScanEndsAtTheRoots(Collection):
    """Objects that only objects of roots lead to are not scanned."""

    def run(self) -> None:
        for roots in (self.roots(), self.handles()):
            first, self.request.own_top = self.top, self.top
            for address in roots:
                self.forward_at(address)
            end = self.top
            while first < end:
                first += self.scan(first)
        self.request.to_top = self.top


class FirstFieldSkipped(Collection):
    """The first reference of a struct is not forwarded."""

    def fields(self, first: int, count: int) -> list[int]:
        return super().fields(first, count)[1:]


class FirstElementSkipped(Collection):
    """The first element of an array of references is not forwarded."""

    def elements(self, address: int, length: int, is_inline: bool) -> range:
        return super().elements(address, length, is_inline)[1:]


class LastElementsNotCopied(Collection):
    """Of inline elements the last eight bytes are not copied."""

    def forward(self, reference: int) -> int:
        before = self.top
        new = super().forward(reference)
        if self.top > before + ARRAY_HEADER_BYTES:
            self.to_words[self.top // 8 - 1] = 0
        return new


class OutsideNumbersMarkedAtTheNext(Collection):
    """The elements outside are noted for the array behind the one that has them."""

    def mark(self, address: int, elements: int, offset: int) -> None:
        super().mark(address, elements, offset + ARRAY_HEADER_BYTES)


class ForwardedToTheEnd(Collection):
    """A reference to an object that was copied before becomes one to the latest copy."""

    def forward(self, reference: int) -> int:
        known, before = self.top, super().forward(reference)
        if before and not before & 1 and self.top == known and known > FIRST_OFFSET:
            return self._latest
        self._latest = before if self.top != known else getattr(self, "_latest", before)
        return before


FAULTS: list[type[Collection]] = Collection.__subclasses__()


def faulty(fault: type[Collection] | None, request: Request) -> int:
    """A collection with a fault; the right one for None."""
    return (fault or Collection)(request).perform()
