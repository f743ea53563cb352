# SPDX-License-Identifier: Apache-2.0
"""Barriers: the items of a launch wait for each other.

    item 0 ── barrier ─┐             ┌─ goes on ── barrier ─┐
    item 1 ── barrier ─┼─ a phase ───┼─ goes on ── barrier ─┼─ the next phase …
    item 2 ── barrier ─┘  has ended  └─ goes on ── barrier ─┘

An item that comes to a barrier waits with its frames in the record of its launch, as a suspended
item does; then the next one begins, or goes on. When all others have come to the barrier, too, the
first one goes on. So items run in order between barriers. (OpenCL 3.0, section 3.2.4 and the
function `work_group_barrier`, has the same rule: all items of a group come to a barrier, or none.)

The record of such a launch is a *phase*, one piece in front of those of the items that have not
come to the barrier yet. It has the number of items, and those that wait. Pieces never change, so
the record gets a new phase for each item.

A program waits by an operand of its own, 0: in an item that waits it is 1, with which the
instruction completes. So no backend has to know which item has waited already.
"""

from __future__ import annotations

from array import array

from ferryvm.isa import Trap
from ferryvm.isa.type import I64, signed
from ferryvm.machine.active_item import innermost, outermost
from ferryvm.machine.launch_operands import launch_operands, operands_below
from ferryvm.machine.memory import AddressSpaceError
from ferryvm.machine.object_memory import ObjectMemory
from ferryvm.machine.piece import (
    Piece,
    add_again,
    add_item,
    add_phase,
    block,
    elements,
    opened,
    pieces,
    read,
    reserve,
)
from ferryvm.machine.state import Machine
from ferryvm.named_tuple import NamedTuple
from ferryvm.region.launch import CALL_DISTANCE


def wait(machine: Machine) -> Trap:
    """Make the item at whose barrier a machine stands wait: the machine then stands at the
    `launch.test` of its launch. The trap, with which nothing has changed; NONE if it waits."""
    stack, control, objects = machine.memory.stack, machine.control, machine.objects
    launch_fp = innermost(machine)
    if launch_fp is None or objects is None:
        return Trap.BARRIER_OUTSIDE
    call, start = outermost(machine, launch_fp)
    positions = objects.frame_references(stack, control.pc, control.fp, start)
    try:
        reserve(objects, 2, control.sp - start + len(positions))
    except AddressSpaceError:
        return Trap.HEAP_EXHAUSTED
    words = array("Q", stack[start : control.sp].tobytes())
    words[-1] = 1
    item = block(objects, words, control.pc, control.fp - start)
    launch = operands_below(control, start)
    phase, others = opened(objects, launch.record)
    if phase is None:  # the first item of all: the others are all there
        ends = [signed(I64, piece.end) for piece in pieces(objects, others)]
        phase = Piece(max([launch.limit, launch.next, *ends]), 0, 0, 0, 0, 0, 0, 0)
    waiting = add_item(objects, launch.next - 1, item, phase.waiting)
    launch.record = add_phase(objects, phase.first, waiting, others)
    control.pc, control.sp, control.fp = call - CALL_DISTANCE, start, launch_fp
    return Trap.NONE


def begin_phase(machine: Machine) -> Trap:
    """Make room to take a piece from the phase of the launch at which a machine stands; before
    that, if all its items wait at a barrier, let them go on. There is no record then if all have
    ended. The trap, with which nothing has changed."""
    objects, launch = machine.objects, launch_operands(machine.control)
    assert objects is not None  # there is a record
    phase = read(objects, launch.record)
    try:
        if phase.next:
            reserve(objects, 1, 0)
        elif not phase.waiting:
            launch.record = 0
        elif divergence(objects, phase) is not None:
            return Trap.BARRIER_DIVERGENCE
        else:
            reserve(objects, phase.first + 2, 0)
            phase, following = read(objects, launch.record), 0
            for piece in sorted(pieces(objects, phase.waiting), reverse=True):
                following = add_again(objects, piece, following)
            launch.record = add_phase(objects, phase.first, 0, following)
    except AddressSpaceError:
        return Trap.HEAP_EXHAUSTED
    return Trap.NONE


class Waiting(NamedTuple):
    """An item, and the place at which it waits."""

    item: int
    place: tuple[int, ...]
    """pc of the barrier, then of the calls around it, from the inside out; empty if it has
    ended."""


def divergence(objects: ObjectMemory, phase: Piece) -> tuple[Waiting, Waiting] | None:
    """Two items of a phase that do not wait at one place, of all that wait or have ended; None if
    all wait at the same one."""
    waiting = sorted(pieces(objects, phase.waiting))
    first = Waiting(waiting[0].first, _place(objects, waiting[0]))
    for number, piece in enumerate(waiting):
        if piece.first != number:
            return first, Waiting(number, ())
        place = _place(objects, piece)
        if place != first.place:
            return first, Waiting(number, place)
    return (first, Waiting(len(waiting), ())) if len(waiting) < phase.first else None


def _place(objects: ObjectMemory, piece: Piece) -> tuple[int, ...]:
    words, fp = elements(objects, piece.words), piece.frame
    found = [piece.pc, words[fp] - 1]
    while words[fp + 1] <= fp:
        fp -= words[fp + 1]
        found.append(words[fp] - 1)
    return tuple(found)
