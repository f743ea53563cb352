# SPDX-License-Identifier: Apache-2.0
"""Short loops become straight code, with the same states wherever that leaves."""

from __future__ import annotations

import pytest

import ferryvm
from ferryvm.ir.graph import Body, Module
from ferryvm.ir.lift import lift
from ferryvm.ir.loop.natural import find_loops
from ferryvm.ir.parse import parse_module
from ferryvm.ir.passes import optimise
from ferryvm.ir.passes.code_motion import hoist_invariants
from ferryvm.ir.passes.dead_code import remove_dead_code
from ferryvm.ir.passes.jump_threading import thread_jumps
from ferryvm.ir.passes.unroll import MOST_ITERATIONS, unroll
from ferryvm.ir.passes.value_numbering import number_values
from ferryvm.ir.text import module_text
from ferryvm.machine.control import Status
from ferryvm.region.region import region
from ferryvm.testing.generate import ProgramKind, generate
from ferryvm.verify import verify

from ..heap_vector import on_heap
from ..tier import crossed, sample
from .change import HEAD, changed
from .comparison import compare, visits

LOOP = """
entry @0 ():
  %0: i64 = word 2
  jump b1(i64:0)
b1 @1 (%1: i64):
  %2: boolean = compare i64 lt_s %1, %0
  branch %2 b2(i64:{start}, i64:0) b5()
b2 @2 (%3: i64, %4: i64):
  %5: boolean = compare i64 {condition} %3, {bound}
  branch %5 b3() b4()
b3 @3 ():
  %6: boolean = compare i64 eq %4, %0
  trap_if INDEX_OUT_OF_BOUNDS %6 @3 [_ _ %1 %3 %4]
  %7: i64 = add i64 %4, %3
  %8: i64 = add i64 %3, i64:{step}
  poll @2 [_ _ %1 %8 %7]
  jump b2(%8, %7)^
b4 @4 ():
  %9: i64 = add i64 %1, i64:1
  poll @1 [_ _ %9 %3 %4]
  jump b1(%9)^
b5 @5 ():
  leave @5 [_ _ %1]
"""
USUAL = {"start": 0, "bound": "i64:3", "condition": "lt_s", "step": 1}

UNFIT = {
    "it goes round too often": {"bound": f"i64:{MOST_ITERATIONS + 1}"},
    "it goes round for ever": {"step": -1},
    "it wraps": {"start": 1 << 62, "bound": f"i64:{(1 << 63) - 1}", "step": 1 << 62},
    "it counts down": {"condition": "gt_s", "start": 9, "step": -1},
    "it counts to what is not known": {"bound": "%0"},
}

PROGRAMS = {
    "rows": """
        (define (f v w n)
          (define i 0)
          (while (< i n)
            (let ((j 0))
              (while (< j n)
                (let ((s 0) (k 0))
                  (while (< k 3)
                    (set! s (+ s (* (vector-ref v (+ (* i n) k)) (vector-ref v (+ (* k n) j)))))
                    (set! k (+ k 1)))
                  (vector-set! w (+ (* i n) j) s))
                (set! j (+ j 1))))
            (set! i (+ i 1))))
        (f (make-vector i64 {length}) (make-vector i64 {length}) {n})
    """,
    "sums": """
        (define (f v w n)
          (define i 0)
          (while (< i n)
            (let ((s 0f32) (k 0))
              (while (< k 4)
                (set! s (+ s (* (vector-ref v k) (vector-ref v (+ i k)))))
                (set! k (+ k 1)))
              (vector-set! w i s))
            (set! i (+ i 1))))
        (f (make-vector f32 {length}) (make-vector f32 {length}) {n})
    """,
    "steps": """
        (define v (make-vector i64 {length}))
        (define (f n)
          (define i 0)
          (while (< i n)
            (let ((k 1))
              (while (< k 12)
                (vector-set! v (+ i k) (+ k (vector-ref v i)))
                (set! k (+ k 5))))
            (set! i (+ i 1))))
        (f {n})
    """,
    "branches": """
        (define v (make-vector i64 {length}))
        (define (f n)
          (define i 0)
          (while (< i n)
            (let ((k 0))
              (while (< k 3)
                (if (< k i) (vector-set! v (+ i k) k) (vector-set! v i (/ 6 (- 3 n))))
                (set! k (+ k 1))))
            (set! i (+ i 1))))
        (f {n})
    """,
    "nest": """
        (define (f v w n)
          (define i 0)
          (while (< i n)
            (let ((s 0) (y 0))
              (while (< y 3)
                (let ((x 0))
                  (while (< x 3)
                    (set! s (+ s (vector-ref v (+ i (* y 2) x))))
                    (set! x (+ x 1))))
                (set! y (+ y 1)))
              (vector-set! w i s))
            (set! i (+ i 1))))
        (f (make-vector i64 {length}) (make-vector i64 {length}) {n})
    """,
    "never": """
        (define (f n)
          (define i 0)
          (define s 0)
          (while (< i n)
            (let ((k 5)) (while (< k 5) (set! s (+ s k)) (set! k (+ k 1))) (set! s (+ s k)))
            (set! i (+ i 1)))
          s)
        (f {n}) {length}
    """,
    "early": """
        (define v (make-vector i64 {length}))
        (define (f n)
          (define i 0)
          (define s 0)
          (while (< i n)
            (let ((k 0))
              (while (and (< k 5) (= (vector-ref v k) 0)) (set! s (+ s k)) (set! k (+ k 1))))
            (set! i (+ i 1)))
          s)
        (f {n})
    """,
}


