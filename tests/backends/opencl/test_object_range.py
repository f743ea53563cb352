# SPDX-License-Identifier: Apache-2.0
"""Of the object space a launch sends the chunks of its arrays alone; what else is in them is
neither lost nor old."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import ferryvm
from ferryvm import Engine
from ferryvm.engine.execution import Execution
from ferryvm_backends.opencl import OpenClBackend, object_copy
from ferryvm_backends.opencl.host_memory import CHUNK

from ...engine.mixing import placements
from .test_items import make_small, on, outcome

TEXT = """
(define-struct pair (first i64) (second i64))
(define (step item (from (array i64)) (to (array i64)))
  (array-set! to item (+ (* 3 (array-ref from item)) (array-ref to item))))
(define (litter n)
  (define last (make-pair 0 0))
  (while (> n 0)
    (set! last (make-pair n (pair-second last)))
    (set! n (- n 1)))
  (pair-first last))
(define one (make-array i64 40))
(define two (make-array i64 40))
(define other (make-pair 7 8))
(define three (make-array i64 40))
(define times 0)
(define sum 0)
(while (< times 30)
  (array-set! one times (+ times 1))
  (array-set! three (+ times 1) (* times 5))
  (set-pair-second! other (+ times (pair-second other)))
  (for-each-item 40 (step one two))
  (if (= times 5) (for-each-item 39 (step three one)))
  (set! sum (+ (* 31 sum) (pair-second other) (array-ref three times) (array-ref two times)))
  (set! sum (+ sum (litter {litter})))
  (set! times (+ times 1)))
sum
"""


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch)


def started(source: ferryvm.Program) -> Execution:
    return on(OpenClBackend(wraps=False)).start(source)


def sent(execution: Execution) -> int:
    """Bytes of the object space that launches have sent."""
    codes = [a.code for one in placements(execution) for a in one.attempts if a.code is not None]
    rows = [row for code in codes for row in code.activity().arrays if row.name == "objects"]
    return sum(row.to_device for row in rows)


def test_other_objects_are_not_sent_and_remain() -> None:
    source = ferryvm.compile(TEXT.format(litter=2000))
    execution = started(source)
    assert outcome(execution) == outcome(Engine("threaded").start(source))
    # 2,000 pairs are 12 chunks, each time; all are sent where it is seen if another launch follows.
    assert 0 < sent(execution) < 30 * 8 * CHUNK


def test_a_planted_fault_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small arrays are left out."""

    def nothing(_base: int, _space: int, _references: object) -> Sequence[tuple[int, int]]:
        return []

    monkeypatch.setattr(object_copy, "object_ranges", nothing)
    source = ferryvm.compile(TEXT.format(litter=1))
    assert outcome(started(source)) != outcome(Engine("threaded").start(source))
