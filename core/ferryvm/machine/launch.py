# SPDX-License-Identifier: Apache-2.0
"""The record of a launch: its pieces taken in the order of items, and items suspended.

    launch.test leaves with LAUNCH ──> the first piece ──┬─ items not begun ──> limit, next
                                                         └─ a suspended item ──> its frames

`ferryvm.isa.launch` has the operands of a launch, `ferryvm.isa.declared_type` the fields of a
piece. A piece never changes, so nothing is copied when it is taken: the record becomes the next
piece. The range that comes right after a resumed item becomes that of the launch: where a single
item was suspended, the operands are then what they were. Items that wait at a barrier are in a
phase, see `ferryvm.machine.barrier`.

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

from ferryvm.isa import Trap
from ferryvm.isa.frame import HEADER_WORDS
from ferryvm.machine.active_item import innermost, outermost
from ferryvm.machine.barrier import begin_phase, wait
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
    closed,
    elements,
    opened,
    pieces,
    read,
    reserve,
)
from ferryvm.machine.state import Machine
from ferryvm.region.barrier import BARRIER
from ferryvm.region.launch import CALL_DISTANCE, item_call


def continue_launch(machine: Machine) -> Status:
    """Take the first piece from the record of the launch at pc, whose range is done; or make the
    item at pc wait there, at a barrier.

    RUNNING if the machine stands where it is to continue; TRAP if the piece belongs to another
    launch, its frames do not fit on the stack, or items do not come to one barrier.
    """
    control, stack, objects = machine.control, machine.memory.stack, machine.objects
    if machine.program.code.opcodes[control.pc] == BARRIER:
        return _stop(control, wait(machine))
    assert objects is not None  # the program has references
    launch = launch_operands(control)
    if read(objects, launch.record).is_phase:
        fault = begin_phase(machine)
        if fault is not Trap.NONE or not launch.record:
            return _stop(control, fault)
    sp = control.sp
    phase, record = opened(objects, launch.record)
    piece = read(objects, record)
    if not piece.words:
        launch.limit, launch.next = piece.end, piece.first
    else:
        words = elements(objects, piece.words)
        fault = _fault(machine, piece, words)
        if fault is not Trap.NONE:
            return _stop(control, fault)
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
    launch.record = closed(objects, phase, piece.next)
    return _stop(control, Trap.NONE)


def _stop(control: ControlBlock, trap: Trap) -> Status:
    """Stop with a trap, or go on if it is none; the status."""
    control.status = Status.RUNNING
    if trap is not Trap.NONE:
        control.status, control.trap = Status.TRAP, trap
    return Status(control.status)


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


def learn_next(machine: Machine) -> bool:
    """Learn what native code needs to take the first piece from the record of the launch at which a
    machine stands, or to make the item wait at whose barrier it stands; False if only Python
    can."""
    control, objects = machine.control, machine.objects
    assert objects is not None  # the program has references
    items = objects.items
    if machine.program.code.opcodes[control.pc] == BARRIER:
        launch_fp = innermost(machine)
        if launch_fp is None:
            return False
        _, start = outermost(machine, launch_fp)
        items.learn_barrier(control.pc)
        words = machine.memory.stack[start : control.sp]
        items.learn_item(words, control.pc, control.fp - start)
        return True
    if not items.learn_launch(control.pc):
        return False
    _, others = opened(objects, launch_operands(control).record)
    piece = read(objects, others) if others else None
    if piece is not None and piece.words:
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
    following = launch.record
    for first, what in reversed(left):
        if isinstance(what, ItemBatch):
            following = what.write(objects, following)
        elif isinstance(what, Block):
            following = add_item(objects, first, what, following)
        else:
            following = add_range(objects, first, what, following)
    launch.limit = launch.next = limit
    launch.record = following


def space_for(left: Sequence[Left]) -> tuple[int, int]:
    """The pieces that `finish` makes, and their words in all, at most, for `reserve`."""
    count = words = 0
    for _, what in left:
        if isinstance(what, ItemBatch):
            count, words = count + what.count, words + what.words
        else:
            count += 1
            if isinstance(what, Block):
                words += len(what.words) + len(what.references)
    return count, words


def put_off(machine: Machine, first: int, limit: int) -> None:
    """Make the items of a launch from `first` on a range of its record, which is run later. Raises
    AddressSpaceError if there is no memory for that."""
    objects, launch = machine.objects, launch_operands(machine.control)
    assert objects is not None  # the program has launches
    reserve(objects, 1, 0)
    launch.record = add_range(objects, first, limit, launch.record)
    launch.limit = first


def unfinished(machine: Machine) -> list[tuple[int, int]] | None:
    """The items that the innermost launch has not done, in their order: pairs of the first one and
    the one after the last. None if the machine is in no launch."""
    objects, launch_fp = machine.objects, innermost(machine)
    found: list[tuple[int, int]] = []
    if launch_fp is not None:
        launch = operands_below(machine.control, outermost(machine, launch_fp)[1])
        found.append((launch.next - 1, launch.next))
    else:
        pc = machine.control.pc  # the test, or the jump to it
        if all(item_call(machine.program, at) is None for at in (pc, pc - CALL_DISTANCE - 1)):
            return None
        launch = launch_operands(machine.control)
    found.append((launch.next, launch.limit))
    if objects is not None:
        for piece in pieces(objects, launch.record):
            end = piece.first + 1 if piece.words else piece.end
            found.append((piece.first, end))
    joined: list[tuple[int, int]] = []
    for first, end in sorted(found):
        if joined and joined[-1][1] == first:
            joined[-1] = joined[-1][0], end
        elif first < end:
            joined.append((first, end))
    return joined


def abandon(machine: Machine, launch_fp: int) -> None:
    """Drop the running item of a launch, as if it were done: the machine then stands at
    `launch.test`. Otherwise as `suspend`."""
    control = machine.control
    call, start = outermost(machine, launch_fp)
    control.pc, control.sp, control.fp = call - CALL_DISTANCE, start, launch_fp


def suspend(machine: Machine, launch_fp: int) -> None:
    """Suspend the running item of a launch, whose frame has its header at word `launch_fp`: the
    machine then stands at `launch.test`, with the item and the rest of its range in the record.

    The machine is in a call of the items, directly or further in. Raises AddressSpaceError if the
    limit of objects forbids it; then nothing has changed.
    """
    stack, control, objects = machine.memory.stack, machine.control, machine.objects
    assert objects is not None  # the program has references
    call, start = outermost(machine, launch_fp)
    positions = objects.frame_references(stack, control.pc, control.fp, start)
    launch = operands_below(control, start)
    phase, _ = opened(objects, launch.record)
    reserve(objects, 2 + (phase is not None), control.sp - start + len(positions))
    block = packed(objects, stack, control, start)
    phase, others = opened(objects, launch.record)
    if launch.next < launch.limit:
        others = add_range(objects, launch.next, launch.limit, others)
    others = add_item(objects, launch.next - 1, block, others)
    launch.limit, launch.record = launch.next, closed(objects, phase, others)
    control.pc, control.sp, control.fp = call - CALL_DISTANCE, start, launch_fp
