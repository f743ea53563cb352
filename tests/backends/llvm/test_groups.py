# SPDX-License-Identifier: Apache-2.0
"""Items that wait at barriers, as native code of parallel regions: left at every safepoint, held against
the reference."""

from __future__ import annotations

from unittest import mock

import pytest

import ferryvm
from ferryvm import Engine
from ferryvm.backend import Forcing
from ferryvm.engine.parallel import ThreadedRanges
from ferryvm.item_range import RangeOutcome
from ferryvm.machine.state import Machine
from ferryvm.testing.differential import Differ, Verdict
from ferryvm.testing.schedule import Schedule
from ferryvm.verify import verify

LOOP = """
(define (member item t u group)
  (define k 0)
  (define sum 0.5)
  (while (< k group)
    (array-set! t item (+ (* 10 k) item))
    (barrier)
    (set! sum (+ sum (f64 (array-ref t (- 3 item)))))
    (if (= item k) (print! sum))
    (barrier)
    (set! k (+ k 1)))
  (array-set! u item sum))
(define (group number)
  (define u (make-array f64 4))
  (for-each-item 4 (member (make-array i64 4) u number))
  (print! (reduce + u)))
(group 0) (group 1) (group 3)
"""

NESTED = """
(define (meet t item) (barrier) (array-ref t (% (+ item 1) 5)))
(define (member item t f n)
  (define i 0)
  (define odd (= (% item 2) 1))
  (define sum 0.5)
  (while (< i n)
    (define j 0)
    (while (< j i)
      (array-set! f item (+ sum (f64 (+ item j))))
      (barrier)
      (define k 0)
      (while (< k item) (set! sum (- sum 0.25)) (set! k (+ k 1)))
      (set! sum (+ sum (array-ref f (% (+ item 1) 5))))
      (if (!= i 2) (barrier))
      (barrier)
      (set! j (+ j 1)))
    (array-set! t item (+ i (if odd 7 0)))
    (set! sum (+ sum (f64 (meet t item))))
    (set! i (+ i 1)))
  (set! sum (+ sum (f64 (meet t item))))
  (array-set! f item sum))
(define (group n)
  (define f (make-array f64 5))
  (for-each-item 5 (member (make-array i64 5) f n))
  (reduce + f))
(print! (+ (group 0) (+ (group 1) (group 4))))
"""

TRAP = """
(define (member item t)
  (array-set! t item item)
  (barrier)
  (array-set! t (+ item (array-ref t 2)) 3)
  (barrier)
  (print! item))
(define (group) (for-each-item 4 (member (make-array i64 5))))
(group)
"""

THREADS = """
(define (member item tile number x out)
  (array-set! tile item (array-ref x (+ (* number 8) item)))
  (barrier)
  (array-set! out (+ (* number 8) item) (+ 1 (array-ref tile (- 7 item)))))
(define (group number x out)
  (for-each-item 8 (member (make-array i64 8) number x out)))
(define (count item x) (array-set! x item (* item 7)))
(define x (make-array i64 8000))
(define out (make-array i64 8000))
(for-each-item 8000 (count x))
(for-each-item 1000 (group x out))
(print! (reduce + out) (array-ref out 7))
"""

DIVERGENT = """
(define (member item t)
  (array-set! t item item)
  (barrier)
  (define k 0)
  (while (< k (array-ref t item)) (set! k (+ k 1)) (if (= k 2) (barrier)))
  (print! item))
(define (group) (for-each-item 4 (member (make-array i64 5))))
(group)
"""


def agree(text: str, *forced: Forcing) -> None:
    differ = Differ(["llvm"], forcing=frozenset(forced))
    for found in differ.compare(verify(ferryvm.compile(text, "p")), Schedule.NONE):
        assert found.verdict is Verdict.AGREE, found


def test_items_that_call_the_host_between_barriers_agree_with_the_reference() -> None:
    agree(LOOP)


@pytest.mark.nightly
@pytest.mark.parametrize("text", [LOOP, NESTED, TRAP, DIVERGENT, THREADS])
@pytest.mark.parametrize("forced", [[], [Forcing.DEOPT], [Forcing.PARALLEL]])
def test_groups_left_at_every_safepoint_agree(text: str, forced: list[Forcing]) -> None:
    agree(text, *forced)


def test_items_that_wait_with_a_float_that_is_computed_anew_agree() -> None:
    agree("""
(define (member item to)
  (define x (+ (f64 item) 0.5))
  (barrier)
  (if (= item 1) (print! item))
  (array-set! to item x))
(define (group) (for-each-item 3 (member (make-array f64 3))))
(group)
""")


def test_items_that_wait_with_a_float_that_all_share_agree() -> None:
    agree("""
(define (member item to g)
  (define x (* g 2.0))
  (barrier)
  (if (= item 1) (print! item))
  (barrier)
  (if (= item 2) (print! item))
  (array-set! to item x))
(define (group g) (for-each-item 3 (member (make-array f64 3) g)))
(group 0.5)
""")


def test_items_between_barriers_make_no_pieces() -> None:
    execution = Engine("llvm").start(ferryvm.compile(NESTED.replace("(print! ", "(* 1 "), "p"))
    execution.run()
    # A piece has more than a hundred bytes, and each of five items would have one at each barrier.
    assert execution.machine.control.object_top < 4000


def test_groups_with_arrays_of_their_own_run_on_threads() -> None:
    execution = Engine("llvm").start(ferryvm.compile(THREADS, "p"))
    outcomes: list[RangeOutcome] = []
    run = ThreadedRanges.run

    def noted(self: ThreadedRanges, machine: Machine, first: int, limit: int) -> RangeOutcome:
        outcomes.append(run(self, machine, first, limit))
        return outcomes[-1]

    with mock.patch.object(ThreadedRanges, "run", noted):
        result = execution.run(forcing=frozenset({Forcing.PARALLEL}))
    assert result.output == "223980000\n1\n"
    assert sum(outcome.suspended for outcome in outcomes) == 0
