# SPDX-License-Identifier: Apache-2.0
"""Loops that only count become formulas, with the same bits; no other loop does."""

from __future__ import annotations

import itertools
import random
import re

import pytest

import ferryvm
from ferryvm.ir.graph import Module
from ferryvm.ir.lift import lift
from ferryvm.ir.passes import optimise
from ferryvm.ir.passes.loop_deletion import delete_counting_loops
from ferryvm.isa.type import I64
from ferryvm.region.region import region
from ferryvm.verify import Verified, verify

from ..tier import sample
from .change import changed
from .comparison import compare, visits

LOOP = """
entry @0 ():
  %0: i64 = word 2
  %1: i64 = word 3
  jump b1({start}, %1)
b1 @1 (%2: i64, %3: i64):
  %4: boolean = compare i64 {condition} %2, {bound}
  branch %4 b2() b3()
b2 @2 ():
  {more}
  %5: i64 = {next}
  %6: i64 = add i64 %2, {step}
  poll @1 [_ _ %0 %1]
  jump b1(%6, %5)^
b3 @3 ():
  return %3
"""
USUAL = {
    "start": "%1",
    "condition": "lt_s",
    "bound": "%0",
    "step": "i64:1",
    "next": "add i64 %3, %2",
    "more": "%7: i64 = static 0",
}


def replaced(**parts: str) -> str:
    more = {"more": "", **parts}
    return changed(delete_counting_loops, LOOP.format(**{**USUAL, **more}))


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"next": "add i64 %3, i64:7"},
        {"next": "sub i64 %3, %2"},
        {"next": "add i64 %2, %3"},
        {"next": "mul i64 %2, %0"},
        {"next": "sub i64 i64:5, %2"},
        {"start": "i64:-5", "bound": "i64:1000", "step": "i64:3"},
        {"more": "%7: i64 = mul i64 %2, %1", "next": "add i64 %3, %7"},
    ],
    ids=str,
)
def test_a_loop_that_only_counts_is_none_any_more(parts: dict[str, str]) -> None:
    text = replaced(**parts)
    assert "^" not in text
    assert "poll" not in text


@pytest.mark.parametrize(
    "parts",
    [
        {"more": "heap_store 8 %1, %2"},
        {"more": "%7: boolean = compare i64 eq %2, %0\n  trap_if UNREACHABLE %7 @2 [_ _ %0 %1]"},
        {"more": "%7: i64 = static 0", "next": "add i64 %3, %7"},
        {"next": "mul i64 %3, %2"},
        {"next": "bit_xor i64 %3, %2"},
        {"next": "add i64 %3, %3"},
        {"condition": "ne"},
        {"condition": "lt_u"},
        {"step": "i64:0"},
        {"step": "i64:-1"},
        {"step": "%1"},
        {"step": "i64:2"},
        {"bound": "%2"},
        {"bound": f"i64:{(1 << 63) - 1}", "step": "i64:2"},
    ],
    ids=str,
)
def test_any_other_loop_stays(parts: dict[str, str]) -> None:
    assert "^" in replaced(**parts)


def test_a_bound_that_is_just_far_enough_from_the_end_is_fine() -> None:
    assert "^" not in replaced(bound=f"i64:{(1 << 63) - 2}", step="i64:2")


def test_a_nest_goes_from_the_inside_out() -> None:
    text = """
(define n 0)
(define (f a b)
  (define i 0)
  (while (< i a)
    (define j 0)
    (while (< j b) (set! n (+ n 1)) (set! j (+ j 1)))
    (set! i (+ i 1)))
  n)
(f 1000 100000)
"""
    module = _module(verify(ferryvm.compile(text)), "f")
    assert not any(edge.is_back for b in module.bodies for k in b.blocks for edge in k.end.edges)


def test_what_only_a_state_makes_canonical_is_what_the_loop_left() -> None:
    text = changed(
        delete_counting_loops,
        """
entry @0 ():
  %0: i64 = word 2
  jump b1(%0, f32:1.0)
b1 @1 (%1: i64, %2: f32):
  %3: boolean = compare i64 lt_s %1, i64:9
  branch %3 b2() b3()
b2 @2 ():
  %4: i64 = add i64 %1, i64:1
  poll @1 [_ _ %4 canonical(%2)]
  jump b1(%4, f32:0.0)^
b3 @3 ():
  leave @3 [_ _ %1 canonical(%2)]
""",
    )
    found = re.search(r"(%\d+): f32 = select %\d+, f32:0.0, f32:1.0", text)
    assert found is not None
    assert f"canonical({found[1]})]" in text


def test_a_body_that_pays_for_its_instructions_stays_as_it_is() -> None:
    program = verify(ferryvm.compile("(define i 0) (while (< i 9) (set! i (+ i 1))) i"))
    module = lift(region(program, "program"), counting=True)
    optimise(module)
    assert delete_counting_loops(module.root) == 0


def _module(program: Verified, name: str) -> Module:
    module = lift(region(program, name))
    optimise(module)
    for body in module.bodies:
        delete_counting_loops(body)
    return module


SMALL = (0, 1, 2, 5, 9, -1, -7, 30)
PROGRAM = """
(define s 1)
(define t 2)
(define (f start n k)
  (define i start)
  (define last 7)
  (while (< i n)
    (set! s (+ s {added}))
    (set! t (- t (+ (* i k) {added})))
    (set! last (- k (* 3 i)))
    (set! i (+ i 1)))
  (+ last i))
(+ (f {start} {n} {k}) (+ s t))
"""


@pytest.mark.parametrize("count", sample([5, 12], 1))
@pytest.mark.parametrize("added", ["i", "(* i k)", "(- k i)", "last", "5"])
def test_what_it_comes_to_is_the_same(added: str, count: int) -> None:
    pick = random.Random(added)
    cases = [*itertools.product(SMALL[:4], SMALL)]
    for start, n in pick.sample(cases, count):
        k = pick.choice((0, 1, -3, (1 << 62) + 12345, -(1 << 63)))
        text = PROGRAM.format(added=added, start=start, n=n, k=k)
        program = verify(ferryvm.compile(text))
        for found, machine in visits(program):
            compare(found, machine, _replace)


def _replace(module: Module) -> None:
    optimise(module)
    for body in module.bodies:
        delete_counting_loops(body)


@pytest.mark.parametrize("n", [(1 << 62) + 1, (1 << 62) + 2, (1 << 63) - 1])
def test_a_sum_over_more_rounds_than_anybody_waits_for_is_exact(n: int) -> None:
    text = f"(define i 0) (define s 0) (while (< i {n}) (set! s (+ s i)) (set! i (+ i 1))) s"
    result = ferryvm.run(ferryvm.compile(text), "opencl").value
    expected = (n * (n - 1) // 2) & I64.mask
    assert result == (expected - (1 << 64) if expected >> 63 else expected)
