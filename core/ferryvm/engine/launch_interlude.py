# SPDX-License-Identifier: Apache-2.0
"""The code between two launches, run by an interpreter a straight line at a time.

    launch, results on the device ─> scalars, jumps, calls ─┬─> launch.test, items left ─> launch …
                                                            └─> anything else ─> results to the host

A device with memory of its own may leave the results of a launch there as long as nothing on the
host can look at them. The interlude runs instructions that access neither heap nor objects, and
stops in front of any other. The interpreter is given fuel for just so many instructions, so it has
no need to know of that. Its form that counts is bound to the machine meanwhile, and the one that was
bound before is bound again, since a call that has left for a launch may go on without the engine.
"""

from __future__ import annotations

import functools
from array import array
from collections.abc import Callable

from ferryvm.isa import BY_MNEMONIC, INSTRUCTIONS, Flow
from ferryvm.isa.effect import Effect, effects
from ferryvm.machine.control import CALL_REGISTERS, FORM_FIELDS, Status
from ferryvm.machine.launch_operands import launch_operands
from ferryvm.machine.state import Machine
from ferryvm.region.code import code
from ferryvm.region.launch import launch_numbers
from ferryvm.verify import Verified

Enter = Callable[[Machine, bool], Status]

_SCALAR = frozenset(
    (
        *(Effect.READS_LOCAL, Effect.WRITES_LOCAL, Effect.READS_STATIC, Effect.WRITES_STATIC),
        *(Effect.READS_STACK, Effect.WRITES_STACK, Effect.JUMPS, Effect.CALLS, Effect.RETURNS),
        *(Effect.TRAPS, Effect.READS_TYPES, Effect.TAKES_OPERANDS, Effect.LEAVES_OPERANDS),
        Effect.CONTINUES_LAUNCHES,
    )
)
"""Effects of instructions that see no element of an array, and make no object."""

_LENGTH = BY_MNEMONIC["array.length"].opcode
"""It reads a header, which no item changes."""

_TEST = BY_MNEMONIC["launch.test"].opcode

_MOST_LINES = 64
"""Straight lines between two launches; more take as long as copying small results back."""

_MOST_WORDS = 1 << 14
"""Words of stack and statics, of which there is a copy while results are on a device alone."""


@functools.cache
def _is_scalar(opcode: int) -> bool:
    return opcode == _LENGTH or effects(INSTRUCTIONS[opcode]) <= _SCALAR


class Interlude:
    """Runs the code between the launches of one program."""

    def __init__(self, program: Verified, enter: Enter, is_plain: Callable[[], bool]) -> None:
        """`enter`: of an interpreter that counts fuel; `is_plain`: False if its counting code has
        cells."""
        self._listing, self._heads = code(program), frozenset(launch_numbers(program))
        self._enter, self.is_plain = enter, is_plain
        self._lengths: dict[int, int] = {}

    def run(self, machine: Machine) -> Status:
        """Run on from an instruction: PARALLEL in front of a launch with all its items left, LEAVE
        in front of code that may look at memory, else the status with which the interpreter
        left."""
        control = machine.control
        fuel, bound = control.fuel, [getattr(control, name) for name in FORM_FIELDS]
        try:
            for _ in range(_MOST_LINES):
                pc = control.pc
                if pc in self._heads:
                    launch = launch_operands(control)
                    if launch.record or launch.next < launch.limit:
                        return Status.LEAVE if launch.record else Status.PARALLEL
                length = self._lengths.get(pc)
                if length is None:
                    length = self._lengths[pc] = self._length(pc)
                if not length:
                    break
                control.fuel = length
                status = self._enter(machine, True)
                if status is not Status.FUEL:
                    return status
            return Status.LEAVE
        finally:
            control.fuel = fuel
            for name, address in zip(FORM_FIELDS, bound, strict=True):
                setattr(control, name, address)

    def returns_behind(self, pc: int) -> bool:
        """True if the function returns behind the launch at `pc`, and does nothing else there."""
        at = self._listing.immediates[pc + 1]
        for _ in range(_MOST_LINES):
            length = self._length(at)
            if not length:
                return False
            last = at + length - 1
            flow = INSTRUCTIONS[self._listing.opcodes[last]].flow
            if flow is not Flow.JUMP:
                return flow is Flow.RETURN
            at = self._listing.immediates[last]
        return False

    def _length(self, pc: int) -> int:
        """Instructions from one up to the next that may continue elsewhere, or in front of a launch
        or of one that is not scalar."""
        opcodes, first = self._listing.opcodes, pc
        while pc < len(opcodes) and _is_scalar(opcodes[pc]):
            if opcodes[pc] == _TEST and pc != first:
                break
            pc += 1
            if INSTRUCTIONS[opcodes[pc - 1]].flow is not Flow.NEXT:
                break
        return pc - first


class Begin:
    """The state of a machine in front of the first of several launches, but for its memory."""

    def __init__(self, machine: Machine) -> None:
        memory = machine.memory
        self._registers = bytes(memory.control_bytes[CALL_REGISTERS])
        self._stack = array("Q", memory.stack[: machine.control.sp])
        self._statics = array("Q", memory.statics)

    @staticmethod
    def is_small(machine: Machine) -> bool:
        """True if there is little to copy."""
        return int(machine.control.sp) + len(machine.memory.statics) <= _MOST_WORDS

    def restore(self, machine: Machine) -> None:
        """Let the machine stand there again."""
        memory = machine.memory
        memory.stack[: len(self._stack)] = memoryview(self._stack)
        memory.statics[:] = memoryview(self._statics)
        memory.control_bytes[CALL_REGISTERS] = self._registers
