# SPDX-License-Identifier: Apache-2.0
"""Items in lanes of vectors: results, output, states and traps are those of the loop, to the
bit."""

from __future__ import annotations

import ctypes
import dataclasses
import re
from pathlib import Path
from typing import Any

import numpy
import pytest

import ferryvm
import ferryvm.build
from ferryvm import Engine
from ferryvm.backend import Options as BackendOptions
from ferryvm.build import I64, I64_ARRAY
from ferryvm.engine import launching, team
from ferryvm.engine.execution import Execution
from ferryvm.engine.mixed import MixedArtifact
from ferryvm.engine.team import Team
from ferryvm.ir.lane.item import UnvectorisedError
from ferryvm.ir.lane.vectorise import lanes_of
from ferryvm.ir.lift import lift
from ferryvm.ir.passes.inline import inline_all
from ferryvm.ir.passes.pipeline import optimise
from ferryvm.machine.control import Status
from ferryvm.machine.lane import LANE_ENTRY
from ferryvm.machine.memory import Limits
from ferryvm.machine.state import Snapshot
from ferryvm.policy import Choice, Options, Policy, Profile, Rule
from ferryvm.policy.condition import Like
from ferryvm.policy.predicate import Test, When
from ferryvm.program import Program
from ferryvm.region.region import RegionKind, region, regions
from ferryvm.testing.generate import LIMITS, generate
from ferryvm.testing.generate.weights import Weights
from ferryvm.verify import verify
from ferryvm_backends.llvm import build
from ferryvm_backends.llvm.lower import lower

ITEMS = 45

HEAD = f"""
(define a (make-array i64 {ITEMS}))
(define b (make-array f64 {ITEMS}))
"""
TAIL = f"""
(for-each-item {ITEMS} (item a b))
(print! (array-ref a 7))
"""

ITEM = {
    "branches and stores": """
(define (item i a b)
  (if (< (% i 3) 1)
    (array-set! a i (* i 2))
    (if (< (% i 3) 2)
      (array-set! b i (/ 1.0 (f64 i)))
      (begin (array-set! a (- 44 (- 44 i)) 7) (array-set! b i -1.5)))))
""",
    "nested loops that differ": """
(define (item i a b)
  (define s 0)
  (define j 0)
  (while (< j (% i 7))
    (define k 0)
    (while (< k (% (+ i j) 5))
      (set! s (+ s (* k j)))
      (if (> s 20) (set! k 100))
      (set! k (+ k 1)))
    (set! s (+ s 1))
    (set! j (+ j 1)))
  (array-set! a i s))
""",
    "floats with NaN": """
(define (item i a b)
  (define x (/ (f64 (- i 20)) (f64 (- (% i 9) 4))))
  (define y (sqrt x))
  (array-set! b i (* y (- x x)))
  (array-set! a i (if (< x y) 1 (if (= x x) 2 3))))
""",
    "calls, gathers, divisions": f"""
(define (twice x) (* 2 (% x 1000)))
(define (item i a b)
  (define from (% (* i 7) {ITEMS}))
  (array-set! b i (+ (f64 (twice (/ (* i i) 7))) (f64 (% i 13))))
  (if (> (% i 5) 0) (array-set! a i (/ (twice from) (% i 5)))))
""",
}

EXITS = f"""
(define a (make-array i64 {ITEMS}))
(define (item (i i64) (a (array i64)) (at i64) (kind i64))
  (define n 0)
  (while (< n (% i 4)) (set! n (+ n 1)))
  (if (and (= i at) (= kind 1)) (print! i))
  (array-set! a i (+ n (if (= kind 2) (/ 1000 (- i at)) i))))
(define (work (at i64) (kind i64) (to (array i64)))
  (for-each-item {ITEMS} (item to at kind)))
"""


@pytest.fixture(autouse=True)
def _lanes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Items run out of order for any work, and few of them are suspended: memory is small."""
    monkeypatch.setattr(launching, "WORTH", 0.0)
    monkeypatch.setattr(launching, "SAMPLE", 0.0)
    monkeypatch.setattr(team, "MOST_SUSPENDED", 64)
    monkeypatch.setattr(team, "MOST_WORDS", 1024)


@pytest.fixture
def vectors(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of items that ran in lanes."""
    found: list[int] = []
    make = Team.__init__

    def noted(self: Team, *given: Any) -> None:
        make(self, *given)
        if self.entry is None:
            return
        code = LANE_ENTRY(self.entry.address)

        def run(control: int, first: int, limit: int, buffer: int) -> int:
            reached = code(control, first, limit, buffer)
            found.append(reached - first)
            return reached

        entry = LANE_ENTRY(run)
        kept.append(entry)
        self.range.lanes = ctypes.cast(entry, ctypes.c_void_p).value or 0

    kept: list[object] = []
    monkeypatch.setattr(Team, "__init__", noted)
    return found


def policy(lanes: int) -> Policy:
    options = Options(background=False, required=True, cache=False, threads=1, lanes=lanes)
    when = When((Test("kind", (Like("launch"),)),))
    rule = Rule(when=when, backends=(Choice("llvm", options),))
    return Policy(rules=(rule,), profile=Profile(loop_threshold=1))


