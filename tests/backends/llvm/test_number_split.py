# SPDX-License-Identifier: Apache-2.0
"""Loops over items that are divided where items branch on their number, and values that regions
leave as they are."""

from __future__ import annotations

import pytest

import ferryvm
from ferryvm.backend import Options
from ferryvm.ir.graph import Body, Operation
from ferryvm.ir.group.branch import item_poll
from ferryvm.ir.loop.natural import find_loops
from ferryvm.verify import verify
from ferryvm_backends.llvm.build import improved

from ..forced_exit import differences, grouped

TREE = """
(define (groups n a b) (for-each-item 1 (group n a b)))
(define (note! b me place value)
  (array-set! b (+ (* 8 me) place) value)
  (barrier))
(define (item me n parts a b)
  (define mine (array-ref a me))
  (define other (array-ref a (- 15 me)))
  (array-set! parts me mine)
  (barrier)
  (define half 8)
  (while (> half 0)
    (if (< me half) (array-set! parts me (+ (array-ref parts me) (array-ref parts (+ me half)))))
    (let ((last mine)) (set! mine other) (set! other last))
    (barrier)
    (set! half (/ half 2)))
  (note! b me 0 (+ (array-ref parts 0) (if (< me n) mine other)))
  (note! b me 1 (if (<= me n) mine other))
  (note! b me 2 (if (> me n) mine other))
  (note! b me 3 (if (>= me n) mine other))
  (note! b me 4 (if (<= n me) mine other))
  (if (> n me) (array-set! b (+ {offset} (* 8 me)) mine)))
(define (group number n a b)
  (define parts (make-array i64 16))
  (for-each-item 16 (item n parts a b)))
(define a (make-array i64 16))
(define b (make-array i64 128))
(define i 0)
(while (< i 16) (array-set! a i (* i i)) (set! i (+ i 1)))
(define (go n)
  (groups n a b)
  (define sum 0)
  (define i 0)
  (while (< i 128) (set! sum (+ (* sum 31) (array-ref b i))) (set! i (+ i 1)))
  (print! sum))
"""
"""A tree of sums, two variables that are exchanged in each iteration, and branches on the number of
an item."""

CALLS = "(go -3) (go 0) (go 1) (go 7) (go 15) (go 16) (go 99)"


def body_of(text: str) -> Body:
    """The code of the launch with groups."""
    return improved(grouped(verify(ferryvm.compile(text, "p"))), Options(check=True))[0].root


def test_items_on_both_sides_of_a_number_do_what_they_do_in_order() -> None:
    program = ferryvm.compile(TREE.format(offset=5) + CALLS)
    found = [ferryvm.run(program, backend=name).output for name in ("llvm", "threaded")]
    assert found[0] == found[1]


@pytest.mark.parametrize(("offset", "n"), [(5, 5), (9, 16)])
def test_the_state_is_exact_where_control_leaves_divided_items(offset: int, n: int) -> None:
    """With 9 the last item stores behind the end of `b`."""
    assert [*differences(TREE.format(offset=offset) + f"(go {n})", 211)] == []


def test_loops_over_items_have_no_branches_on_their_numbers() -> None:
    body = body_of(TREE.format(offset=5) + CALLS)
    loops = [loop for loop in find_loops(body) if item_poll(loop) is not None]
    ends = [block.end for loop in loops for block in loop.members if block is not loop.header]
    chosen = [{edge.block for edge in end.edges} for end in ends if end.name == "branch"]
    assert [blocks for blocks in chosen if len(blocks) > 1] == []  # others choose a value
    assert sum(block.label.startswith("rest") for block in body.blocks) == 2


def test_what_a_region_does_not_change_is_not_stored_again() -> None:
    body = body_of(TREE.format(offset=5) + CALLS)
    moved = [
        (store.static, load.static)
        for store in body.operations
        if store.name == "context_store"
        for load in [store.arguments[2]]
        if isinstance(load, Operation) and load.name == "context_load"
        if load.arguments[1] is store.arguments[1]  # others are the same for all items
    ]
    assert moved  # of variables that are exchanged
    assert all(to != source for to, source in moved)
