# SPDX-License-Identifier: Apache-2.0
"""Planted races in maps, reductions, scans, launches of several dimensions, and nested ones: both
items, the place and both lines are named, in code that a front end has generated, too."""

from __future__ import annotations

import pytest

import ferryvm
from ferryvm import Engine
from ferryvm.backend import Forcing
from ferryvm.errors import FerryError

RACES = {
    "two dimensions": (
        """
(define to (make-array i64 9))
(define (f row column) (array-set! to row column))
(for-each-item (3 3) (f))
""",
        "0 and 1 of the launch at 4:1",
        "item 0 wrote element 0 of the i64[9] at 8 at 3:24, item 1 writes it at 3:24",
    ),
    "a neighbour in two dimensions": (
        """
(define to (make-array i64 12))
(define (f row column (n i64))
  (if (> row 0) (array-set! to (+ (* row n) column) (array-ref to (+ (* (- row 1) n) column)))))
(for-each-item (3 4) (f 4))
""",
        "4 and 8 of the launch at 5:1",
        "item 4 wrote element 4 of the i64[12] at 8 at 4:17, item 8 reads it at 4:53",
    ),
    "three dimensions": (
        """
(define to (make-array i64 27))
(define (f (a i64) (b i64) (c i64)) (array-set! to (+ (* b 3) c) a))
(for-each-item (3 3 3) (f))
""",
        "0 and 9 of the launch at 4:1",
        "item 0 wrote element 0 of the i64[27] at 8 at 3:37, item 9 writes it at 3:37",
    ),
    "a map with a sum in a variable": (
        """
(define sum 0)
(define (f x) (set! sum (+ sum x)) x)
(map f (array i64 1 2 3))
""",
        "0 and 1 of the launch at 4:1",
        "item 0 wrote static sum at 3:15, item 1 reads it at 3:28",
    ),
    "a map into what its function reads": (
        """
(define to (array i64 1 2 3))
(define (f (x i64)) (+ x (array-ref to 2)))
(map! to f (array i64 4 5 6))
""",
        "0 and 2 of the launch at 4:1",
        "item 0 read element 2 of the i64[3] at 8 at 3:26, item 2 writes it at 4:1",
    ),
    "a map of an array to itself": (
        """
(define to (array i64 1 2 3))
(define (f (x i64)) (+ x (array-ref to 0)))
(map! to f to)
""",
        "0 and 1 of the launch at 4:1",
        "item 0 wrote element 0 of the i64[3] at 8 at 4:1, item 1 reads it at 3:26",
    ),
    "a reduction by a function that counts": (
        """
(define calls 0)
(define (f (a i64) (b i64)) (set! calls (+ calls 1)) (+ a b))
(reduce f 0 (make-array i64 1030 1))
""",
        "0 and 1 of the launch at 4:1",
        "item 0 wrote static calls at 3:29, item 1 reads it at 3:44",
    ),
    "a scan by a function that counts": (
        """
(define calls (make-array i32 1))
(define (f (a i64) (b i64)) (array-set! calls 0 2) (+ a b))
(scan f (make-array i64 2060 1))
""",
        "0 and 1 of the launch at 4:1",
        "item 0 wrote element 0 of the i32[1] at 8 at 3:29, item 1 writes it at 3:29",
    ),
    "maps within items": (
        """
(define to (make-array i64 3))
(define (twice (x i64)) (* x 2))
(define (f (item i64)) (map! to twice (array i64 1 2 3)))
(for-each-item 2 (f))
""",
        "0 and 1 of the launch at 5:1",
        "item 0 wrote element 0 of the i64[3] at 8 at 4:24, item 1 writes it at 4:24",
    ),
    "a reduction within items": (
        """
(define to (make-array i64 3))
(define (f (item i64)) (array-set! to item (reduce + to)))
(for-each-item 2 (f))
""",
        "0 and 1 of the launch at 4:1",
        "item 0 wrote element 0 of the i64[3] at 8 at 3:24, item 1 reads it at 3:44",
    ),
    "a launch within items, which is at fault itself": (
        """
(define (inner (item i64) (mine (array i64))) (array-set! mine 0 item))
(define (f (item i64)) (for-each-item 2 (inner (make-array i64 1))))
(for-each-item 2 (f))
""",
        "0 and 1 of the launch at 3:24",
        "item 0 wrote element 0 of the i64[1] at 8 at 2:47, item 1 writes it at 2:47",
    ),
    "an update that its own item reads": (
        """
(define bins (make-array i64 2))
(define (f (item i64))
  (atomic-add! bins 0 1)
  (if (= (array-ref bins 0) 3) (print! item)))
(for-each-item 4 (f))
""",
        "0 and 1 of the launch at 6:1",
        "item 0 read element 0 of the i64[2] at 8 at 5:10, item 1 updates it at 4:3",
    ),
}
"""By name: the program, the items, their accesses."""


@pytest.mark.parametrize("name", RACES)
def test_a_race_is_told_with_the_lines_of_the_program(name: str) -> None:
    text, items, accesses = RACES[name]
    execution = Engine("reference").start(ferryvm.compile(text, "r"))
    with pytest.raises(FerryError) as raised:
        execution.run(forcing=frozenset({Forcing.INDEPENDENCE}))
    told = str(raised.value).replace("r:", "")
    assert told == f"items {items} are not independent: {accesses}"


def test_a_map_of_an_array_to_itself_by_an_operator_is_independent() -> None:
    program = ferryvm.compile("(define a (array i64 1 2 3)) (map! a + a a) (array-ref a 2)")
    execution = Engine("reference").start(program)
    assert execution.run(forcing=frozenset({Forcing.INDEPENDENCE})).value == 6
