# SPDX-License-Identifier: Apache-2.0
"""Nests that store get a version without checks, which runs only where none of them can fail."""

from __future__ import annotations

import random

import pytest

import ferryvm
from ferryvm.ir.footprint import Footprint
from ferryvm.ir.graph import Module, Operation
from ferryvm.ir.lift import lift
from ferryvm.ir.parse import parse_module
from ferryvm.ir.passes import optimise
from ferryvm.ir.passes.code_motion import hoist_invariants
from ferryvm.ir.passes.jump_threading import thread_jumps
from ferryvm.ir.passes.loop_versioning import version_loops
from ferryvm.ir.passes.value_numbering import number_values
from ferryvm.ir.text import module_text
from ferryvm.ir.verify import verify_module
from ferryvm.ir.versioned_nest import VersionedNest
from ferryvm.machine.control import Status
from ferryvm.machine.state import Machine
from ferryvm.region.region import Region, region
from ferryvm.verify import verify

from ..heap_vector import on_heap
from ..tier import sample
from .change import changed
from .comparison import compare, visits
from .evaluator import Evaluator

NEST = """
(define (f v w u n m step)
  (define i 0)
  (while (< i n)
    (let ((j (+ i 1)))
      (while (< j m)
        (vector-set! v i (+ (vector-ref v i) (vector-ref u i)))
        (vector-set! w j (- (vector-ref w j) (vector-ref v i)))
        (set! j (+ j step))))
    (set! i (+ i 1))))
(f (make-vector i64 6) (make-vector i64 6) (make-vector i64 6) 5 6 1)
"""
V, W, U = 0, 56, 112
"""Where the program has its vectors of six elements."""

MASK = (1 << 64) - 1


def at_nest() -> tuple[Region, Machine]:
    """The nest of the program, and a machine that stands at it, with a different number in each
    element."""
    for found, machine in visits(verify(ferryvm.compile(on_heap(NEST))), most=300, times=1):
        if found.name == "f/nest.1":
            twin = machine.copy()
            for vector in (V, W, U):
                for address in range(vector + 8, vector + 56, 8):
                    set_word(twin, address, 1000 + address)
            return found, twin
    raise AssertionError("the program does not come to its nest")


def with_parameters(machine: Machine, *values: int) -> Machine:
    """A copy of the machine where the parameters of `f` are others."""
    twin = machine.copy()
    start = twin.control.fp - twin.verified.parameters(twin.control.pc)
    for number_, value in enumerate(values):
        twin.memory.stack[start + number_] = value & MASK
    return twin


def set_word(machine: Machine, address: int, value: int) -> None:
    machine.memory.heap[address : address + 8] = (value & MASK).to_bytes(8, "little")


def prepare(module: Module) -> None:
    """What versioning requires."""
    for body in module.bodies:
        thread_jumps(body)
        hoist_invariants(body)
        number_values(body)


def version(module: Module) -> None:
    """Versioning by itself: other passes hide mistakes in the order of loads and stores."""
    prepare(module)
    for body in module.bodies:
        version_loops(body)


def is_sure(machine: Machine, found: Region) -> bool:
    """Whether the version without checks is the one that runs."""
    module, nests = lift(found), list[VersionedNest]()
    prepare(module)
    for body in module.bodies:
        version_loops(body, remarks=nests)
    verify_module(module)
    evaluator = Evaluator(module, machine.copy())
    evaluator.run()
    assert evaluator.told
    return not any(reason for _, reason in evaluator.told)


def leaves_as_before(found: Region, machine: Machine) -> Status:
    """How the region leaves, after all passes and after versioning alone; fails where the reference
    backend would not be in its state."""
    status = compare(found, machine, optimise)
    assert compare(found, machine, version) is status
    return status


@pytest.mark.parametrize("order", [(V, W, U), (U, W, V), (W, U, V), (V, W, U + 8)])
def test_vectors_in_any_order_up_to_the_end_of_the_heap_are_sure(
    order: tuple[int, int, int],
) -> None:
    found, machine = at_nest()
    machine = with_parameters(machine, *order)
    assert is_sure(machine, found)
    leaves_as_before(found, machine)


