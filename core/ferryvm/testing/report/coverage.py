# SPDX-License-Identifier: Apache-2.0
"""Coverage of a program: its instructions and their edge classes, counted.

The program is run one instruction at a time, so this costs some microseconds an instruction and
stops after a number of them; a `Coverage` says whether it saw the whole run.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping

from ferryvm.engine import ProgramInterrupted, runnable
from ferryvm.isa import INSTRUCTIONS, Flow, Immediate, Instruction
from ferryvm.isa.frame import number_of
from ferryvm.isa.type import ValueType
from ferryvm.machine.control import Status
from ferryvm.machine.state import Machine
from ferryvm.testing.report.edge import EDGES
from ferryvm.testing.report.event import Step
from ferryvm.testing.trial import Trial

MOST_OBSERVED = 200_000
"""The default limit of observed instructions of a run."""


@dataclasses.dataclass(frozen=True)
class Coverage:
    """Coverage of one run, or of several."""

    counts: Mapping[int, int]
    """Times that an instruction was run, by opcode, those included that trapped."""
    edges: Mapping[int, Mapping[int, int]]
    """Times that an edge class was met, by opcode and then by its number in `EDGES`."""
    observed: int
    """Instructions that were watched."""
    is_whole: bool
    """True if the run was observed to its end."""

    @property
    def edge_count(self) -> int:
        """Edge classes met, over all instructions."""
        return sum(len(met) for met in self.edges.values())


def total(parts: Iterable[Coverage]) -> Coverage:
    """The coverage of several runs together."""
    counts: dict[int, int] = {}
    met: dict[int, dict[int, int]] = {}
    observed, is_whole = 0, True
    for part in parts:
        observed += part.observed
        is_whole = is_whole and part.is_whole
        for opcode, times in part.counts.items():
            counts[opcode] = counts.get(opcode, 0) + times
        for opcode, of_opcode in part.edges.items():
            sums = met.setdefault(opcode, {})
            for number, times in of_opcode.items():
                sums[number] = sums.get(number, 0) + times
    return Coverage(counts, met, observed, is_whole)


def observe(
    trial: Trial,
    backend: str,
    most: int = MOST_OBSERVED,
    progress: Callable[[], object] = lambda: None,
) -> Coverage:
    """The coverage of the first `most` instructions of a trial at its start on a backend.

    The trial is used up. `progress` is called now and then. Raises BackendError as `Trial.run`.
    """
    return _Observer(trial, backend).run(most, progress)


class _Observer:
    def __init__(self, trial: Trial, backend: str) -> None:
        self.trial, self.backend = trial, backend
        self.machine: Machine = trial.execution.machine
        program = self.machine.program
        self.opcodes: list[int] = program.code.opcodes.tolist()
        self.immediates: list[int] = program.code.immediates.tolist()
        self.open_types: dict[int, ValueType | None] = {}
        self.counts: dict[int, int] = {}
        self.met: dict[int, dict[int, int]] = {}
        self.depth = 0

    def run(self, most: int, progress: Callable[[], object]) -> Coverage:
        # A run of no instructions, so that refusals and limits are the engine's to state.
        self.trial.run(self.backend, 0)
        registry = self.trial.execution.engine.registry
        enter = runnable(registry, self.backend).prepare(self.machine.verified).enter
        machine, control, stack = self.machine, self.machine.control, self.machine.memory.stack
        observed = 0
        ended = (Status.HALT, Status.TRAP)
        while observed < most and control.status not in ended:
            pc, sp = control.pc, control.sp
            opcode = self.opcodes[pc]
            row = INSTRUCTIONS[opcode]
            operands = stack[sp - len(row.pops) : sp].tolist()
            open_type = self._open_type(row, pc)
            control.fuel = 1
            status = enter(machine, True)
            has_grown = False
            if status is not Status.FUEL and status not in ended:
                has_grown = self._finish(status)
            elif row.flow in _DEPTHS and status is not Status.TRAP:
                self.depth += _DEPTHS[row.flow]
            self.counts[opcode] = self.counts.get(opcode, 0) + 1
            step = Step(
                row, machine, pc, self.immediates[pc], operands, open_type, self.depth, has_grown
            )
            met = self.met.setdefault(opcode, {})
            for number in EDGES[opcode].met(step):
                met[number] = met.get(number, 0) + 1
            observed += 1
            if observed % 5000 == 0:
                progress()
        return Coverage(
            self.counts,
            {opcode: met for opcode, met in self.met.items() if met},
            observed,
            control.status in ended,
        )

    def _finish(self, status: Status) -> bool:
        """Handle the backend's exit as the engine does; True if the heap grew."""
        if status is Status.INTERRUPTED:
            raise ProgramInterrupted(self.machine)
        before = self.machine.memory.heap_capacity
        self.trial.run(self.backend, 1)
        return self.machine.memory.heap_capacity > before

    def _open_type(self, row: Instruction, pc: int) -> ValueType | None:
        """The type that the instruction leaves open, at this place of the program."""
        if pc not in self.open_types:
            self.open_types[pc] = self._find_open_type(row, pc)
        return self.open_types[pc]

    def _find_open_type(self, row: Instruction, pc: int) -> ValueType | None:
        verified, number = self.machine.verified, self.immediates[pc]
        if row.immediate is Immediate.LOCAL:
            local = number_of(number, verified.parameters(pc))
            assert local is not None
            return verified.program.frame_types(verified.owner(pc))[local]
        if row.immediate is Immediate.STATIC:
            return verified.program.statics[number].type
        types = verified.operand_types(pc)[len(verified.operand_types(pc)) - len(row.pops) :]
        opens = [t for t, declared in zip(types, row.pops, strict=True) if declared != t]
        return opens[0] if opens else None


_DEPTHS = {Flow.CALL: 1, Flow.CALL_INDIRECT: 1, Flow.RETURN: -1}
"""Change of the number of active calls by an instruction."""