def test_each_iteration_is_code_of_its_own() -> None:
    def change(body: Body) -> None:
        assert unroll(body) == 1
        for each in (thread_jumps, remove_dead_code, number_values):
            each(body)

    assert changed(change, LOOP.format_map(USUAL)) == (
        """
entry @0 ():
  %0: i64 = word 2
  jump b1(i64:0)
b1 @1 (%1: i64):
  %2: boolean = compare i64 lt_s %1, %0
  branch %2 iteration0.b2() b5()
iteration0.b2 @2 ():
  %3: boolean = compare i64 eq i64:0, %0
  trap_if INDEX_OUT_OF_BOUNDS %3 @3 [_ _ %1 i64:0 i64:0]
  trap_if INDEX_OUT_OF_BOUNDS %3 @3 [_ _ %1 i64:1 i64:0]
  %4: boolean = compare i64 eq i64:1, %0
  trap_if INDEX_OUT_OF_BOUNDS %4 @3 [_ _ %1 i64:2 i64:1]
  %5: i64 = add i64 %1, i64:1
  poll @1 [_ _ %5 i64:3 i64:3]
  jump b1(%5)^
b5 @5 ():
  leave @5 [_ _ %1]
"""
    )


@pytest.mark.parametrize("reason", UNFIT)
def test_a_loop_is_left_alone_if(reason: str) -> None:
    text = LOOP.format_map(USUAL | UNFIT[reason])
    assert changed(unroll, text) == changed(lambda body: None, text)


def test_a_loop_in_no_other_is_left_alone() -> None:
    text = LOOP.format_map(USUAL).replace("jump b1(%9)^", "leave @1 [_ _ %9]")
    assert changed(unroll, text) == changed(lambda body: None, text)


@pytest.mark.parametrize(
    ("start", "bound", "step", "iterations"),
    [
        (0, 3, 1, 3),
        (7, 7, 1, 0),
        (9, 7, 1, 0),
        (-3, 3, 2, 3),
        (0, 16, 1, 16),
        (-(1 << 63), 5, 1 << 62, 3),
    ],
)
def test_a_loop_goes_round_as_often_as_before(
    start: int, bound: int, step: int, iterations: int
) -> None:
    blocks = {"start": start, "bound": f"i64:{bound}", "step": step, "condition": "lt_s"}
    text = changed(unroll, LOOP.format_map(blocks))
    assert text.count("trap_if") == iterations
    assert text.count("poll") == 1


SIZES = [(40, 7), (6, 7), (3, 3), (1, 2), (40, 0), (40, -1)]


