# SPDX-License-Identifier: Apache-2.0
"""What is wrong with an interpreter, in one way each, for the conformance suite to find.

Each is an entry for `Wrong` of interpreter.py, with the case that shows it.
"""

from __future__ import annotations

from collections.abc import Callable

from ferryvm.backend import Artifact, Capabilities
from ferryvm.isa import INSTRUCTIONS
from ferryvm.machine.control import Status
from ferryvm.machine.state import Machine

from .interpreter import Enter, Wrong, after, honest, where

__all__ = ["WRONG", "Capabilities", "Machine", "Status", "Wrong", "honest"]


def _change(field: str, by: int) -> Callable[[Machine], None]:
    def harm(machine: Machine) -> None:
        control = machine.control
        setattr(control, field, getattr(control, field) + by)

    return harm


def _pays_a_trap(machine: Machine, counting: bool, status: Status) -> None:
    if counting and status is Status.TRAP:
        machine.control.fuel -= 1


def _sets_a_high_half(machine: Machine) -> None:
    machine.memory.stack[machine.control.sp - 1] |= 1 << 63


def _loses_a_static(machine: Machine) -> None:
    if len(machine.memory.statics):
        machine.memory.statics[0] = 0x77


def _dirties_fresh_heap(machine: Machine) -> None:
    if machine.control.hp < machine.control.heap_capacity:
        machine.memory.heap[machine.control.hp] = 1


def _canonical_nans(machine: Machine) -> None:
    for number, word in enumerate(machine.memory.statics):
        if word & 0x7FF0 << 48 == 0x7FF0 << 48 and word << 12 & (1 << 64) - 1:
            machine.memory.statics[number] = 0x7FF8 << 48


def _shifts_the_frame(machine: Machine) -> None:
    machine.memory.stack[machine.control.fp + 1] += 1


def _skips_on_interrupt(real: Artifact, machine: Machine, counting: bool) -> Status:
    status = real.enter(machine, counting)
    if status is Status.INTERRUPTED:
        machine.control.pc += 1
    return status


def _needs_the_start(real: Artifact, machine: Machine, counting: bool) -> Status:
    """It loses an operand when it is entered in the middle."""
    if machine.control.sp > 6:
        machine.memory.stack[machine.control.sp - 1] ^= 1
    return real.enter(machine, counting)


def _relies_on_words_above_sp(real: Artifact, machine: Machine, counting: bool) -> Status:
    stack, sp = machine.memory.stack, machine.control.sp
    if sp < len(stack) and stack[sp] > 1 << 63 and len(machine.memory.statics):
        machine.memory.statics[0] += 1
    return real.enter(machine, counting)


def _one_machine() -> Enter:
    """It remembers where the machine that it saw last was."""
    last: list[tuple[Machine, int]] = []

    def enter(real: Artifact, machine: Machine, counting: bool) -> Status:
        if last and last[0][0] is not machine and machine.control.status == Status.FUEL:
            machine.control.pc = last[0][1]
        status = real.enter(machine, counting)
        last[:] = [(machine, machine.control.pc)]
        return status

    return enter


def _keeps_statics() -> Enter:
    """It has the statics in registers, and does not look whether they have changed meanwhile."""
    kept: dict[int, tuple[Machine, bytes]] = {}

    def enter(real: Artifact, machine: Machine, counting: bool) -> Status:
        if id(machine) in kept:
            machine.memory.statics.cast("B")[:] = kept[id(machine)][1]
        status = real.enter(machine, counting)
        kept[id(machine)] = machine, machine.memory.statics.tobytes()
        return status

    return enter


def _raises(real: Artifact, machine: Machine, counting: bool) -> Status:
    raise ZeroDivisionError("integer modulo by zero")


def _leaves_oddly(real: Artifact, machine: Machine, counting: bool) -> Status:
    real.enter(machine, counting)
    machine.control.status = Status.HOT
    return Status.HOT


def _says_another_status(real: Artifact, machine: Machine, counting: bool) -> Status:
    real.enter(machine, counting)
    return Status.HALT


def _clears_the_flag(real: Artifact, machine: Machine, counting: bool) -> Status:
    status = real.enter(machine, counting)
    if status is Status.INTERRUPTED:
        machine.control.interrupt = 0
    return status


def _sets_the_flag(real: Artifact, machine: Machine, counting: bool) -> Status:
    status = real.enter(machine, counting)
    machine.control.interrupt = 1
    return status


def _deaf_at_calls(real: Artifact, machine: Machine, counting: bool) -> Status:
    """It looks at the flag where a loop jumps back, and nowhere else."""
    control = machine.control
    opcodes = machine.program.code.opcodes.tolist()
    flag, fuel = control.interrupt, control.fuel
    while True:
        mnemonic = INSTRUCTIONS[opcodes[control.pc]].mnemonic
        control.interrupt, control.fuel = 0, 1
        if counting and fuel <= 0:
            status = Status.FUEL
            break
        status = real.enter(machine, True)
        fuel -= control.fuel == 0 and counting
        if status is not Status.FUEL:
            break
        if flag and mnemonic == "jump":
            status = Status.INTERRUPTED
            break
    control.interrupt, control.fuel, control.status = flag, fuel, status
    return status


