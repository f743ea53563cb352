# SPDX-License-Identifier: Apache-2.0
"""Saved states: the `.ferry` file, a program stopped at an instruction boundary.

    PROG   image of the program, as in a .fvm file
    REGS   the registers: status, trap, pc, sp, fp, hp, instructions (2^64 - 1: not counted)
    STAT   words of the statics
    STCK   words of the stack in use
    HEAP   bytes of the heap in use

The file is checked like an image, and what could make a backend leave its memory (pc, sp, fp, the
frames on the stack) is checked against the verifier's stack maps when it is loaded.
"""

from __future__ import annotations

import struct
from pathlib import Path

from ferryvm.durable import replace_file
from ferryvm.image import ImageError, from_bytes, to_bytes
from ferryvm.image.container import Kind, pack, unpack
from ferryvm.isa import INSTRUCTIONS, Flow, Trap
from ferryvm.isa.control import HEADER_WORDS
from ferryvm.isa.type import WORD_BYTES, Type
from ferryvm.machine.control import Status
from ferryvm.machine.memory import Limits
from ferryvm.machine.state import Machine
from ferryvm.verify import Verified, verify

STATE = Kind(
    "a saved ferryvm state (.ferry)",
    b"\x89FVS\r\n\x1a\n",
    1,
    ("PROG", "REGS", "STAT", "STCK", "HEAP"),
)
_REGISTERS = struct.Struct("<7Q")
_NOT_COUNTED = (1 << 64) - 1
_RESUMABLE = (Status.RUNNING, Status.HALT, Status.TRAP, Status.INTERRUPTED, Status.FUEL)


def save(machine: Machine, instructions: int | None, path: Path) -> None:
    """Write a machine's state. Raises ImageError where the file cannot be written."""
    control, memory = machine.control, machine.memory
    count = _NOT_COUNTED if instructions is None else instructions
    registers = (
        control.status, control.trap, control.pc, control.sp, control.fp, control.hp, count,
    )  # fmt: skip
    content = pack(
        STATE,
        {
            "PROG": to_bytes(machine.program),
            "REGS": _REGISTERS.pack(*registers),
            "STAT": memory.statics.tobytes(),
            "STCK": memory.stack[: control.sp].tobytes(),
            "HEAP": memory.heap[: control.hp].tobytes(),
        },
    )
    try:
        replace_file(path, content)
    except OSError as error:
        raise ImageError(f"{path}: cannot be written: {error.strerror}") from None


def load(path: Path, limits: Limits) -> tuple[Machine, int | None]:
    """The machine of a saved state, and its count of instructions (None: not counted).

    Raises ImageError for a file that is not a state a program can be in.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ImageError(f"{path}: cannot be read: {error.strerror}") from None
    sections = unpack(STATE, content, str(path))
    machine = Machine(verify(from_bytes(sections["PROG"], f"{path}: program")), limits)
    if len(sections["REGS"]) != _REGISTERS.size:
        raise ImageError(f"{path}: section REGS is damaged")
    status, trap, pc, sp, fp, hp, count = _REGISTERS.unpack(sections["REGS"])
    memory = machine.memory
    if (
        status not in [int(s) for s in _RESUMABLE]
        or trap not in [int(t) for t in Trap]
        or len(sections["STAT"]) != memory.statics.nbytes
        or len(sections["STCK"]) != WORD_BYTES * sp
        or len(sections["HEAP"]) != hp
    ):
        raise ImageError(f"{path}: registers do not match the memory that was saved")
    if sp > memory.stack_words or not memory.grow(hp):
        raise ImageError(f"{path}: needs a stack of {sp} words and a heap of {hp} bytes; raise the "
                         "limits")
    control = machine.control
    control.status, control.trap = status, trap
    control.pc, control.sp, control.fp, control.hp = pc, sp, fp, hp
    memory.statics.cast("B")[:] = sections["STAT"]
    memory.stack.cast("B")[: WORD_BYTES * sp] = sections["STCK"]
    memory.heap[:hp] = sections["HEAP"]
    machine.bind()
    if not _frames_fit(machine):
        raise ImageError(f"{path}: its frames do not fit the program")
    return machine, None if count == _NOT_COUNTED else count


def _frames_fit(machine: Machine) -> bool:
    """Whether pc, sp, fp and every frame header are what this program can have."""
    control, stack, verified = machine.control, machine.memory.stack, machine.verified
    program = verified.program
    pc, fp, top = control.pc, control.fp, control.sp
    callee_parameters = 0
    first = True
    while True:
        if pc >= len(program.code) or not verified.is_reachable(pc):
            return False
        owner = verified.owner(pc)
        depth = verified.depth(pc)
        if not first:
            row = INSTRUCTIONS[int(program.code["opcode"][pc])]
            if row.flow not in (Flow.CALL, Flow.CALL_INDIRECT):
                return False
            # While the callee runs, its header and arguments belong to its own frame.
            depth -= HEADER_WORDS + callee_parameters + len(row.pops)
        types = program.frame_types(owner)
        if fp + HEADER_WORDS + len(types) + depth != top or not _words_fit(
            machine, verified, pc, fp, types, depth
        ):
            return False
        if fp + verified.frame_words[owner] > machine.memory.stack_words:
            return False
        distance, return_pc = stack[fp + 1], stack[fp]
        if fp == 0:
            return owner == 0 and distance == 0 and return_pc == 0
        if not 0 < distance <= fp or return_pc == 0:
            return False
        callee_parameters = len(program.signature(owner).parameters)
        top, fp, pc, first = fp, fp - distance, return_pc - 1, False


def _words_fit(
    machine: Machine,
    verified: Verified,
    pc: int,
    fp: int,
    types: tuple[Type, ...],
    depth: int,
) -> bool:
    """Whether the high halves of 32-bit values in a frame are zero, as everyone relies on."""
    first = fp + HEADER_WORDS
    kinds = types + verified.operand_types(pc)[:depth]
    words = machine.memory.stack[first : first + len(kinds)].tolist()
    return all(
        kind is None or word <= kind.mask for kind, word in zip(kinds, words, strict=True)
    )