IN_DOUBT = {
    "one vector twice": (V, V, U, 5, 6, 1),
    "a store may hit what is only read": (V, W, V, 5, 6, 1),
    "one vector inside of another": (V, V + 8, U, 4, 5, 1),
    "a last element is the first one of the next": (V, W, U, 7, 8, 1),
    "no reference at all": (V, W, -8, 5, 6, 1),
    "a reference past all others": (V, 1 << 62, U, 5, 6, 1),
    "references whose difference wraps": (-(1 << 63), (1 << 63) - 8, U, 5, 6, 1),
    "the end of the heap": (V, W, U + 16, 5, 6, 1),
    "a large bound": (V, W, U, 5, 1 << 61, 1),
    "another large bound": (V, W, U, (1 << 61) + 1, 6, 1),
    "a bound that makes the size wrap": (V, W, U, 5, (1 << 61) - 1, 1),
    "a step of nothing": (V, W, U, 5, 6, 0),
    "a step back": (V, W, U, 1, 6, -1),
    "a step that wraps": (V, W, U, 5, 6, (1 << 63) - 1),
}


@pytest.mark.parametrize("values", IN_DOUBT.values(), ids=IN_DOUBT.keys())
def test_what_may_fail_runs_with_its_checks(values: tuple[int, ...]) -> None:
    found, machine = at_nest()
    machine = with_parameters(machine, *values)
    assert not is_sure(machine, found)
    leaves_as_before(found, machine)


STEPS = """
(define (f w v n)
  (define i 0)
  (while (< i n)
    (let ((j {start}))
      (while (< j n)
        (vector-set! v (+ j {more}) (+ (vector-ref w j) i))
        (set! j (+ j {step}))))
    (set! i (+ i 1))))
(f (make-vector i64 12) (make-vector i64 12) {n})
"""


@pytest.mark.parametrize(
    ("start", "step", "more", "n"),
    [
        (0, 4, 3, 12),
        (0, 4, 3, 9),
        (0, 4, 4, 9),
        (1, 5, 1, 12),
        (1, 5, 0, 12),
        (2, 3, 0, 12),
        (2, 3, 1, 12),
        (0, 3, 2, 12),
        (0, 3, 3, 12),
        (7, 4, 0, 3),
    ],
)
def test_the_largest_index_is_one_that_the_steps_come_to(
    start: int, step: int, more: int, n: int
) -> None:
    """Here 12 elements, the last ones of the heap, are just enough, or one too few."""
    text = STEPS.format(start=start, step=step, more=more, n=n)
    for found, machine in visits(verify(ferryvm.compile(on_heap(text))), most=300, times=1):
        if found.name == "f/nest.1":
            status = leaves_as_before(found, machine)
            is_over = (n - 1 - start) // step * step + start + more >= 12
            assert (status is Status.TRAP) is is_over
            if n > start:
                assert is_sure(machine, found) is not is_over
            return
    raise AssertionError("the program does not come to its nest")


@pytest.mark.nightly
@pytest.mark.parametrize("seed", sample(range(8), 1))
def test_any_vectors_leave_as_they_did(seed: int) -> None:
    chance = random.Random(seed)
    found, machine = at_nest()
    statuses = set()
    for _ in range(25):
        references = [
            chance.choice([V, W, U, 8 * chance.randrange(22), chance.randrange(190), -8])
            for _ in range(3)
        ]
        bounds = [chance.choice([1, 2, 4, 6, 7, 0, -1, 1 << 61]) for _ in range(2)]
        twin = with_parameters(machine, *references, *bounds, chance.choice([1, 1, 1, 2, 0, -1]))
        for address in range(0, U + 56, 8):
            set_word(twin, address, chance.choice([0, 1, 2, 6, 6, 6, -1, 1 << 61]))
        statuses.add(leaves_as_before(found, twin))
    assert statuses >= {Status.LEAVE, Status.TRAP}


# --- which nests ------------------------------------------------------------------------------


def versions(text: str, name: str) -> int:
    """How many nests of a function's region get two versions."""
    module = lift(region(verify(ferryvm.compile(on_heap(text))), name))
    made = 0
    for body in module.bodies:
        for each in (thread_jumps, hoist_invariants, number_values):
            each(body)
        made += version_loops(body)
        verify_module(module)
    return made


LOOP = """
(define (g x) x)
(define (f v w n k)
  (define i 0)
  (while (< i n)
    {}
    (set! i (+ i 1))))
(f (make-vector i64 9) (make-vector i64 9) 3 1)
"""


@pytest.mark.parametrize(
    "inside",
    [
        "(vector-set! v i (vector-ref w i))",
        "(vector-set! v (+ i k) (vector-ref w (* k i)))",
        "(vector-set! v (+ (* 2 i) 1) (vector-ref w (- (+ k i) 1)))",
        "(vector-set! v 3 (+ i (vector-ref w (vector-ref w i))))",
        "(if (< (vector-ref w i) k) (vector-set! v i k) (vector-set! v k i))",
    ],
)
def test_lines_over_counts_get_two_versions(inside: str) -> None:
    assert versions(LOOP.format(inside), "f") == 1


