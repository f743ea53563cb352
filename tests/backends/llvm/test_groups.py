# SPDX-License-Identifier: Apache-2.0
"""Items that wait at barriers, as native code of parallel regions: left at every safepoint, held
against the reference."""

from __future__ import annotations

import contextlib
from unittest import mock

import pytest

import ferryvm
from ferryvm import Engine, TrapError
from ferryvm.backend import Forcing, Options
from ferryvm.engine.parallel import ThreadedRanges
from ferryvm.isa.trap import Trap
from ferryvm.item_range import RangeOutcome
from ferryvm.machine.control import Status
from ferryvm.machine.state import Machine
from ferryvm.region.region import RegionKind, region, regions
from ferryvm.testing.generate import ProgramKind, skiff_source
from ferryvm.verify import verify
from ferryvm_backends.llvm import LlvmBackend
from ferryvm_backends.llvm.build import improved

from ..forced_exit import Program, differences, llvm

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
(group 3) (group 0) (group 1)
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
(print! (+ (group 3) (+ (group 0) (group 1))))
"""

TRAP = """
(define (member item t to)
  (array-set! t item item)
  (barrier)
  (array-set! to (+ item (array-ref t 2)) 3)
  (barrier)
  (if (= item 0) (print! item)))
(define (group) (for-each-item 4 (member (make-array i64 5) (make-array i64 5))))
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

EARLY = """
(define (sync t item) (barrier) (array-ref t (% (+ item 1) 6)))
(define (member item t u)
  (define k 0)
  (define found (= (% item 2) 1))
  (while (and (< k 10) (!= (array-ref u k) item)) (set! k (+ k 1)))
  (array-set! t item k)
  (define a (sync t item))
  (array-set! t item (+ a (if found 100 0)))
  (define b (sync t item))
  (barrier)
  (array-set! u item (+ a (* 10 b))))
(define (group)
  (define u (make-array i64 12))
  (define i 0)
  (while (< i 12) (array-set! u i (% (* i 5) 7)) (set! i (+ i 1)))
  (for-each-item 6 (member (make-array i64 6) u))
  (reduce + u))
(print! (group))
"""

FIRST = """
(define (member item group t)
  (define first 1)
  (define k 0)
  (while (< k group)
    (if (= first 1) (begin (array-set! t item (+ 7 item)) (set! first 0)))
    (barrier)
    (define other (array-ref t (- 3 item)))
    (barrier)
    (array-set! t item (+ (array-ref t item) (* 3 other)))
    (barrier)
    (set! k (+ k 1)))
  (array-set! t item (+ 1 (array-ref t item))))
(define (group number)
  (define t (make-array i64 4))
  (for-each-item 4 (member number t))
  (reduce + t))
(print! (group 3))
"""

ENDED = """
(define (member item n t)
  (array-set! t item (* item n))
  (if (< n 3) (barrier) (array-set! t item 5))
  (if (> n item) (barrier))
  (array-set! t item (+ 1 (array-ref t (% (+ item 1) 4)))))
(define (group n)
  (define t (make-array i64 4))
  (for-each-item 4 (member n t))
  (reduce + t))
(print! (group 2) (+ (group 0) (group 4)))
"""

DIVERGENT = """
(define (member item t)
  (array-set! t item item)
  (barrier)
  (define k 0)
  (while (< k (array-ref t item)) (set! k (+ k 1)) (if (= k 2) (barrier)))
  (if (!= item 3) (print! item)))
(define (group) (for-each-item 4 (member (make-array i64 5))))
(group)
"""


TEXTS = {
    "a loop with barriers and host calls": LOOP,
    "barriers in nested loops and in functions": NESTED,
    "a trap behind a barrier": TRAP,
    "a barrier under a condition in a divergent loop": DIVERGENT,
    "a barrier behind a loop with several exits": EARLY,
    "a first iteration with a side effect": FIRST,
    "items that end in front of a barrier": ENDED,
}


def agree(text: str) -> None:
    """Leave the items of a program's group at each safepoint; fail unless the end is that of the
    reference."""
    assert [*differences(text)] == []


