# SPDX-License-Identifier: Apache-2.0
"""The dependences between the operations of a block, and their latencies.

An operation may be scheduled above an earlier exit if it has no effect and the exit's target does
not read the register that it overwrites. It may be scheduled below a later exit if it is in the exit's delay slots. (Extended blocks as in Hwu et al.: The Superblock, J. Supercomputing
1993.)
"""

from __future__ import annotations

import dataclasses
import enum
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ferryvm.isa.type import WORD_BYTES
from ferryvm_backends.vliw.code import tuning
from ferryvm_backends.vliw.code.liveness import Live
from ferryvm_backends.vliw.code.operation import (
    BRANCHES,
    EXITS,
    MachineBlock,
    MachineOperation,
    MemoryOperand,
    Operand,
    Register,
    Segment,
    are_parts_apart,
)
from ferryvm_backends.vliw.machine.model import Machine


class DependenceKind(enum.Enum):
    """The reason for which one operation depends on another.

    The value says after how many cycles it may be issued, at least: so many times the other's
    latency L, its own M, and the delay slots D; and cycles besides.
    """

    VALUE = (1, 0, 0, 0, "it reads its result")
    """L later."""
    READ = (0, -1, 0, 1, "it overwrites what the other reads")
    """1 - M later."""
    WRITTEN = (1, -1, 0, 1, "it overwrites what the other writes")
    """L + 1 - M later."""
    CONTROL = (0, 0, 1, 1, "what it does must not be done if the other leaves")
    """D + 1 later."""
    DONE = (0, 0, -1, 0, "it leaves, and what the other does is to be done")
    """D earlier at most."""
    WRITTEN_BACK = (1, 0, -1, -1, "it leaves, and the other's result is to be there")
    """L - D - 1 later."""
    ORDER = (0, 0, 0, 1, "it comes later")
    """1 later."""
    MEMORY = (0, 0, 0, 0, "it stores where the other loads")
    """In the same cycle, or later."""

    def __init__(self, latency: int, own: int, delay_slots: int, cycles: int, why: str) -> None:
        self.latency, self.own, self.delay_slots, self.cycles = latency, own, delay_slots, cycles
        self.why = why


class Dependence(NamedTuple):
    """An operation depends on another one, by their numbers in the block."""

    first: int
    reason: DependenceKind


def distance(reason: DependenceKind, latency: int, mine: int, machine: Machine) -> int:
    """Cycles from the other's issue to its own, at least. `latency`: the other's; `mine`: its
    own."""
    delay_slots = reason.delay_slots * machine.delay_slots
    return reason.latency * latency + reason.own * mine + delay_slots + reason.cycles


def dependences(block: MachineBlock, live: Live) -> list[list[Dependence]]:
    """The dependences of each operation of a block."""
    found: list[list[Dependence]] = []
    last: dict[Register, int] = {}
    """The operation that set a register last."""
    readers: dict[Register, list[int]] = {}
    """The operations that have read it since."""
    exits: list[int] = []
    effects: list[int] = []
    memory = _MemoryAccesses()
    for number, operation in enumerate(block.operations):
        mine: list[Dependence] = []
        found.append(mine)

        def depend_on(first: int, reason: DependenceKind, mine: list[Dependence] = mine) -> None:
            mine.append(Dependence(first, reason))

        if operation.place is not None:
            mine += memory.add(number, operation, operation.place, last)
            if (
                operation.place.segment is Segment.SPILL
                and operation.result
                and number > tuning.SPILL_AHEAD
            ):
                depend_on(
                    number - tuning.SPILL_AHEAD, DependenceKind.MEMORY
                )  # earlier it would take a register for longer
        for register in operation.registers():
            if register in last:
                depend_on(last[register], DependenceKind.VALUE)
            readers.setdefault(register, []).append(number)
        if operation.name == "store":
            for other in exits[-1:]:
                depend_on(other, DependenceKind.CONTROL)
            effects.append(number)
        if operation.result is not None:
            result = operation.result
            for other in readers.pop(result, ()):
                if other != number:
                    depend_on(other, DependenceKind.READ)
            if result in last:
                depend_on(last[result], DependenceKind.WRITTEN)
            for other in exits:
                target = block.operations[other].target
                assert target is not None
                if result in live[target]:
                    depend_on(other, DependenceKind.CONTROL)
            last[result] = number
        if operation.name in BRANCHES:
            is_end = operation.name not in EXITS
            for other in effects:
                depend_on(other, DependenceKind.DONE)
            effects.clear()  # later exits come behind this one
            needed = live[operation.target] if operation.target is not None else frozenset()
            for register, other in last.items():
                if register in needed and not is_end:
                    depend_on(other, DependenceKind.WRITTEN_BACK)
            if is_end:
                for other, each in enumerate(block.operations[:number]):
                    if each.result is not None:
                        depend_on(other, DependenceKind.WRITTEN_BACK)
            for other in exits[-1:]:
                depend_on(other, DependenceKind.ORDER)
            if not is_end:
                exits.append(number)
    return found


