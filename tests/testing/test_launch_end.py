# SPDX-License-Identifier: Apache-2.0
"""Launches that a trap ends, with items out of order: what may differ, and what is found."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import ferryvm
from ferryvm.backend import Forcing
from ferryvm.engine import parallel
from ferryvm.engine.parallel import ThreadedRanges
from ferryvm.testing import Comparison, Differ, Verdict
from ferryvm.testing.divergence import ABOVE
from ferryvm.verify import verify

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

Chunk = Callable[..., parallel._Done]


def compared(text: str = TEXT) -> Comparison:
    differ = Differ(["llvm"], forcing=frozenset({Forcing.PARALLEL}))
    differ.form = False  # counted runs are in order
    (comparison,) = differ.compare(verify(ferryvm.compile(text)))
    return comparison


def test_items_above_the_one_that_traps_may_be_done() -> None:
    comparison = compared()
    assert (comparison.verdict, comparison.reason) == (Verdict.DIVERGE, f"{ABOVE} (llvm)")
    assert compared(TEXT.replace(f"(- item {TRAPPING})", "7")).verdict is Verdict.AGREE


def _omitting(item: int, chunk: Chunk) -> Chunk:
    """Chunks that claim to have done an item, and have not."""

    def omitting(
        self: ThreadedRanges, objects: object, lane: object, work: object, first: int, limit: int
    ) -> parallel._Done:
        if not first <= item < limit:
            return chunk(self, objects, lane, work, first, limit)
        parts = [(first, item), (item + 1, limit)]
        done = [chunk(self, objects, lane, work, *part) for part in parts]
        suspended = done[0].suspended + done[1].suspended
        return parallel._Done(suspended, done[1].rest, limit - first)

    return omitting


def _repeating(item: int, chunk: Chunk) -> Chunk:
    """Chunks that do an item twice."""

    def repeating(
        self: ThreadedRanges, objects: object, lane: object, work: object, first: int, limit: int
    ) -> parallel._Done:
        if first <= item < limit:
            chunk(self, objects, lane, work, item, item + 1)
        return chunk(self, objects, lane, work, first, limit)

    return repeating


def _reversing(item: int, chunk: Chunk) -> Chunk:
    """Chunks that return their suspended items in the wrong order."""

    def reversing(
        self: ThreadedRanges, objects: object, lane: object, work: object, first: int, limit: int
    ) -> parallel._Done:
        done = chunk(self, objects, lane, work, first, limit)
        if first <= item < limit:
            done.suspended.reverse()
        return done

    return reversing


@pytest.mark.parametrize(
    ("fault", "item"),
    [(_omitting, 30), (_omitting, 160), (_repeating, 30), (_repeating, 160), (_reversing, 30)],
)
def test_a_fault_below_or_above_the_trap_is_a_disagreement(
    fault: Callable[[int, Chunk], Chunk], item: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel._Work, "stop", lambda self, item: None)  # all higher ones run
    # Several items in a chunk, on however many cores.
    monkeypatch.setattr(ThreadedRanges, "_chunks", lambda self, items, threads: 8)
    monkeypatch.setattr(ThreadedRanges, "_chunk", fault(item, ThreadedRanges._chunk))
    assert compared().verdict is Verdict.DISAGREE
