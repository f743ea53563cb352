# SPDX-License-Identifier: Apache-2.0
"""Checks of the state in which a backend left, before the engine uses it.

They apply to exits that the engine handles: a host call, growth, an end. The engine relies on a
reachable instruction, a frame within the stack and as large as its stack map requires, and the
existence of that host call or trap; these are checked. The contents of stack and heap are not.
"""

from __future__ import annotations

import functools

from ferryvm.isa import BY_MNEMONIC, INSTRUCTIONS, Flow, Trap
from ferryvm.isa.frame import HEADER_WORDS
from ferryvm.isa.type import I64, WORD_BYTES, signed
from ferryvm.machine.control import EXIT_ID, FP, PC, SP, Status
from ferryvm.machine.state import Machine

_THROWING = frozenset(row.opcode for row in INSTRUCTIONS if row.flow is Flow.THROW)
_HALT, _HOST, _TEST, _BARRIER = (
    BY_MNEMONIC[name].opcode for name in ("halt", "host", "launch.test", "launch.barrier")
)
_TRAPS = frozenset(int(trap) for trap in Trap if trap is not Trap.NONE)


@functools.cache
def _allocating() -> frozenset[int]:
    """Opcodes of the instructions that leave with ALLOCATE."""
    from ferryvm.machine.element_transfer import LONG  # few programs have objects

    making = (row for row in INSTRUCTIONS if row.mnemonic.startswith(("struct.new", "array.new")))
    return LONG | frozenset(row.opcode for row in making)


class ExitChecker:
    """The check that a backend left a program in a possible state."""

    def __init__(self, machine: Machine) -> None:
        self._machine, self._control = machine, machine.control
        self._words = machine.memory.stack_words
        self._shapes: dict[int, tuple[int, int]] = {}
        self._control_words = machine.memory.control_words
        self._control_halves = machine.memory.control_halves

    def host_fault(self) -> str | None:
        """As `fault`, for a state that was left with HOST, and faster: a short host call takes no
        longer than this."""
        words = self._control_words
        shape = self._shapes.get(words[PC])
        if (
            shape is None
            or words[FP] + shape[0] != words[SP]
            or shape[1] != self._control_halves[EXIT_ID]
            or words[SP] > self._words
        ):
            return self.fault(Status.HOST, counting=False)
        return None

    def fault(self, status: Status, counting: bool) -> str | None:
        """The fault of the state that was left with a status; None if the engine can continue from
        it."""
        control = self._control  # reading a field takes long where a host call is short
        pc, sp, fp = control.pc, control.sp, control.fp
        shape = self._shapes.get(pc)
        if shape is None:
            shape = self._shape(pc)
            if shape is None:
                return f"at pc {pc}, which control never gets to"
            self._shapes[pc] = shape
        size, host = shape
        if fp + size != sp or sp > self._words:
            words = self._words
            return (
                f"at pc {pc} with sp {sp} and fp {fp}: a frame of {size} words within {words} there"
            )
        if control.status != status:
            return f"with the status {status.name}, and {control.status} in its control block"
        if status is not Status.HOST:
            return self._fault(status, counting)
        if host != control.exit_id:
            return f"for host call {control.exit_id} at pc {pc}, where there is no such call"
        return None

    def _fault(self, status: Status, counting: bool) -> str | None:
        control = self._control
        if control.hp > control.heap_capacity or control.hp % WORD_BYTES:
            return f"with hp {control.hp}: a multiple of {WORD_BYTES} up to {control.heap_capacity}"
        if self._machine.objects is not None:
            top, end = control.object_top, control.object_end
            if top > end or top % WORD_BYTES or not top:
                return f"with {top} bytes of objects: a multiple of {WORD_BYTES} up to {end}"
        if status is Status.HALT:
            if self._machine.program.code.opcodes[control.pc] != _HALT:
                return f"with HALT at pc {control.pc}, where there is no halt"
        elif status is Status.TRAP:
            if control.trap not in _TRAPS:
                return f"with the trap {control.trap}, which there is not"
        elif status is Status.THROW:
            if self._machine.program.code.opcodes[control.pc] not in _THROWING:
                return f"with THROW at pc {control.pc}, where nothing is thrown"
        elif status is Status.GROW:
            if control.wanted <= control.heap_capacity:
                return f"for a heap of {control.wanted} bytes, and has {control.heap_capacity}"
        elif status is Status.ALLOCATE:
            fault = self._allocation_fault()
            if fault is not None:
                return fault
        elif status is Status.LAUNCH:
            if not self._is_launch_due():
                return f"with LAUNCH at pc {control.pc}, where no piece of a launch is due"
        elif status is Status.FUEL and not counting:
            return "for want of fuel, which nobody counts"
        if counting and control.fuel < 0:
            return f"with {control.fuel} fuel"
        return None

    def _is_launch_due(self) -> bool:
        """True if the next piece of a launch is due, or an item is to wait at a barrier."""
        control, stack = self._control, self._machine.memory.stack
        opcode = self._machine.program.code.opcodes[control.pc]
        if opcode == _BARRIER:
            return not stack[control.sp - 1]
        limit, next_, record = stack[control.sp - 3 : control.sp]
        return opcode == _TEST and signed(I64, next_) >= signed(I64, limit) and bool(record)

    def _allocation_fault(self) -> str | None:
        # A program without objects may have got some since this check was made.
        control, objects = self._control, self._machine.objects
        if objects is None or self._machine.program.code.opcodes[control.pc] not in _allocating():
            return f"with ALLOCATE at pc {control.pc}, where no object is made or filled"
        if not objects.is_wanted():
            return f"for {control.wanted} bytes of type {control.wanted_type}"
        if objects.fits():
            return f"for {control.wanted} bytes of objects, which fit"
        return None

    def _shape(self, pc: int) -> tuple[int, int] | None:
        """Words of the frame at `pc` from its header on, and the host import that is called there,
        or -1."""
        program, verified = self._machine.program, self._machine.verified
        if not 0 <= pc < len(program.code) or not verified.is_reachable(pc):
            return None
        locals_ = program.functions[verified.owner(pc)].locals
        size = HEADER_WORDS + len(locals_) + verified.depth(pc)
        is_host = program.code.opcodes[pc] == _HOST
        return size, program.code.immediates[pc] if is_host else -1
