# SPDX-License-Identifier: Apache-2.0
"""The contract of code that runs items of a launch out of order.

    launch.test, many items left ─> RangeRunner.run(machine, first, limit) ─> launch.test, all done
                                                                              or in the record

A compiler's code of the loop of a launch may have one (`ferryvm.backend.Code.ranges`); the engine
makes one of native code, which it runs on several threads (`ferryvm.engine.parallel`).
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Protocol

from ferryvm import record
from ferryvm.errors import FerryError
from ferryvm.machine.item_batch import ItemBatch
from ferryvm.machine.object_memory import ObjectMemory
from ferryvm.machine.state import Machine
from ferryvm.residency import Residency

__all__ = ["LostItemsError", "PlaceActivity", "RangeOutcome", "RangeRunner", "SlotFinisher"]


class LostItemsError(FerryError):
    """Items of a launch were run, and it is not known which; the machine's state is of no use."""


@record.dataclass(frozen=True)
class RangeOutcome:
    """The outcome of a run of a range of items."""

    completed: int
    """Items that are done."""
    suspended: int
    """Items that stand in the middle, in the record, but for those that are finished. The others
    have not begun, and are in the record, too."""
    seconds: float | None
    """Time of the work, of all threads together, without the overhead of running items out of
    order; None or 0: not known."""
    is_interrupted: bool = False
    """The machine's interrupt flag was set meanwhile."""
    stops: Mapping[int, int] = record.field(default_factory=dict)
    """Items that were suspended, by the pc in front of which they stand."""
    finished: int = 0
    """Suspended items that are done all the same: threads have run the rest of them."""


class SlotFinisher(Protocol):
    """Runs the rest of suspended items out of order."""

    def finish(
        self, objects: ObjectMemory, batch: ItemBatch, is_stopped: Callable[[], bool]
    ) -> ItemBatch:
        """Run the items of a batch, which are slots in one run, until `is_stopped`; what is left of
        it: each item that is not done stands in front of an instruction that is to be executed in
        order, or where it was stopped. The machine stands at the `launch.test`. Raises MemoryError
        if it is not known which items are done."""


@record.dataclass
class PlaceActivity:
    """Metrics of one place of a launch: a backend, on one of its devices, that may run its
    items."""

    name: str
    """For people: `llvm on 2 threads`."""
    source: str = ""
    """The origin of expected times: `calibrated`, or the reason that they are defaults."""
    state: str = ""
    """The reason that it is used, or is not."""
    times: int = 0
    """Ranges that it has run."""
    trials: int = 0
    """Ranges among them that were run to find its time."""
    items: int = 0
    """Items that were done there."""
    expected: float = 0.0
    """Seconds that these ranges were expected to take, each before it began."""
    seconds: float = 0.0
    """Seconds that they took."""
    deferred: int = 0
    """Further ranges, whose results stayed on its device until launches behind them had run. They
    are not timed."""
    deferred_items: int = 0
    """Items of these."""
    next_expected: float | None = None
    """Seconds that it was expected to take for the last range, wherever that ran; None: no range
    yet."""
    learned: str = ""
    """The largest difference of a time from the expected one, if that was a factor of two."""


