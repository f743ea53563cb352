# SPDX-License-Identifier: Apache-2.0
"""Nests of usual programs run without their checks; what may fail at the limits of numbers does
not."""

from __future__ import annotations

import itertools
import random

import pytest

import ferryvm
from ferryvm.engine import Engine
from ferryvm.ir.graph import Module
from ferryvm.ir.lift import lift
from ferryvm.ir.passes import optimise
from ferryvm.ir.verify import verify_module
from ferryvm.machine.control import Status
from ferryvm.machine.memory import Limits
from ferryvm.machine.state import Machine
from ferryvm.region.region import Region, region
from ferryvm.verify import verify

from ..heap_vector import on_heap
from .comparison import SMALL, compare, visits
from .evaluator import Evaluator
from .test_loop_versioning import set_word, with_parameters

LIMITS = Limits(stack=8 << 10, heap=64 << 10, first_heap=1 << 15)
FOREVER = 1 << 40


def told(found: Region, machine: Machine) -> list[str]:
    """Which versions of nests a run of a region takes: empty for a fast one, else why not."""
    module = lift(found)
    optimise(module, remarks=True)
    verify_module(module, found.verified)
    evaluator = Evaluator(module, machine.copy(), FOREVER)
    evaluator.run()
    return [
        module.nests[nest].doubts[reason - 1].text if reason else ""
        for nest, reason in evaluator.told
    ]


def told_by(text: str) -> list[str]:
    """Which versions a program takes."""
    verified = verify(ferryvm.compile(on_heap(text)))
    execution = Engine("reference", limits=LIMITS).start(verified)
    return told(region(verified, "program"), execution.machine)


def nest(over: str, inside: str, first: int = 0, last: str = "n", column: int = 0) -> str:
    """A program that goes over rows and columns of `a`, `b` and `c`, which are n times n."""
    return f"""
(define (f (a (vector f64)) (b (vector f64)) (c (vector f64)) n)
  (define y {first})
  (while (< y {last})
    (let ((x {column}) (at (* y n)))
      (while (< x {over}) (let ((p (+ at x))) {inside}) (set! x (+ x 1))))
    (set! y (+ y 1))))
(define n 6)
(f (make-vector f64 (* n n)) (make-vector f64 (* n n)) (make-vector f64 (* n n)) n)
"""


FAST = {
    "copy": nest("n", "(vector-set! a p (vector-ref b p))"),
    "transpose": nest("n", "(vector-set! a p (vector-ref b (+ (* x n) y)))"),
    "row above": nest("n", "(vector-set! a p (vector-ref b (- p n)))", 1),
    "row below": nest("n", "(vector-set! a (- p n) (vector-ref b p))", 1),
    "five points": nest(
        "(- n 1)",
        "(vector-set! b p (+ (vector-ref a (- p 1)) (vector-ref a (+ p 1))"
        " (vector-ref a (- p n)) (vector-ref a (+ p n))))",
        1,
        "(- n 1)",
        1,
    ),
    "rows backwards": nest("n", "(vector-set! a p (vector-ref b (+ (* (- (- n 1) y) n) x)))"),
    "columns backwards": nest("n", "(vector-set! a (- (- (+ at n) 1) x) (vector-ref b p))"),
    "all backwards": nest("n", "(vector-set! a p (vector-ref b (- (- (* n n) 1) p)))"),
    "no columns": nest("(- n 7)", "(vector-set! a p (vector-ref b p))"),
    "matrix": """
(define (f (a (vector f64)) (b (vector f64)) (c (vector f64)) n)
  (define i 0)
  (while (< i n)
    (let ((j 0))
      (while (< j n)
        (let ((k 0) (p (+ (* i n) j)))
          (while (< k n)
            (vector-set! c p (+ (vector-ref c p)
              (* (vector-ref a (+ (* i n) k)) (vector-ref b (+ (* k n) j)))))
            (set! k (+ k 1))))
        (set! j (+ j 1))))
    (set! i (+ i 1))))
(f (make-vector f64 16) (make-vector f64 16) (make-vector f64 16) 4)
""",
    "floyd": """
(define (f (d (vector i32)) n)
  (define k 0)
  (while (< k n)
    (let ((i 0))
      (while (< i n)
        (let ((dik (vector-ref d (+ (* i n) k))) (j 0))
          (while (< j n)
            (let ((c (+ dik (vector-ref d (+ (* k n) j)))))
              (if (< c (vector-ref d (+ (* i n) j))) (vector-set! d (+ (* i n) j) c)))
            (set! j (+ j 1))))
        (set! i (+ i 1))))
    (set! k (+ k 1))))
(f (make-vector i32 25) 5)
""",
    "lu": """
(define (f (a (vector f64)) n)
  (define k 0)
  (while (< k n)
    (let ((i (+ k 1)))
      (while (< i n)
        (let ((m (vector-ref a (+ (* i n) k))) (j (+ k 1)))
          (vector-set! a (+ (* i n) k) m)
          (while (< j n)
            (vector-set! a (+ (* i n) j)
              (- (vector-ref a (+ (* i n) j)) (* m (vector-ref a (+ (* k n) j)))))
            (set! j (+ j 1))))
        (set! i (+ i 1))))
    (set! k (+ k 1))))
(f (make-vector f64 25) 5)
""",
    "message schedule": """
(define (f (m (vector i64)) (w (vector i64)))
  (define i 0)
  (while (< i 8) (vector-set! w i (vector-ref m i)) (set! i (+ i 1)))
  (set! i 8)
  (while (< i 24)
    (vector-set! w i (+ (vector-ref w (- i 8)) (vector-ref w (- i 3)) (vector-ref m (- i 8))))
    (set! i (+ i 1))))
(f (make-vector i64 16) (make-vector i64 24))
""",
}