def started(program: Program, lanes: int, limits: Limits | None = None) -> Execution:
    return Engine(policy=policy(lanes), limits=limits or Limits()).start(program)


def ended(execution: Execution) -> tuple[Snapshot, bytes, str]:
    output: list[bytes] = []
    execution.output = output.append
    trap = ""
    try:
        execution.run()
    except ferryvm.TrapError as error:
        trap = str(error)
    return execution.machine.snapshot(), b"".join(output), trap


@pytest.mark.parametrize(("name", "lanes"), [*zip(ITEM, (2, 4, 8, 16), strict=True)])
def test_results_in_lanes_are_those_of_the_loop_to_the_bit(
    name: str, lanes: int, vectors: list[int]
) -> None:
    program = ferryvm.compile(HEAD + ITEM[name] + TAIL)
    assert ended(started(program, lanes)) == ended(Engine("threaded").start(program))
    assert sum(vectors) >= ITEMS // lanes * lanes - lanes


UPDATES = """
(define (item (i i64) (counts (array i32)) (bits (array u32)) (totals (array i64)))
  (if (> (% i 3) 0) (atomic-add! counts (% (* i i) 5) (i32 i)))
  (atomic-min! counts 6 (i32 (- i)))
  (atomic-max! bits (% i 4) (- i 9))
  (if (= (% i 4) 1) (atomic-min! bits 5 (* i 1000000000)))
  (define j 0)
  (while (< j (% i 4))
    (atomic-or! totals 5 (<< 1 i))
    (atomic-and! totals (+ 6 (% j 2)) (- -1 (<< 1 i)))
    (atomic-add! totals (% (+ i j) 3) 7)
    (set! j (+ j 1)))
  (atomic-max! totals 8 (- i 20)))
(define counts (make-array i32 9))
(define bits (make-array u32 9 4000000000))
(define totals (make-array i64 9 -1))
(array-set! totals 5 0)
(for-each-item 45 (item counts bits totals))
"""


@pytest.mark.parametrize("lanes", [4, 16])
def test_atomic_updates_of_lanes_end_as_those_of_the_loop(lanes: int, vectors: list[int]) -> None:
    program = ferryvm.compile(UPDATES)
    assert ended(started(program, lanes)) == ended(Engine("threaded").start(program))
    assert sum(vectors) >= ITEMS // lanes * lanes - lanes


def test_exits_of_the_first_a_middle_and_the_last_lane_are_those_of_the_loop(
    vectors: list[int],
) -> None:
    program = ferryvm.compile(EXITS)
    found = Engine(policy=policy(4)).instantiate(program)
    expected = Engine("threaded").instantiate(program)
    for kind in (0, 1, 2):
        for at in (17, 18, 19, 20, ITEMS - 1):
            results = []
            for instance in (found, expected):
                to, message = numpy.zeros(ITEMS, numpy.int64), ""
                try:
                    instance.exports["work"](at, kind, to)
                except ferryvm.TrapError as error:
                    message = str(error)
                done = to.tolist()[: at if kind == 2 else None]
                results.append((done, message, instance.output))
            assert results[0] == results[1], (kind, at)
            assert (f"in item {at}" in results[0][1]) == (kind == 2)
    assert sum(vectors)


def test_lanes_beyond_the_end_of_an_array_trap_and_those_in_front_of_it_are_done(
    vectors: list[int],
) -> None:
    program = ferryvm.compile(
        "(define (item (i i64) (x (array f64)) (y (array f64)))"
        "  (array-set! y i (+ 0.5 (array-ref x i))))"
        "(define (work (n i64) (x (array f64)) (y (array f64))) (for-each-item n (item x y)))"
    )
    for length in (8, 9):  # one of them ends within a vector
        x, y = numpy.arange(length, dtype=float), numpy.zeros(ITEMS)
        work = Engine(policy=policy(2)).instantiate(program).exports["work"]
        with pytest.raises(ferryvm.TrapError, match=f"index {length}, .*, in item {length}"):
            work(ITEMS, x, y)
        assert y[:length].tolist() == (x + 0.5).tolist()
        assert sum(vectors) >= length - 4
        vectors.clear()


def test_the_reason_for_no_lanes_is_in_the_journal() -> None:
    program = ferryvm.compile(
        "(define s 0) (define (item i a) (set! s (+ s i)) (array-set! a i s))"
        "(define a (make-array i64 9)) (for-each-item 9 (item a)) (print! s)"
    )
    execution = started(program, 4)
    execution.run()
    ((_, artifact),) = execution._prepared.values()
    assert isinstance(artifact, MixedArtifact)
    reasons = [one.reason for each in artifact.journal.placements for one in each.attempts]
    assert reasons == ["not in lanes: its items write statics or allocate from the heap"]