class RangeRunner(abc.ABC):
    """Runs items of one launch in any order, or at once."""

    is_companion: bool = False
    """True if `run` may run while another runner runs other items of the launch: it works in the
    machine's own memory, or copies nothing but what its items have stored, and writes into the
    launch by `ferryvm.machine.launch.finish` alone."""

    part_items: int = 1
    """Items of whose number two parts meet at a multiple, where it is a companion: stores of
    several items are copied together."""

    @property
    def has_slices(self) -> bool:
        """True if `run` decides how many of the items that it is given run at once, as where it is
        paced; else it is given so many that they take two seconds in order."""
        return self.is_paced

    places: Sequence[PlaceActivity] = ()
    """Metrics of the places among which it chooses, if it does."""

    sample_seconds: float = 0.0
    """Seconds of items in order after which the time of one is known, at least: many times what
    entering the code takes."""

    is_paced: bool = False
    """True for a device on which an item takes far longer in order than beside others. So none is
    timed in order first, and how many run at once is for `run` to decide: it returns after some two
    seconds, with what has not begun in the record."""

    takes_one: bool = False
    """True if a launch of one item is worth a run: an item is a group of many members."""

    @property
    @abc.abstractmethod
    def where(self) -> str:
        """The place where items run, for people: `2 threads`."""

    deferral: Hashable | None = None
    """The memory of a device in which `run_deferred` leaves results; None, the default, if it does
    not. Launches with the same one may follow each other."""

    def deferral_of(self, items: int) -> Hashable | None:
        """`deferral` for a range of so many items that comes next."""
        return self.deferral

    def worth(self, item_seconds: float) -> int | None:
        """The least number of items whose run out of order pays, where one takes so long in order,
        as far as is known; None, the default: the engine's own number."""
        return None

    def in_order(self, items: int) -> int:
        """The number of items that are to be run in order now, of so many that are left, so that
        their time is found; 0, the default: none."""
        return 0

    def timed(self, items: int, seconds: float) -> None:
        """Receives the seconds of the items that `in_order` asked for."""
        return

    @abc.abstractmethod
    def run(self, machine: Machine, first: int, limit: int) -> RangeOutcome:
        """Run the items from `first` up to `limit`, all that the launch has left in its range.

        The machine stands at the `launch.test`, before and after. Afterwards `next` is `limit`, and
        every item that is not done is in the record, in front of what was there, in the order of
        items: an item that traps, calls a host function, makes an object, throws or is interrupted
        is suspended in front of that instruction (`ferryvm.machine.piece`). After an item has
        trapped no higher one needs to begin; all lower ones are done, or in the record.

        Raises OSError, MemoryError, AddressSpaceError, ThreadError or BackendError if no item was
        run; then the machine has not changed. Raises LostItemsError if some were run.
        Raises the exception of a signal handler that came meanwhile, once the machine's state is
        exact.
        """

    finish_slots: SlotFinisher | None = None
    """Runs the rest of suspended items out of order; None: all wait for their turn. The engine sets
    it, for a runner whose items stop also where the host could go on at once."""

    note: Callable[[int, int, float], None] | None = None
    """Receives the number of ranges that code has run itself that came to the launch, with their
    items and seconds; None: it is to leave for the engine. That sets it where it would call nothing
    but `run`."""
    raised: BaseException | None = None
    """The exception of a signal handler that came in such code; the engine raises it."""

    def settle(self) -> None:
        """Let `note` receive all such ranges."""
        return

    def run_deferred(self, machine: Machine, first: int, limit: int) -> RangeOutcome:
        """As `run`, but if all items are done, what they have stored need not be in the machine's
        memory before `write_back`; until then nothing else reads or writes heap and objects. If any
        item is not done, the results of earlier launches are there, too.

        If it raises one of the errors of `run`, the results of all launches since the last
        `write_back` are lost: the machine's heap and objects are as they were there."""
        return self.run(machine, first, limit)

    def resident(self, items: int, residency: Residency) -> RangeRunner | None:
        """The runner for so many items whose arrays are in a device's memory, or whose results are
        to remain there; None if there is none, or others are expected to end earlier."""
        is_there = residency.memory in (None, self.deferral)
        return self if is_there and self.deferral is not None else None

    def run_resident(
        self, machine: Machine, first: int, limit: int, residency: Residency
    ) -> RangeOutcome:
        """As `run`, where the device has elements of arrays that the host lacks. If all items are
        done `residency.left` has the results that remain there, else the machine is as it was."""
        raise NotImplementedError

    def write_back(self, machine: Machine) -> None:
        """Bring the results of launches with the same `deferral` to the machine. Raises as
        `run`."""
        return

    def lost(self, reason: str) -> bool:
        """Note that a device has lost what `run_deferred` of one range has left there; True if the
        range runs elsewhere when it begins again, False, the default, if this is the only
        place."""
        return False
