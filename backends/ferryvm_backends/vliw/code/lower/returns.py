# SPDX-License-Identifier: Apache-2.0
"""Calls between the functions of a region, and their returns."""

from __future__ import annotations

import dataclasses

from ferryvm.ir.graph import BOOLEAN, Body, Module, Phase
from ferryvm.ir.group.record import Group
from ferryvm.ir.group.writer import record_body
from ferryvm_backends.vliw.code.lower.emission import Emission
from ferryvm_backends.vliw.code.operation import (
    MachineBlock,
    MachineCode,
    MachineOperation,
    Register,
    Segment,
)
from ferryvm_backends.vliw.machine.model import FileKind


@dataclasses.dataclass(frozen=True, eq=False)
class RecordCode:
    """The code that writes the record of a group, to which exits jump."""

    entry: MachineBlock
    parameters: tuple[Register, ...]
    owner: int | None
    """The number of the function that exits; None: the region's own body."""
    body: Body


class Calling:
    """The calling convention, shared by all functions.

    All registers are caller-saved: the caller stores the values that it needs later, and loads them
    again. The callee's parameters are registers that the caller sets.
    """

    def __init__(self, module: Module, code: MachineCode) -> None:
        word, predicate = FileKind.INTEGER, FileKind.BOOLEAN
        self.frame = code.register(word)
        """Address of the running frame on the program's stack, where its parameters begin."""
        self.base = code.register(word)
        """Address of the running call's words in the segment CALLS."""
        self.result = code.register(word)
        self.has_exited = code.register(predicate)
        """True if the callee has left, and its caller has to."""
        self.entries = {number: MachineBlock(f"f{number}") for number in module.functions}
        self.parameters = {
            number: [code.register(word) for _ in body.blocks[0].parameters]
            for number, body in module.functions.items()
        }
        self.records: dict[Group, RecordCode] = {}
        self.returns: dict[int, list[MachineBlock]] = {number: [] for number in module.functions}
        """The blocks that each function may return to."""
        self.size = 0
        """Bytes that all functions note, each once."""


class Returns:
    """Ends of one function: to its caller, or out of the code."""

    def __init__(self, emission: Emission, calling: Calling, number: int | None) -> None:
        """`number`: of the function; None for the region's own body."""
        self.emission, self.calling, self.number = emission, calling, number
        self._ends: list[MachineOperation] = []
        """Jumps to the caller."""

    def record(self, phase: Phase, body: Body) -> RecordCode:
        """The code that writes the record of a phase's group, at exits of a body."""
        records, code = self.calling.records, self.emission.code
        if phase.group not in records:
            made = record_body(body, phase)
            kinds = [
                FileKind.BOOLEAN if each.type is BOOLEAN else FileKind.INTEGER
                for each in made.blocks[0].parameters
            ]
            registers = tuple(map(code.register, kinds))
            entry = MachineBlock(made.blocks[0].label)
            code.records.append(entry)
            records[phase.group] = RecordCode(entry, registers, self.number, made)
        return records[phase.group]

    def stop(self) -> None:
        """Give control back, or to the caller, which does so."""
        if self.number is None:
            self.emission.emit(MachineOperation("stop"))
        else:
            self.to_caller(has_exited=True)

    def to_caller(self, has_exited: bool) -> None:
        """Go back to the caller."""
        self.emission.set(self.calling.has_exited, "any", (), (int(has_exited), 0))
        back = self.emission.load(Segment.CALLS, self.emission.base, 0)
        self._ends.append(MachineOperation("jump_to", (), (back,)))
        self.emission.emit(self._ends[-1])

    def finish(self) -> None:
        """Say where the function may return to, when all calls are known."""
        for operation in self._ends:
            assert self.number is not None
            operation.others = tuple(self.calling.returns[self.number])