def ended(text: str, backend: str) -> tuple[str, str]:
    """Output and trap."""
    printed: list[bytes] = []
    trap = ""
    try:
        Engine(backend, output=printed.append).start(ferryvm.compile(text, "p")).run()
    except TrapError as error:
        trap = str(error)
    return b"".join(printed).decode(), trap


def test_the_state_is_exact_where_control_leaves_a_parallel_region() -> None:
    assert [*differences(FIRST, 7)] == []


@pytest.mark.nightly
@pytest.mark.parametrize("name", TEXTS)
def test_the_state_is_exact_at_every_safepoint(name: str) -> None:
    agree(TEXTS[name])


@pytest.mark.nightly
@pytest.mark.parametrize("number", range(20))
def test_random_kernels_left_anywhere_end_as_in_the_reference(number: int) -> None:
    with contextlib.suppress(LookupError):
        text = skiff_source(27, number, kind=ProgramKind.KERNEL)
        assert [*differences(text, growth=0.5)] == []


@pytest.mark.nightly
@pytest.mark.parametrize("name", TEXTS)
def test_programs_end_as_in_the_reference(name: str) -> None:
    assert ended(TEXTS[name], "llvm") == ended(TEXTS[name], "reference")


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


def test_checks_that_no_item_of_a_constant_number_fails_are_removed() -> None:
    verified = verify(
        ferryvm.compile("""
(define (member item tile)
  (array-set! tile (+ (* (% item 4) 4) (/ item 4)) item)
  (barrier)
  (array-set! tile item (+ (array-ref tile 0) (array-ref tile (- 15 item)))))
(define (group number) (for-each-item 16 (member (make-array i64 16))))
(for-each-item 2 (group))
""")
    )
    (launch,) = (r for r in regions(verified) if r.kind is RegionKind.LAUNCH and r.function == 0)
    module, _ = improved(launch, Options(lanes=1))
    checks = [o.static[0] for o in module.root.operations if o.name == "trap_if"]
    assert module.groups
    assert Trap.INDEX_OUT_OF_BOUNDS not in checks


@pytest.mark.rotate("arrival", most=1)
@pytest.mark.parametrize("arrival", [2, 4, 5])
def test_a_launch_of_which_items_wait_is_left_to_an_interpreter(arrival: int) -> None:
    program = Program(FIRST, llvm)
    assert program.entered_at(arrival) == (Status.LEAVE, program.expected)


NULL = """
(define (member item t u)
  (array-set! t item item)
  (barrier)
  (if (> item 4) (array-set! u item 1))
  (barrier)
  (array-set! t item (+ 1 (array-ref t (- 3 item)))))
(define (group (u (array i64)))
  (define t (make-array i64 4))
  (for-each-item 4 (member t u))
  (reduce + t))
(print! (group null))
"""


@pytest.mark.nightly
def test_a_launch_with_a_null_reference_that_no_item_uses_ends_as_in_the_reference() -> None:
    assert ended(NULL, "llvm") == ended(NULL, "reference")


@pytest.mark.nightly
def test_items_between_barriers_make_no_pieces() -> None:
    execution = Engine("llvm").start(ferryvm.compile(NESTED.replace("(print! ", "(* 1 "), "p"))
    execution.run()
    # A piece has more than a hundred bytes, and each of five items would have one at each barrier.
    assert execution.machine.control.object_top < 4000


@pytest.mark.nightly
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


def test_a_check_lives_across_barriers_that_follow_one_another() -> None:
    agree("""
(define (member (i i64) (j i64) (k i64) (to (array u8)))
  (define place (+ (* (+ (* i 2) j) 3) k))
  (array-set! to place j)
  (barrier)
  (barrier)
  (array-set! to place 40))
(define (group) (for-each-item (1 2 3) (member (make-array u8 6))))
(group)
""")


def test_code_is_the_same_whenever_it_is_made() -> None:
    program = region(verify(ferryvm.compile(NESTED)), "program")
    texts = {LlvmBackend().show(program, Options(cache=False), "ir") for _ in range(3)}
    assert len(texts) == 1
