# SPDX-License-Identifier: Apache-2.0
"""The reservation table: slots, units, ports and constants that are used in each cycle.

There is one table for straight-line code and for modulo schedules (Rau 1994, section 3.1). Cycles
count modulo the interval; in straight-line code that is longer than any block, so that no cycle is
another's. The cycles of a unit are bits of an integer, so a test of many is one operation.

Every reservation can be released, which modulo scheduling does often.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterator, Mapping

from ferryvm_backends.vliw.code.operation import BRANCHES, MachineBlock, MachineOperation
from ferryvm_backends.vliw.machine.model import Machine, UnitTiming

ENDLESS = 1 << 40
"""The interval of straight-line code."""

Uses = defaultdict[int, dict[object, int]]
"""For each cycle the resources in use, and how often."""


@dataclasses.dataclass(frozen=True, slots=True)
class Demand:
    """Resources of its bundle and unit that an operation takes, in any cycle."""

    units: Mapping[int, UnitTiming]
    """The units that can execute it."""
    has_result: bool
    is_branch: bool
    constants: tuple[int | MachineBlock, ...]

    @classmethod
    def of(
        cls,
        operation: MachineOperation,
        constants: tuple[int | MachineBlock, ...],
        machine: Machine,
    ) -> Demand:
        """The demand of one, with these constants."""
        is_branch, has_result = operation.name in BRANCHES, operation.result is not None
        return cls(machine.timings[operation.work], has_result, is_branch, constants)


class ReservationTable:
    """Reserved resources of a machine."""

    def __init__(self, machine: Machine, interval: int = ENDLESS) -> None:
        self.machine, self.interval = machine, interval
        self._issued: defaultdict[int, int] = defaultdict(int)
        """Operations, by cycle."""
        self._branches: set[int] = set()
        """Cycles that have a branch."""
        self._busy = [0] * len(machine.units)
        self._write_backs = [0] * len(machine.units)
        """Cycles in which a result gets to a unit's output register."""
        self._held = [0] * len(machine.units)
        """Cycles in which none may, since the one that is there is still read."""
        self._holds: list[defaultdict[int, int]] = [defaultdict(int) for _ in machine.units]
        """Number of users, by cycle."""
        self._constants: Uses = defaultdict(dict)
        self._reads: dict[str, Uses] = {file.name: defaultdict(dict) for file in machine.files}
        self._writes: dict[str, Uses] = {file.name: defaultdict(dict) for file in machine.files}
        self._ports = {file.name: (file.read_ports, file.write_ports) for file in machine.files}

    # --- operations -------------------------------------------------------------------------

    def is_full(self, cycle: int) -> bool:
        """True if a cycle has no slot left."""
        return self._issued[cycle % self.interval] >= self.machine.slots

    def free(self, demand: Demand, cycle: int) -> Iterator[int]:
        """The units that could take an operation, and its result, in a cycle."""
        now = cycle % self.interval
        if self._issued[now] < self.machine.slots:
            for each in demand.units.values():
                if self._is_free(each, now, demand.has_result):
                    yield each.unit

    def issue(self, demand: Demand, cycle: int, unit: int) -> bool:
        """Reserve the resources of an operation. False, with nothing reserved, if they are not
        available."""
        timing, now = demand.units[unit], cycle % self.interval
        if self._issued[now] >= self.machine.slots or (now in self._branches and demand.is_branch):
            return False
        if not self._is_free(timing, now, demand.has_result):
            return False
        if demand.constants:
            there = self._constants[now]
            if len(there.keys() | demand.constants) > self.machine.immediates:
                return False
            for constant in demand.constants:
                there[constant] = there.get(constant, 0) + 1
        if demand.is_branch:
            self._branches.add(now)
        self._issued[now] += 1
        mask = timing.busy << now
        self._busy[unit] |= mask | mask >> self.interval
        if demand.has_result:
            self._write_backs[unit] |= 1 << (now + timing.latency) % self.interval
        return True

    def withdraw(self, demand: Demand, cycle: int, unit: int) -> None:
        """Release the reservations of `issue`."""
        timing, now = demand.units[unit], cycle % self.interval
        for constant in demand.constants:
            _give_back(self._constants[now], constant)
        if demand.is_branch:
            self._branches.discard(now)
        self._issued[now] -= 1
        mask = timing.busy << now
        self._busy[unit] &= ~(mask | mask >> self.interval)
        if demand.has_result:
            self._write_backs[unit] &= ~(1 << (now + timing.latency) % self.interval)

    def _is_free(self, timing: UnitTiming, now: int, has_result: bool) -> bool:
        unit, mask = timing.unit, timing.busy << now
        if (mask | mask >> self.interval) & self._busy[unit] or timing.interval > self.interval:
            return False
        if not has_result:
            return True
        write_back = (now + timing.latency) % self.interval
        return not (self._write_backs[unit] | self._held[unit]) >> write_back & 1

    # --- output registers -------------------------------------------------------------------

    def write_backs(self, unit: int, write_back: int, until: int) -> int:
        """The results that get to a unit after one that is there from a cycle on, until another
        less than an interval later: a bit for each cycle."""
        count, start = until - write_back, (write_back + 1) % self.interval
        taken = self._write_backs[unit] >> start
        if start + count > self.interval:
            taken |= self._write_backs[unit] << self.interval - start
        return taken & ((1 << count) - 1)

    def hold(self, unit: int, write_back: int, until: int) -> None:
        """Keep other results from a unit in that time."""
        holds, interval = self._holds[unit], self.interval
        for cycle in range(write_back + 1, until + 1):
            holds[cycle % interval] += 1
            self._held[unit] |= 1 << cycle % interval

    def let_go(self, unit: int, write_back: int, until: int) -> None:
        """Release the reservation of `hold`."""
        holds, interval = self._holds[unit], self.interval
        for cycle in range(write_back + 1, until + 1):
            now = cycle % interval
            holds[now] -= 1
            if not holds[now]:
                self._held[unit] &= ~(1 << now)

    # --- ports ------------------------------------------------------------------------------

    def read(self, file: str, cycle: int, value: object) -> int:
        """Read a value of a file: how many read it by the same port then; 0 if none is left."""
        return _take(self._reads[file][cycle % self.interval], value, self._ports[file][0])

    def has_port(self, file: str, cycle: int, value: object) -> bool:
        """True if `read` would find a port."""
        there = self._reads[file][cycle % self.interval]
        return len(there) < self._ports[file][0] or value in there

    def unread(self, file: str, cycle: int, value: object) -> None:
        """Release the reservation of `read`."""
        _give_back(self._reads[file][cycle % self.interval], value)

    def is_read(self, file: str, cycle: int, value: object) -> bool:
        """True if a value of a file is read in a cycle."""
        return value in self._reads[file][cycle % self.interval]

    def write(self, file: str, cycle: int, value: object) -> int:
        """Write a value to a file: how many have it written so; 0 if no port is left."""
        return _take(self._writes[file][cycle % self.interval], value, self._ports[file][1])

    def unwrite(self, file: str, cycle: int, value: object) -> int:
        """Release the reservation of `write`; the number of users that still need the write."""
        return _give_back(self._writes[file][cycle % self.interval], value)


def _take(taken: dict[object, int], value: object, most: int) -> int:
    count = taken.get(value, 0)
    if not count and len(taken) >= most:
        return 0
    taken[value] = count + 1
    return count + 1


def _give_back(taken: dict[object, int], value: object) -> int:
    count = taken[value] - 1
    if count:
        taken[value] = count
    else:
        del taken[value]
    return count
