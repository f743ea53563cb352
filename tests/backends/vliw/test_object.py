# SPDX-License-Identifier: Apache-2.0
"""Arrays and structs in the memory of the simulated processor: what ends, and what is copied."""

from __future__ import annotations

import pytest

import ferryvm
from ferryvm.isa.element import Element
from ferryvm.machine.memory import Limits
from ferryvm.testing import Schedule, Verdict
from ferryvm.verify import verify
from ferryvm_backends.vliw.local_object import ObjectTransfer
from ferryvm_backends.vliw.machine.read import find, shipped

from ...engine.mixing import policy, start
from ...engine.object_program import GARBAGE, LISTS, MIXED, TREES, on_elements
from ...faults.compilers.search import differ_of
from ...object.compiled import engine
from ...tier import nightly
from ..ending import ended
from ..llvm.test_objects import SMALL
from .program import compiled, run, whole

PROGRAMS = {
    "mixed": MIXED,
    "garbage": GARBAGE.format(rounds=3),
    "lists": LISTS.format(length=9, times=4),
}


@pytest.mark.rotate("name", "schedule")
@pytest.mark.parametrize("schedule", Schedule)
@pytest.mark.parametrize("name", PROGRAMS)
def test_states_agree_however_the_program_moves(name: str, schedule: Schedule) -> None:
    program = verify(ferryvm.assemble(PROGRAMS[name]))
    found = differ_of("vliw").compare(program, schedule, seed=2)
    assert [(one.verdict, one.difference) for one in found] == [(Verdict.AGREE, None)] * len(found)


@pytest.mark.rotate("element", "is_outside", most=2)
@pytest.mark.parametrize("is_outside", [False, True])
@pytest.mark.parametrize("element", Element)
def test_every_instruction_on_arrays_of_numbers(element: Element, is_outside: bool) -> None:
    program, limits = ferryvm.assemble(on_elements(element, is_outside)), Limits(objects=1 << 20)
    assert ended(engine("vliw", limits), program) == ended(engine("reference", limits), program)


UPDATES = """
(define (update v i)
  (atomic-add! v 0 i) (atomic-min! v 1 i) (atomic-max! v 2 i)
  (atomic-and! v 3 (| i 3)) (atomic-or! v 4 i))
(define v (array {element} 5 5 5 7 1)) (define i -4)
(while (< i 9) (update v i) (set! i (+ i 3)))
(print! (array-ref v 0) (array-ref v 1) (array-ref v 2) (array-ref v 3) (array-ref v 4))
"""


@pytest.mark.parametrize("element", ["i64", nightly("i32"), nightly("u32")])
def test_atomic_updates_are_those_of_the_reference(element: str) -> None:
    program, limits = ferryvm.compile(UPDATES.format(element=element)), Limits(objects=1 << 20)
    assert ended(engine("vliw", limits), program) == ended(engine("reference", limits), program)


@pytest.mark.parametrize(
    "text",
    [LISTS.format(length=40, times=6), TREES.format(depth=8)],
    ids=["lists", "trees that do not fit"],
)
def test_an_allocation_that_does_not_fit_leaves_all_frames(text: str) -> None:
    program, limits = ferryvm.assemble(text), Limits(objects=SMALL)
    assert ended(engine("vliw", limits), program) == ended(engine("reference", limits), program)


SUMS = """
.host print_i64 (i64)
.function main
.local a i64[]
.local b f64[]
.local n i64
    i64.const 7
    i64.const 5000
    array.new_i64
    local.set a
    f64.const 7
    i64.const 5000
    array.new_f64
    local.set b
:again
    local.get a
    call sum
    host print_i64
{between}
    local.get n
    i64.const 1
    i64.add
    local.set n
    local.get n
    i64.const 8
    i64.lt_s
    jump_if again
    halt
.function sum (a i64[]) -> i64
.local i i64
.local s i64
:loop
    local.get a
    local.get i
    array.get_i64
    local.get s
    i64.add
    local.set s
    local.get i
    i64.const 1
    i64.add
    local.set i
    local.get i
    i64.const 5000
    i64.lt_s
    jump_if loop
    local.get s
    return
"""
"""Sums of an array that is in a block of its own, with code between them."""

STORE = "local.get a\n i64.const 4999\n local.get n\n array.set_i64"


@pytest.mark.parametrize(
    ("between", "sent"), [("", 40_000), (STORE, 40_000 + 7 * (40_000 % 4096))], ids=["", "stored"]
)
def test_an_array_is_copied_when_it_is_stale_and_only_then(
    between: str, sent: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[ObjectTransfer] = []
    plain = ObjectTransfer.__init__

    def note(self: ObjectTransfer, *arguments: object) -> None:
        plain(self, *arguments)  # type: ignore[arg-type]  # handed through
        made.append(self)

    monkeypatch.setattr(ObjectTransfer, "__init__", note)
    program = ferryvm.assemble(SUMS.format(between=between))
    execution = start(program, policy("vliw", threshold=1))
    execution.run()
    found = [one for each in made for one in each.traffic.arrays.values()]
    assert sum(one.to_device for one in found if one.name == "i64[5000]") == sent
    assert not any(one.to_host for one in found)
    assert {one.name for one in found} == {"objects", "i64[5000]"}


FILTER = """
(define (filter taps samples filtered n)
  (define i 0)
  (while (< i n)
    (let ((sum 0f32) (k 0))
      (while (< k 16)
        (set! sum (+ sum (* (array-ref taps k) (array-ref samples (+ i k)))))
        (set! k (+ k 1)))
      (array-set! filtered i sum))
    (set! i (+ i 1))))
(define taps (make-array f32 16 2f32))
(define samples (make-array f32 40 3f32))
(define filtered (make-array f32 24))
(filter taps samples {filtered} 24)
(array-ref {filtered} 23)
"""

STRUCTS = """
(define-struct node (value i64) (next node))
(define list null)
(define i 0)
(define sum 0)
(while (< i 20) (set! list (make-node i list)) (set! i (+ i 1)))
(define numbers (make-array i64 20 5))
(array-copy! numbers 3 numbers 0 12)
(while (!= i 0)
  (set! sum (+ (* sum 3) (node-value list)))
  (set-node-value! list (array-ref numbers (- i 1)))
  (set! list (node-next list))
  (set! i (- i 1)))
sum
"""


@pytest.mark.nightly
@pytest.mark.parametrize("filtered", [nightly("filtered"), "samples"])
def test_a_filter_ends_as_the_reference_does_also_in_place(filtered: str) -> None:
    program = ferryvm.compile(FILTER.format(filtered=filtered))
    assert ended(engine("vliw", Limits()), program) == ended(engine("reference", Limits()), program)


@pytest.mark.nightly
def test_arrays_that_are_two_limit_no_interval() -> None:
    """16 multiplications on four units: a store delays no load of the next iteration."""
    program = compiled(whole(FILTER.format(filtered="filtered")), find("multi16"))
    assert (4, 4) in {(loop.interval, loop.resource_bound) for loop in program.loops}


@pytest.mark.nightly
@pytest.mark.rotate("machine", "text", most=1)
@pytest.mark.parametrize("text", [FILTER.format(filtered="filtered"), STRUCTS])
@pytest.mark.parametrize("machine", sorted(shipped()))
def test_both_simulators_agree_on_objects(machine: str, text: str) -> None:
    part = whole(text)
    program = compiled(part, find(machine))
    one, other = (run(program, part, is_native) for is_native in (False, True))
    assert one.memory == other.memory
    assert (one.registers, one.counts.cycles) == (other.registers, other.counts.cycles)
    assert (one.counts.bundles == other.counts.bundles).all()
