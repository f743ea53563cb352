# SPDX-License-Identifier: Apache-2.0
"""The reference backend: the instruction table, run directly. Slow, strict, the oracle."""

from __future__ import annotations

import ctypes
import weakref

import ferryvm
from ferryvm.backend import Artifact, BackendError, Capabilities, Forcing, Interpreter
from ferryvm.isa import INSTRUCTIONS, Type
from ferryvm.isa.frame import HEADER_WORDS
from ferryvm.isa.type import Reference
from ferryvm.machine.control import Status
from ferryvm.machine.state import Machine
from ferryvm.machine.unwind import unwind
from ferryvm.verify import Verified
from ferryvm_backends.reference.cell import Cells, Function
from ferryvm_backends.reference.emitter import ReferenceEmitter
from ferryvm_backends.reference.independence import Independence
from ferryvm_backends.reference.object import Departure, Violation


class ReferenceArtifact(Artifact):
    """Decoded code."""

    def __init__(self, verified: Verified, checks: bool = False) -> None:
        """`checks`: the items of launches are checked to be independent."""
        self.verified = verified
        self._checks = checks
        self._checked: weakref.WeakKeyDictionary[Machine, Independence] = (
            weakref.WeakKeyDictionary()
        )
        code = verified.program.code
        self.rows = [INSTRUCTIONS[opcode] for opcode in code.opcodes.tolist()]
        self.immediates: list[int] = code.immediates.tolist()
        self.frame_sizes = [
            HEADER_WORDS + len(verified.program.functions[number].locals)
            for number in range(len(verified.program.functions))
        ]
        self._has_references = any(row.has_references for row in self.rows)
        self._known_references: dict[int, list[Reference | None]] = {}
        self._cells = {counting: Cells(len(code)) for counting in (False, True)}

    def enter(self, machine: Machine, counting: bool) -> Status:
        control = machine.control
        cells = self._cells[counting]
        m = ReferenceEmitter(machine)
        m.next, m.sp, m.fp = control.pc, control.sp, control.fp
        check = None
        if self._checks:
            check = self._checked.setdefault(machine, Independence(machine))
        is_hidden = False
        """True if the instruction runs in spite of its cell."""
        try:
            while True:
                m.pc = m.next
                if m.jumped and control.interrupt:
                    status = Status.INTERRUPTED
                    break
                if counting and control.fuel <= 0:
                    status = Status.FUEL
                    break
                if m.pc in cells.places and not is_hidden:
                    found = cells.arrive(m.pc)
                    if found is not None:
                        status = found if isinstance(found, Status) else _call(m, found)
                        if status is not Status.LEAVE:
                            break
                        is_hidden = True
                        continue
                is_hidden = False
                try:
                    self._step(m, check)
                except Departure as departure:
                    if departure.status is not Status.THROW:
                        raise
                    self._throw(m, machine)
                if counting:
                    control.fuel -= 1
        except Departure as departure:
            status = departure.status
        control.pc, control.sp, control.fp, control.status = m.pc, m.sp, m.fp, status
        return status

    def count(self, pc: int, times: int, counting: bool) -> None:
        self._cells[counting].count(pc, times)

    def counted(self, pc: int, counting: bool) -> int:
        return self._cells[counting].counted(pc)

    def install(self, pc: int, address: int, counting: bool) -> None:
        self._cells[counting].install(pc, address)

    def remove(self, pc: int, counting: bool) -> None:
        self._cells[counting].remove(pc)

    def _step(self, m: ReferenceEmitter, check: Independence | None) -> None:
        """Run one instruction; leaves the emitter as it was if the meaning raises `Departure`."""
        pc, sp = m.pc, m.sp
        row = self.rows[pc]
        self._check_frame(m)
        m.next, m.jumped, m.changed = pc + 1, False, False
        first = sp - len(row.pops)
        operands = m.stack[first:sp].tolist()
        for t, operand in zip(row.pops, operands, strict=True):
            if isinstance(t, Type) and operand > t.mask:
                raise Violation(f"pc {pc}: operand {operand:#x} is no {t}")
        if self._has_references and row.pops:
            for word, reference in zip(operands, self._references(pc, len(row.pops)), strict=True):
                if reference is not None:
                    m.check_reference(word, reference)
        fp = m.fp
        if check is not None:
            check.before(row, fp, sp)
        literal = [self.immediates[pc]] if row.immediate.value != "none" else []
        m.sp = first
        try:
            result = row.meaning(m, *literal, *operands)
        except Departure:
            m.sp = sp
            raise
        if result is not None:
            for slot in result if isinstance(result, tuple) else (result,):
                m.stack[m.sp] = slot
                m.sp += 1
        if check is not None:
            check.after(row, pc, self.immediates[pc], operands, fp, sp)

    def _references(self, pc: int, count: int) -> list[Reference | None]:
        """The types of as many operands of an instruction; None for those that are numbers."""
        found = self._known_references.get(pc)
        if found is None:
            types = self.verified.operand_types(pc)[-count:]
            found = [t if isinstance(t, Reference) else None for t in types]
            self._known_references[pc] = found
        return found

    def _throw(self, m: ReferenceEmitter, machine: Machine) -> None:
        """Continue at the handler of the thrown exception; raises `Departure` if it traps."""
        control = m.control
        control.pc, control.sp, control.fp = m.pc, m.sp, m.fp
        if unwind(machine, False) is Status.TRAP:
            raise Departure(Status.TRAP)
        m.next, m.sp, m.fp, m.jumped = control.pc, control.sp, control.fp, True

    def _check_frame(self, m: ReferenceEmitter) -> None:
        owner = self.verified.owner(m.pc)
        if owner < 0 or m.sp != m.fp + self.frame_sizes[owner] + self.verified.depth(m.pc):
            raise Violation(f"pc {m.pc}: sp {m.sp}, fp {m.fp} are not what the verifier proved")


def _call(m: ReferenceEmitter, function: Function) -> Status:
    """Call compiled code before the instruction at `m.pc`; the state is then as it left it."""
    control = m.control
    control.pc, control.sp, control.fp = m.pc, m.sp, m.fp
    number = function(ctypes.addressof(control))
    m.pc, m.sp, m.fp = control.pc, control.sp, control.fp
    # The flag is looked at, as after a jump: code that leaves and is entered again for ever must
    # not prevent Ctrl-C.
    m.next, m.jumped = m.pc, True
    try:
        return Status(number)
    except ValueError:
        control.status = Status.RUNNING
        message = f"compiled code left with status {number} at pc {m.pc}"
        raise BackendError(f"{message}, which there is not") from None


class ReferenceBackend(Interpreter):
    """Python."""

    name = "reference"
    version = ferryvm.__version__
    capabilities = Capabilities(cells=True, forcing=frozenset({Forcing.INDEPENDENCE}))

    def prepare(self, program: Verified) -> Artifact:
        return ReferenceArtifact(program)

    def prepare_forced(self, program: Verified, forcing: frozenset[Forcing]) -> Artifact:
        return ReferenceArtifact(program, checks=Forcing.INDEPENDENCE in forcing)


BACKEND = ReferenceBackend()