@pytest.mark.parametrize(
    "inside",
    [
        "(vector-ref v (+ i (vector-ref w i)))",
        "(vector-set! v (vector-ref w i) i)",
        "(vector-set! v (* i i) (vector-ref w i))",
        "(vector-set! v i (vector-ref v i))",
        "(vector-set! v i (g (vector-ref w i)))",
        "(begin (vector-set! v i (vector-ref w i)) (set! i (* i 2)))",
    ],
)
def test_other_loops_are_left_alone(inside: str) -> None:
    text = LOOP.format(inside)
    if "(g (" in text:  # and not put into the loop
        text = text.replace("(define (g x) x)", "(define (g x) (if (< x 1) x (g (- x 1))))")
    assert versions(text, "f") == 0


def test_what_a_nest_defines_is_used_behind_it_from_either_version() -> None:
    text = """
(define (f v w n)
  (define i 0)
  (define s 0)
  (while (< i n)
    (set! s (+ s (vector-ref w i)))
    (vector-set! v i s)
    (set! i (+ i 1)))
  (+ s (* 100 i)))
(print! (f (make-vector i64 4) (make-vector i64 4) 4))
"""
    verified = verify(ferryvm.compile(on_heap(text)))
    assert versions(text, "f") == 1
    seen = [compare(found, machine, optimise) for found, machine in visits(verified)]
    assert Status.LEAVE in seen


def test_a_nest_in_a_nest_that_is_left_alone_gets_its_versions() -> None:
    inner = "(let ((j 0)) (while (< j k) (vector-set! v j (vector-ref w j)) (set! j (+ j 1))))"
    assert versions(LOOP.format(f"{inner} (print! i)"), "f/loop.1.1") == 1


def test_the_text_of_two_versions_can_be_read_again() -> None:
    module = lift(region(verify(ferryvm.compile(on_heap(NEST))), "f"))
    optimise(module)
    text = module_text(module)
    assert "unchecked." in text
    again = parse_module(text)
    verify_module(again)
    assert module_text(again) == text


def test_a_body_without_loops_is_left_as_it_is() -> None:
    module = lift(region(verify(ferryvm.compile(on_heap(NEST))), "main"))
    before = module_text(module)
    assert version_loops(module.root) == 0
    assert module_text(module) == before


ARRAYS = """
entry @0 ():
  %0: i64 = word 2
  %1: i64 = word 3
  %2: i64 = word 4
  %3: i64 = header_word 1 %0
  %4: i64 = header_word 2 %0
  %5: i64 = header_word 1 %1
  %6: i64 = header_word 2 %1
  %7: boolean = compare i64 eq %0, i64:0
  jump b0(i64:0)
b0 @1 (%8: i64):
  %9: boolean = compare i64 lt_s %8, %2
  branch %9 b1() b5()
b1 @2 ():
  %10: i64 = shl i64 %8, i64:3
  jump b2(i64:0)
b2 @3 (%11: i64):
  %12: boolean = compare i64 lt_s %11, %2
  branch %12 b3() b4()
b3 @4 ():
  trap_if NULL_REFERENCE %7 @4 [_ _ %0 %1 %2]
  %13: boolean = compare i64 ge_u %8, %5
  trap_if INDEX_OUT_OF_BOUNDS %13 @4 [_ _ %0 %1 %2]
  %14: i64 = element_load f64 %6, %10
  %15: boolean = compare i64 ge_u %11, %3
  trap_if INDEX_OUT_OF_BOUNDS %15 @4 [_ _ %0 %1 %2]
  %16: i64 = shl i64 %11, i64:3
  element_store {elements} {place}, %16, %14
  %17: i64 = add i64 %11, i64:1
  poll @3 [_ _ %0 %1 %2]
  jump b2(%17)^
b4 @5 ():
  %18: i64 = add i64 %8, i64:1
  poll @1 [_ _ %0 %1 %2]
  jump b0(%18)^
b5 @6 ():
  leave @6 [_ _ %0 %1 %2]
"""


def copy_of(elements: str = "f64", place: str = "%4") -> tuple[str, str]:
    """The runtime checks before the nest over arrays, and the inner loop of its copy."""
    text = changed(version_loops, ARRAYS.format(elements=elements, place=place))
    checks = text.partition("check.b0 @")[2].partition("original.b0 @")[0]
    return checks, text.partition("unchecked.b3 @")[2].partition("jump unchecked.b2")[0]


