# SPDX-License-Identifier: Apache-2.0
"""The item of a launch that control is in, found by the frames on the stack.

┌─ the launch's frame ─────────────────────┐┌─ the item ───────────────────────────────────┐
│ … arguments │ limit │ next │ record │      │ item, arguments │ header │ locals, operands │ … │
                                              └─ start                 └─ fp, or further out
"""

from __future__ import annotations

from ferryvm.isa import BY_MNEMONIC
from ferryvm.machine.launch_operands import operands_below
from ferryvm.machine.state import Machine
from ferryvm.named_tuple import NamedTuple
from ferryvm.region.launch import CALL_DISTANCE, item_call

_CALLS = frozenset(BY_MNEMONIC[name].opcode for name in ("call", "call_indirect"))

MOST_FRAMES = 10_000
"""Frames of an item that are walked for messages."""


def innermost(machine: Machine, most: int | None = None) -> int | None:
    """The word of the header of the frame whose launch runs the current item, the innermost one;
    None if no launch does, or the item has called a host function that called the program, or is
    more than `most` frames deep."""
    stack, fp = machine.memory.stack, machine.control.fp
    program = machine.program
    opcodes = program.code.opcodes
    frames = 0
    while stack[fp + 1] and frames != most:
        frames += 1
        call, fp = stack[fp] - 1, fp - stack[fp + 1]
        if call >= CALL_DISTANCE and item_call(program, call - CALL_DISTANCE) == call:
            return fp
        if opcodes[call] not in _CALLS:
            return None
    return None


class ActiveItem(NamedTuple):
    """The item that control is in, of the innermost launch."""

    number: int
    function: int
    """Number of the item function."""
    arguments: tuple[int, ...]
    """The words of its arguments, as they are now."""


def active_item(machine: Machine) -> ActiveItem | None:
    """The item that control is in, for messages; None if it is in none, or in very many frames."""
    launch_fp = innermost(machine, MOST_FRAMES)
    if launch_fp is None:
        return None
    call, start = outermost(machine, launch_fp)
    stack, function = machine.memory.stack, machine.program.code.immediates[call]
    count = len(machine.program.signature(function).parameters)
    number = operands_below(machine.control, start).next - 1
    return ActiveItem(number, function, tuple(stack[start : start + count]))


def running_item(machine: Machine) -> int | None:
    """The number of that item; None likewise."""
    found = active_item(machine)
    return None if found is None else found.number


def running_launch(machine: Machine) -> int | None:
    """pc of the `launch.test` of the innermost launch whose item control is in; None likewise."""
    launch_fp = innermost(machine, MOST_FRAMES)
    return None if launch_fp is None else outermost(machine, launch_fp)[0] - CALL_DISTANCE


def outermost(machine: Machine, launch_fp: int) -> tuple[int, int]:
    """Of the running item of the launch in the frame at word `launch_fp`: pc of its call, and the
    word of the stack at which its frames begin, with its first argument."""
    program, stack, fp = machine.program, machine.memory.stack, machine.control.fp
    while fp - stack[fp + 1] != launch_fp:
        fp -= stack[fp + 1]
    call = stack[fp] - 1
    return call, fp - len(program.signature(program.code.immediates[call]).parameters)