@pytest.mark.parametrize("text", FAST.values(), ids=FAST.keys())
def test_usual_nests_run_without_their_checks(text: str) -> None:
    runs = told_by(text)
    assert runs
    assert not any(runs)


SLOW = {
    "one row too many": (
        nest("n", "(vector-set! a p (vector-ref c (+ p n)))"),
        "an address may be outside of the heap or of its object",
    ),
    "one row too early": (
        nest("n", "(vector-set! b p (vector-ref a (- p n)))"),
        "an address may be outside of the heap or of its object",
    ),
    "one vector twice": (
        nest("n", "(vector-set! a p (vector-ref b p))").partition("\n(f ")[0]
        + " (define v (make-vector f64 36)) (f v v v n)",
        "what is accessed in two places overlaps",
    ),
    "a step of nothing": (
        """
(define (f (a (vector i64)) (b (vector i64)) n k)
  (define i 3)
  (while (< i n) (vector-set! a i (vector-ref b i)) (set! i (+ i k))))
(f (make-vector i64 4) (make-vector i64 4) 9 -1)
""",
        "a step is not above zero",
    ),
}


@pytest.mark.parametrize(("text", "reason"), SLOW.values(), ids=SLOW.keys())
def test_the_reason_for_checks_is_told(text: str, reason: str) -> None:
    assert told_by(text)[:1] == [reason]


UNFIT = {
    "a store may go anywhere": "(vector-set! a (vector-ref b i) i)",
    "it calls a function": "(vector-set! a i (g (vector-ref b i)))",
}


@pytest.mark.parametrize(("reason", "inside"), UNFIT.items())
def test_the_reason_for_no_fast_copy_is_kept(reason: str, inside: str) -> None:
    text = f"""
(define (g x) (if (< x 1) x (g (- x 1))))
(define (f a b n) (define i 0) (while (< i n) {inside} (set! i (+ i 1))))
(f (make-vector i64 3) (make-vector i64 3) 3)
"""
    verified = verify(ferryvm.compile(on_heap(text)))
    module = lift(region(verified, "f"))
    optimise(module, remarks=True)
    (nest_,) = module.nests
    assert nest_.unfit is not None
    assert nest_.unfit.text == reason
    assert verified.program.source_map.position(nest_.unfit.pcs[0])


def test_nothing_is_told_unless_somebody_asks() -> None:
    verified = verify(ferryvm.compile(on_heap(FAST["copy"])))
    module = lift(region(verified, "program"))
    optimise(module)
    assert not module.nests
    assert all(o.name != "report_version" for body in module.bodies for o in body.operations)


# --- at the limits of numbers -----------------------------------------------------------------

LINES = """
(define (f v w from to step a b c d n)
  (define i from)
  (while (< i to)
    (let ((j c))
      (while (< j n)
        (vector-set! v (- (+ (* a i) j) b) (+ (vector-ref w (- (* d j) (- i b))) 1))
        (set! j (+ j 1))))
    (set! i (+ i step))))
(f (make-vector i64 12) (make-vector i64 12) 0 2 1 1 0 0 1 2)
"""
V, W = 0, 104
"""Where the program has its vectors of twelve elements."""

LIMIT = (1 << 63) - 1
EXTREME = (
    -LIMIT - 1,
    -LIMIT,
    LIMIT,
    LIMIT - 1,
    1 << 62,
    -(1 << 62),
    (1 << 61) + 1,
    1 << 60,
    (1 << 60) - 8,
    -(1 << 60),
    1 << 33,
    (1 << 32) - 1,
    -(1 << 32),
    1 << 31,
    -(1 << 31) - 1,
    1 << 27,
    (1 << 27) + 1,
)


def at_lines() -> tuple[Region, Machine]:
    for found, machine in visits(verify(ferryvm.compile(on_heap(LINES))), SMALL, most=300, times=1):
        if found.name == "f/nest.1":
            return found, machine.copy()
    raise AssertionError("the program does not come to its nest")


