# SPDX-License-Identifier: Apache-2.0
"""Traces of programs, instruction by instruction, and two of them side by side.

A trace is made by giving the backend one instruction of fuel at a time and looking at the machine
before and after.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from typing import Annotated

import pydantic

from ferryvm.isa import INSTRUCTIONS, Flow, Immediate, Instruction, Trap
from ferryvm.isa.declared_type import PREDEFINED, Field, StructType
from ferryvm.isa.frame import HEADER_WORDS, number_of, return_counts
from ferryvm.isa.launch import LAUNCH_WORDS
from ferryvm.isa.struct import field_of
from ferryvm.isa.type import FIRST_DECLARED, WORD_BYTES, format_value
from ferryvm.machine.control import Status
from ferryvm.program import Program
from ferryvm.testing.trial import Trial

LONGEST = 20
"""Instructions of a trace in a disagreement."""


Word = Annotated[
    int,
    pydantic.BeforeValidator(lambda value: int(value, 16) if isinstance(value, str) else value),
    pydantic.PlainSerializer(hex),
]
"""The bit pattern of a word; in files as hexadecimal text."""


@dataclasses.dataclass(frozen=True)
class TraceLine:
    """One instruction that was run. Words are bit patterns."""

    pc: int
    mnemonic: str
    immediate: str
    """As in assembly, a jump's target as a pc; empty where there is none."""
    operands: tuple[Word, ...]
    """The operands that it popped, deepest first."""
    results: tuple[Word, ...] = ()
    """The results that it pushed."""
    then: str = ""
    """The place that control went to if not the next instruction: `pc 7`, `halt`, `trap: ...`."""

    def __str__(self) -> str:
        words = [" ".join(f"{word:#x}" for word in part) for part in (self.operands, self.results)]
        text = f"{self.pc:5}  {self.mnemonic} {self.immediate}".rstrip()
        effect = f"( {words[0]} -- {words[1]} )".replace("  ", " ")
        return " ".join(filter(None, (text, effect, f"=> {self.then}" if self.then else "")))


def trace(trial: Trial, count: int, step: Callable[[Trial], str | None]) -> list[TraceLine]:
    """Run a trial for `count` instructions, or until it ends, one at a time.

    `step` runs one and returns its failure, if there is one; see `Trial.attempt`.
    """
    lines = []
    for _ in range(count):
        if trial.has_ended or trial.pc >= len(trial.execution.machine.program.code):
            break
        before = first_line(trial)
        failure = step(trial)
        lines.append(finished(before, trial, failure))
        if failure is not None:
            break
    return lines


def first_line(trial: Trial) -> TraceLine:
    """The current instruction of a trial, with its operands."""
    machine, pc = trial.execution.machine, trial.pc
    program = machine.program
    row, immediate = instruction_at(program, pc)
    count = min(taken(program, row, immediate), machine.control.sp)
    words = machine.memory.stack[machine.control.sp - count : machine.control.sp].tolist()
    text = immediate_text(program, row, immediate, machine.verified.parameters(pc))
    return TraceLine(pc, row.mnemonic, text, tuple(words))


def finished(line: TraceLine, trial: Trial, failure: str | None = None) -> TraceLine:
    """The same instruction, with its results."""
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
    return INSTRUCTIONS[program.code.opcodes[pc]], program.code.immediates[pc]


def taken(program: Program, row: Instruction, immediate: int) -> int:
    """Words that an instruction takes from the stack; of a call its arguments."""
    match row.flow:
        case Flow.CALL:
            return len(program.signature(immediate).parameters)
        case Flow.CALL_INDIRECT:
            return len(program.signatures[immediate].parameters) + 1
        case Flow.HOST:
            return len(program.hosts[immediate].signature.parameters)
        case Flow.THROW if row.immediate is Immediate.TAG:
            return len(program.tags[immediate].parameters)
        case Flow.RETURN:
            return return_counts(immediate)[1]
        case Flow.NEXT if row.immediate is Immediate.FIELDS:
            return len(_fields(program, immediate))
        case Flow.NEXT if row.immediate is Immediate.ITEM:
            return LAUNCH_WORDS - 1 + len(program.signature(immediate).parameters)
    return len(row.pops)


def _fields(program: Program, number: int) -> tuple[Field, ...]:
    """The fields of a type, by its number; none for one that is no struct."""
    at = number - FIRST_DECLARED
    declared = program.types[at] if 0 <= at < len(program.types) else None
    return declared.fields if isinstance(declared, StructType) else ()


