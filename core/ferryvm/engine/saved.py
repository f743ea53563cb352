# SPDX-License-Identifier: Apache-2.0
"""Saved states: the `.ferry` file, a program stopped at an instruction boundary.

    PROG   image of the program, as in a .fvm file
    REGS   the registers: status, trap, pc, sp, fp, hp, instructions (2^64 - 1: not counted)
    STAT   words of the statics
    STCK   words of the stack in use
    HEAP   the nonzero parts of the heap in use: see `ferryvm.machine.sparse`
    OBJS   the objects: see `ferryvm.engine.saved_object`; empty for a program without references

A file is written from the machine's memory without copying it. Saving and loading take time
proportional to the pages of the heap that were ever accessed.

The file is checked like an image. Anyone who can write a file can also compute its checksum, so
everything that backends rely on is then checked against the program and the verifier's stack maps:

- pc is a reachable instruction, and every frame below is the caller of the one above it:
  it stopped at a call of just that function, so control and operands return as verified;
- each frame is as large as its stack map says, up to the frame above, and can grow to its
  function's largest size within the stack;
- the frames of suspended items of launches are as those of the stack: see `saved_piece`;
- a word has no bits outside its type; headers of calls not made yet are zero;
- the heap pointer is aligned and not below the program's own data.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ferryvm.atomic_file import replace_file
from ferryvm.engine.saved_frame import Misfit, check_frames
from ferryvm.engine.saved_object import ObjectsTooLargeError, SavedObjects, pack_objects
from ferryvm.engine.saved_piece import check_pieces
from ferryvm.errors import FerryError
from ferryvm.image import ImageError, from_bytes, to_bytes
from ferryvm.image.container import (
    MOST_BYTES,
    ImageKind,
    Payload,
    pack,
    pack_parts,
    read,
    unpack_views,
)
from ferryvm.isa import BY_MNEMONIC, INSTRUCTIONS, Flow, Trap
from ferryvm.isa.type import WORD_BYTES, Reference, with_article
from ferryvm.machine.control import Status
from ferryvm.machine.memory import Limits
from ferryvm.machine.object_walk import ImageFault
from ferryvm.machine.sparse import GRANULE, runs
from ferryvm.machine.state import Machine
from ferryvm.verify import verify

STATE = ImageKind(
    "a saved ferryvm state (.ferry)",
    b"\x89FVS\r\n\x1a\n",
    5,
    ("PROG", "REGS", "STAT", "STCK", "HEAP", "OBJS"),
)
_REGISTERS = struct.Struct("<7Q")
_RUN = struct.Struct("<2Q")
_NOT_COUNTED = (1 << 64) - 1
_MOST_COUNTED = (1 << 63) - 1
_ENDED = (Status.HALT, Status.TRAP)
_HALT = BY_MNEMONIC["halt"].opcode
_RESUMABLE = (Status.RUNNING, *_ENDED, Status.INTERRUPTED, Status.FUEL)


def save(machine: Machine, instructions: int | None, path: Path) -> None:
    """Write a machine's state. Raises ImageError if the file cannot be written."""
    try:
        replace_file(path, *pack_parts(STATE, _sections(machine, instructions)))
    except OSError as error:
        raise ImageError(f"{path}: cannot be written: {error.strerror}") from None


def pack_state(machine: Machine, instructions: int | None) -> bytes:
    """The content of a machine's file."""
    return pack(STATE, _sections(machine, instructions))


