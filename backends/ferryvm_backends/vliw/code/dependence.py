# SPDX-License-Identifier: Apache-2.0
"""The dependences between the operations of a block, and their latencies.

An operation may be scheduled above an earlier exit if it has no effect and the exit's target does
not read the register that it overwrites. It may be scheduled below a later exit as long as it stays
in the exit's delay slots. (Extended blocks as in Hwu et al.: The Superblock, J. Supercomputing
1993.)
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterator, Mapping

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
)
from ferryvm_backends.vliw.machine.model import Machine

AHEAD = 20
"""How many operations of its block a load of a spilled word may overtake."""


class DependenceKind(enum.Enum):
    """Why one operation waits for another; L and M are their latencies, D the delay slots."""

    VALUE = "it reads its result"
    """L later."""
    READ = "it overwrites what the other reads"
    """1 - M later."""
    WRITTEN = "it overwrites what the other writes"
    """L + 1 - M later."""
    LEFT = "what it does must not be done if the other leaves"
    """D + 1 later."""
    DONE = "it leaves, and what the other does is to be done"
    """D earlier at most."""
    LANDED = "it leaves, and the other's result is to be there"
    """L - D - 1 later."""
    ORDER = "it comes later"
    """1 later."""
    MEMORY = "it stores where the other loads"
    """In the same cycle, or later."""


@dataclasses.dataclass(frozen=True)
class Dependence:
    """An operation waits for another one, by their numbers in the block."""

    first: int
    reason: DependenceKind


def distance(reason: DependenceKind, latency: int, mine: int, machine: Machine) -> int:
    """Cycles from the other's issue to its own, at least. `latency`: the other's; `mine`: its
    own."""
    match reason:
        case DependenceKind.VALUE:
            return latency
        case DependenceKind.READ:
            return 1 - mine
        case DependenceKind.WRITTEN:
            return latency + 1 - mine
        case DependenceKind.LEFT:
            return machine.delay_slots + 1
        case DependenceKind.DONE:
            return -machine.delay_slots
        case DependenceKind.LANDED:
            return latency - machine.delay_slots - 1
        case DependenceKind.ORDER:
            return 1
        case DependenceKind.MEMORY:
            return 0


def dependences(block: MachineBlock, live: Live) -> list[list[Dependence]]:
    """What each operation of a block waits for."""
    found: list[list[Dependence]] = []
    last: dict[Register, int] = {}
    """The operation that set a register last."""
    readers: dict[Register, list[int]] = {}
    """Those that have read it since."""
    exits: list[int] = []
    effects: list[int] = []
    memory = _MemoryAccesses()
    for number, operation in enumerate(block.operations):
        mine: list[Dependence] = []
        found.append(mine)

        def wait(first: int, reason: DependenceKind, mine: list[Dependence] = mine) -> None:
            mine.append(Dependence(first, reason))

        if operation.place is not None:
            mine += memory.add(number, operation, operation.place, last)
            if operation.place.segment is Segment.SPILL and operation.result and number > AHEAD:
                wait(
                    number - AHEAD, DependenceKind.MEMORY
                )  # earlier it would take a register for longer
        for register in operation.registers():
            if register in last:
                wait(last[register], DependenceKind.VALUE)
            readers.setdefault(register, []).append(number)
        if operation.name == "store":
            for other in exits[-1:]:
                wait(other, DependenceKind.LEFT)
            effects.append(number)
        if operation.result is not None:
            result = operation.result
            for other in readers.pop(result, ()):
                if other != number:
                    wait(other, DependenceKind.READ)
            if result in last:
                wait(last[result], DependenceKind.WRITTEN)
            for other in exits:
                target = block.operations[other].target
                assert target is not None
                if result in live[target]:
                    wait(other, DependenceKind.LEFT)
            last[result] = number
        if operation.name in BRANCHES:
            is_end = operation.name not in EXITS
            for other in effects:
                wait(other, DependenceKind.DONE)
            needed = live[operation.target] if operation.target is not None else frozenset()
            for register, other in last.items():
                if register in needed and not is_end:
                    wait(other, DependenceKind.LANDED)
            if is_end:
                for other, each in enumerate(block.operations[:number]):
                    if each.result is not None:
                        wait(other, DependenceKind.LANDED)
            for other in exits[-1:]:
                wait(other, DependenceKind.ORDER)
            if not is_end:
                exits.append(number)
    return found


@dataclasses.dataclass(slots=True)
class _Access:
    number: int
    place: MemoryOperand
    base: Operand
    """What its address counts from: a register, or nothing where that is a constant."""
    setter: int | None
    """The operation that set the register."""
    begin: int
    """Bytes behind the base."""

    def may_overlap(self, other: _Access) -> bool:
        """True if the two, one of which stores, may have a byte in common."""
        if is_apart(self.place, other.place):
            return False
        if self.base is not other.base or self.setter != other.setter:
            return True
        begin, end = other.begin, other.begin + other.place.size
        return begin < self.begin + self.place.size and self.begin < end


class _MemoryAccesses:
    """The accesses of a block so far. Those of other segments have nothing to do with one."""

    def __init__(self) -> None:
        self._loads: dict[Segment, list[_Access]] = {segment: [] for segment in Segment}
        self._stores: dict[Segment, list[_Access]] = {segment: [] for segment in Segment}

    def add(
        self,
        number: int,
        operation: MachineOperation,
        place: MemoryOperand,
        setters: Mapping[Register, int],
    ) -> Iterator[Dependence]:
        """What one more access waits for; `setters`: the operation that set each register last."""
        base, begin, setter = operation.operands[0], place.offset, None
        if isinstance(base, Register):
            setter = setters.get(base)
        elif isinstance(base, int):
            base, begin = 0, begin + base
        access = _Access(number, place, base, setter, begin)
        for store in self._stores[place.segment]:
            if store.may_overlap(access):
                yield Dependence(store.number, DependenceKind.ORDER)
        if operation.name == "store":
            for load in self._loads[place.segment]:
                if load.may_overlap(access):
                    yield Dependence(load.number, DependenceKind.MEMORY)
        accesses = self._stores if operation.name == "store" else self._loads
        accesses[place.segment].append(access)


def is_apart(one: MemoryOperand, other: MemoryOperand) -> bool:
    """True if two accesses, one of which stores, have no byte in common, whatever their addresses
    are and in whichever iterations of loops they are made."""
    if one.segment is not other.segment:
        return True
    a, b = one.object, other.object
    return a is not None and b is not None and a.is_apart(b)
