# SPDX-License-Identifier: Apache-2.0
"""Launches that a trap ends, with items out of order: what may differ, and what is found."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

import ferryvm
from ferryvm.backend import Forcing
from ferryvm.engine import chunked_run
from ferryvm.engine.chunked_run import ChunkedRun
from ferryvm.engine.parallel import ThreadedRanges
from ferryvm.engine.team import Team
from ferryvm.isa.launch import LAUNCH_WORDS
from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine.chunk import ItemRange
from ferryvm.machine.control import ControlBlock
from ferryvm.machine.entry import ENTRY
from ferryvm.machine.launch import Left, finish
from ferryvm.machine.object_memory import ObjectMemory
from ferryvm.testing import Comparison, Differ, Verdict
from ferryvm.testing.divergence import ABOVE
from ferryvm.verify import verify

from ..launching import expanded

ITEMS = 200
TRAPPING = 120

TEXT = f"""
(define (put item to)
  (if (= (% item 5) 4) (print! item))
  (array-set! to item (+ (array-ref to item) (/ 1000 (- item {TRAPPING})))))
(define to (make-array i64 {ITEMS}))
(array-set! to 7 5)
(for-each-item {ITEMS} (put to))
(array-ref to 3)
"""
"""Item 120 divides by zero; every fifth item prints."""

Fault = Callable[[list[Left], int], list[Left]]


def compared(text: str = TEXT) -> Comparison:
    differ = Differ(["llvm"], forcing=frozenset({Forcing.PARALLEL}))
    differ.form = False  # counted runs are in order
    (comparison,) = differ.compare(verify(ferryvm.compile(text)))
    return comparison


def test_items_above_the_one_that_traps_may_be_done() -> None:
    comparison = compared()
    assert (comparison.verdict, comparison.reason) == (Verdict.DIVERGE, f"{ABOVE} (llvm)")
    assert compared(TEXT.replace(f"(- item {TRAPPING})", "7")).verdict is Verdict.AGREE


def _repeating(left: list[Left], item: int) -> list[Left]:
    """Have an item done twice."""
    return sorted([*left, (item, item + 1)], key=lambda each: each[0])


def _reversing(left: list[Left], item: int) -> list[Left]:
    """Have suspended items in the wrong order, up to one."""
    until = [each[0] for each in left].index(item) + 1
    return [*reversed(left[:until]), *left[until:]]


@pytest.mark.parametrize(
    ("fault", "item"),
    [(_repeating, 30), (_repeating, 160), (_reversing, 29)],
)
def test_a_fault_below_or_above_the_trap_is_a_disagreement(
    fault: Fault, item: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def faulty(objects: ObjectMemory, limit: int, left: Sequence[Left]) -> None:
        finish(objects, limit, fault(expanded(objects, left), item))

    _without_stop(monkeypatch)
    monkeypatch.setattr(chunked_run, "finish", faulty)
    assert compared().verdict is Verdict.DISAGREE


@pytest.mark.parametrize("item", [30, 160])
def test_an_omitted_item_below_or_above_the_trap_is_a_disagreement(
    item: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def faulty(self: Team, *given: Any) -> None:
        make(self, *given)
        entry = ENTRY(partial(_skipping, self.range, item, ENTRY(self.range.entry)))
        kept.append(entry)
        self.range.entry = ctypes.cast(entry, ctypes.c_void_p).value or 0
        self.range.lanes = 0

    make, kept = Team.__init__, list[object]()
    _without_stop(monkeypatch)
    monkeypatch.setattr(Team, "__init__", faulty)
    assert compared().verdict is Verdict.DISAGREE


def _without_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have all items above one that traps run, several in a chunk, on however many cores."""
    monkeypatch.setattr(ChunkedRun, "_stop_at", lambda self, item: None)
    monkeypatch.setattr(ThreadedRanges, "_chunks", lambda self, items, threads: 8)


def _skipping(range_: ItemRange, item: int, code: Callable[[int], int], address: int) -> int:
    """Run a chunk by code that claims to do an item and does not."""
    control = ControlBlock.from_address(address)
    place = control.stack + WORD_BYTES * (range_.sp - LAUNCH_WORDS)
    operands = (ctypes.c_int64 * LAUNCH_WORDS).from_address(place)
    limit, next_ = operands[:2]
    if not next_ <= item < limit:
        return code(address)
    if next_ < item:
        operands[0] = item
        status = code(address)
        operands[0] = limit
        if control.sp != range_.sp or operands[1] != item:
            return status
    operands[1] = item + 1
    control.pc = range_.pc
    return code(address)
