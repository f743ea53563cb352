# SPDX-License-Identifier: Apache-2.0
"""The resources that one bundle uses, checked without the bundles before it.

Slots, units, constants, read ports, connections from units to files, existence of registers and
bundles. What depends on earlier bundles (busy units, write ports) is checked by `symbolic`.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterator

from ferryvm_backends.vliw.code.operation import BRANCHES, work_of
from ferryvm_backends.vliw.code.program import Bypass, Immediate, Program, Read, Slot, Source
from ferryvm_backends.vliw.machine.model import FileKind, Machine
from ferryvm_backends.vliw.prove.claim import ScheduleError


@dataclasses.dataclass(frozen=True, slots=True)
class Predicate:
    """The predicate of a slot."""

    source: Source
    holds: bool


def predicate_of(slot: Slot) -> Predicate | None:
    """The predicate that a slot depends on."""
    return None if slot.predicate is None else Predicate(*slot.predicate)


def sources_of(slot: Slot) -> tuple[Source, ...]:
    """The operands of a slot, with its predicate."""
    predicate = predicate_of(slot)
    return slot.sources if predicate is None else (*slot.sources, predicate.source)


def check_resources(program: Program) -> None:
    """Raise ScheduleError for a bundle that the machine could not issue whatever came before."""
    size, most = len(program.bundles), program.machine.instructions
    if size > most:
        said = f"{size} bundles, and the instruction memory holds {most}"
        raise ScheduleError(program.name, most, said)
    for number in range(size):
        for said in _faults(program, number):
            raise ScheduleError(program.name, number, said)


def _faults(program: Program, number: int) -> Iterator[str]:
    machine, bundle = program.machine, program.bundles[number]
    if len(bundle) > machine.slots:
        yield f"{len(bundle)} operations, and the machine has {machine.slots} slots"
    if sum(slot.name in BRANCHES for slot in bundle) > 1:
        yield "two branches"
    units: set[int] = set()
    constants: set[int] = set()
    reads: dict[int, set[int]] = defaultdict(set)
    for slot in bundle:
        if not 0 <= slot.unit < len(machine.units):
            yield f"{slot.name} on unit {slot.unit}, and the machine has {len(machine.units)}"
            return
        if slot.unit in units:
            yield f"unit {machine.units[slot.unit].name} has two operations"
        units.add(slot.unit)
        yield from _slot_faults(program, slot)
        constants.update(_constants(slot))
        for source in sources_of(slot):
            if isinstance(source, Read):
                reads[source.file].add(source.number)
    if len(constants) > machine.immediates:
        yield f"{len(constants)} constants, and a bundle holds {machine.immediates}"
    for file, registers in reads.items():
        one = machine.files[file]
        if len(registers) > one.read_ports:
            yield f"{len(registers)} reads of file {one.name}, which has {one.read_ports} ports"


def _slot_faults(program: Program, slot: Slot) -> Iterator[str]:
    machine = program.machine
    unit, what = machine.units[slot.unit], f"{slot.name} (pc {slot.pc})"
    try:
        work = work_of(slot.name, slot.static)
    except KeyError:
        yield f"{what} is no operation of the machine"
        return
    if work not in unit.work:
        yield f"unit {unit.name} cannot do {work.value}, which {what} needs"
    if predicate_of(slot) is not None and not machine.predication:
        yield f"{what} has a predicate, and the machine has no predication"
    for source in sources_of(slot):
        if isinstance(source, Read):
            yield from _register_faults(machine, source, unit.reads, f"{what} on {unit.name} reads")
        elif isinstance(source, Bypass):
            if not machine.bypass:
                yield f"{what} takes from a unit, and the machine has no bypass"
            elif not 0 <= source.unit < len(machine.units):
                yield f"{what} takes from unit {source.unit}, which is not there"
    if slot.written is not None:
        said = f"{what} on {unit.name} writes"
        yield from _register_faults(machine, slot.written, unit.writes, said)
        file = machine.files[slot.written.file]
        if slot.is_predicate != (file.kind is FileKind.BOOLEAN):
            yield f"{said} file {file.name}, which is {file.kind.value}"
    if (slot.name == "store" or slot.name in BRANCHES) and slot.has_result:
        yield f"{what} cannot have a result"
    for target in (slot.target, slot.again):
        if target is not None and not 0 <= target < len(program.bundles):
            yield f"{what} goes to bundle {target}, which is not there"
    if (slot.name == "repeat") != (slot.again is not None):
        yield f"{what} goes back to {slot.again}, which is for repeat alone to say"


def _register_faults(
    machine: Machine, register: Read, reached: frozenset[str], said: str
) -> Iterator[str]:
    if not 0 <= register.file < len(machine.files):
        yield f"{said} file {register.file}, which is not there"
        return
    file = machine.files[register.file]
    if file.name not in reached:
        yield f"{said} file {file.name}, which the unit does not reach"
    if not 0 <= register.number < file.registers:
        yield f"{said} register {register.number} of file {file.name}, which has {file.registers}"


def _constants(slot: Slot) -> Iterator[int]:
    for number, source in enumerate(slot.sources):
        is_base = slot.place is not None and number == 0
        # A base of nothing is no constant.
        if isinstance(source, Immediate) and (source.bits or not is_base):
            yield source.bits
