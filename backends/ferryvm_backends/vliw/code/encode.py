# SPDX-License-Identifier: Apache-2.0
"""From a region to a program of a machine."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from ferryvm.backend import RefusalError
from ferryvm.ir.graph import Module
from ferryvm_backends.vliw.code.if_conversion import convert_conditions
from ferryvm_backends.vliw.code.jump_threading import thread_jumps
from ferryvm_backends.vliw.code.lower.body import lower
from ferryvm_backends.vliw.code.modulo.pipeline import PipelinableLoops
from ferryvm_backends.vliw.code.operation import MachineBlock, MachineCode, Operand, Register
from ferryvm_backends.vliw.code.program import (
    Bundle,
    Bypass,
    Immediate,
    LoopSummary,
    Program,
    Read,
    Slot,
    Source,
)
from ferryvm_backends.vliw.code.register_allocation import Allocation, allocate
from ferryvm_backends.vliw.code.schedule import check_units
from ferryvm_backends.vliw.code.scheduled import ScheduledOperation
from ferryvm_backends.vliw.machine.model import FileKind, Machine
from ferryvm_backends.vliw.prove import is_proof_enabled, prove_if_enabled
from ferryvm_backends.vliw.prove.claim import Claim


def compile_module(module: Module, machine: Machine, is_quick: bool = False) -> Program:
    """The program of a region. Raises RefusalError for operations that the machine does not
    support.

    `is_quick`: schedule straight-line code alone, which takes less time: no loop is pipelined.
    """
    code = lower(module, convert_conditions(module, machine))
    check_units(code, machine)
    thread_jumps(code)
    loops = PipelinableLoops(code, machine, is_quick)
    allocation = allocate(code, loops, machine)
    program = encode(code, loops, allocation, machine)
    if is_proof_enabled():
        before, copies = loops.before()
        prove_if_enabled(before, program, claimed(code, allocation, machine).of(copies))
    return program


def claimed(code: MachineCode, allocation: Allocation, machine: Machine) -> Claim:
    """The positions of blocks and registers in the result of `encode`."""
    files = {file.name: number for number, file in enumerate(machine.files)}
    numbers = {r: Read(files[r.file], number) for r, number in allocation.numbers.items()}
    return Claim(_places(code, allocation)[0], numbers)


def _places(code: MachineCode, allocation: Allocation) -> tuple[dict[MachineBlock, int], int]:
    """The first bundle of each block, and the number of bundles."""
    places: dict[MachineBlock, int] = {}
    size = 0
    for block in code.blocks:
        scheduled = allocation.schedule.blocks[block]
        places[block] = size
        size += scheduled.pad + scheduled.length
    return places, size


def encode(
    code: MachineCode, loops: PipelinableLoops, allocation: Allocation, machine: Machine
) -> Program:
    """Bundles of code whose registers have numbers. Raises RefusalError if they are too many."""
    places, size = _places(code, allocation)
    if size > machine.instructions:
        raise RefusalError(
            f"the region takes {size} bundles, and the instruction memory of the machine "
            f"{machine.name} holds {machine.instructions}"
        )
    files = {file.name: number for number, file in enumerate(machine.files)}
    slots: dict[int, list[Slot]] = defaultdict(list)

    def read(register: Register) -> Read:
        return Read(files[register.file], allocation.numbers[register])

    def source(operand: Operand, unit: int | None) -> Source:
        if isinstance(operand, int):
            return Immediate(operand)
        if isinstance(operand, MachineBlock):
            return Immediate(places[operand])
        return read(operand) if unit is None else Bypass(unit)

    def slot(placed: ScheduledOperation, again: int | None) -> Slot:
        operation = placed.operation
        pairs = zip(operation.operands, placed.bypassed, strict=True)
        sources = tuple(source(operand, unit) for operand, unit in pairs)
        predicate = None
        if operation.holds is not None:
            *rest, condition = sources
            sources, predicate = tuple(rest), (condition, operation.holds)
        is_written = operation.result is not None and placed in allocation.written
        return Slot(
            placed.unit,
            operation.name,
            operation.static,
            sources,
            read(operation.result) if is_written and operation.result is not None else None,
            operation.result is not None,
            operation.result is not None and operation.result.kind is FileKind.BOOLEAN,
            operation.place,
            None if operation.target is None else places[operation.target],
            again if operation.name == "repeat" else None,
            operation.pc,
            predicate,
        )

    for block, scheduled in allocation.schedule.blocks.items():
        first = places[block] + scheduled.pad
        again = None if scheduled.again is None else first + scheduled.again
        for placed in scheduled.placed:
            slots[first + placed.cycle].append(slot(placed, again))
    bundles: list[Bundle] = [
        tuple(sorted(slots[n], key=lambda each: each.unit)) for n in range(size)
    ]
    returns = {
        places[other] for block in code.blocks for o in block.operations for other in o.others
    }
    labels = {place: block.label for block, place in places.items()}
    return Program(
        code.name,
        machine,
        tuple(bundles),
        labels,
        tuple(sorted(returns)),
        code.guards,
        code.spills,
        code.call_bytes,
        allocation.spilled + loops.reloaded,
        tuple(sorted(_loops(loops, allocation, places), key=lambda each: each.start)),
        tuple(sorted(places[block] for block in code.records if block in places)),
    )


def _loops(
    loops: PipelinableLoops, allocation: Allocation, places: dict[MachineBlock, int]
) -> Iterator[LoopSummary]:
    """Summaries of the loops that are one block."""
    for block, plan in loops.plans.items():
        scheduled, pipelined = allocation.schedule.blocks[block], plan.pipelined
        first = places[block] + scheduled.pad
        yield LoopSummary(
            block.label,
            plan.operations[0].pc,
            plan.iterations,
            first + (scheduled.again or 0),
            first + scheduled.length,
            1 if pipelined is None else pipelined.copies,
            1 if pipelined is None else pipelined.stages,
            plan.bounds.resource,
            plan.bounds.resource_name,
            plan.bounds.recurrence,
            plan.reason,
        )