def leaves_as_before(found: Region, machine: Machine) -> tuple[Status, list[str]]:
    """How the region leaves, and which versions it took; fails if the reference would not."""
    modules: list[Module] = []

    def change(module: Module) -> None:
        optimise(module, remarks=True)
        modules.append(module)

    status = compare(found, machine, change, polls=20)
    module = modules[-1]
    evaluator = Evaluator(module, machine.copy(), 20)
    evaluator.run()
    return status, [
        module.nests[each].doubts[reason - 1].text if reason else ""
        for each, reason in evaluator.told
    ]


# v, w, from, to, step, a, b, c, d, n
AT_LIMITS = {
    "i goes up to the largest number": (V, W, LIMIT - 2, LIMIT, 1, 1, LIMIT - 2, 0, 1, 2),
    "the last step wraps": (V, W, LIMIT - 3, LIMIT, 7, 1, LIMIT - 3, 0, 1, 2),
    "a bound whose predecessor wraps": (V, W, 0, -LIMIT - 1, 1, 1, 0, 0, 1, 2),
    "nothing to do, from far off": (V, W, LIMIT, -LIMIT, 1, 1, 0, 0, 1, 2),
    "a scale that makes the sum wrap to the index": (V, W, 0, 2, 1, 1 << 63, 0, 0, 1, 2),
    "a product that wraps to nothing": (V, W, 0, 1 << 32, 1 << 31, 1 << 33, 0, 0, 1, 2),
    "a base that wraps": (V, W, 0, 2, 1, 1, -LIMIT - 1, 0, 1, 2),
    "a negative scale": (V, W, 0, 3, 1, -1, -4, 0, 1, 2),
    "columns from below zero": (V, W, 0, 3, 1, 1, -9, -3, 1, 2),
    "columns from below zero, first too early": (V, W, 0, 3, 1, 1, 0, -3, 1, 2),
    "a reference whose elements wrap": (-8, W, 0, 2, 1, 1, 0, 0, 1, 2),
    "a difference of references that wraps": (-LIMIT - 1, LIMIT - 7, 0, 2, 1, 1, 0, 0, 1, 2),
}


@pytest.mark.parametrize("values", AT_LIMITS.values(), ids=AT_LIMITS.keys())
def test_nests_at_the_limits_of_numbers_leave_as_they_did(values: tuple[int, ...]) -> None:
    found, machine = at_lines()
    leaves_as_before(found, with_parameters(machine, *values))


@pytest.mark.nightly
def test_no_number_makes_a_nest_leave_otherwise() -> None:
    """Random numbers, most small, some at the limits; many nests run without checks."""
    found, machine = at_lines()
    chance = random.Random("numbers")
    statuses, seen = set(), []
    for _ in range(40):
        values = list(
            chance.choice(((V, W, 2, 4, 1, 1, 1, 2, 1, 4), (W, V, 0, 3, 2, -1, -3, 3, 2, 5)))
        )
        for _ in range(chance.choice((0, 0, 1, 2))):
            place = chance.randrange(2, 10)
            values[place] += chance.choice((-2, -1, 1, 2))
        if chance.randrange(5) == 0:
            values[chance.randrange(2)] = chance.choice((V, W, 8, 96, 200))
        for _ in range(chance.choice((0, 0, 1))):
            values[chance.randrange(10)] = chance.choice(EXTREME)
        twin = with_parameters(machine, *values)
        if chance.randrange(4) == 0:
            set_word(twin, chance.choice((V, W)), chance.choice((0, 3, 6, *EXTREME)))
        status, versions = leaves_as_before(found, twin)
        statuses.add(status)
        seen += versions
    assert statuses >= {Status.LEAVE, Status.TRAP}
    assert 5 < seen.count("") < len(seen)
    assert len(set(seen)) > 4


@pytest.mark.parametrize("kind", ["i32", "u8 mask"])
def test_an_index_that_wraps_in_fewer_bits_keeps_its_check(kind: str) -> None:
    index = {"i32": "(i64 (+ (i32 i) k))", "u8 mask": "(& (+ i 250) 255)"}[kind]
    k = "2147483646i32"
    text = f"""
(define (f a b n (k i32))
  (define i 0)
  (while (< i n) (vector-set! a i (vector-ref b {index})) (set! i (+ i 1))))
(f (make-vector i64 9) (make-vector i64 300) 9 {k})
"""
    verified = verify(ferryvm.compile(on_heap(text)))
    found = region(verified, "f")
    for each, machine in itertools.islice(visits(verified, times=1), 40):
        if each.name == found.name:
            status = compare(each, machine, lambda module: optimise(module, remarks=True))
            assert status is (Status.TRAP if kind == "i32" else Status.LEAVE)
            return
    raise AssertionError("the function is not come to")
