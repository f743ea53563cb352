# SPDX-License-Identifier: Apache-2.0
"""The reference backend: the instruction table, run directly. Slow, strict, the oracle."""

from __future__ import annotations

import ferryvm
from ferryvm.backend import Artifact, Backend
from ferryvm.isa import INSTRUCTIONS, Type
from ferryvm.isa.control import HEADER_WORDS
from ferryvm.machine.control import Status
from ferryvm.machine.state import Machine
from ferryvm.verify import Verified
from ferryvm_backends.reference.emitter import Left, ReferenceEmitter, Violation


class ReferenceArtifact(Artifact):
    """Decoded code."""

    def __init__(self, verified: Verified) -> None:
        self.verified = verified
        code = verified.program.code
        self.rows = [INSTRUCTIONS[opcode] for opcode in code["opcode"].tolist()]
        self.immediates: list[int] = code["immediate"].tolist()
        self.frame_sizes = [
            HEADER_WORDS + len(verified.program.frame_types(number))
            for number in range(len(verified.program.functions))
        ]

    def enter(self, machine: Machine, counting: bool) -> Status:
        control = machine.control
        m = ReferenceEmitter(machine)
        m.next, m.sp, m.fp = control.pc, control.sp, control.fp
        try:
            while True:
                m.pc = m.next
                if m.jumped and control.interrupt:
                    status = Status.INTERRUPTED
                    break
                if counting and control.fuel <= 0:
                    status = Status.FUEL
                    break
                self._step(m)
                if counting:
                    control.fuel -= 1
        except Left as left:
            status = left.status
        control.pc, control.sp, control.fp, control.status = m.pc, m.sp, m.fp, status
        return status

    def _step(self, m: ReferenceEmitter) -> None:
        """Run one instruction; leaves the emitter as it was if the meaning raises `Left`."""
        pc, sp = m.pc, m.sp
        row = self.rows[pc]
        self._check_frame(m)
        m.next, m.jumped, m.changed = pc + 1, False, False
        first = sp - len(row.pops)
        operands = m.stack[first:sp].tolist()
        for t, operand in zip(row.pops, operands, strict=True):
            if isinstance(t, Type) and operand > t.mask:
                raise Violation(f"pc {pc}: operand {operand:#x} is no {t}")
        literal = [self.immediates[pc]] if row.immediate.value != "none" else []
        m.sp = first
        try:
            result = row.meaning(m, *literal, *operands)
        except Left:
            m.sp = sp
            raise
        if result is not None:
            for slot in result if isinstance(result, tuple) else (result,):
                m.stack[m.sp] = slot
                m.sp += 1

    def _check_frame(self, m: ReferenceEmitter) -> None:
        owner = self.verified.owner(m.pc)
        if owner < 0 or m.sp != m.fp + self.frame_sizes[owner] + self.verified.depth(m.pc):
            raise Violation(f"pc {m.pc}: sp {m.sp}, fp {m.fp} are not what the verifier proved")


class ReferenceBackend(Backend):
    """Python."""

    name = "reference"
    version = ferryvm.__version__

    def prepare(self, program: Verified) -> Artifact:
        return ReferenceArtifact(program)


BACKEND = ReferenceBackend()