def _type_name(program: Program, number: int) -> str:
    at = number - FIRST_DECLARED
    return program.types[at].name if at >= 0 else str(PREDEFINED[number])


def left(program: Program, row: Instruction, immediate: int) -> int:
    """The results of an instruction on the stack."""
    match row.flow:
        case Flow.HOST:
            return len(program.hosts[immediate].signature.results)
        case Flow.RETURN:
            return return_counts(immediate)[1]
        case Flow.NEXT if row.immediate is Immediate.ITEM:
            return taken(program, row, immediate) + len(program.signature(immediate).parameters)
    return len(row.pushes)


def immediate_text(program: Program, row: Instruction, immediate: int, parameters: int) -> str:
    """The immediate for a reader: names where it has one. `parameters`: of the function around."""
    literal = row.immediate.literal
    if literal is not None:
        return format_value(literal, immediate)
    match row.immediate:
        case Immediate.NONE:
            return ""
        case Immediate.TARGET:
            return f"pc {immediate}"
        case Immediate.FUNCTION | Immediate.ITEM:
            return program.functions[immediate].name
        case Immediate.HOST:
            return program.hosts[immediate].name
        case Immediate.TYPE | Immediate.FIELDS | Immediate.STRUCT | Immediate.ARRAY:
            return _type_name(program, immediate)
        case Immediate.FIELD:
            number, field = field_of(immediate)
            return f"{_type_name(program, number)}.{_fields(program, number)[field].name}"
        case Immediate.TAG:
            return program.tags[immediate].name
        case Immediate.STATIC:
            return program.statics[immediate].name
        case Immediate.SIGNATURE:
            return str(program.signatures[immediate])
        case Immediate.LOCAL:
            return str(number_of(immediate, parameters))
        case Immediate.RESULTS:
            return str(return_counts(immediate)[1])
    return str(immediate)


Row = tuple[str, str, str]
"""The name of a field, and its value on the good and on the bad side."""

_MOST_ROWS = 16
"""Rows of one kind that are shown."""


def sides(good: Trial, bad: Trial) -> list[Row]:
    """Two trials next to each other: registers, the running function's frame, and differences
    elsewhere. Words are bit patterns."""
    left, right = good.execution.machine, bad.execution.machine
    program, verified = left.program, left.verified
    a, b = left.control, right.control
    rows = [("status", _status(a.status, a.trap), _status(b.status, b.trap))]
    rows += [(name, str(getattr(a, name)), str(getattr(b, name))) for name in _REGISTERS]
    if good.is_counted and bad.is_counted:
        rows.append(("fuel left", str(good.remaining), str(bad.remaining)))
    owner = verified.owner(a.pc)
    locals_, first = len(program.frame_types(owner)), a.fp - verified.parameters(a.pc)
    top = min(a.sp, len(left.memory.stack))
    frame = [*range(first, a.fp), *range(a.fp + HEADER_WORDS, top)]
    words = [
        (f"local {at}" if at < locals_ else f"operand {at - locals_}", left.memory.stack[word],
         right.memory.stack[word])
        for at, word in enumerate(frame)
    ]  # fmt: skip
    rows += [(name, f"{x:#x}", f"{y:#x}") for name, x, y in _shown(words)]
    statics = [
        (f"static {static.name}", x, y)
        for static, x, y in zip(
            program.statics, left.memory.statics, right.memory.statics, strict=True
        )
        if x != y
    ]
    rows += [(name, f"{x:#x}", f"{y:#x}") for name, x, y in _shown(statics)]
    if a.hp == b.hp:
        heaps = [machine.heap_in_use() for machine in (left, right)]
        for number in itertools.islice(heaps[0].unequal(heaps[1]), _MOST_ROWS):
            at = WORD_BYTES * number
            x, y = (heap.cut(at, at + WORD_BYTES).hex(" ") for heap in heaps)
            rows.append((f"heap {at}", x, y))
    return rows


_REGISTERS = ("pc", "sp", "fp", "hp")


def _shown(words: list[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
    """All words if they are few, else those that differ first."""
    if len(words) > _MOST_ROWS:
        words = sorted(words, key=lambda word: word[1] == word[2])
    return words[:_MOST_ROWS]


def _status(status: int, trap: int) -> str:
    name = Status(status).name if status in list(Status) else f"number {status}"
    return f"{name}: {_trap_message(trap)}" if status == Status.TRAP else name
