# SPDX-License-Identifier: Apache-2.0
"""The outcome of a range of work-items in the device's terms: slots of items that are left, and
ranges that have not begun."""

from __future__ import annotations

import dataclasses
from array import array
from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ferryvm.ir.c.opencl_item import EXIT_SHIFT, TRAP_SHIFT
from ferryvm.isa.frame import HEADER_WORDS
from ferryvm.machine.control import Status
from ferryvm.machine.item_batch import FRAME, ITEM, PC, SIZE, SLOT_WORDS, STATUS, ItemBatch
from ferryvm_backends.opencl.host_memory import Bytes

_STATUS_MASK = (1 << TRAP_SHIFT) - 1

Slots = npt.NDArray[np.uint64]


@dataclasses.dataclass
class RangeRun:
    """Items and ranges that are left of a range that runs, or has run."""

    slots: Slots | None = None
    """A row for each suspended item."""
    open: list[tuple[int, int]] = dataclasses.field(default_factory=list)
    """Ranges that have not begun."""
    stops: Counter[int] = dataclasses.field(default_factory=Counter)
    """Suspended items by the pc in front of which they stand."""
    finished: int = 0
    """Suspended items that threads have run to their ends."""
    seconds: float = 0.0
    is_stopped: bool = False
    """No further slice is to begin."""
    is_interrupted: bool = False
    """The thread that launches waits for the end."""
    is_changed: bool = False
    """The machine's memory is not as before any more."""

    @property
    def is_left(self) -> bool:
        """True if not all items are done."""
        return bool(self.open) or self.slots is not None


def put_back(host: Bytes, saved: Bytes, size: int, found: RangeRun) -> None:
    """Give elements of items that are not done what they had; `size`: bytes of an element."""
    to, source = host.reshape(-1, size), saved.reshape(-1, size)
    for one, two in found.open:
        to[one:two] = source[one:two]
    if found.slots is not None:
        items = found.slots[:, ITEM].view(np.int64)
        to[items] = source[items]


def at_entry(slots: Slots, words: list[int], entry: int, parameters: int, locals_: int) -> Slots:
    """The slots of items at the entry of their function, with their frames; `words`: that all items
    share; `parameters`, `locals_`: words of the frame."""
    size = 1 + len(words) + HEADER_WORDS + locals_
    found = np.zeros((len(slots), SLOT_WORDS + size), np.uint64)
    found[:, ITEM] = found[:, SLOT_WORDS] = slots[:, 0]
    found[:, STATUS] = slots[:, 1]
    found[:, PC], found[:, FRAME] = entry, parameters
    found[:, SIZE] = size
    found[:, SLOT_WORDS + 1 : SLOT_WORDS + 1 + len(words)] = np.array(words, np.uint64)
    return found


def is_guard(slots: Slots) -> npt.NDArray[np.bool_]:
    """True for each item that left at a guard."""
    found: npt.NDArray[np.bool_] = slots[:, STATUS] & np.uint64(_STATUS_MASK) == Status.GUARD
    return found


_READY = np.zeros(_STATUS_MASK + 1, np.bool_)
"""By status: True where the device could not go on, and the host can at once. Calls that are too deep
for the device leave with RUNNING."""
_READY[[Status.RUNNING, Status.LEAVE, Status.GUARD, Status.ALLOCATE]] = True


def can_go_on(slots: Slots) -> npt.NDArray[np.bool_]:
    """True for each item that left where the device could not go on, and the host can at once."""
    found: npt.NDArray[np.bool_] = _READY[slots[:, STATUS] & np.uint64(_STATUS_MASK)]
    return found


def in_order(slots: Slots) -> npt.NDArray[np.int64]:
    """The rows of the items in the order of their numbers."""
    found: npt.NDArray[np.int64] = np.argsort(slots[:, ITEM].view(np.int64))
    return found


def batch_of(slots: Slots, rows: npt.NDArray[np.int64]) -> ItemBatch:
    """The items of some rows, which are in the order of items."""
    addresses = array("Q", (slots.ctypes.data + slots.strides[0] * rows).tobytes())
    return ItemBatch([addresses], [slots], int(slots[rows, SIZE].sum()))


def stops(slots: Slots, guards: Sequence[int]) -> npt.NDArray[np.int64]:
    """The instructions in front of which items left, which go on there or at their entry; `guards`:
    pcs of guards by number."""
    places = np.array([*guards, 0], np.int64)
    failed = is_guard(slots)
    numbers = np.where(failed, slots[:, STATUS] >> np.uint64(EXIT_SHIFT), 0)
    return np.where(failed, places[numbers.astype(np.int64)], slots[:, PC].view(np.int64))


def counted(pcs: npt.NDArray[np.int64]) -> Counter[int]:
    """The number of times that each pc occurs."""
    found, times = np.unique(pcs, return_counts=True)
    return Counter(dict(zip(found.tolist(), times.tolist(), strict=True)))
