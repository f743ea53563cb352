# SPDX-License-Identifier: Apache-2.0
"""A region's native code: the content of its cache entry, and how it is loaded.

Importing this loads no LLVM, which takes longer than loading cached code.
"""

from __future__ import annotations

import ctypes
import functools
import json

from ferryvm.backend import Activity, Code, NestActivity
from ferryvm.ir.graph import Module
from ferryvm.ir.versioned_nest import VersionedNest
from ferryvm.machine.lane import LaneEntry
from ferryvm.named_tuple import NamedTuple
from ferryvm_backends._llvm import cache_entry
from ferryvm_backends._llvm.native import load
from ferryvm_backends.llvm.symbol import (
    ACTIVITY,
    CROWDED,
    CYCLES,
    ENTRIES,
    ENTRY,
    FAILURES,
    INSTRUCTIONS,
    LANES,
    NEST_WORDS,
    STACK,
    UNFINISHED,
)


def packed(module: Module, stack: int, code: bytes, lanes: tuple[int, int]) -> bytes:
    """The content of a region's cache entry: the notes are bytes of the host's stack that its
    frames take, the pcs of its guards, its nests; `lanes`, the reason that a launch has none, and
    the reasons that items leave it at barriers, and run one by one between them.

    `lanes`: the number of its lanes, and the rows of a buffer of theirs; zeros: none.
    """
    reasons = [[*each.items()] for each in (module.ungrouped, module.one_by_one)]
    notes = [stack, module.guards, module.nests, [*lanes, module.scalar, reasons]]
    return cache_entry.packed(json.dumps(notes).encode(), code)


def fault(payload: bytes) -> str | None:
    """The reason that this is not a result of `packed`; None if it is."""
    try:
        _noted(cache_entry.unpacked(payload)[0])
    except (ValueError, TypeError, LookupError, RecursionError):
        return "it has no pcs of guards"
    return cache_entry.fault(payload)


class _Notes(NamedTuple):
    """The notes of a region's cache entry."""

    stack: int
    """Bytes of the host's stack."""
    guards: list[int]
    nests: list[VersionedNest]
    lanes: int
    """0: it has no code for lanes."""
    rows: int
    scalar: str
    """The reason that a launch has no code for lanes."""
    ungrouped: dict[int, str]
    """The reasons that launches with barriers have no parallel regions, by pc."""
    one_by_one: dict[int, str]
    """The reasons that items of parallel regions run one by one, by pc."""


def _noted(notes: bytes) -> _Notes:
    """The notes of a region. Raises ValueError, TypeError or LookupError for others."""
    stack, guards, nests, (lanes, rows, scalar, reasons) = json.loads(notes)
    numbers = (stack, *guards, lanes, rows) if isinstance(guards, list) else ()
    if not numbers or not all(type(number) is int for number in numbers):
        raise TypeError
    if not isinstance(scalar, str):
        raise TypeError
    ungrouped, one_by_one = map(dict, reasons)
    texts = (*ungrouped.items(), *one_by_one.items())
    if not all(type(pc) is int and isinstance(reason, str) for pc, reason in texts):
        raise TypeError
    found = [VersionedNest.from_json(each) for each in nests]
    return _Notes(stack, guards, found, lanes, rows, scalar, ungrouped, one_by_one)


@functools.cache
def _seconds_a_cycle() -> float:
    from ferryvm_backends.llvm.native import seconds_a_cycle  # it takes LLVM

    return seconds_a_cycle()


class RegionCode(Code):
    """A loaded region."""

    def __init__(self, content: bytes) -> None:
        """`content`: as `packed` makes it."""
        noted, code = cache_entry.unpacked(content)
        notes = _noted(noted)
        self._guards, self._nests = notes.guards, notes.nests
        """The pc of each guard, in the order of their counts; nests, likewise."""
        self._native = load(code)
        self.address = self._native.address(ENTRY)
        words = ctypes.c_uint64 * (FAILURES + len(self._guards) + NEST_WORDS * len(self._nests))
        self._activity = words.from_address(self._native.address(ACTIVITY))
        self._activity[STACK] = notes.stack
        if notes.lanes:
            self.lanes = LaneEntry(self._native.address(LANES), notes.lanes, notes.rows)
        self.scalar, self.ungrouped = notes.scalar, notes.ungrouped
        self.one_by_one = notes.one_by_one

    def activity(self) -> Activity:
        words = list(self._activity)
        return Activity(
            words[ENTRIES],
            words[CYCLES] * _seconds_a_cycle() if words[CYCLES] else 0.0,
            words[INSTRUCTIONS],
            {pc: words[FAILURES + number] for number, pc in enumerate(self._guards)},
            nests=self._activity_of_nests(words),
            crowded=words[CROWDED],
            stack=words[STACK],
            unfinished=words[UNFINISHED],
        )

    def _activity_of_nests(self, words: list[int]) -> tuple[NestActivity, ...]:
        """Executions of nests that store; metrics of one that was copied are added up."""
        found = []
        for number, nest in enumerate(self._nests):
            first = FAILURES + len(self._guards) + NEST_WORDS * number
            fast, slow, last = words[first : first + NEST_WORDS]
            reason = nest.doubts[last - 1] if last else nest.unfit
            text, pcs = ("", ()) if reason is None else reason
            found.append(NestActivity(nest.pc, nest.unfit is None, fast, slow, text, tuple(pcs)))
        return tuple(found)
