# SPDX-License-Identifier: Apache-2.0
"""Launches as NDRanges: each item is a work-item.

    launch.test, many items left ─> NDRange, in slices ─┬─ all items done
                                                        └─ slots, skipped items ─> the record

`ferryvm.ir.c.opencl_item` has what a work-item does; this module says what of a program it is.
"""

from __future__ import annotations

import dataclasses

from ferryvm.backend import Options
from ferryvm.ir.c.opencl_item import ENTRY_SLOT_WORDS, SLOT_WORDS
from ferryvm.ir.graph import Module
from ferryvm.ir.member.boundary import CheckedWords
from ferryvm.isa.frame import HEADER_WORDS
from ferryvm.isa.type import Type
from ferryvm.region.launch import CALL_DISTANCE, launch_numbers
from ferryvm.region.region import Region, RegionKind
from ferryvm_backends.opencl.item.bound import Bound
from ferryvm_backends.opencl.item.header import HeaderWord, StoredArray

MOST_FRAME_WORDS = 2000
"""The largest number of words that the frames of a work-item take."""


@dataclasses.dataclass(frozen=True)
class ItemShape:
    """Facts on the items of a launch that their kernel and the host share."""

    function: int
    """Number of the function."""
    words: tuple[int, ...]
    """Words that items share: of the launch's frame, from its first parameter on; below 0 back from
    the end of its operands."""
    frame: int
    """Words of frames of an item at most."""
    is_block: bool
    """True if a work-item runs the loop of the launch for several items."""
    entry: int | None = None
    """pc of the entry of the function where all items leave there: slots have no frames, which the
    host knows; None if they may leave elsewhere."""
    headers: tuple[HeaderWord, ...] = ()
    """Header words of what these words refer to, which items share, too."""
    stored: frozenset[StoredArray] = frozenset()
    """Arrays among these words that items may store into without marks."""
    overwritten: frozenset[int] = frozenset()
    """Numbers of these arrays of which each item that is done has stored its own element, and none
    is read; only where all items leave at their entry."""
    read: frozenset[int] = frozenset()
    """Numbers of the arrays whose elements items read then."""
    arrays: frozenset[int] | None = None
    """Numbers of these words that are references, if items access no other objects than these refer
    to, which are arrays of numbers; None if they may."""
    undone: tuple[tuple[int, int], ...] | None = None
    """Arrays, by the numbers of these words, that are to be as before if any item fails, and bytes
    of an element; None if none can fail."""
    marks_others: bool = True
    """True if items may store anything else, which sets dirty marks."""
    checked: CheckedWords | None = None
    """The words on which the check of groups depends, if these are all."""
    is_foreseen: bool = False
    """True if the words and headers, and an item's number, decide if it leaves, see `foreseen`."""
    bounds: tuple[tuple[Bound, ...], ...] | None = None
    """Bounds of the iterations of an item's loops, see `loop_bounds`; None if all are polled."""

    @property
    def slot_words(self) -> int:
        """Words of a slot."""
        return SLOT_WORDS + self.frame if self.entry is None else ENTRY_SLOT_WORDS

    @property
    def stores_own_alone(self) -> bool:
        """True if each item changes nothing but elements with its own number, of arrays of
        numbers."""
        is_own = all(one.is_own for one in self.stored) and not self.marks_others
        return is_own and self.arrays is not None

    @property
    def arguments(self) -> int:
        """The number of words that the kernel is given for all items."""
        return len(self.words) + len(self.headers)


def item_region(region: Region, options: Options) -> Region | None:
    """The function of the items of a launch that may run in any order; None if the region is no
    such launch, or fuel is counted."""
    if region.kind is not RegionKind.LAUNCH or options.counting:
        return None
    verified = region.verified
    if region.entry not in launch_numbers(verified):
        return None
    program = verified.program
    number = program.code.immediates[region.entry + CALL_DISTANCE]
    return Region(verified, RegionKind.FUNCTION, number, program.functions[number].entry)


def shared_types(items: Region) -> tuple[Type, ...]:
    """Types of the arguments after the item, as the kernel computes with them."""
    parameters = items.verified.program.signature(items.function).parameters[1:]
    return tuple(t if isinstance(t, Type) else Type.I64 for t in parameters)


def frame_words(module: Module, function: int | None, levels: int) -> int:
    """Words of the frames of a function and what it calls at most, from its first argument on;
    `levels`: of copies of recursive functions. None: of the region's own body."""
    recursing = {number for number, body in module.functions.items() if body.recurs}
    found: dict[tuple[int | None, int], int] = {}

    def words(number: int | None, level: int) -> int:
        if (number, level) in found:
            return found[number, level]
        body = module.root if number is None else module.functions[number]
        most = max(body.parameters + HEADER_WORDS, body.place_of(len(body.results)))
        for block in body.blocks:
            for operation in (*block.operations, block.end):
                if operation.state is not None:
                    most = max(most, len(operation.state.words))
                if operation.name in ("call", "call_indirect"):
                    called, base = operation.static
                    assert isinstance(base, int)
                    for callee in called if isinstance(called, tuple) else (called,):
                        assert isinstance(callee, int)
                        is_deeper = callee in recursing and number in recursing
                        if not is_deeper or level < levels:
                            deeper = words(callee, level + 1 if is_deeper else 0)
                            most = max(most, base + deeper)
        found[number, level] = most
        return most

    return words(function, 0)
