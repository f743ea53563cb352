# SPDX-License-Identifier: Apache-2.0
"""Loops whose checks depend on a doubt become two, with the same states wherever they leave."""

from __future__ import annotations

import pytest

import ferryvm
from ferryvm.ir.graph import Module
from ferryvm.ir.passes import optimise
from ferryvm.ir.passes.range_check import hoist_range_checks
from ferryvm.ir.passes.unswitch import unswitch
from ferryvm.testing.generate import ProgramKind, generate
from ferryvm.verify import verify

from ..heap_vector import on_heap
from ..tier import sample
from .change import changed
from .comparison import compare, visits

LOOP = """
entry @0 ():
  %0: i64 = word 2
  %1: boolean = compare i64 lt_s %0, i64:3
  jump b1(%0)
b1 @1 (%2: i64):
  %3: boolean = compare i64 lt_s %2, i64:9
  branch %3 b2() b3()
b2 @2 ():
  %4: boolean = compare i64 eq %2, i64:5
  %5: boolean = all %4, {doubt}
  trap_if INDEX_OUT_OF_BOUNDS %5 @2 [_ _ %2]
  %6: i64 = add i64 %2, i64:1
  poll @1 [_ _ %6]
  jump b1(%6)^
b3 @3 ():
  leave @3 [_ _ %2]
"""
SUM = """
(define v (make-vector i64 {length})) (define w (make-vector f32 30))
(define (f n)
  (define s 0.0) (define i 0)
  (while (< i n)
    (set! s (+ s (* (f64 (vector-ref v i)) (f64 (vector-ref w i)))))
    (set! i (+ i 1)))
  s)
(f {n})
"""


def test_the_copy_has_no_checks_that_need_the_doubt() -> None:
    text = changed(unswitch, LOOP.format(doubt="%1"))
    assert text.count("trap_if") == 1
    assert text.count("^") == 2
    assert "branch %1 original.b1() preheader.b1()" in text


def test_a_loop_of_fewer_operations_than_wanted_stays_one() -> None:
    text = LOOP.format(doubt="%1")
    assert changed(lambda body: unswitch(body, least=9), text).count("trap_if") == 1
    assert changed(lambda body: unswitch(body, least=9), text).count("^") == 1
    assert changed(lambda body: unswitch(body, least=2), text).count("^") == 2


def test_a_doubt_that_varies_is_none() -> None:
    text = LOOP.format(doubt="%3")
    assert changed(unswitch, text) == changed(lambda body: None, text)


@pytest.mark.parametrize(("length", "n"), [(30, 30), (30, 31), (3, 9), (30, 0), (1, -5)])
def test_states_are_the_same(length: int, n: int) -> None:
    for found, machine in visits(verify(ferryvm.compile(on_heap(SUM.format(length=length, n=n))))):
        compare(found, machine, _split)


@pytest.mark.parametrize("number", sample(range(40), 2))
def test_states_of_random_programs_are_the_same(number: int) -> None:
    for found, machine in visits(verify(generate(81, number, ProgramKind.BYTECODE))):
        compare(found, machine, _split)


def _split(module: Module) -> None:
    optimise(module)
    for body in module.bodies:
        hoist_range_checks(body)
        unswitch(body)
