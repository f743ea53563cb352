# SPDX-License-Identifier: Apache-2.0
"""Native loops over vectors trap at the element and with the state that the reference does,
whether or not their range checks were asked in front."""

from __future__ import annotations

import pytest

import ferryvm
from ferryvm.engine import Engine

from ...heap_vector import on_heap
from ..ending import ended

SUM = """
(define (f v start n step base scale)
  (define i start)
  (define s 0)
  (while (< i n)
    (set! s (+ s i (vector-ref v (+ base (* scale i)))))
    (set! i (+ i step)))
  s)
(f (make-vector i64 40) {} {} {} {} {})
"""


@pytest.mark.rotate("case", most=7)
@pytest.mark.parametrize(
    "case",
    [
        (0, 40, 1, 0, 1),
        (0, 41, 1, 0, 1),
        (0, 0, 1, 0, 1),
        (-1, 40, 1, 1, 1),
        (-2, 40, 1, 1, 1),
        (3, 14, 1, -3, 3),
        (3, 15, 3, -3, 3),
        (0, 40, 1, 39, -1),
        (0, 41, 1, 39, -1),
        (0, 9, 1, -(1 << 63), 1 << 61),
        (0, 8, 1, 0, 1 << 62),
        ((1 << 63) - 5, (1 << 63) - 1, 1, 5 - (1 << 63), 1),
        ((1 << 31) - 2, (1 << 31) + 2, 1, 2 - (1 << 31), 1),
        (0, 1 << 40, 1 << 38, 0, 0),
        (0, 1 << 62, 1 << 62, 0, 0),
    ],
)
def test_native_loops_end_as_those_of_the_reference(case: tuple[int, ...]) -> None:
    program = ferryvm.compile(on_heap(SUM.format(*case)))
    assert ended(Engine("llvm"), program) == ended(Engine("reference"), program)


def test_of_two_loops_one_after_the_other_each_is_asked_for_itself() -> None:
    source = """
(define (f v n m)
  (define i 0) (define s 0)
  (while (< i n) (set! s (+ s (vector-ref v i))) (set! i (+ i 1)))
  (set! i 0)
  (while (< i m) (set! s (- s (* 3 (vector-ref v i)))) (set! i (+ i 1)))
  s)
(f (make-vector i64 4) {} {})"""
    for n, m in ((3, 4), (4, 5), (5, 3)):
        program = ferryvm.compile(on_heap(source.format(n, m)))
        assert ended(Engine("llvm"), program) == ended(Engine("reference"), program)


def test_a_vector_past_the_end_of_the_heap_traps_and_is_not_read() -> None:
    source = """
(define (f v n)
  (define i 0) (define s 0)
  (while (< i n) (set! s (+ s (vector-ref v i))) (set! i (+ i 1)))
  s)
(f {} 4)"""
    for address in (1 << 20, (1 << 63) - 8, -8, -1):
        forged = ferryvm.compile(on_heap(source.format(address)))
        assert ended(Engine("llvm"), forged) == ended(Engine("reference"), forged)
        assert "heap access out of bounds" in str(ended(Engine("llvm"), forged)[0])
