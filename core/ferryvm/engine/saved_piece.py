# SPDX-License-Identifier: Apache-2.0
"""The suspended items of launches in a saved state, checked as the stack is.

An item's frames are in arrays, which anyone can write into a file. They come onto the stack when
the launch goes on, and backends rely on them: so each block is checked to be the frames of a call
of a launch's items, as large as their stack maps say, with words and references of their types.
"""

from __future__ import annotations

import numpy as np

from ferryvm.engine.saved_frame import FrameShape, Misfit, frame_shape
from ferryvm.engine.saved_object import SavedObjects
from ferryvm.isa.type import LAUNCH, with_article
from ferryvm.machine.object_memory import ObjectMemory
from ferryvm.machine.piece import Piece, elements, read
from ferryvm.machine.state import Machine
from ferryvm.region.launch import CALL_DISTANCE, item_call


def check_pieces(machine: Machine, objects: SavedObjects) -> None:
    """Check the pieces of launches among the objects of a machine, of which `objects` are all.
    Raises Misfit."""
    assert machine.objects is not None  # it has those
    for offset in objects.offsets_of(LAUNCH.number):
        piece = read(machine.objects, offset)
        if piece.is_phase:
            _check_phase(machine.objects, offset, piece)
        if bool(piece.words) != bool(piece.references):
            raise Misfit(f"the piece of a launch at {offset} has words or references alone")
        if piece.words:
            words = elements(machine.objects, piece.words)
            references = elements(machine.objects, piece.references)
            _check_block(machine, piece, words, references, objects)


def _check_phase(objects: ObjectMemory, offset: int, phase: Piece) -> None:
    """Check the phase of a launch: it has two lists of pieces, and items with frames wait."""
    what = f"the phase of a launch at {offset}"
    if phase.words or phase.references:
        raise Misfit(f"{what} has the frames of an item")
    for first in (phase.next, phase.waiting):
        reference, seen = first, set[int]()
        while reference:
            piece = read(objects, reference)
            if piece.is_phase or reference in seen:
                raise Misfit(f"{what} has a phase within, or a piece that follows itself")
            if first == phase.waiting and not piece.words:
                raise Misfit(f"at {what} an item waits without frames")
            seen.add(reference)
            reference = piece.next


def _check_block(
    machine: Machine,
    piece: Piece,
    words: memoryview,
    references: memoryview,
    objects: SavedObjects,
) -> None:
    """Check the frames of a suspended item."""
    verified, program = machine.verified, machine.program
    what = f"the frames of item {piece.first}"
    pc, fp, top, callee = piece.pc, piece.frame, len(words), None
    frames: list[tuple[int, FrameShape]] = []
    while True:
        shape = frame_shape(verified, pc, callee)
        start = fp - shape.parameters
        if start < 0 or start + shape.size != top:
            raise Misfit(f"{what} are not as large as their stack maps say, at word {fp}")
        frames.append((start, shape))
        return_pc, distance = words[fp], words[fp + 1]
        if start == 0:
            break
        if not 0 < distance <= fp:
            raise Misfit(f"{what} have a caller {distance} words below word {fp}")
        top, fp, pc, callee = start, fp - distance, return_pc - 1, shape.owner
    call = return_pc - 1
    is_call = CALL_DISTANCE <= call < len(program.code) and verified.is_reachable(call)
    if not is_call or item_call(program, call - CALL_DISTANCE) != call:
        raise Misfit(f"{what} do not return to a launch")
    if program.code.immediates[call] != shape.owner:
        raise Misfit(f"{what} are of another function than the launch calls")
    frames.reverse()
    masks = np.concatenate([shape.masks for _, shape in frames])
    values = np.frombuffer(words, np.uint64)
    places = [(start + n, t) for start, shape in frames for n, t in shape.references]
    at = [place for place, _ in places]
    if (values & ~masks).any() or values[at].any():
        raise Misfit(f"{what} have a word with bits that its type has not")
    if len(references) != len(places):
        raise Misfit(f"{what} have {len(references)} references, {len(places)} expected")
    for word, (place, t) in zip(references, places, strict=True):
        if objects.is_wrong(np.array([word], np.uint64), t):
            raise Misfit(f"{what} have at word {place} what is not {with_article(t)}")
