# SPDX-License-Identifier: Apache-2.0
"""The stack of a saved state, checked frame by frame against the program and its stack maps."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from ferryvm.engine.entry_stub import stub_name
from ferryvm.engine.saved_object import SavedObjects
from ferryvm.isa import BY_MNEMONIC, INSTRUCTIONS, Flow
from ferryvm.isa.frame import HEADER_WORDS
from ferryvm.isa.type import Reference, Type, ValueType, with_article
from ferryvm.machine.frame_chain import WINDOW, Header, period, repeats
from ferryvm.verify import Verified

_HALT = BY_MNEMONIC["halt"].opcode


class Misfit(Exception):  # noqa: N818 - not for users: `load` makes an ImageError of it
    """The state is not one that the program can reach; the text is the reason."""


@dataclasses.dataclass(frozen=True)
class FrameShape:
    """The layout of a frame whose function has stopped at some pc."""

    owner: int
    """Number of the function."""
    parameters: int
    """Number of its parameters: the words below the frame's header."""
    size: int
    """Words of the frame, with its parameters, up to the frame of the function that it called."""
    most: int
    """The largest number of words that it may grow to."""
    masks: npt.NDArray[np.uint64]
    """The bits that each of its words may have."""
    references: tuple[tuple[int, Reference], ...]
    """Its words with references, with their types."""


def frame_shape(verified: Verified, pc: int, callee: int | None) -> FrameShape:
    """The shape of a frame at `pc`, which called function `callee` if there is one. Raises
    Misfit."""
    program = verified.program
    if not 0 <= pc < len(program.code) or not verified.is_reachable(pc):
        raise Misfit(f"a frame returns to pc {pc + 1}, which follows no call")
    owner = verified.owner(pc)
    kinds = verified.operand_types(pc)
    if callee is not None:
        row, immediate = (
            INSTRUCTIONS[program.code.opcodes[pc]],
            program.code.immediates[pc],
        )
        signature = program.functions[callee].signature
        is_caller = (row.flow is Flow.CALL and immediate == callee) or (
            row.flow is Flow.CALL_INDIRECT and immediate == signature and callee in program.table
        )
        if not is_caller and not _is_entered_at(verified, pc, callee):
            raise Misfit(f"{program.functions[callee].name!r} is not called at pc {pc}")
        if is_caller:
            # While the callee runs, its arguments belong to its own frame.
            parameters = len(program.signatures[signature].parameters)
            kinds = kinds[: len(kinds) - parameters - len(row.pops)]
    types: list[ValueType] = [*program.frame_types(owner), *kinds]
    header = verified.parameters(pc)
    types[header:header] = [Type.I64] * HEADER_WORDS
    references = tuple((n, t) for n, t in enumerate(types) if isinstance(t, Reference))
    masks = np.array([t.mask for t in types], np.uint64)
    return FrameShape(owner, header, len(types), verified.frame_words[owner], masks, references)


def _is_entered_at(verified: Verified, pc: int, callee: int) -> bool:
    """True if the function may have been entered from outside while the program was at `pc`: the
    function never returns to there, and is an entry stub, or the program was at a `halt`."""
    program = verified.program
    name, opcodes = program.functions[callee].name, program.code.opcodes
    if opcodes[pc] != _HALT and not any(name == stub_name(each.name) for each in program.exports):
        return False
    return not any(
        INSTRUCTIONS[opcode].flow is Flow.RETURN and verified.owner(at) == callee
        for at, opcode in enumerate(opcodes)
    )


@dataclasses.dataclass
class _Part:
    """Adjacent equal frames, and their number."""

    times: int
    shapes: list[FrameShape]
    """Of each frame, outwards."""


def check_frames(
    verified: Verified, content: memoryview, pc: int, fp: int, objects: SavedObjects | None
) -> int:
    """Check the stack, from the innermost frame at `fp` outwards; the largest number of words that
    it may grow to."""
    shapes: dict[tuple[int, int | None], FrameShape] = {}
    words = content.cast("Q")
    array = np.frombuffer(words, np.uint64)
    parts = [_Part(1, [])]
    recent: list[tuple[Header, FrameShape]] = []
    top, callee, needed = len(words), None, 0
    while True:
        shape = shapes.get((pc, callee))
        if shape is None:
            shape = shapes[pc, callee] = frame_shape(verified, pc, callee)
        end = fp - shape.parameters + shape.size
        if end != top:
            raise Misfit(f"the frame at word {fp} ends at {end}, the next is at {top}")
        parts[-1].shapes.append(shape)
        needed = max(needed, fp + shape.most)
        return_pc, distance = words[fp], words[fp + 1]
        if fp == 0:
            break
        if not 0 < distance <= fp:
            raise Misfit(f"the frame at word {fp} has its caller {distance} words below")
        top, fp, pc, callee = fp - shape.parameters, fp - distance, return_pc - 1, shape.owner
        recent.append(((return_pc, distance), shape))
        if len(recent) == WINDOW:
            again = period([header for header, _ in recent])
            times = repeats(array, fp, again)
            if times:  # these frames equal the previous ones, so only their words are left to check
                repeated = [shape for _, shape in recent[-len(again) :]]
                parts += [_Part(times, repeated), _Part(1, [])]
                fp -= times * sum(distance for _, distance in again)
                top = fp + distance - shape.parameters
            recent.clear()
    if shape.owner or return_pc or distance:
        raise Misfit("its outermost frame is not that of function 0")
    _check_words(array, parts, objects)
    return needed


def _check_words(
    words: npt.NDArray[np.uint64], parts: list[_Part], objects: SavedObjects | None
) -> None:
    """Check that words of frames, which are given from the end of the stack, are of their types."""
    start = 0
    for part in reversed(parts):
        shapes = part.shapes[::-1]
        mask = np.concatenate([*(shape.masks for shape in shapes), np.empty(0, np.uint64)])
        end = start + part.times * len(mask)
        rows = words[start:end].reshape(part.times, len(mask))
        bad = np.flatnonzero(rows & ~mask)
        if len(bad):
            raise Misfit(f"word {start + bad[0]} of the stack has bits that its type has not")
        first = 0
        for shape in shapes:
            for number, t in shape.references:
                if objects is not None and objects.is_wrong(rows[:, first + number], t):
                    raise Misfit(
                        f"word {start + first + number} of the stack is not {with_article(t)}"
                    )
            first += shape.size
        start = end
