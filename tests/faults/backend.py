# SPDX-License-Identifier: Apache-2.0
"""A backend with one fault, built on the reference backend's emitter.

The reference is strict: it stops at what the verifier has excluded. A faulty backend must not, for
native code would not either: it goes on in whatever state its fault has left, and only what would
kill a process is a `Crash`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ferryvm.backend import Artifact, Backend, Interpreter
from ferryvm.isa import INSTRUCTIONS, Immediate, Instruction, Type
from ferryvm.machine.control import Status
from ferryvm.machine.memory import PAGE
from ferryvm.machine.state import Machine
from ferryvm.registry import Registry
from ferryvm.verify import Verified
from ferryvm_backends.reference.emitter import ReferenceEmitter
from ferryvm_backends.reference.object import Departure

from ..double.registry import registry
from .fault import Fault

_LONGEST = 200_000
"""Instructions that an entry without counting may take; random programs are far shorter."""

_WORD = (1 << 64) - 1


class Crash(Exception):  # noqa: N818 - what would have happened to a process
    """Native code would have died here, or would never come back."""


class LaxEmitter(ReferenceEmitter):
    """The reference's emitter without its checks."""

    mnemonics: list[str]
    counting = False
    last = -1
    """pc of the last instruction completed since the entry, -1 if none was."""
    completed = 0
    """Instructions completed since the entry."""

    def arrive(self) -> None:
        """Called at an entry, with the registers as they came."""

    def leave(self, status: Status) -> None:
        """Called before control is given back; memory and registers can still be changed."""

    def _leave_if(self, p: int, status: Status) -> None:
        if p:
            raise Departure(status)

    def _check_heap(self, bytes_: int, address: int) -> None:
        if not 0 <= address <= self.control.heap_capacity - bytes_:
            raise Crash(f"pc {self.pc}: heap access at {address}")

    def set_heap_pointer(self, value: int) -> None:
        if not 0 <= value <= -(-self.control.heap_capacity // PAGE) * PAGE:
            raise Crash(f"pc {self.pc}: heap pointer {value}")
        self.control.hp = value

    def static(self, index: int) -> int:
        # The segment is whole pages: what stands past the last static is zero.
        return self.statics[index] if index < len(self.statics) else 0

    def set_static(self, index: int, slot: int) -> None:
        if index < len(self.statics):
            self.statics[index] = slot

    def table_function(self, index: int) -> int:
        return self.table[index] if index < len(self.table) else 0


Step = tuple[Callable[..., Any], list[int], list[int], tuple[Any, ...], int]
"""Meaning, immediates, masks of the operands, what is pushed, pc after it."""


class FaultyArtifact(Artifact):
    """A program with faulty meanings."""

    def __init__(self, verified: Verified, fault: Fault | None) -> None:
        code = verified.program.code
        rows = [INSTRUCTIONS[opcode] for opcode in code.opcodes.tolist()]
        immediates: list[int] = code.immediates.tolist()
        self._emitter: type[LaxEmitter] = fault.emitter(LaxEmitter) if fault else LaxEmitter
        self._mnemonics = [row.mnemonic for row in rows]
        own = {row.mnemonic: fault.row(row) if fault else row for row in set(rows)}
        self._steps = [
            _step(own[row.mnemonic], immediates[pc], pc + 1) for pc, row in enumerate(rows)
        ]
        self._plain = list(self._steps)
        if fault and fault.fused:
            self._fuse(fault, rows, immediates)

    def _fuse(self, fault: Fault, rows: list[Instruction], immediates: list[int]) -> None:
        sequence = fault.fused
        assert sequence is not None
        size = len(sequence.mnemonics)
        for pc in range(len(rows) - size + 1):
            if tuple(self._mnemonics[pc : pc + size]) != sequence.mnemonics:
                continue
            places = range(pc, pc + size)
            literals = [immediates[at] for at in places if rows[at].immediate is not Immediate.NONE]
            if sequence.when(literals):
                masks = [_WORD] * sequence.pops
                self._plain[pc] = (sequence.body, literals, masks, sequence.pushes, pc + size)

    def enter(self, machine: Machine, counting: bool) -> Status:
        control = machine.control
        m = self._emitter(machine)
        m.next, m.sp, m.fp = control.pc, control.sp, control.fp
        m.pc, m.counting, m.mnemonics = m.next, counting, self._mnemonics
        m.arrive()
        try:
            status = self._run(m)
        except Departure as departure:
            status = departure.status
        m.leave(status)
        control.pc, control.sp, control.fp = m.pc & _WORD, m.sp & _WORD, m.fp & _WORD
        control.status = status
        return status

    def _run(self, m: LaxEmitter) -> Status:
        control, counting, stack = m.control, m.counting, m.stack
        steps = self._steps if counting else self._plain
        while True:
            m.pc = pc = m.next
            if m.jumped and control.interrupt:
                return Status.INTERRUPTED
            if counting and control.fuel <= 0:
                return Status.FUEL
            if m.completed > _LONGEST:
                raise Crash(f"pc {pc}: it does not come to an end")
            meaning, literals, masks, pushes, m.next = steps[pc]
            m.jumped = False
            sp = m.sp
            m.sp = first = sp - len(masks)
            operands = [
                word & mask for word, mask in zip(stack[first:sp].tolist(), masks, strict=True)
            ]
            try:
                result = meaning(m, *literals, *operands)
            except Departure:
                m.sp = sp
                raise
            if result is not None:
                results = result if isinstance(result, tuple) else (result,)
                for t, value in zip(pushes, results, strict=True):
                    stack[m.sp] = m.to_slot(t, value) if isinstance(t, Type) else value
                    m.sp += 1
            m.last = pc
            m.completed += 1
            if counting:
                control.fuel -= 1


def _step(row: Instruction, immediate: int, following: int) -> Step:
    literals = [] if row.immediate is Immediate.NONE else [immediate]
    masks = [t.mask if isinstance(t, Type) else _WORD for t in row.pops]
    return row.meaning, literals, masks, row.pushes, following


class FaultyBackend(Interpreter):
    """The reference backend with a fault; without one it should agree with the reference."""

    version = "1"

    def __init__(self, name: str, fault: Fault | None) -> None:
        self.name, self._fault = name, fault

    def prepare(self, program: Verified) -> Artifact:
        artifact = FaultyArtifact(program, self._fault)
        return self._fault.artifact(artifact) if self._fault else artifact


def registry_of(backends: Iterable[Backend]) -> Registry:
    """The installed backends and these."""
    return registry(*backends, name="planted faults")


def registry_with(faults: Iterable[Fault]) -> Registry:
    """The installed backends, and one a fault, under the fault's name."""
    return registry_of(FaultyBackend(fault.name, fault) for fault in faults)