@pytest.mark.parametrize(
    ("element", "is_left"),
    [("(array-ref x i)", True)]
    + [(f"({name} (array-ref x i))", False) for name in ("sqrt", "f64.sinh", "f64.exp")],
)
def test_short_loops_are_left_to_llvm_unless_it_does_not_vectorise_them(
    element: str, is_left: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "vector_bits", lambda: 512)
    program = verify(
        ferryvm.compile(
            f"(define (item i (x (array f64)) (y (array f64))) (array-set! y i {element}))"
            "(define x (make-array f64 9)) (define y (make-array f64 9)) (for-each-item 9 (item x y))"
        )
    )
    launch = next(one for one in regions(program) if one.kind is RegionKind.LAUNCH)
    options = BackendOptions(launches=frozenset({(launch.entry, 0)}))
    module, _ = build.improved(launch, options)
    assert (module.lanes is None) == is_left
    assert bool(module.scalar) == is_left
    if not is_left:
        text = str(lower(module, dataclasses.replace(options, lanes=16)))
        masks = re.findall(r" phi <16 x i1> (.*)", text)
        # Exits alone compute the numbers of items, as the block of the first element has none.
        before, _, _ = text.partition(" @llvm.masked.load.v16i64")
        assert re.search(r" add <16 x i64> ", before.rpartition("\non")[0])
        assert " add <16 x i64> " not in before.rpartition("\non")[2]
        assert masks
        assert not any("i1 1" in each for each in masks)  # see `_LaneLowering._full`


GRID = """
(define (item i j k (a (array i64)) width depth)
  (define at (+ (* (+ (* i width) j) depth) k))
  (define n 0)
  (if (= (% k 5) 3) (array-set! a at -1))
  (while (< n (% (+ i k) 3)) (array-set! a at (+ (array-ref a at) (* 100 i) (* 10 j) k)) (set! n (+ n 1))))
(define a (make-array i64 (* 2 3 11)))
(define b (make-array i64 (* 2 3 11)))
(for-each-item (2 3 11) (item a 3 11))
(for-each-item (22 1 3) (item b 1 3))
"""


@pytest.mark.parametrize("lanes", [4, 8])
def test_items_of_dimensions_in_lanes_end_as_those_of_the_loop(
    lanes: int, vectors: list[int]
) -> None:
    """Rows of 11 items: vectors are in one row or in two; rows of three: in two or three."""
    program = ferryvm.compile(GRID)
    assert ended(started(program, lanes)) == ended(Engine("threaded").start(program))
    assert sum(vectors) >= 2 * (66 // lanes * lanes - lanes)


def test_elements_of_a_row_are_consecutive_in_lanes() -> None:
    text = "(define (f i j to n) (array-set! to (+ (* i n) j) 1)) "
    text += "(for-each-item (3 8) (f (make-array i64 24) 8))"
    made = region(verify(ferryvm.compile(text)), "launch f in 2 dimensions/launch.1")
    source = lift(made)
    for body in source.functions.values():
        inline_all(source, body)
    optimise(source, 2, made.verified)
    names = [operation.name for operation in lanes_of(source).operations]
    assert [name for name in names if name.startswith("store")] == [
        "store_each",
        "store_consecutive",
    ]


def test_items_that_use_what_updates_return_are_not_run_in_lanes() -> None:
    text = "(define (item i a) (array-set! a i (atomic-fetch-add! a 0 1)))"
    text += "(define a (make-array i64 9)) (for-each-item 9 (item a))"
    made = region(verify(ferryvm.compile(text)), "main/launch.1")
    with pytest.raises(UnvectorisedError, match="use what atomic updates return"):
        lanes_of(lift(made))


@pytest.mark.nightly
def test_random_launches_in_lanes_end_as_in_an_interpreter(vectors: list[int]) -> None:
    weights = Weights.load(Path(__file__).parents[2] / "fuzz" / "launches.toml")
    for number in range(200):
        program = generate(20261126, number, weights=weights)
        expected = ended(Engine("threaded", limits=LIMITS).start(program))
        found = ended(started(program, (2, 4)[number % 2], LIMITS))
        assert found[1:] == expected[1:], number
        if expected[0].status is not Status.TRAP:  # then higher items may be done
            assert found[0] == expected[0], number
    assert sum(vectors) > 100


@pytest.mark.parametrize(
    ("factor", "added", "item"), [(40, (1 << 63) - 1 - 40 * 40, 41), ((1 << 63) // 41, 0, 42)]
)
def test_checked_arithmetic_in_lanes_ends_as_that_of_the_loop(
    factor: int, added: int, item: int, vectors: list[int]
) -> None:
    program = ferryvm.build.Program()
    main = program.function("main")
    put = program.function("put", {"item": I64, "to": I64_ARRAY})
    put.local_get("to")
    put.local_get("item")
    put.local_get("item")
    put.i64_const(factor)
    put.i64_mul_checked()
    put.i64_const(added)
    put.i64_add_checked()
    put.i64_const(3)
    put.i64_sub_checked()
    put.array_set_i64()
    main.i64_const(ITEMS)
    main.array_new_default_i64()
    main.i64_const(ITEMS)
    main.launch(put)
    program.start(main)
    _, _, trap = ended(started(program.build(), 4))
    assert trap == ended(Engine("threaded").start(program.build()))[2]
    assert f"in item {item}" in trap
    assert sum(vectors) >= 40
