# SPDX-License-Identifier: Apache-2.0
"""The reservation table of a block: slots, units, ports and constants that are taken in each
cycle."""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict

from ferryvm_backends.vliw.code.operation import MachineOperation, Register
from ferryvm_backends.vliw.machine.model import Machine, Unit


@dataclasses.dataclass(frozen=True)
class ScheduledOperation:
    """An operation in its cycle."""

    operation: MachineOperation
    cycle: int
    unit: int
    """Its number in the machine."""
    latency: int
    bypassed: tuple[int | None, ...]
    """For each operand the unit whose output register it is taken from, or None."""

    @property
    def landing(self) -> int:
        """The first cycle that sees the result."""
        return self.cycle + self.latency


class ReservationTable:
    """The reservations of a block."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._slots: Counter[int] = Counter()
        self._constants: dict[int, set[object]] = defaultdict(set)
        self._busy: set[tuple[int, int]] = set()
        self._landing: set[tuple[int, int]] = set()
        self._reads: dict[tuple[str, int], set[Register]] = defaultdict(set)
        self._writes: Counter[tuple[str, int]] = Counter()

    def place(
        self,
        operation: MachineOperation,
        cycle: int,
        number: int,
        setters: list[ScheduledOperation | None],
    ) -> ScheduledOperation | None:
        """Issue an operation on a unit, if that can be; `setters`: for each operand who set it."""
        unit = self.machine.units[number]
        timing = unit.work[operation.work]
        if self._slots[cycle] >= self.machine.slots:
            return None
        if any((number, cycle + more) in self._busy for more in range(timing.interval)):
            return None
        result, landing = operation.result, cycle + timing.latency
        if result is not None and not self._has_way_out(result, number, unit, landing):
            return None
        bypassed = tuple(self._bypass(setter, cycle) for setter in setters)
        read: dict[str, set[Register]] = {}
        constants = self._constants[cycle] | set(operation.constants())
        for operand, source in zip(operation.operands, bypassed, strict=True):
            if isinstance(operand, Register) and source is None:
                if operand.file not in unit.reads:
                    return None
                read.setdefault(operand.file, set()).add(operand)
        if len(constants) > self.machine.immediates:
            return None
        for name, registers in read.items():
            taken = self._reads[name, cycle] | registers
            if len(taken) > self.machine.file(name).read_ports:
                return None
        self._slots[cycle] += 1
        self._constants[cycle] = constants
        self._busy |= {(number, cycle + more) for more in range(timing.interval)}
        for name, registers in read.items():
            self._reads[name, cycle] |= registers
        if result is not None:
            self._landing.add((number, landing))
            self._writes[result.file, landing] += 1
        return ScheduledOperation(operation, cycle, number, timing.latency, bypassed)

    def _has_way_out(self, result: Register, number: int, unit: Unit, landing: int) -> bool:
        ports = self.machine.file(result.file).write_ports
        return (
            result.file in unit.writes
            and (number, landing) not in self._landing
            and self._writes[result.file, landing] < ports
        )

    def _bypass(self, setter: ScheduledOperation | None, cycle: int) -> int | None:
        """The unit that has a result in its output register still."""
        if setter is None or not self.machine.bypass or setter.landing > cycle:
            return None
        later = range(setter.landing + 1, cycle + 1)
        if any((setter.unit, each) in self._landing for each in later):
            return None
        return setter.unit
