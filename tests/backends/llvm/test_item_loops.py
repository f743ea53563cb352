# SPDX-License-Identifier: Apache-2.0
"""Loops over items that are divided into rows, made once for each side of a branch, without checks,
and several items at once: left at safepoints, held against the reference."""

from __future__ import annotations

import pytest

import ferryvm
from ferryvm.backend import Options
from ferryvm.ir.loop.natural import find_loops
from ferryvm.isa.trap import Trap
from ferryvm.verify import verify
from ferryvm_backends.llvm.build import improved, optimised

from ..forced_exit import differences, grouped

TILES = """
(define (groups n a b c) (for-each-item 1 (group n a b c)))
(define (item me n left right a b c)
  (define row (>> me 3))
  (define column (& me 7))
  (define sum 0.5)
  (define here (+ (* row 8) column))
  (define from 0)
  (while (< from n)
    (array-set! left here (array-ref a (+ (* row n) (+ from (% column 2)))))
    (array-set! right here (array-ref b (+ (* from 8) here)))
    (barrier)
    (define k 0)
    (while (< k 2)
      (set! sum (+ sum (* (array-ref left (+ (* row 8) k)) (array-ref right (+ (* k 8) column)))))
      (set! k (+ k 1)))
    (barrier)
    (set! from (+ from 2)))
  (array-set! c (+ {first} here) (+ sum (array-ref c (+ {first} here)))))
(define (group number n a b c)
  (define left (make-array f64 16))
  (define right (make-array f64 16))
  (for-each-item 16 (item n left right a b c)))
(define a (make-array f64 8))
(define b (make-array f64 32))
(define c (make-array f64 16))
(define i 0)
(while (< i 8) (array-set! a i (f64 (- 5 i))) (set! i (+ i 1)))
(set! i 0)
(while (< i 32) (array-set! b i (f64 (% (* 7 i) 5))) (set! i (+ i 1)))
(groups 4 a b c)
(print! (reduce + c))
"""
"""Two rows of eight items, for which an inner loop of two iterations runs together, in each of two
tiles."""

APART = """
(define (member item t)
  (define i 0)
  (while (< i 3)
    (set! i (+ i 1))
    (if (= (% (+ i item) 2) 0) (begin (array-set! t item (+ (array-ref t item) i)) (barrier)))
    (array-set! t item (+ (* 2 (array-ref t item)) i))))
(define (group) (define t (make-array i64 4)) (for-each-item 4 (member t)) (reduce + t))
(print! (group))
"""
"""Items come to a barrier in different iterations, so a variable that counts them differs."""


@pytest.mark.parametrize(("first", "step"), [(0, 97), (1, 61)])
def test_the_state_is_exact_where_control_leaves_a_row(first: int, step: int) -> None:
    """With 1 the last item is behind the end of `c`, so control leaves in front of its row."""
    assert [*differences(TILES.format(first=first), step)] == []


@pytest.mark.nightly
@pytest.mark.parametrize("first", [0, 1, 9, -3])
def test_the_state_is_exact_at_every_safepoint_of_rows(first: int) -> None:
    assert [*differences(TILES.format(first=first))] == []


def test_items_of_a_row_run_together_and_have_no_checks() -> None:
    place = grouped(verify(ferryvm.compile(TILES.format(first=0), "p")))
    body = improved(place, Options(check=True))[0].root
    loops = find_loops(body)
    assert max(len([o for o in loops if loop.blocks < o.blocks]) for loop in loops) == 4
    checks = [
        block.label
        for block in body.blocks
        for o in block.operations
        if o.name == "trap_if" and o.static == (Trap.INDEX_OUT_OF_BOUNDS,)
    ]
    assert sorted(label.partition(".")[0] for label in checks) == ["region0", "region2"]  # `% 2`
    labels = [block.label for block in body.blocks]
    assert any(label.startswith("jammed") for label in labels)
    assert any(label.startswith("fails") for label in labels)


def test_tiles_are_told_from_arguments_and_context_arrays_from_each_other() -> None:
    """Loops over items have no comparisons of addresses in front: LLVM knows that these do not
    overlap."""
    text = TILES.format(first=0).replace(
        "(define (group number n a b c)\n  (define left (make-array f64 16))\n"
        "  (define right (make-array f64 16))",
        "(define (group number n a b c)\n  (define left (make-array f64 16))\n"
        "  (define right left)",
    )
    assert [*differences(text, 211)] == []
    place = grouped(verify(ferryvm.compile(TILES.format(first=0), "p")))
    code = str(optimised(improved(place, Options())[0], Options(), 2))
    assert "!noalias" in code
    assert "memcheck" not in code


def test_a_variable_of_items_in_different_iterations_is_not_common() -> None:
    assert [*differences(APART, 5)] == []
