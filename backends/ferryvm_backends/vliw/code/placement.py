# SPDX-License-Identifier: Apache-2.0
"""Placement of an operation of straight-line code in a reservation table.

An operand is read from its unit's output register if that still holds it, and from its file
otherwise. Operations are placed by increasing cycles, so no later one overwrites a result there.
"""

from __future__ import annotations

from collections.abc import Sequence

from ferryvm_backends.vliw.code.operation import MachineOperation, Register
from ferryvm_backends.vliw.code.reservation import Demand, ReservationTable
from ferryvm_backends.vliw.code.scheduled import ScheduledOperation


def place(
    table: ReservationTable,
    operation: MachineOperation,
    demand: Demand,
    cycle: int,
    unit: int,
    bypassed: tuple[int | None, ...],
) -> ScheduledOperation | None:
    """An operation issued on a unit, if possible; `bypassed`: as `bypasses` finds them. Units with
    the same connections and operations fare alike."""
    machine = table.machine
    latency = demand.units[unit].latency
    result = operation.result
    if result is not None and result.file not in machine.units[unit].writes:
        return None
    if not table.issue(demand, cycle, unit):
        return None
    read = _read(table, operation, cycle, unit, bypassed)
    if read is not None:
        if result is None or table.write(result.file, cycle + latency, operation):
            return ScheduledOperation(operation, cycle, unit, latency, bypassed)
        for register in read:
            table.unread(register.file, cycle, register)
    table.withdraw(demand, cycle, unit)
    return None


def bypasses(
    table: ReservationTable, setters: Sequence[ScheduledOperation | None], cycle: int
) -> tuple[int | None, ...]:
    """For each operand of an operation the unit whose output register has it; `setters`: the
    producer of each."""
    return tuple([None if setter is None else _bypass(table, setter, cycle) for setter in setters])


def are_ports_left(
    table: ReservationTable,
    operation: MachineOperation,
    cycle: int,
    bypassed: Sequence[int | None],
) -> bool:
    """False if a register that an operation reads has no port, whatever the unit."""
    for operand, source in zip(operation.operands, bypassed, strict=True):
        if source is not None or not isinstance(operand, Register):
            continue
        if not table.has_port(operand.file, cycle, operand):
            return False
    return True


def _read(
    table: ReservationTable,
    operation: MachineOperation,
    cycle: int,
    unit: int,
    bypassed: Sequence[int | None],
) -> list[Register] | None:
    """The registers that an operation reads, with their ports taken; None where one has none."""
    connected = table.machine.units[unit].reads
    read: list[Register] = []
    for operand, source in zip(operation.operands, bypassed, strict=True):
        if source is None and isinstance(operand, Register):
            if operand.file in connected and table.read(operand.file, cycle, operand):
                read.append(operand)
                continue
            for register in read:
                table.unread(register.file, cycle, register)
            return None
    return read


def _bypass(table: ReservationTable, setter: ScheduledOperation, cycle: int) -> int | None:
    """The unit that has a result in its output register still."""
    if not table.machine.bypass or setter.write_back > cycle:
        return None
    return None if table.write_backs(setter.unit, setter.write_back, cycle) else setter.unit