@pytest.mark.parametrize(("name", "size"), crossed(PROGRAMS, SIZES, 1))
def test_states_are_the_same(name: str, size: tuple[int, int]) -> None:
    length, n = size
    text = PROGRAMS[name].format(length=length, n=n)
    found = [compare(*visit, _unrolled) for visit in visits(verify(ferryvm.compile(on_heap(text))))]
    assert found or n <= 0


def test_a_program_traps_in_the_middle_of_a_round() -> None:
    text = PROGRAMS["sums"].format(length=6, n=7)
    statuses = {
        compare(*visit, _unrolled) for visit in visits(verify(ferryvm.compile(on_heap(text))))
    }
    assert Status.TRAP in statuses


@pytest.mark.parametrize("number_", sample(range(40), 3))
def test_states_of_random_programs_are_the_same(number_: int) -> None:
    for found, machine in visits(verify(generate(83, number_, ProgramKind.BYTECODE))):
        compare(found, machine, _unrolled)


@pytest.mark.parametrize(("name", "loops"), [("sums", 1), ("nest", 1), ("never", 1)])
def test_what_is_around_becomes_the_innermost_loop(name: str, loops: int) -> None:
    program = verify(ferryvm.compile(on_heap(PROGRAMS[name].format(length=40, n=7))))
    module = lift(region(program, "f"))
    body = module.functions[region(program, "f").function] if module.functions else module.root
    for each in (thread_jumps, hoist_invariants, number_values):
        each(body)
    assert unroll(body) >= 1
    assert len(find_loops(body)) == loops


@pytest.mark.parametrize(("name", "loads"), [("sums", 4), ("rows", 3)])
def test_a_nest_with_unrolled_loops_gets_a_version_without_checks(name: str, loads: int) -> None:
    program = verify(ferryvm.compile(on_heap(PROGRAMS[name].format(length=40, n=5))))
    module = lift(region(program, "f/nest.1"))
    optimise(module, unrolled=True)
    (sure,) = (b for b in module.root.blocks if b.label.startswith("unchecked.iteration"))
    names = [operation.name for operation in sure.operations]
    assert names.count("heap_load") == loads  # the others are in front of the loop
    assert "trap_if" not in names
    assert names.count("poll") == 1
    accesses = [o for o in sure.operations if o.name in ("heap_load", "heap_store")]
    assert all(access in module.footprints for access in accesses)
    *others, store = (module.footprints[access] for access in accesses)
    assert all(store.is_apart(each) for each in others)


def test_nobody_else_gets_other_code() -> None:
    program = verify(ferryvm.compile(on_heap(PROGRAMS["sums"].format(length=40, n=7))))
    module = lift(region(program, "f/nest.1"))
    optimise(module)
    assert "iteration0" not in module_text(module)
    parse_module(module_text(module))


def _unrolled(module: Module) -> None:
    optimise(module, unrolled=True)


def test_unrolled_items_are_numbered() -> None:
    module = parse_module(f"{HEAD}{LOOP.format_map(USUAL)}")
    unroll(module.root, {2})
    items = [o.item for o in module.root.operations if o.name == "trap_if"]
    assert [item.number for item in items if item is not None] == [0, 1, 2]
    assert len({(item.launch, item.loop) for item in items if item is not None}) == 1


def test_items_of_two_iterations_of_a_loop_around_theirs_are_of_two_loops() -> None:
    around = LOOP.replace("compare i64 lt_s %1, %0", "compare i64 lt_s %1, i64:2")
    outer = "entry0 @9 ():\n  jump c1(i64:0)\nc1 @9 (%30: i64):\n"
    outer += "  %31: boolean = compare i64 lt_s %30, i64:5\n  branch %31 entry() c5()\n"
    text = around.replace("entry @0", outer + "entry @0").format_map(USUAL)
    text = text.replace("  leave @5 [_ _ %1]\n", AGAIN)
    module = parse_module(f"{HEAD}{text}")
    unroll(module.root, {2})
    stopped = [o.item for o in module.root.operations if o.name == "trap_if"]
    assert len(stopped) == 6
    assert len({item.loop for item in stopped if item is not None}) == 2


AGAIN = """  %32: i64 = add i64 %30, i64:1
  poll @9 [_ _ %32]
  jump c1(%32)^
c5 @6 ():
  leave @6 [_ _ %30]
"""
