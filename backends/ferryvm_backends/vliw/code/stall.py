# SPDX-License-Identifier: Apache-2.0
"""Stall causes: why no operation is issued in an empty bundle.

    cycle   issued
    7       load          b
    8                     \\  load_use: the next operation reads the result of the load,
    9                     /  which is available three cycles later
    10      add b, 1

It is derived from the bundles alone: if operations are issued as early as possible, a resource or
result that one of them needs becomes available exactly in its cycle. If there are several causes,
the first in the order of `Cause` is reported.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator

from ferryvm_backends.vliw.code.operation import BRANCHES, EXITS, work_of
from ferryvm_backends.vliw.code.program import Bypass, Program, Read, Slot
from ferryvm_backends.vliw.machine.model import Work


class Cause(enum.Enum):
    """The cause of a stall cycle; the value is its name in reports."""

    LOAD = "load_use"
    """The next operation depends on the result of a load."""
    FLOAT = "float_latency"
    """It depends on the result of float arithmetic."""
    LATENCY = "latency"
    """It depends on another result."""
    BRANCH = "branch_delay"
    """There is nothing to execute in the delay slots of a branch, or the next operation depends on
    the outcome of the branch."""
    UNIT = "unit_busy"
    """A unit takes no operation yet: its interval."""
    PORT = "port_conflict"
    """Its result would be written back together with others that there are no ports for, or in one
    unit."""
    REGISTER = "register_reuse"
    """It overwrites a register that others still read, or write before."""
    WRITE_BACK = "write_back"
    """The block starts with empty cycles, in which results that were issued before an exit to it
    are written back."""
    INITIATION = "initiation_interval"
    """The next pass of a pipelined loop does not begin yet."""
    OTHER = "other"
    """None of these: operands of one cycle that no ports could be found for, for example."""


_ORDER = list(Cause)
_FLOAT = frozenset(work for work in Work if work.value.startswith("float_")) | {Work.CONVERT}

_Back = Callable[[int], int | None]
"""The bundle that is fetched so many cycles before; None: the block was not entered then."""


def stalls(program: Program) -> tuple[Cause | None, ...]:
    """For each bundle why it is empty; None for one that is not."""
    return _Stalls(program).run()


class _Stalls:
    def __init__(self, program: Program) -> None:
        self.program, self.bundles, self.machine = program, program.bundles, program.machine
        self.found: list[Cause | None] = [None] * len(program.bundles)
        timings = [timing for unit in self.machine.units for timing in unit.work.values()]
        self.reach = 1 + max(max(timing.latency, timing.interval) for timing in timings)
        self.reach += self.machine.delay_slots
        """The largest latency of any dependence, in cycles."""

    def run(self) -> tuple[Cause | None, ...]:
        starts = sorted({0, *self.program.labels})
        for start, end in zip(starts, [*starts[1:], len(self.bundles)], strict=True):
            self._block(start, end)
        for loop in self.program.loops:
            if not loop.reason:  # others do not depend on the previous pass
                self._kernel(loop.start, loop.end)
                start = max(each for each in starts if each <= loop.start)
                for at in range(start, loop.end):
                    if self.found[at] is Cause.OTHER:
                        self.found[at] = Cause.INITIATION
        return tuple(self.found)

    def _block(self, start: int, end: int) -> None:
        first = next((at for at in range(start, end) if self.bundles[at]), end)
        following: int | None = None
        for at in reversed(range(start, end)):
            if self.bundles[at]:
                following = at
            elif at < first:
                self.found[at] = Cause.WRITE_BACK
            elif following is None:
                self.found[at] = Cause.BRANCH
            elif following > at + 1:
                self.found[at] = self.found[at + 1]
            else:
                self.found[at] = self._why(following, _block_before(following, start))

    def _kernel(self, start: int, end: int) -> None:
        """A loop in which a pass starts before the last one has ended."""
        for at in range(start, end):
            following = at
            while not self.bundles[following]:
                following = start + (following + 1 - start) % (end - start)
            if following != at:
                self.found[at] = self._why(following, _loop_before(following, start, end))

    def _why(self, at: int, back: _Back) -> Cause:
        """The cause for which the operations of a bundle after an empty one were delayed."""
        causes = {cause for slot in self.bundles[at] for cause in self._causes(slot, at, back)}
        return min(causes, key=_ORDER.index, default=Cause.OTHER)

    def _causes(self, slot: Slot, at: int, back: _Back) -> Iterator[Cause]:
        """The causes that end for an operation in the very cycle in which it is issued."""
        before = list(self._before(back))
        yield from self._results(slot, before)
        yield from self._places(slot, before)
        if slot.written is not None:
            yield from self._registers(slot, slot.written, at, before)
        if slot.name in BRANCHES:
            yield from self._in_slots(at, back)

    def _results(self, slot: Slot, before: list[tuple[int, Slot]]) -> Iterator[Cause]:
        """Results that it reads, or that must be available at its target; and branches."""
        slots = self.machine.delay_slots
        reads = {source for source in slot.reads if isinstance(source, Read)}
        units = {source.unit for source in slot.reads if isinstance(source, Bypass)}
        has_effect = slot.name == "store" or slot.written is not None
        for far, other in before:
            latency = self.program.timing(other).latency
            is_read = other.written in reads or other.unit in units
            if other.has_result and is_read and far == latency:
                yield self._class(other)
            if other.has_result and slot.name in BRANCHES and far == latency - slots - 1:
                yield self._class(other)
            if other.name in EXITS and has_effect and far == slots + 1:
                yield Cause.BRANCH

    def _places(self, slot: Slot, before: list[tuple[int, Slot]]) -> Iterator[Cause]:
        """Units and ports that it would have needed a cycle earlier."""
        mine, written_back = self.program.timing(slot).latency, 0
        for far, other in before:
            timing = self.program.timing(other)
            if other.unit == slot.unit and far == timing.interval > 1:
                yield Cause.UNIT
            if slot.has_result and other.has_result and far == timing.latency - mine + 1:
                if other.unit == slot.unit:
                    yield Cause.PORT
                if slot.written and other.written and other.written.file == slot.written.file:
                    written_back += 1
        if slot.written and written_back >= self.machine.files[slot.written.file].write_ports:
            yield Cause.PORT

    def _registers(
        self, slot: Slot, written: Read, at: int, before: list[tuple[int, Slot]]
    ) -> Iterator[Cause]:
        """Registers that were in use until then."""
        mine = self.program.timing(slot).latency
        for far, other in before:
            if other.written == written and far == self.program.timing(other).latency + 1 - mine:
                yield Cause.REGISTER
        reader = at + mine - 1
        if reader < len(self.bundles) and any(
            written in each.reads for each in self.bundles[reader]
        ):
            yield Cause.REGISTER

    def _in_slots(self, at: int, back: _Back) -> Iterator[Cause]:
        """Causes of operations that delay a branch: they must be issued, or their results
        available, when it takes effect."""
        slots = self.machine.delay_slots
        for more in range(1, min(slots, len(self.bundles) - 1 - at) + 1):
            for slot in self.bundles[at + more]:
                is_needed = slot.name == "store" and more == slots
                if slot.has_result:
                    is_needed = more == slots + 1 - self.program.timing(slot).latency
                if is_needed:
                    yield from self._causes(slot, at + more, _later(at, more, back))

    def _before(self, back: _Back) -> Iterator[tuple[int, Slot]]:
        """Operations issued before, and their distance in cycles."""
        for far in range(1, self.reach + 1):
            number = back(far)
            if number is None:
                return
            for slot in self.bundles[number]:
                yield far, slot

    def _class(self, slot: Slot) -> Cause:
        work = work_of(slot.name, slot.static)
        if work is Work.LOAD:
            return Cause.LOAD
        return Cause.FLOAT if work in _FLOAT else Cause.LATENCY


def _block_before(at: int, start: int) -> _Back:
    """The bundle that is fetched before a bundle of a block."""
    return lambda far: at - far if at - far >= start else None


def _loop_before(at: int, start: int, end: int) -> _Back:
    """The same, in an endless loop."""
    return lambda far: start + (at - far - start) % (end - start)


def _later(at: int, more: int, back: _Back) -> _Back:
    """The same, of a bundle that is fetched some cycles after another one."""
    return lambda far: at + more - far if far <= more else back(far - more)
