# SPDX-License-Identifier: Apache-2.0
"""Inner loops of several iterations run together, with the same states wherever they leave."""

from __future__ import annotations

import pytest

import ferryvm
from ferryvm.ir.graph import Body, Module
from ferryvm.ir.lift import lift
from ferryvm.ir.passes import optimise
from ferryvm.ir.passes.range_check import hoist_range_checks
from ferryvm.ir.passes.unroll_and_jam import COPIES, unroll_and_jam
from ferryvm.machine.control import Status
from ferryvm.machine.state import Machine
from ferryvm.region.region import Region, region
from ferryvm.testing.generate import ProgramKind, generate
from ferryvm.verify import Verified, verify
from ferryvm_backends.reference import BACKEND as REFERENCE

from ..tier import crossed, sample
from .change import changed
from .comparison import FUEL, compare, run, visits

NEST = """
entry @0 ():
  %0: i64 = word 2
  %1: i64 = word 3
  %2: i64 = word 4
  jump b1(i64:0, f64:0.0)
b1 @1 (%3: i64, %4: f64):
  %5: boolean = compare i64 lt_s %3, %0
  branch %5 b2() b6()
b2 @2 ():
{before}  jump b3(f64:0.0, i64:0)
b3 @3 (%6: f64, %7: i64):
  %8: boolean = compare i64 lt_s %7, {bound}
  branch %8 b4() b5()
b4 @4 ():
  %9: i64 = add i64 {offset}, %3
  %10: i64 = element_load f64 %1, %9
  %11: f64 = reinterpret f64 i64 %10
  %12: f64 = fadd f64 {left}, %11
  %13: i64 = add i64 %7, i64:8
{inside}  poll @3 [_ _ %3 %7 %12]
  jump b3(%12, %13)^
b5 @5 ():
  %14: i64 = reinterpret i64 f64 %6
  element_store {elements} {place}, %3, %14
  %15: f64 = fadd f64 %4, %6
  %16: i64 = add i64 %3, i64:1
  poll @1 [_ _ %16 %15]
  jump b1(%16, %15)^
b6 @6 ():
  leave @6 [_ _ %3]
"""
USUAL = {
    "bound": "%0", "left": "%6", "elements": "f64", "place": "%2", "before": "", "inside": "",
    "offset": "%7",
}  # fmt: skip

UNFIT = {
    "the trip count varies": {"bound": "%3"},
    "iterations add up nothing": {"left": "%11"},
    "it stores what the inner loop loads": {"place": "%1"},
    "it stores at a place that varies": {"place": "%3"},
    "the inner loop stores": {"inside": "  element_store f64 %2, %7, i64:1\n"},
    "a check has no doubt": {"inside": "  trap_if UNREACHABLE %8 @4 [_ _ %3 %7]\n"},
    "a sum in front of the inner loop is one of the iteration before": {
        "before": "  %20: boolean = compare f64 lt %4, f64:1.0\n"
        "  trap_if UNREACHABLE %20 @2 [_ _ %3 %4]\n"
    },
    "there is a store in front": {"before": "  element_store f64 %2, %3, i64:1\n"},
}

PROGRAMS = {
    "product": """
        (define (f (a (array f64)) (b (array f64)) (c (array f64)) n m)
          (define j 0)
          (while (< j n)
            (let ((s 0.0) (k 0))
              (while (< k m)
                (set! s (+ s (* (array-ref a k) (array-ref b (+ (* k n) j)))))
                (set! k (+ k 1)))
              (array-set! c j s))
            (set! j (+ j 1))))
        """,
    "rows": """
        (define (f (a (array f64)) (b (array f64)) (c (array f64)) n m)
          (define j 0)
          (define total 1.0)
          (while (< j n)
            (let ((x (array-ref b j)) (s 0.0) (k 0))
              (while (< k m)
                (set! s (+ (/ s 2.0) (- x (array-ref a k))))
                (set! k (+ k 1)))
              (set! total (- s total))
              (if (< total 0.5) (array-set! c (- n j) total)))
            (set! j (+ j 1)))
          (array-set! c 0 total))
        """,
    "ends": """
        (define (f (a (array f64)) (b (array f64)) (c (array f64)) n m)
          (define j 0)
          (while (and (< j n) (> (array-ref b j) -4.0))
            (let ((s 0.0) (p 1.0) (k 0))
              (while (< k m)
                (set! s (- s (array-ref a k)))
                (set! p (* p (array-ref b (+ j k))))
                (set! k (+ k 1)))
              (array-set! c j (+ s p)))
            (set! j (+ j 1))))
        """,
    "onward": """
        (define (f (a (array f64)) (b (array f64)) (c (array f64)) n m)
          (define j 0)
          (while (< j n)
            (let ((s 1.0) (k 0))
              (while (< k m)
                (set! s (+ (array-ref b (+ j k)) (* s (array-ref a k))))
                (set! k (+ k 1)))
              (array-set! c (+ j 1) s))
            (set! j (+ j 1))))
        """,
}
CALL = """
(define a (make-array f64 {a}))
(define b (make-array f64 {b}))
(define c (make-array f64 40))
(define i 0)
(while (< i {a}) (array-set! a i (/ 1.0 (f64 (- i 1)))) (set! i (+ i 1)))
(set! i 0)
(while (< i {b}) (array-set! b i (- 11.5 (f64 i))) (set! i (+ i 1)))
(f a b {c} {n} {m})
"""
SIZES = [
    {"n": 18, "m": 2}, {"n": 8, "m": 1}, {"n": 17, "m": 3}, {"n": 17, "m": 4}, {"n": 9, "m": 0},
    {"n": 7, "m": 2}, {"n": 0, "m": 3}, {"n": 16, "m": 2, "c": "b"}, {"n": 16, "m": 2, "c": "a"},
    {"n": 30, "m": 2}, {"n": 41, "m": 1},
]  # fmt: skip
"""`c`: the array that receives the results; more than 3 of `a` and 51 of `b` are out of bounds."""


