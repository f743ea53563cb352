# SPDX-License-Identifier: Apache-2.0
"""The record of a launch: its pieces taken in the order of items, and items suspended.

    launch.test leaves with LAUNCH ──> the first piece ──┬─ items not begun ──> limit, next
                                                         └─ a suspended item ──> its frames

`ferryvm.isa.launch` has the operands of a launch, `ferryvm.isa.declared_type` the fields of a piece.
A piece never changes, so nothing is copied when it is taken: the record becomes the next piece.
The range that comes right after a resumed item becomes that of the launch: where a single item was
suspended, the operands are then what they were.

A suspended item is a block of words: the stack from its arguments on, up to the operands of its
innermost frame. It does not depend on where on the stack it stands, since frames have distances.
References in it are in an array of their own, where the collector finds them; stack maps say to
which words they belong.

    ┌─ the launch's frame ─────────────────────┐┌─ block ──────────────────────────────────────┐
    │ … arguments │ limit │ next │ record │      │ item, arguments │ header │ locals, operands │ … │
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from ferryvm.isa import BY_MNEMONIC, Trap
from ferryvm.isa.frame import HEADER_WORDS
from ferryvm.machine.control import ControlBlock, Status
from ferryvm.machine.item_batch import ItemBatch
from ferryvm.machine.launch_operands import launch_operands, operands_below
from ferryvm.machine.object_memory import ObjectMemory
from ferryvm.machine.piece import (
    Block,
    Piece,
    add_item,
    add_range,
    block,
    elements,
    read,
    reserve,
)
from ferryvm.machine.state import Machine
from ferryvm.named_tuple import NamedTuple
from ferryvm.region.launch import CALL_DISTANCE, item_call

_CALLS = frozenset(BY_MNEMONIC[name].opcode for name in ("call", "call_indirect"))


def continue_launch(machine: Machine) -> Status:
    """Take the first piece from the record of the launch at pc, whose range is done.

    RUNNING if the machine stands where it is to continue; TRAP if the piece belongs to another
    launch, or its frames do not fit on the stack.
    """
    control, stack, objects = machine.control, machine.memory.stack, machine.objects
    assert objects is not None  # the program has references
    sp = control.sp
    launch = launch_operands(control)
    piece = read(objects, launch.record)
    if not piece.words:
        launch.limit, launch.next = piece.end, piece.first
    else:
        words = elements(objects, piece.words)
        fault = _fault(machine, piece, words)
        if fault is not Trap.NONE:
            control.status, control.trap = Status.TRAP, fault
            return Status.TRAP
        fp, end = sp + piece.frame, sp + len(words)
        stack[sp:end] = words
        positions = objects.frame_references(stack, piece.pc, fp, sp)
        found = elements(objects, piece.references)
        for position, word in zip(positions, found, strict=True):
            stack[position] = word
        control.pc, control.sp, control.fp = piece.pc, end, fp
        limit = piece.end
        rest = read(objects, piece.next) if piece.next else None
        if rest is not None and not rest.words and rest.first == piece.end:
            limit, piece = rest.end, rest
        # The running item is the one below `next`, as where nobody disturbed it.
        launch.limit, launch.next = limit, piece.first if piece is rest else limit
    launch.record = piece.next
    control.status = Status.RUNNING
    return Status.RUNNING


def _fault(machine: Machine, piece: Piece, words: memoryview) -> Trap:
    """The trap of an item that cannot be resumed here; NONE if it can."""
    program, verified, control = machine.program, machine.verified, machine.control
    call = item_call(program, control.pc)
    if call is None:
        return Trap.INVALID_LAUNCH
    parameters = len(program.signature(program.code.immediates[call]).parameters)
    if len(words) < parameters + HEADER_WORDS:
        return Trap.INVALID_LAUNCH
    distance = control.sp + parameters - control.fp
    if words[parameters] != call + 1 or words[parameters + 1] != distance:
        return Trap.INVALID_LAUNCH
    largest = verified.frame_words[verified.owner(piece.pc)]
    is_too_large = control.sp + piece.frame + largest > machine.memory.stack_words
    return Trap.STACK_OVERFLOW if is_too_large else Trap.NONE


def learn_next(objects: ObjectMemory) -> bool:
    """Learn what native code needs to take the first piece from the record of the launch at which a
    machine stands; False if only Python can take it."""
    control, items = objects.control, objects.items
    piece = read(objects, launch_operands(control).record)
    if not items.learn_launch(control.pc):
        return False
    if piece.words:
        items.learn_item(elements(objects, piece.words), piece.pc, piece.frame)
    return True


def packed(objects: ObjectMemory, stack: memoryview, control: ControlBlock, start: int) -> Block:
    """The item whose part of a stack begins at word `start`, in whose frames control is."""
    words = array("Q", stack[start : control.sp].tobytes())
    return block(objects, words, control.pc, control.fp - start)


Left = tuple[int, int | Block | ItemBatch]
"""A part of a range that a backend leaves: items from one up to another that have not begun, a
suspended item, or a batch of both from an item on."""


def finish(objects: ObjectMemory, limit: int, left: Sequence[Left]) -> None:
    """Write the outcome of the range of a launch, which ends at `limit`, into its operands, where
    the machine stands at `launch.test`. `left`: in the order of items; all others are done.

    There is room for the pieces, see `reserve`. Raises AddressSpaceError if there is no memory for
    the frames of an item; then nothing but the room has changed. While ranges are gathered
    (`ObjectMemory.gathered`), nothing is written.
    """
    if objects.gathered is not None:
        objects.gathered.append((limit, left))
        return
    launch = launch_operands(objects.control)
    pieces = launch.record
    for first, what in reversed(left):
        if isinstance(what, ItemBatch):
            pieces = what.write(objects, pieces)
        elif isinstance(what, Block):
            pieces = add_item(objects, first, what, pieces)
        else:
            pieces = add_range(objects, first, what, pieces)
    launch.limit = launch.next = limit
    launch.record = pieces


def space_for(left: Sequence[Left]) -> tuple[int, int]:
    """The pieces that `finish` makes, and their words in all, at most, for `reserve`."""
    pieces = words = 0
    for _, what in left:
        if isinstance(what, ItemBatch):
            pieces, words = pieces + what.count, words + what.words
        else:
            pieces += 1
            if isinstance(what, Block):
                words += len(what.words) + len(what.references)
    return pieces, words


def put_off(machine: Machine, first: int, limit: int) -> None:
    """Make the items of a launch from `first` on a range of its record, which is run later. Raises
    AddressSpaceError if there is no memory for that."""
    objects, launch = machine.objects, launch_operands(machine.control)
    assert objects is not None  # the program has launches
    reserve(objects, 1, 0)
    launch.record = add_range(objects, first, limit, launch.record)
    launch.limit = first


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
    call, start = _outermost(machine, launch_fp)
    stack, function = machine.memory.stack, machine.program.code.immediates[call]
    count = len(machine.program.signature(function).parameters)
    number = operands_below(machine.control, start).next - 1
    return ActiveItem(number, function, tuple(stack[start : start + count]))


def running_item(machine: Machine) -> int | None:
    """The number of that item; None likewise."""
    found = active_item(machine)
    return None if found is None else found.number


def unfinished(machine: Machine) -> list[tuple[int, int]] | None:
    """The items that the innermost launch has not done, in their order: pairs of the first one and
    the one after the last. None if the machine is in no launch."""
    objects, launch_fp = machine.objects, innermost(machine)
    found: list[tuple[int, int]] = []
    if launch_fp is not None:
        launch = operands_below(machine.control, _outermost(machine, launch_fp)[1])
        found.append((launch.next - 1, launch.next))
    else:
        pc = machine.control.pc  # the test, or the jump to it
        if all(item_call(machine.program, at) is None for at in (pc, pc - CALL_DISTANCE - 1)):
            return None
        launch = launch_operands(machine.control)
    found.append((launch.next, launch.limit))
    record = launch.record
    while record and objects is not None:
        piece = read(objects, record)
        found.append((piece.first, piece.first + 1) if piece.words else (piece.first, piece.end))
        record = piece.next
    joined: list[tuple[int, int]] = []
    for first, end in found:
        if joined and joined[-1][1] == first:
            joined[-1] = joined[-1][0], end
        elif first < end:
            joined.append((first, end))
    return joined


def running_launch(machine: Machine) -> int | None:
    """pc of the `launch.test` of the innermost launch whose item control is in; None likewise."""
    launch_fp = innermost(machine, MOST_FRAMES)
    return None if launch_fp is None else _outermost(machine, launch_fp)[0] - CALL_DISTANCE


def _outermost(machine: Machine, launch_fp: int) -> tuple[int, int]:
    """Of the running item of the launch in the frame at word `launch_fp`: pc of its call, and the
    word of the stack at which its frames begin, with its first argument."""
    program, stack, fp = machine.program, machine.memory.stack, machine.control.fp
    while fp - stack[fp + 1] != launch_fp:
        fp -= stack[fp + 1]
    call = stack[fp] - 1
    return call, fp - len(program.signature(program.code.immediates[call]).parameters)


def abandon(machine: Machine, launch_fp: int) -> None:
    """Drop the running item of a launch, as if it were done: the machine then stands at
    `launch.test`. Otherwise as `suspend`."""
    control = machine.control
    call, start = _outermost(machine, launch_fp)
    control.pc, control.sp, control.fp = call - CALL_DISTANCE, start, launch_fp


def suspend(machine: Machine, launch_fp: int) -> None:
    """Suspend the running item of a launch, whose frame has its header at word `launch_fp`: the
    machine then stands at `launch.test`, with the item and the rest of its range in the record.

    The machine is in a call of the items, directly or further in. Raises AddressSpaceError if the
    limit of objects forbids it; then nothing has changed.
    """
    stack, control, objects = machine.memory.stack, machine.control, machine.objects
    assert objects is not None  # the program has references
    call, start = _outermost(machine, launch_fp)
    positions = objects.frame_references(stack, control.pc, control.fp, start)
    reserve(objects, 2, control.sp - start + len(positions))
    block = packed(objects, stack, control, start)
    launch = operands_below(control, start)
    record = launch.record
    if launch.next < launch.limit:
        record = add_range(objects, launch.next, launch.limit, record)
    record = add_item(objects, launch.next - 1, block, record)
    launch.limit, launch.record = launch.next, record
    control.pc, control.sp, control.fp = call - CALL_DISTANCE, start, launch_fp
