# SPDX-License-Identifier: Apache-2.0
"""Planted faults of suspended items that threads run to their ends: `ferryvm.engine.slot_run` with
one mistake each.

Items of one launch recur, store into arrays and a static, and some print. What the threads and then
the reference have done is held against the reference alone.
"""

from __future__ import annotations

import ctypes
import functools
from array import array
from collections.abc import Callable
from typing import Any
from unittest import mock

from ferryvm.engine import slot_run
from ferryvm.engine.slot_run import SlotRun, SlotTeam
from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine.item_batch import ITEM, ItemBatch

from .. import slots
from ..slots import ENDS, LENT, PRINTS, STORED, TEXT
from ..suspended import put_back
from .item_range import RangeFault

_CASES = (
    (ENDS, False, TEXT, 2),
    (PRINTS, False, TEXT, 2),
    (ENDS, True, TEXT, 2),
    (ENDS, False, LENT, 2),
    (ENDS, False, LENT, 1),
    (ENDS, False, STORED, 2),
)
"""Kinds of items; True: the threads have no room for their frames; programs; threads. What one
thread leaves behind is where the next object comes to be; of two the other may have run all."""

_remainder, _give, _prepare = SlotRun.remainder, SlotTeam.give, SlotTeam.prepare
_clear = SlotTeam.clear


def _left(change: Callable[[ItemBatch], list[array[int]]]) -> Callable[..., ItemBatch]:
    def faulty(self: SlotRun) -> ItemBatch:
        left = _remainder(self)
        return ItemBatch(change(left), [left], left.words // 2)

    return faulty


def _again(self: SlotRun) -> ItemBatch:
    _remainder(self)
    return self._batch


def _rotated(self: SlotTeam, addresses: array[int]) -> None:
    """Each slot has the words of the next one, and its own head."""
    heads = [ctypes.string_at(address, WORD_BYTES * (ITEM + 1)) for address in addresses]
    for address, head in zip(addresses[1:] + addresses[:1], heads, strict=True):
        ctypes.memmove(address, head, len(head))
    _give(self, addresses)


def _own_statics(self: SlotTeam, *given: Any) -> None:
    _prepare(self, *given)
    size = WORD_BYTES * self._template.static_count
    text = ctypes.string_at(self._template.statics, size)
    self.__dict__["statics"] = ctypes.create_string_buffer(text, size)
    self._template.statics = ctypes.addressof(self.__dict__["statics"])


def _all_back(self: SlotTeam, control: Any) -> None:
    control.object_top = self._arenas


def _not_cleared(self: SlotTeam, control: Any) -> None:
    with mock.patch.object(ctypes, "memset"):
        _clear(self, control)


FAULTS = (
    RangeFault("finished-lost", "An item that has to wait for its turn is taken as done.",
        SlotRun, "remainder", _left(lambda left: [run[1:] for run in left.runs])),
    RangeFault("finished-all-lost", "Items that do not begin on threads are taken as done.",
        SlotRun, "_unbegun", lambda _: []),
    RangeFault("finished-twice", "Items that have ended go on in their turn, too.",
        SlotRun, "remainder", _again),
    RangeFault("finished-frame-of-another", "An item goes on with the frames of another one.",
        SlotTeam, "give", _rotated),
    RangeFault("finished-statics-lost", "Threads store into statics of their own.",
        SlotTeam, "prepare", _own_statics),
    RangeFault("finished-objects-overwritten", "Objects of items that wait are no longer there.",
        SlotTeam, "give_back", _all_back),
    RangeFault("finished-objects-lost", "Objects that a static refers to are no longer there.",
        slot_run, "retains_objects", lambda _: False),
    RangeFault("finished-not-cleared", "New objects have what others had there.",
        SlotTeam, "clear", _not_cleared),
)  # fmt: skip


def _outcome(kind: int, is_full: bool, text: str, threads: int) -> object:
    execution, batch = slots.suspended(kind, text)
    control, objects = execution.machine.control, execution.machine.objects
    assert objects is not None
    if not threads:
        put_back(execution, batch)
    elif is_full:
        end, control.stack_end = control.stack_end, control.stack + WORD_BYTES * (control.sp + 12)
        left = slots.finisher(execution).finish(objects, batch, lambda: False)
        control.stack_end = end
        put_back(execution, left)
    else:
        slots.finish(execution, batch, threads=threads)
    return slots.outcome(execution), execution.machine.snapshot()


@functools.cache
def _expected(kind: int, text: str) -> object:
    return _outcome(kind, False, text, 0)


def find(fault: RangeFault | None) -> str | None:
    """The first case that shows the fault; None if none does."""
    for kind, is_full, text, threads in _CASES:
        try:
            if fault is None:
                found = _outcome(kind, is_full, text, threads)
            else:
                with mock.patch.object(fault.owner, fault.function, fault.faulty):
                    found = _outcome(kind, is_full, text, threads)
        except Exception as error:  # noqa: BLE001 - whatever a fault leads to
            return f"kind {kind}, {is_full}: {type(error).__name__}: {error}"
        if found != _expected(kind, text):
            return f"kind {kind}, {is_full}"
    return None
