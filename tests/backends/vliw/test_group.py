# SPDX-License-Identifier: Apache-2.0
"""Items that wait for each other: nests over rows of items in the region IR for the processor, and
the order of what they access."""

from __future__ import annotations

import pytest

import ferryvm
from ferryvm.backend import Options
from ferryvm.engine import Engine
from ferryvm.ir.graph import Module
from ferryvm.ir.loop.natural import find_loops
from ferryvm.region.region import RegionKind, regions
from ferryvm.verify import verify
from ferryvm_backends.vliw.machine.read import find
from ferryvm_backends.vliw.passes import optimised
from ferryvm_backends.vliw.prove import ENVIRONMENT

from ...tier import nightly

GRID = """
(define (item (row i64) (column i64) (x (array i64)) (t (array i64)) (to (array i64)) (n i64))
  (define at (+ (* WIDTH row) column))
  (array-set! t at (+ (array-ref x (+ at n)) 1))
  (barrier)
  (define sum 0)
  (define k 0)
  (while (< k 4)
    (set! sum (+ (* 3 sum) (array-ref t (+ (* WIDTH (% k HEIGHT)) column))))
    (set! k (+ k 1)))
  (array-set! to (+ at n) (+ sum row)))
(define (group number (x (array i64)) (to (array i64)))
  (for-each-item (HEIGHT WIDTH) (item x (make-array i64 (* HEIGHT WIDTH)) to (* number (* HEIGHT WIDTH)))))
(define x (make-array i64 96))
(define to (make-array i64 96))
(for-each-item 2 (group x to))
(reduce + to)
"""

STORES = ("element_store", "context_store")
"""A group's own array is a context array in a batch."""


def _module(height: int, width: int) -> Module:
    """The launch over groups of so many rows and columns."""
    text = GRID.replace("HEIGHT", str(height)).replace("WIDTH", str(width))
    verified = verify(ferryvm.compile(text, "p"))
    machine = find("multi16")
    for each in regions(verified):
        if each.kind is RegionKind.LAUNCH:
            module = optimised(each, Options(check=True), machine)
            if module.groups and len(find_loops(module.root)) > 2:
                return module
    raise LookupError("no items wait for each other")


def test_items_of_a_row_are_one_iteration_without_checks() -> None:
    module = _module(4, 8)
    rows = [each for each in find_loops(module.root) if each.header.label.startswith("rows.")]
    assert len(rows) == 2
    for loop in rows:
        assert loop.is_innermost
        assert not any(operation.name == "trap_if" for operation in loop.operations)
        stores = [operation for operation in loop.operations if operation.name in STORES]
        items = [store.item for store in stores]
        assert {item.number for item in items if item is not None} == {*range(8)}


def test_long_rows_stay_loops() -> None:
    module = _module(2, 24)
    rows = [each for each in find_loops(module.root) if each.header.label.startswith("rows.")]
    assert rows
    assert not any(loop.is_innermost for loop in rows)


# --- items of two regions in one block: a barrier is between them -----------------------------

REST = """
(define (at row column n) (+ (* row n) column))
(define (item row column top left n (beside (array i64)) (above (array i64)) (matrix (array i64)))
  (define here (+ (* row 2) column))
  (define place (at (+ top row) (+ left column) n))
  (array-set! beside here (array-ref matrix (at (+ top row) column n)))
  (array-set! above here (array-ref matrix (at row (+ left column) n)))
  (barrier)
  (define value (array-ref matrix place))
  (define k 0)
  (while (< k 2)
    (set! value (- value (* (array-ref beside (+ (* row 2) k)) (array-ref above (+ (* k 2) column)))))
    (set! k (+ k 1)))
  (array-set! matrix place value))
(define (group g h n (matrix (array i64)))
  (for-each-item (2 2)
    (item (* (+ g 1) 2) (* (+ h 1) 2) n (make-array i64 4) (make-array i64 4) matrix)))
(define (work n (matrix (array i64)))
  (define left (- (/ n 2) 1))
  (for-each-item (left left) (group n matrix)))
(define m (make-array i64 36))
(define i 0)
(while (< i 36) (array-set! m i (+ 1 (* i i))) (set! i (+ i 1)))
(work 6 m)
"""
"""A step of a factorisation. Both regions are unrolled, so one block runs both; it takes the
processor for four seconds to compile."""

TURNS = """
(define (item i (x (array i64)) (a (array i64)) (to (array i64)) (n i64))
  (define own (array-ref x (+ i n)))
  (define k 0)
  (while (< k 3)
    (array-set! a (- 3 i) own)
    (barrier)
    (set! own (+ (* 2 own) (array-ref a (% (+ i 1 k) 4))))
    (barrier)
    (set! k (+ k 1)))
  (array-set! to (+ i n) own))
(define (group number (x (array i64)) (to (array i64)))
  (for-each-item 4 (item x (make-array i64 4) to (* 4 number))))
(define x (make-array i64 24))
(define to (make-array i64 24))
(define i 0)
(while (< i 24) (array-set! x i (+ 1 (* i i))) (set! i (+ i 1)))
(for-each-item 6 (group x to))
"""
"""An item's own number is in a context array, which the next iteration, and the next group, store
into."""


@pytest.mark.parametrize("text", [nightly(REST), TURNS], ids=["rest", "turns"])
def test_items_behind_a_barrier_see_what_others_stored_before_it(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENVIRONMENT, "1")
    program = ferryvm.compile(text)
    found, expected = Engine("vliw").start(program), Engine("reference").start(program)
    found.run()
    expected.run()
    assert found.machine.snapshot() == expected.machine.snapshot()
