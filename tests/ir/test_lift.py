# SPDX-License-Identifier: Apache-2.0
"""Lifted regions run as the reference does, and leave in its state; so they do after all passes."""

from __future__ import annotations

import collections

import pytest

import ferryvm
from ferryvm.ir.graph import Module
from ferryvm.ir.lift import lift
from ferryvm.ir.passes import optimise
from ferryvm.isa import INSTRUCTIONS
from ferryvm.isa.table import Flow
from ferryvm.machine.control import Status
from ferryvm.region.region import Region
from ferryvm.region.region import region as find_region
from ferryvm.testing.generate import ProgramKind, generate
from ferryvm.verify import Verified, verify

from ..heap_vector import on_heap
from ..random_program import small_programs
from ..tier import sample
from .comparison import compare, visits

PROGRAMS = {
    "loops": """
(define (work n)
  (define sum 0)
  (define i 0)
  (while (< i n)
    (let ((j 0))
      (while (< j i) (set! sum (+ sum (* i j))) (set! j (+ j 1))))
    (set! i (+ i 1)))
  sum)
(print! (work 9))
""",
    "statics": """
(define count 0)
(define total 1.5)
(define (step x) (set! count (+ count 1)) (set! total (+ total x)) count)
(define (walk n) (define i 0) (while (< i n) (step (f64 i)) (set! i (+ i 1))) count)
(print! (walk 7))
(print! total)
""",
    "vectors": """
(define (fill v n)
  (define i 0)
  (while (< i n) (vector-set! v i (* 0.5 (f64 i))) (set! i (+ i 1))))
(define (sum v w n)
  (define i 0)
  (define t 0.0)
  (while (< i n)
    (set! t (+ t (* (vector-ref v i) (vector-ref w i))))
    (vector-set! v i t)
    (set! i (+ i 1)))
  t)
(define v (make-vector f64 8))
(define w (make-vector f64 8))
(fill v 8)
(fill w 8)
(print! (sum v w 8))
(print! (sum v w 9))
""",
    "growing": """
(define (room n)
  (define i 0)
  (define total 0)
  (while (< i n)
    (set! total (+ total (vector-length (make-vector f64 (* 100 i)))))
    (set! i (+ i 1)))
  total)
(print! (room 5))
""",
    "recursion": """
(define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
(print! (fib 8))
""",
    "deep": """
(define (down n) (if (< n 1) 0 (+ 1 (down (- n 1)))))
(print! (down 10000))
""",
    "conditions": """
(define (odd-or-big n) (or (= (% n 2) 1) (and (> n 10) (< n 20))))
(define (count n)
  (define i 0)
  (define c 0)
  (while (< i n) (if (odd-or-big i) (set! c (+ c 1)) (set! c (+ c 2))) (set! i (+ i 1)))
  c)
(print! (count 25))
""",
    "nan": """
(define (mix n)
  (define x 0.0)
  (define y 1.0)
  (define i 0)
  (while (< i n)
    (set! x (- (/ x x) y))
    (set! y (* x (sqrt y)))
    (set! i (+ i 1)))
  x)
(print! (mix 5))
""",
    "divide": """
(define (spread n) (define i 6) (define s 0)
  (while (> i n) (set! s (+ s (/ 100 i))) (set! i (- i 1))) s)
(print! (spread 0))
(print! (spread -2))
""",
}


def all_of(verified: Verified, level: int, polls: int) -> collections.Counter[Status]:
    """How regions left, each run where the program came to it."""

    def change(module: Module) -> None:
        optimise(module, level, verified)

    found: collections.Counter[Status] = collections.Counter()
    for number, (region, machine) in enumerate(visits(verified)):
        unseen = branches(region, number) if number % 3 == 2 else frozenset()
        found[compare(region, machine, change, unseen, polls)] += 1
    return found


def branches(region: Region, number: int) -> frozenset[tuple[int, int]]:
    """One way of each branch of a region: of one that is left out."""
    code = region.verified.program.code
    found = set()
    for pc in region.pcs:
        if INSTRUCTIONS[code.opcodes[pc]].flow is Flow.BRANCH:
            found.add((pc, pc + 1 if (pc + number) % 2 else code.immediates[pc]))
    return frozenset(found)


@pytest.fixture(autouse=True)
def _checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FERRYVM_CHECK_IR", "1")


@pytest.mark.rotate("name", "level")
@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("name", PROGRAMS)
def test_regions_leave_in_the_state_of_the_reference(name: str, level: int) -> None:
    verified = verify(ferryvm.compile(on_heap(PROGRAMS[name])))
    assert sum(all_of(verified, level, polls=100).values()) >= 2


@pytest.mark.parametrize("name", ["loops", "vectors", "conditions", "nan"])
def test_interrupted_regions_leave_in_the_state_of_the_reference(name: str) -> None:
    verified = verify(ferryvm.compile(on_heap(PROGRAMS[name])))
    assert all_of(verified, 2, polls=3)[Status.INTERRUPTED] > 0


@pytest.mark.nightly
def test_a_region_may_leave_in_every_way() -> None:
    found: collections.Counter[Status] = collections.Counter()
    wanted = {"HALT", "LEAVE", "HOST", "TRAP", "GROW", "INTERRUPTED"}
    by_hand = (ferryvm.compile(on_heap(text)) for text in PROGRAMS.values())
    at_random = (generate(7, number, ProgramKind.BYTECODE) for number in range(8))
    for polls, programs in ((100, by_hand), (4, at_random)):
        for program in programs:
            found += all_of(verify(program), 2, polls=polls)
            if wanted <= {status.name for status in found}:
                return
    raise AssertionError(f"only {found}")


@pytest.mark.parametrize("kind", [ProgramKind.BYTECODE, ProgramKind.SKIFF])
@pytest.mark.parametrize("number", sample(range(12), 1))
def test_regions_of_random_programs_leave_in_the_state_of_the_reference(
    kind: ProgramKind, number: int
) -> None:
    (verified,) = small_programs(20261121, kind, 10 * number, 1)
    ran = sum(all_of(verified, level, polls=60).total() for level in (0, 2))
    assert ran >= 2


def test_items_store_a_static_on_the_path_that_writes_it_alone() -> None:
    text = "(define s 0) (define (item i to) (if (= i 7) (set! s i)) (array-set! to i s))"
    text += "(define a (make-array i64 9)) (for-each-item 9 (item a)) (print! s)"
    verified = verify(ferryvm.compile(text))
    blocks = [b for body in lift(find_region(verified, "item")).bodies for b in body.blocks]
    stores = [block for block in blocks if any(o.name == "set_static" for o in block.operations)]
    assert stores
    assert all(block.end.name == "jump" for block in stores)