@dataclasses.dataclass(slots=True)
class _Access:
    number: int
    place: MemoryOperand
    base: Operand
    """Base register of its address; None for a constant address."""
    setter: int | None
    """The operation that set the register."""
    start: int
    """Bytes behind the base."""

    def words(self) -> range:
        """The words behind the base that it has a byte of."""
        last = self.start + self.place.size - 1
        return range(self.start // WORD_BYTES, last // WORD_BYTES + 1)

    def may_overlap(self, other: _Access) -> bool:
        """True if the two, one of which stores, may have a byte in common."""
        if are_of_other_items(self.place, other.place) or is_apart(self.place, other.place):
            return False
        if self.base is not other.base or self.setter != other.setter:
            return True
        start, end = other.start, other.start + other.place.size
        return start < self.start + self.place.size and self.start < end


class _Accesses:
    """Accesses to memory that may overlap with others, by their bases, and by words behind these:
    most accesses of a block have one base, that of a frame."""

    def __init__(self) -> None:
        self._by_base: dict[tuple[Operand, int | None], dict[int, list[_Access]]] = {}

    def add(self, access: _Access) -> None:
        """Add one to those that others depend on."""
        there = self._by_base.setdefault((access.base, access.setter), {})
        for word in access.words():
            there.setdefault(word, []).append(access)

    def overlapping(self, access: _Access) -> list[_Access]:
        """The accesses that may have a byte in common with another one."""
        own = access.base, access.setter
        found = [
            other
            for base, there in self._by_base.items()
            for word in (access.words() if base == own else there)
            for other in there.get(word, ())
            if other.may_overlap(access)
        ]
        return list({each.number: each for each in found}.values())


class _MemoryAccesses:
    """The accesses of a block so far, by memory that may overlap: segments do not, nor do spilled
    words."""

    def __init__(self) -> None:
        self._loads: dict[object, _Accesses] = defaultdict(_Accesses)
        self._stores: dict[object, _Accesses] = defaultdict(_Accesses)

    def add(
        self,
        number: int,
        operation: MachineOperation,
        place: MemoryOperand,
        setters: Mapping[Register, int],
    ) -> Iterator[Dependence]:
        """The dependences of one more access; `setters`: the operation that set each register
        last."""
        base, start, setter = operation.operands[0], place.offset, None
        if isinstance(base, Register):
            setter = setters.get(base)
        elif isinstance(base, int):
            base, start = 0, start + base
        access = _Access(number, place, base, setter, start)
        where = start if place.segment is Segment.SPILL else place.segment.value
        loads, stores = self._loads[where], self._stores[where]
        for store in stores.overlapping(access):
            yield Dependence(store.number, DependenceKind.ORDER)
        if operation.name != "store":
            loads.add(access)
            return
        for load in loads.overlapping(access):
            yield Dependence(load.number, DependenceKind.MEMORY)
        stores.add(access)


def are_of_other_items(one: MemoryOperand, other: MemoryOperand) -> bool:
    """True if two items of a launch access memory, in one iteration of a loop, with no barrier
    between."""
    return one.item is not None and other.item is not None and one.item.is_other(other.item)


def is_apart(one: MemoryOperand, other: MemoryOperand) -> bool:
    """True if two accesses, one of which stores, have no byte in common, whatever their addresses
    are and in whichever iterations of loops they are made."""
    if one.segment is not other.segment:
        return True
    if one.part is not None and other.part is not None and are_parts_apart(one.part, other.part):
        return True
    a, b = one.object, other.object
    return a is not None and b is not None and a.is_apart(b)