def _returns_a_number(real: Artifact, machine: Machine, counting: bool) -> Status:
    return int(real.enter(machine, counting))  # type: ignore[return-value] # the fault


def _returns_an_odd_number(real: Artifact, machine: Machine, counting: bool) -> Status:
    real.enter(machine, counting)
    machine.control.status = 77
    return 77  # type: ignore[return-value] # the fault


def _returns_nothing(real: Artifact, machine: Machine, counting: bool) -> Status:
    real.enter(machine, counting)
    return None  # type: ignore[return-value] # the fault


WRONG: dict[str, tuple[Enter, str, str]] = {
    "pays a trap": (after(_pays_a_trap), "trap/in-main-divide/counting", "fuel left"),
    "fuel off by one": (
        where(Status.FUEL, _change("fuel", -1)),
        "fuel/straight/boundaries",
        "fuel left",
    ),
    "one instruction too far": (
        where(Status.FUEL, _change("pc", 1)),
        "fuel/straight/boundaries",
        "pc",
    ),
    "pops at a trap": (
        where(Status.TRAP, _change("sp", -1)),
        "trap/in-a-callee-divide/plain",
        "sp",
    ),
    "another trap": (where(Status.TRAP, _change("trap", 1)), "trap/in-main-divide/plain", "trap"),
    "high half": (
        where(Status.HALT, _sets_a_high_half),
        "instruction/i32.add/plain",
        "the result of ",
    ),
    "lost store at a transfer": (
        where(Status.FUEL, _loses_a_static),
        "fuel/straight/cuts",
        "static 0 (sum)",
    ),
    "lost store without fuel": (
        where(Status.HOST, _loses_a_static),
        "entry/everything/plain",
        "static 0 (total)",
    ),
    "dirty heap": (
        where(Status.HALT, _dirties_fresh_heap),
        "heap/growths/plain",
        "heap past hp",
    ),
    "canonical NaN": (
        where(Status.HALT, _canonical_nans),
        "value/nan/plain",
        "static 0 (kept)",
    ),
    "asks for too much": (
        where(Status.GROW, _change("wanted", 8)),
        "heap/growths/plain",
        "wanted",
    ),
    "another host function": (
        where(Status.HOST, _change("exit_id", 1)),
        "host/order/plain",
        "exit_id",
    ),
    "broken header": (
        where(Status.TRAP, _shifts_the_frame),
        "trap/in-a-callee-divide/plain",
        "distance in the header of inner",
    ),
    "skips on interrupt": (_skips_on_interrupt, "interrupt/jump/interrupted", "pc"),
    "entered in the middle": (_needs_the_start, "call/frames/entries", "operand 1 of main"),
    "words above sp": (_relies_on_words_above_sp, "call/frames/entries", "static 0 (seen)"),
    "one machine": (_one_machine(), "entry/floats/turns", ""),
    "keeps statics": (_keeps_statics(), "fuel/straight/moved", "static 0 (sum)"),
    "saved elsewhere": (
        where(Status.FUEL, _loses_a_static),
        "saved/frames/saved",
        "static 0 (calls)",
    ),
    "raises": (_raises, "fuel/straight/counting", "end"),
    "a trap that there is not": (
        where(Status.TRAP, _change("trap", 99)),
        "trap/in-main-divide/plain",
        "trap",
    ),
    "leaves oddly": (_leaves_oddly, "fuel/straight/counting", "status"),
    "another status": (_says_another_status, "trap/in-main-divide/plain", "status returned"),
    "clears the flag": (_clears_the_flag, "interrupt/jump/interrupted", "control.interrupt"),
    "sets the flag": (_sets_the_flag, "fuel/straight/counting", "control.interrupt"),
    "never looks at calls": (_deaf_at_calls, "interrupt/descent/caught", "status"),
    "never looks at indirect calls": (
        _deaf_at_calls,
        "interrupt/descent-indirect/caught",
        "status",
    ),
    "never looks at calls that return": (_deaf_at_calls, "interrupt/tree/caught", "status"),
    "returns a number": (_returns_a_number, "fuel/straight/counting", "status returned"),
    "returns a number that there is not": (
        _returns_an_odd_number,
        "fuel/straight/counting",
        "status returned",
    ),
    "returns nothing": (_returns_nothing, "fuel/straight/counting", "status returned"),
    "binds elsewhere": (
        where(Status.HALT, _change("heap_limit", 8)),
        "fuel/straight/counting",
        "control.heap_limit",
    ),
}
"""Each with the case that shows it and the field named there (the beginning of it)."""
