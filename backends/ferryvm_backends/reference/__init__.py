# SPDX-License-Identifier: Apache-2.0
"""The reference backend: the instruction table, run directly. Slow, strict, the oracle."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable

import ferryvm
from ferryvm.backend import Artifact, BackendError, Capabilities, Forcing, Interpreter
from ferryvm.isa import INSTRUCTIONS, Immediate, Instruction, Type
from ferryvm.isa.frame import HEADER_WORDS
from ferryvm.isa.type import Reference
from ferryvm.machine.control import Status
from ferryvm.machine.state import Machine
from ferryvm.machine.unwind import unwind
from ferryvm.named_tuple import NamedTuple
from ferryvm.verify import Verified
from ferryvm_backends.reference.cell import Cells, Function
from ferryvm_backends.reference.emitter import ReferenceEmitter
from ferryvm_backends.reference.independence import Independence, is_watched
from ferryvm_backends.reference.object import Departure, Violation


class _Step(NamedTuple):
    """An instruction as it is run: its checks, decoded."""

    row: Instruction
    meaning: Callable[..., int | tuple[int, ...] | None]
    literals: tuple[int, ...]
    """Its immediate, if it has one."""
    popped: int
    """The number of its operands."""
    narrow: tuple[tuple[int, int, Type], ...]
    """The places, behind literals, masks and types of operands that are narrower than a word."""
    references: tuple[tuple[int, Reference], ...]
    """The places and types of operands that are references."""
    frame_words: int
    """Words from the frame's header up to the top of the operands before it."""
    is_watched: bool
    """True if the check of independence has to see it."""


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
        """The rows of the table by pc; those that are replaced before the first run count."""
        self._immediates: list[int] = code.immediates.tolist()
        self._frame_words = [
            HEADER_WORDS + len(function.locals) for function in verified.program.functions
        ]
        self._has_references = any(row.has_references for row in self.rows)
        self._steps: list[_Step | None] = [None] * len(code)
        """Instructions as they are run, each made when it is run first."""
        self._cells = {counting: Cells(len(code)) for counting in (False, True)}

    def enter(self, machine: Machine, counting: bool) -> Status:
        control = machine.control
        cells, step = self._cells[counting], self._step
        fuel = control.fuel  # in the control block where control leaves this code
        places = cells.places
        m = ReferenceEmitter(machine)
        m.next, m.sp, m.fp = control.pc, control.sp, control.fp
        check = None
        if self._checks:
            check = self._checked.setdefault(machine, Independence(machine))
        is_hidden = False
        """True if the instruction runs in spite of its cell."""
        control.status = Status.LOST  # until it stops: an exception may come within an instruction
        try:
            while True:
                m.pc = m.next
                if m.jumped and control.interrupt:
                    status = Status.INTERRUPTED
                    break
                if counting and fuel <= 0:
                    status = Status.FUEL
                    break
                if m.pc in places and not is_hidden:
                    found = cells.arrive(m.pc)
                    if found is not None:
                        control.fuel = fuel
                        status = found if isinstance(found, Status) else _call(m, found)
                        fuel = control.fuel
                        if status is not Status.LEAVE:
                            break
                        is_hidden = True
                        continue
                is_hidden = False
                try:
                    step(m, check)
                except Departure as departure:
                    if departure.status is not Status.THROW:
                        raise
                    self._throw(m, machine)
                if counting:
                    fuel -= 1
        except Departure as departure:
            status = departure.status
        finally:
            control.fuel = fuel
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
        pc, sp, fp = m.pc, m.sp, m.fp
        row, meaning, literals, popped, narrow, references, frame_words, is_watched = self._steps[
            pc
        ] or self._made(pc)
        if sp != fp + frame_words:
            raise Violation(f"pc {pc}: sp {sp}, fp {fp} are not what the verifier proved")
        m.next, m.jumped, m.changed = pc + 1, False, False
        stack = m.stack
        operands: tuple[int, ...] | list[int]
        if popped == 0:
            operands = literals
        elif popped == 1:  # by itself: a slice takes four times as long
            operands = (*literals, stack[sp - 1]) if literals else (stack[sp - 1],)
        elif popped == 2 and not literals:
            operands = (stack[sp - 2], stack[sp - 1])
        else:
            operands = [*literals, *stack[sp - popped : sp].tolist()]
        for place, mask, t in narrow:
            if operands[place] > mask:
                raise Violation(f"pc {pc}: operand {operands[place]:#x} is no {t}")
        for place, reference in references:
            m.check_reference(operands[place], reference)
        if check is not None and fp <= check.fp:
            check.before(row, fp, sp)
        m.sp = sp - popped
        try:
            result = meaning(m, *operands)
        except Departure:
            m.sp = sp
            raise
        if result.__class__ is int:
            to = m.sp
            stack[to] = result
            m.sp = to + 1
        elif result is not None:
            for slot in result if isinstance(result, tuple) else (result,):
                stack[m.sp] = slot
                m.sp += 1
        if check is not None and is_watched:
            check.after(row, pc, self._immediates[pc], operands[len(literals) :], fp, sp)

    def _made(self, pc: int) -> _Step:
        """The instruction at a pc, as it is run. Raises Violation for one that is unreachable."""
        owner = self.verified.owner(pc)
        if owner < 0:
            raise Violation(f"pc {pc}: the verifier proved that control does not get here")
        row = self.rows[pc]
        count = len(row.pops)
        types = self.verified.operand_types(pc)[-count:] if self._has_references and count else ()
        literals = () if row.immediate is Immediate.NONE else (self._immediates[pc],)
        first = len(literals)
        step = self._steps[pc] = _Step(
            row,
            row.meaning,
            literals,
            count,
            tuple(
                (n, t.mask, t)
                for n, t in enumerate(row.pops, first)
                if isinstance(t, Type) and t.bits == 32
            ),
            tuple((n, t) for n, t in enumerate(types, first) if isinstance(t, Reference)),
            self._frame_words[owner] + self.verified.depth(pc),
            is_watched(row),
        )
        return step

    def _throw(self, m: ReferenceEmitter, machine: Machine) -> None:
        """Continue at the handler of the thrown exception; raises `Departure` if it traps."""
        control = m.control
        control.pc, control.sp, control.fp = m.pc, m.sp, m.fp
        if unwind(machine, False) is Status.TRAP:
            raise Departure(Status.TRAP)
        m.next, m.sp, m.fp, m.jumped = control.pc, control.sp, control.fp, True


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