def test_a_nest_over_arrays_has_no_checks_and_loads_once_what_it_does_not_store_into() -> None:
    checks, inner = copy_of()
    assert "trap_if" not in inner
    assert "element_load" not in inner
    assert "element_store" in inner
    assert "compare i64 eq %6, %4" in checks


def test_arrays_of_other_elements_are_not_compared() -> None:
    checks, inner = copy_of(elements="i64")
    assert "element_load" not in inner
    assert "compare i64 eq %6" not in checks


def test_an_element_of_an_array_that_is_stored_into_is_loaded_each_time() -> None:
    checks, inner = copy_of(place="%6")
    assert "trap_if" not in inner
    assert "element_load" in inner
    assert "compare i64 eq %6" not in checks


def test_a_load_at_a_constant_index_is_hoisted() -> None:
    """The check of the index is invariant, and its offset is a constant, too."""
    text = ARRAYS.replace("ge_u %8, %5", "ge_u i64:3, %5").replace("%6, %10", "%6, i64:24")
    inner = changed(version_loops, text.format(elements="f64", place="%4"))
    assert "element_load" not in inner.partition("unchecked.b3 @")[2].partition("jump")[0]


def test_arrays_that_a_loop_stores_into_are_compared_with_others_on_request() -> None:
    head = "module m\n\nregion r function=0 entry=0"
    index = "element_load f64 %6, %16"  # not hoisted
    text = ARRAYS.replace("  %14: i64 = element_load f64 %6, %10\n", "")
    text = text.replace("i64:3\n  element_store", f"i64:3\n  %14: i64 = {index}\n  element_store")
    module = parse_module(head + text.format(elements="f64", place="%4"))
    found: dict[Operation, Footprint] = {}
    version_loops(module.root, found, apart=True)
    checks = module_text(module).partition("check.b0 @")[2].partition("original.b0 @")[0]
    assert "compare i64 eq %4, %6" in checks or "compare i64 eq %6, %4" in checks
    (load,) = (footprint for access, footprint in found.items() if access.name == "element_load")
    (store,) = (footprint for access, footprint in found.items() if access.name == "element_store")
    assert load.is_apart(store)


def test_a_load_is_hoisted_from_a_loop_that_the_header_around_it_branches_to() -> None:
    """Only behind that branch the outer index is below the length."""
    old = """  branch %9 b1() b5()
b1 @2 ():
  %10: i64 = shl i64 %8, i64:3
  jump b2(i64:0)
"""
    assert old in ARRAYS
    new = "  %10: i64 = shl i64 %8, i64:3\n  branch %9 b2(i64:0) b5()\n"
    text = changed(version_loops, ARRAYS.replace(old, new).format(elements="f64", place="%4"))
    preheader = text.partition("unchecked.preheader.b2 @")[2].partition("jump")[0]
    assert "element_load" in preheader


FLAT = """
entry @0 ():
  %0: i64 = word 2
  %1: i64 = word 3
  %2: i64 = header_word 1 %0
  %3: i64 = header_word 2 %0
  %4: i64 = header_word 1 %1
  %5: i64 = header_word 2 %1
  jump b0(i64:0)
b0 @1 (%6: i64):
  %7: boolean = compare i64 lt_s %6, i64:5
  branch %7 b1() b2()
b1 @2 ():
  %8: boolean = compare i64 ge_u %6, %2
  trap_if INDEX_OUT_OF_BOUNDS %8 @2 [_ _ %0 %1]
  %9: i64 = shl i64 %6, i64:3
  %10: i64 = element_load f64 %3, %9
  %11: boolean = compare i64 ge_u %6, {length}
  trap_if INDEX_OUT_OF_BOUNDS %11 @3 [_ _ %0 %1]
  element_store f64 {place}, %9, %10
  %12: i64 = add i64 %6, i64:1
  poll @1 [_ _ %0 %1]
  jump b0(%12)^
b2 @6 ():
  leave @6 [_ _ %0 %1]
"""


def test_a_loop_over_two_arrays_gets_a_copy_without_checks_and_one_over_one_array_none() -> None:
    text = changed(version_loops, FLAT.format(length="%4", place="%5"))
    copy = text.partition("unchecked.b1 @")[2].partition("jump unchecked.b0")[0]
    assert "element_store" in copy
    assert "trap_if" not in copy
    assert "unchecked" not in changed(version_loops, FLAT.format(length="%2", place="%3"))
