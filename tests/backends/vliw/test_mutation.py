# SPDX-License-Identifier: Apache-2.0
"""Whatever change of a program changes what it does is found."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterable

import pytest

from ferryvm_backends.vliw.code.program import Bundle, Program
from ferryvm_backends.vliw.machine.read import find, shipped
from ferryvm_backends.vliw.prove.claim import ScheduleError

from ...tier import sample
from .mutation import KERNEL_MUTATIONS, Proved, damaged, proved
from .program import run, whole

PROGRAMS = {
    "vectors": """
        (define a (make-vector i64 6)) (define b (make-vector f32 6)) (define i 0)
        (while (< i 6) (vector-set! a i (* i i)) (vector-set! b i 0.5f32) (set! i (+ i 1)))
        (vector-ref a 7)
    """,
    "nest": """
        (define v (make-vector f64 4)) (define s 0.0) (define i 0)
        (while (< i 4)
          (define j 0)
          (while (< j 4)
            (set! s (+ s (* (vector-ref v j) 0.5)))
            (vector-set! v j (f64 (+ i j)))
            (set! j (+ j 1)))
          (set! i (+ i 1)))
        s
    """,
    "alias": """
        (define a (make-vector i64 4)) (define i 0)
        (while (< i 4)
          (vector-set! a (vector-ref a (- 3 i)) 2)
          (vector-set! a i (+ (vector-ref a 0) 1))
          (set! i (+ i 1)))
        (+ (vector-ref a 2) (vector-ref a 3))
    """,
    "calls": "(define (f n) (if (< n 2) n (+ (f (- n 1)) (f (- n 2))))) (f 4)",
    "division": "(define d 3) (define s 0) (while (> d -3) (set! s (+ s (/ 100 d))) (set! d (- d 1))) s",
}
_BUDGETS = {40: range(20, 220, 4), 1 << 40: [1 << 40]}
"""Cycles after which the time is over, with those after which what the right program leaves is
right, too: it is free when it looks at the time."""
_MOST = 20_000


class _Limited(list[Bundle]):
    """Bundles of which no more than so many are fetched."""

    def __init__(self, bundles: Iterable[Bundle]) -> None:
        super().__init__(bundles)
        self.left = _MOST
        self.fetched: set[int] = set()

    def __getitem__(self, number):  # type: ignore[no-untyped-def,override]  # one of several forms
        self.left -= 1
        if self.left < 0 or number < 0:
            raise TimeoutError
        self.fetched.add(number)
        return super().__getitem__(number)


def _outcome(given: Proved, program: Program, budget: int) -> tuple[object, set[int]]:
    """What is left of a run, but for what only the code sees, or how it failed; and the bundles
    that were fetched."""
    bundles = _Limited(program.bundles)
    limited = dataclasses.replace(program, bundles=bundles)  # type: ignore[arg-type]  # a list does
    try:
        ended = run(limited, given.part, is_native=False, budget=budget)
    except Exception as error:  # noqa: BLE001 - whatever a program that is not one brings about
        return type(error), bundles.fetched
    return (ended.registers, {**ended.memory, "spill": b"", "calls": b""}), bundles.fetched


def search(given: Proved, seed: int, count: int) -> tuple[int, int, list[str]]:
    """How many of some random changes matter, how many are found, and those that matter and are
    not."""
    chance = random.Random(seed)
    fetched = set().union(
        *(_outcome(given, given.program, each)[1] for near in _BUDGETS.values() for each in near)
    )
    return judge(given, (damaged(given.program, chance, fetched) for _ in range(count)))


def judge(given: Proved, changes: Iterable[tuple[str, Program]]) -> tuple[int, int, list[str]]:
    """How many changes matter, how many are found, and those that matter and are not."""
    rights = {
        budget: [_outcome(given, given.program, each) for each in near]
        for budget, near in _BUDGETS.items()
    }
    matter, found, missed = 0, 0, []
    for what, program in changes:
        try:
            given.prove(program)
            is_found = False
        except ScheduleError:
            is_found = True
        found += is_found
        outcomes = {budget: _outcome(given, program, budget)[0] for budget in _BUDGETS}
        if any(
            outcome not in [right for right, _ in rights[budget]]
            for budget, outcome in outcomes.items()
        ):
            matter += 1
            missed += [] if is_found else [what]
    return matter, found, missed


@pytest.mark.rotate("name", "machine", most=1)
@pytest.mark.parametrize("machine", sorted(shipped()))
@pytest.mark.parametrize("name", sample(sorted(PROGRAMS), 4))
def test_every_change_that_matters_is_found(machine: str, name: str) -> None:
    given = proved(whole(PROGRAMS[name]), find(machine))
    given.prove()
    matter, found, missed = search(given, seed=7, count=30)
    assert not missed
    assert 5 < matter <= found


SUM = """
    (define v (make-vector i64 50)) (define s 0) (define i 0)
    (while (< i 50) (vector-set! v i (* i i)) (set! i (+ i 1)))
    (set! i 0)
    (while (< i 50) (set! s (+ s (* 3 (vector-ref v i)))) (set! i (+ i 1)))
    s
"""


@pytest.mark.nightly
@pytest.mark.parametrize("places", sample([5, 20], 1))
@pytest.mark.rotate("kind", "machine", most=1)
@pytest.mark.parametrize("machine", sorted(shipped()))
@pytest.mark.parametrize("kind", KERNEL_MUTATIONS)
def test_a_damaged_kernel_is_found(machine: str, kind: str, places: int) -> None:
    given = proved(whole(SUM), find(machine))
    assert any(loop.stages > 1 and loop.copies > 1 for loop in given.program.loops)
    _, fetched = _outcome(given, given.program, 1 << 40)
    changes = [p for p in KERNEL_MUTATIONS[kind](given.program) if given.differing(p) <= fetched]
    chosen = random.Random(3).sample(changes, min(places, len(changes)))
    matter, found, missed = judge(given, ((kind, program) for program in chosen))
    assert not missed
    assert 0 < matter <= found


@pytest.mark.parametrize("machine", sample(sorted(shipped()), 1))
def test_a_loop_that_goes_round_to_another_bundle_is_never_right(machine: str) -> None:
    given = proved(whole(SUM), find(machine))
    programs = [*KERNEL_MUTATIONS["other top"](given.program)]
    assert len(programs) >= 10
    for program in programs:
        with pytest.raises(ScheduleError):
            given.prove(program)