def _sections(machine: Machine, instructions: int | None) -> dict[str, Payload]:
    """The sections of a machine's file; large ones are views of its memory."""
    control, memory = machine.control, machine.memory
    # First: a collection changes references everywhere.
    image = None if machine.objects is None else machine.objects.image()
    # A machine at a failed host call continues by making that call again.
    status = control.status if control.status in _RESUMABLE else Status.RUNNING
    is_counted = instructions is not None and instructions <= _MOST_COUNTED
    count = instructions if is_counted else _NOT_COUNTED
    registers = (status, control.trap, control.pc, control.sp, control.fp, control.hp, count)
    stack = memory.stack[: control.sp].cast("B")
    full = [(start, end - start) for start, end in memory.heap_runs(control.hp)]
    return {
        "PROG": to_bytes(machine.program),
        "REGS": _REGISTERS.pack(*registers),
        "STAT": memory.statics.tobytes(),
        # If main's own locals do not fit, there are fewer words than sp says, all zero.
        "STCK": [stack, bytes(WORD_BYTES * control.sp - len(stack))],
        "HEAP": [
            np.array([(len(full), control.hp), *full], "<u8").tobytes(),
            *(memory.heap[start : start + size] for start, size in full),
        ],
        "OBJS": pack_objects(image),
    }


def load(path: Path, limits: Limits) -> tuple[Machine, int | None]:
    """The machine of a saved state, and its count of instructions (None: not counted).

    Raises ImageError for a file that is not a state which a program can reach.
    """
    # The program, and the rest, whose runs have heads.
    most = 2 * MOST_BYTES + limits.stack + limits.heap + limits.objects
    return unpack_state(read(STATE, path, most), limits, str(path))


def unpack_state(content: bytes, limits: Limits, name: str) -> tuple[Machine, int | None]:
    """The machine in the content of a file called `name`, as `load`."""
    sections = unpack_views(STATE, content, name)
    try:
        verified = verify(from_bytes(bytes(sections["PROG"]), "its program"))
    except FerryError as error:
        raise ImageError(f"{name}: {error}") from None
    machine = Machine(verified, limits)
    try:
        count = _restore(machine, sections, name)
    except Misfit as misfit:
        raise ImageError(f"{name}: not a state of its program: {misfit}") from None
    return machine, count


def _restore(machine: Machine, sections: Mapping[str, memoryview], name: str) -> int | None:
    """Fill a machine at its start with a saved state; the count of instructions."""
    memory, control = machine.memory, machine.control
    if len(sections["REGS"]) != _REGISTERS.size:
        raise Misfit(f"{len(sections['REGS'])} bytes of registers, not {_REGISTERS.size}")
    status, trap, pc, sp, fp, hp, count = _REGISTERS.unpack(sections["REGS"])
    _check_status(machine, status, trap, pc)
    if count > _MOST_COUNTED and count != _NOT_COUNTED:
        raise Misfit(f"{count} instructions")
    for tag, size in (("STAT", memory.statics.nbytes), ("STCK", WORD_BYTES * sp)):
        if len(sections[tag]) != size:
            raise Misfit(f"{len(sections[tag])} bytes in section {tag}, not {size}")
    if hp < control.hp or hp % WORD_BYTES:
        raise Misfit(f"heap pointer {hp}; a multiple of {WORD_BYTES} from {control.hp} expected")
    heap = _heap_runs(sections["HEAP"], hp)
    objects = _objects(machine, sections["OBJS"], name)
    _check_statics(machine, sections["STAT"], objects)
    needed = check_frames(machine.verified, sections["STCK"], pc, fp, objects)
    # A program that has ended needs no headroom: it may have trapped for lack of it.
    if sp > memory.stack_words or (needed > memory.stack_words and status not in _ENDED):
        size = WORD_BYTES * max(sp, needed)
        raise ImageError(f"{name}: needs a stack of {size} bytes; raise the limit")
    if not memory.grow(hp):
        raise ImageError(f"{name}: needs a heap of {hp} bytes; raise the limit")
    control.status, control.trap = status, trap
    control.pc, control.sp, control.fp, control.hp = pc, sp, fp, hp
    memory.statics.cast("B")[:] = sections["STAT"]
    memory.stack.cast("B")[: WORD_BYTES * sp] = sections["STCK"]
    memory.clear_heap()
    for start, content in heap:
        memory.heap[start : start + len(content)] = content
    if objects is not None and machine.objects is not None:
        objects.restore(machine.objects)
        check_pieces(machine, objects)
    machine.bind()
    return None if count == _NOT_COUNTED else count