def _program(name: str, size: dict[str, object]) -> Verified:
    rest = {"a": 3, "b": 51, "c": "c"}
    return verify(ferryvm.compile(PROGRAMS[name] + CALL.format_map(rest | size)))


def _jammed(module: Module) -> None:
    optimise(module)
    for body in module.bodies:
        hoist_range_checks(body)
        unroll_and_jam(body)


def _function(verified: Verified) -> Body:
    found = region(verified, "f")
    module = lift(found)
    optimise(module)
    return module.functions[found.function]


def test_iterations_run_together_and_then_what_is_behind_each() -> None:
    text = changed(unroll_and_jam, NEST.format_map(USUAL))
    inner = text.partition("jammed.b4 @")[2].partition("jammed.exit")[0]
    assert inner.count("element_load") == COPIES
    assert inner.count("poll") == 1
    assert text.count("element_store") == COPIES + 1
    assert text.count("poll") == 4
    assert "compare i64 eq %1, %2" in text


def test_what_does_not_vary_is_loaded_once() -> None:
    uniform = NEST.format_map(USUAL).replace("add i64 %7, %3", "add i64 %7, %0")
    inner = changed(unroll_and_jam, uniform).partition("jammed.b4 @")[2].partition("jammed.exit")[0]
    assert inner.count("element_load") == 1


@pytest.mark.parametrize("reason", UNFIT)
def test_a_nest_is_left_alone_where(reason: str) -> None:
    text = NEST.format_map(USUAL | UNFIT[reason])
    assert changed(unroll_and_jam, text) == changed(lambda body: None, text)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_nest_of_arrays_is_jammed_once(name: str) -> None:
    body = _function(_program(name, SIZES[0]))
    hoist_range_checks(body)
    assert unroll_and_jam(body) == 1


@pytest.mark.parametrize(("name", "size"), crossed(PROGRAMS, SIZES, 1))
def test_states_are_the_same(name: str, size: dict[str, object]) -> None:
    _compare(name, size)


def test_iterations_that_load_what_the_one_before_stored_do_not_run_together() -> None:
    _compare("onward", {"n": 16, "m": 2, "c": "b"})


def _compare(name: str, size: dict[str, object]) -> None:
    for found, machine in visits(_program(name, size), most=3000, times=1):
        if found.name.startswith("f"):
            compare(found, machine, _jammed, polls=1 << 30)


@pytest.mark.parametrize("polls", sample([1, 2, 3, 5, 7, 8, 9, 12], 3))
def test_the_rest_runs_elsewhere_after_any_poll(polls: int) -> None:
    verified = _program("rows", SIZES[0])
    found, machine = next(each for each in visits(verified, most=6000) if each[0].name == "f")
    left = run(found, machine, _jammed, polls=polls, counting=False)
    assert left.status is Status.INTERRUPTED
    assert _at_the_end(found, left).snapshot() == _at_the_end(found, machine).snapshot()


def _at_the_end(of: Region, machine: Machine) -> Machine:
    """The machine after the reference backend has run the rest of the program."""
    twin = machine.copy()
    twin.control.interrupt = 0
    twin.control.fuel = FUEL
    REFERENCE.prepare(of.verified).enter(twin, True)
    twin.control.fuel = 0
    return twin


@pytest.mark.parametrize("number", sample(range(40), 3))
def test_states_of_random_programs_are_the_same(number: int) -> None:
    for found, machine in visits(verify(generate(87, number, ProgramKind.BYTECODE))):
        compare(found, machine, _jammed, polls=1 << 30)
