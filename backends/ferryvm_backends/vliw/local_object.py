# SPDX-License-Identifier: Apache-2.0
"""The objects of a machine of programs in the processor's own memory.

All code for one processor and one machine shares them: an array that one region has brought there
is there for the next one. What is copied is found by comparison, in pieces: so an array is copied
when it is stale and only then, whatever has changed it. Elements outside of the object space are
copied only if the region may access arrays of their type, and back only if it may store into them.
"""

from __future__ import annotations

import ctypes
import time
import weakref
from collections import OrderedDict
from collections.abc import Iterator

import numpy as np

from ferryvm.backend import ArrayActivity, BackendError
from ferryvm.machine.control import ControlBlock
from ferryvm.machine.object_layout import ObjectLayout, PlacedArray
from ferryvm.region.object_access import ObjectAccess
from ferryvm.traffic import SPACE, Traffic, array_name
from ferryvm.verify import Verified
from ferryvm_backends.vliw.machine.model import Machine
from ferryvm_backends.vliw.piece import copy, view
from ferryvm_backends.vliw.simulate.memory import Bytes

_FIRST = 16 << 20
_MOST_RETAINED = 4
"""The number of machines of one program whose objects are retained."""

_retained: weakref.WeakKeyDictionary[Verified, OrderedDict[tuple[str, int], Resident]]
_retained = weakref.WeakKeyDictionary()


class Resident:
    """The processor's copy of the objects of one machine."""

    def __init__(self, verified: Verified) -> None:
        self._verified = verified
        self.layout = ObjectLayout(verified, _FIRST)
        self.content: Bytes = np.zeros(_FIRST, np.uint8)
        self.used = 0
        """Bytes of the object space from which on the processor's is zero."""

    def update(self, control: ControlBlock) -> None:
        """Follow the host's objects. Raises ValueError if they are damaged."""
        end = max(control.object_top, control.object_end)
        layout = self.layout
        if end > layout.first:
            layout = ObjectLayout(self._verified, 1 << end.bit_length())
        layout.update(control)
        needed = max(layout.size, end)
        if needed > len(self.content) or layout is not self.layout:
            self._move(layout, 1 << (needed - 1).bit_length())

    def _move(self, layout: ObjectLayout, size: int) -> None:
        """Move everything within the processor's memory to other places."""
        before, content = self.content, np.zeros(size, np.uint8)  # pages that are used cost time
        content[: self.used] = before[: self.used]
        for address, each in self.layout.arrays.items():
            new, known = layout.arrays.get(address), before[each.place :][: each.bytes]
            if new is not None and new.bytes == len(known):
                content[new.place : new.place + new.bytes] = known
        self.layout, self.content = layout, content


def resident(verified: Verified, machine: Machine, control: ControlBlock) -> Resident:
    """The processor's copy for a machine of a program."""
    known = _retained.setdefault(verified, OrderedDict())
    key = machine.name, ctypes.addressof(control)
    found = known.pop(key, None) or Resident(verified)
    known[key] = found
    while len(known) > _MOST_RETAINED:
        known.popitem(last=False)
    return found


class ObjectTransfer:
    """Transfers of objects for one region."""

    def __init__(self, verified: Verified, access: ObjectAccess, machine: Machine) -> None:
        self._verified, self._access, self._machine = verified, access, machine
        self._resident: Resident | None = None
        self.traffic = Traffic()
        """The amounts of each array."""

    @property
    def content(self) -> Bytes:
        """The processor's memory of objects."""
        return np.zeros(0, np.uint8) if self._resident is None else self._resident.content

    def update(self, control: ControlBlock) -> int:
        """Follow the host's objects; the bytes that those take which the region may access. Raises
        BackendError if they are damaged."""
        if not self._access.any:
            return 0
        found = self._resident = resident(self._verified, self._machine, control)
        try:
            found.update(control)
        except ValueError as error:
            raise BackendError(f"vliw: {error}") from None
        return int(control.object_top) + sum(
            each.bytes for each in self._arrays(self._access.accessed)
        )

    def send(self, control: ControlBlock) -> Iterator[int]:
        """Copy what is stale to the processor; bytes of each transfer."""
        found = self._resident
        if found is None:
            return
        top = control.object_top
        # What is free of the space is zero, for a machine that had the same memory before, too.
        words = view(control.objects, max(top, found.used)).view(np.uint64)
        image = found.layout.to_device(words).view(np.uint8)
        found.used = top
        yield self._send(self.traffic.of_array(0, SPACE), image, found.content[: len(image)])
        for each in self._arrays(self._access.accessed):
            yield self._send(
                self._metrics(each), view(each.address, each.bytes), self._elements(each)
            )

    def fetch(self, control: ControlBlock, own: ControlBlock) -> Iterator[int]:
        """Copy changes to the host; bytes of each transfer. `own`: the processor's control
        block."""
        found, access = self._resident, self._access
        if found is None:
            return
        found.used = own.object_top
        if access.written or access.makes:
            words = found.content[: own.object_top].view(np.uint64)
            image = found.layout.to_host(words).view(np.uint8)
            yield self._fetch(
                self.traffic.of_array(0, SPACE), image, view(control.objects, len(image))
            )
        for each in self._arrays(access.written):
            yield self._fetch(
                self._metrics(each), self._elements(each), view(each.address, each.bytes)
            )

    def _arrays(self, types: frozenset[int]) -> list[PlacedArray]:
        assert self._resident is not None
        return [each for each in self._resident.layout.arrays.values() if each.type in types]

    def _elements(self, each: PlacedArray) -> Bytes:
        return self.content[each.place : each.place + each.bytes]

    def _metrics(self, each: PlacedArray) -> ArrayActivity:
        name = array_name(self._verified.program, each.type, each.bytes)
        return self.traffic.of_array(each.number, name)

    @staticmethod
    def _send(metrics: ArrayActivity, source: Bytes, to: Bytes) -> int:
        began = time.perf_counter()
        sent = copy(source, to)
        metrics.to_device += sent
        metrics.seconds_to_device += time.perf_counter() - began
        metrics.entries += 1
        metrics.unchanged += not sent
        return sent

    @staticmethod
    def _fetch(metrics: ArrayActivity, source: Bytes, to: Bytes) -> int:
        began = time.perf_counter()
        sent = copy(source, to)
        metrics.to_host += sent
        metrics.seconds_to_host += time.perf_counter() - began
        return sent