def _objects(machine: Machine, section: memoryview, name: str) -> SavedObjects | None:
    """The objects of a saved state; None for a program that has no references."""
    if machine.objects is None:
        if len(section):
            raise Misfit("it has objects, and its program has no references")
        return None
    limit = machine.objects.space.limit
    try:
        return SavedObjects(section, machine.verified, limit)
    except ImageFault as fault:
        raise Misfit(str(fault)) from None
    except ObjectsTooLargeError:
        raise ImageError(
            f"{name}: needs more than {limit} bytes of objects; raise the limit"
        ) from None


def _heap_runs(section: memoryview, hp: int) -> list[tuple[int, memoryview]]:
    """The start of each run of a saved heap, and its bytes; runs must be as `sparse.runs` makes
    them."""
    if len(section) < _RUN.size:
        raise Misfit(f"{len(section)} bytes in section HEAP, {_RUN.size} at least")
    count, size = _RUN.unpack_from(section)
    if size != hp:
        raise Misfit(f"a heap of {size} bytes, its heap pointer is {hp}")
    at = _RUN.size * (1 + count)
    if at > len(section):
        raise Misfit(f"{len(section)} bytes in section HEAP, which is to have {count} runs")
    found, last = [], -1
    for start, length in _RUN.iter_unpack(section[_RUN.size : at]):
        end = start + length
        if not last < start < end <= hp or start % GRANULE or (end % GRANULE and end < hp):
            raise Misfit(f"a run of {length} bytes at byte {start} of the heap")
        content = section[at : at + length]
        if len(content) != length or list(runs(content, [(0, length)])) != [(0, length)]:
            raise Misfit(f"the run at byte {start} of the heap ends early, or is zero in part")
        found.append((start, content))
        at, last = at + length, end
    if at != len(section):
        raise Misfit(f"{len(section) - at} bytes after the last run of the heap")
    return found


def _check_status(machine: Machine, status: int, trap: int, pc: int) -> None:
    """Check that a program can have stopped at `pc` with that status."""
    program, verified = machine.program, machine.verified
    if status not in _RESUMABLE:
        allowed = ", ".join(f"{s:d}" for s in _RESUMABLE)
        raise Misfit(f"status {status}, none of {allowed}")
    if trap not in list(Trap) or (trap != Trap.NONE) != (status == Status.TRAP):
        raise Misfit(f"trap {trap} with status {status}")
    if pc >= len(program.code) or not verified.is_reachable(pc):
        raise Misfit(f"control never gets to pc {pc}")
    opcode = program.code.opcodes[pc]
    if trap == Trap.UNCAUGHT_EXCEPTION and INSTRUCTIONS[opcode].flow is not Flow.THROW:
        raise Misfit(f"an exception was thrown at pc {pc}, which is no throw")
    is_end = opcode == _HALT
    if status == Status.HALT and not is_end:
        raise Misfit(f"it halted at pc {pc}, which is no halt")


def _check_statics(machine: Machine, content: memoryview, objects: SavedObjects | None) -> None:
    """Check that statics are of their types."""
    masks = np.array([static.type.mask for static in machine.program.statics], "<u8")
    bad = np.flatnonzero(np.frombuffer(content, "<u8") & ~masks)
    if len(bad):
        static = machine.program.statics[bad[0]]
        raise Misfit(f"static {static.name!r} is not {with_article(static.type)}")
    for number, static in enumerate(machine.program.statics):
        if isinstance(static.type, Reference) and objects is not None:
            word = np.frombuffer(content, "<u8", 1, WORD_BYTES * number)
            if objects.is_wrong(word, static.type):
                raise Misfit(f"static {static.name!r} is not {with_article(static.type)}")
