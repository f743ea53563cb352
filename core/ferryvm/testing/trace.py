# SPDX-License-Identifier: Apache-2.0
"""What a program did instruction by instruction, and running a backend that may do anything.

A trace is made by giving the backend one instruction of fuel at a time and looking at the machine
before and after. A backend under suspicion may raise, or never come back: `attempt` turns both
into a text.
"""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Iterator

from ferryvm.backend import BackendError
from ferryvm.engine import ProgramInterrupted
from ferryvm.isa import INSTRUCTIONS, Flow, Immediate, Instruction, Trap
from ferryvm.isa.type import format_value
from ferryvm.machine.control import ControlBlock, Status
from ferryvm.program import Program
from ferryvm.testing.state import Difference, difference
from ferryvm.testing.trial import MOST_INSTRUCTIONS, Trial

LONGEST = 20
"""Instructions of a trace that a disagreement keeps."""

PATIENCE = 60.0
"""Seconds after which a backend that should have come back is stopped."""


@dataclasses.dataclass(frozen=True)
class TraceLine:
    """One instruction that was run. Words are bit patterns."""

    pc: int
    mnemonic: str
    immediate: str
    """As in assembly, a jump's target as a pc; empty where there is none."""
    operands: tuple[int, ...]
    """What it took from the stack, deepest first."""
    results: tuple[int, ...] = ()
    """What it left on the stack."""
    then: str = ""
    """Where control went if not to the next instruction: `pc 7`, `halt`, `trap: ...`."""

    def __str__(self) -> str:
        words = [" ".join(f"{word:#x}" for word in part) for part in (self.operands, self.results)]
        text = f"{self.pc:5}  {self.mnemonic} {self.immediate}".rstrip()
        effect = f"( {words[0]} -- {words[1]} )".replace("  ", " ")
        return " ".join(filter(None, (text, effect, f"=> {self.then}" if self.then else "")))


def attempt(
    trial: Trial, backend: str, fuel: int | None = MOST_INSTRUCTIONS, seconds: float = PATIENCE
) -> str | None:
    """Let a backend go on with a trial; what went wrong if it failed, else None.

    `fuel`: None to go on to the end without counting. Raises BackendError where the backend
    refuses the program.
    """
    with _stopping(trial.execution.machine.control, seconds) as stopped:
        try:
            if fuel is None:
                trial.run_uncounted(backend)
            else:
                trial.run(backend, fuel)
        except BackendError:
            raise
        except ProgramInterrupted:
            if not stopped.is_set():
                raise
            return f"it was still running after {seconds:g} s"
        except Exception as error:  # noqa: BLE001 - a faulty backend may raise anything
            return f"{type(error).__name__}: {' '.join(str(error).split())}"
    return None


@contextlib.contextmanager
def _stopping(control: ControlBlock, seconds: float) -> Iterator[threading.Event]:
    """Set the interrupt flag when the time is over; the event then is set."""
    fired = threading.Event()

    def stop() -> None:
        fired.set()
        control.interrupt = 1

    timer = threading.Timer(seconds, stop)
    timer.daemon = True
    timer.start()
    try:
        yield fired
    finally:
        timer.cancel()


def judge(expected: Trial, trial: Trial, failure: str | None) -> Difference | None:
    """The first difference of a trial from the expected one, its failure being one."""
    if failure is not None:
        return Difference("failure", "none", failure)
    return difference(expected.execution.machine, expected.state(), trial.state())


def trace(trial: Trial, backend: str, count: int) -> list[TraceLine]:
    """Run a trial on for `count` instructions, or until it ends, one at a time."""
    lines = []
    for _ in range(count):
        if trial.has_ended:
            break
        before = begun(trial)
        failure = attempt(trial, backend, 1)
        lines.append(finished(before, trial, failure))
        if failure is not None:
            break
    return lines


def begun(trial: Trial) -> TraceLine:
    """The instruction that a trial stands at, with its operands."""
    machine, pc = trial.execution.machine, trial.pc
    program = machine.program
    row, immediate = instruction_at(program, pc)
    count = min(taken(program, row, immediate), machine.control.sp)
    words = machine.memory.stack[machine.control.sp - count : machine.control.sp].tolist()
    return TraceLine(pc, row.mnemonic, immediate_text(program, row, immediate), tuple(words))


def finished(line: TraceLine, trial: Trial, failure: str | None = None) -> TraceLine:
    """The same instruction, with what it did."""
    if failure is not None:
        return dataclasses.replace(line, then=failure)
    machine = trial.execution.machine
    if machine.control.status == Status.TRAP:
        return dataclasses.replace(line, then=f"trap: {_trap_message(machine.control.trap)}")
    if machine.control.status == Status.HALT:
        return dataclasses.replace(line, then="halt")
    row, immediate = instruction_at(machine.program, line.pc)
    count = min(left(machine.program, row, immediate), machine.control.sp)
    words = machine.memory.stack[machine.control.sp - count : machine.control.sp].tolist()
    then = "" if trial.pc == line.pc + 1 else f"pc {trial.pc}"
    return dataclasses.replace(line, results=tuple(words), then=then)


def _trap_message(number: int) -> str:
    return Trap(number).message if number in list(Trap) else f"number {number}"


def instruction_at(program: Program, pc: int) -> tuple[Instruction, int]:
    """The row of the table and the immediate of the instruction at `pc`."""
    record = program.code[pc]
    return INSTRUCTIONS[int(record["opcode"])], int(record["immediate"])


def taken(program: Program, row: Instruction, immediate: int) -> int:
    """Words that an instruction takes from the stack; of a call its arguments, not the header."""
    match row.flow:
        case Flow.CALL:
            return len(program.signature(immediate).parameters)
        case Flow.CALL_INDIRECT:
            return len(program.signatures[immediate].parameters) + 1
        case Flow.HOST:
            return len(program.hosts[immediate].signature.parameters)
        case Flow.RETURN:
            return immediate
    return len(row.pops)


def left(program: Program, row: Instruction, immediate: int) -> int:
    """Words that an instruction leaves on the stack, of those that it made."""
    match row.flow:
        case Flow.HOST:
            return len(program.hosts[immediate].signature.results)
        case Flow.RETURN:
            return immediate
    return len(row.pushes)


def immediate_text(program: Program, row: Instruction, immediate: int) -> str:
    """The immediate for a reader: names where it has one."""
    literal = row.immediate.literal
    if literal is not None:
        return format_value(literal, immediate)
    match row.immediate:
        case Immediate.NONE:
            return ""
        case Immediate.TARGET:
            return f"pc {immediate}"
        case Immediate.FUNCTION:
            return program.functions[immediate].name
        case Immediate.HOST:
            return program.hosts[immediate].name
        case Immediate.STATIC:
            return program.statics[immediate].name
        case Immediate.SIGNATURE:
            return str(program.signatures[immediate])
    return str(immediate)
