# SPDX-License-Identifier: Apache-2.0
"""Loops over the items of a launch: accesses of different items are apart, those of one are not."""

from __future__ import annotations

import pytest

import ferryvm
from ferryvm.engine import Engine
from ferryvm.policy.model import build_ours
from ferryvm.region.region import Region, region
from ferryvm.verify import verify
from ferryvm_backends.vliw.code.modulo.dependence_graph import DependenceNode, Iteration
from ferryvm_backends.vliw.machine.read import find
from ferryvm_backends.vliw.prove import ENVIRONMENT
from ferryvm_backends.vliw.prove.claim import ScheduleError

from .looping import loops_of
from .program import compiled

IN_PLACE = """
(define (item i index xs)
  (let ((at (array-ref index i))) (array-set! xs at (+ (* 2.0 (array-ref xs at)) 1.0))))
(define (work (index (array i64)) (xs (array f64)))
  (for-each-item (array-length index) (item index xs)))
"""
OWN = """
(define (item i index xs ys)
  (array-set! xs (array-ref index i) (* 3 i))
  (array-set! ys i (array-ref xs (- 19 (- 19 (array-ref index i))))))
(define (work (index (array i64)) (xs (array i64)) (ys (array i32)))
  (for-each-item (array-length index) (item index xs ys)))
"""
OWN = OWN.replace("(array i32)", "(array i64)")
COUNTED = """
(define (item i index xs) (atomic-add! xs (array-ref index i) i))
(define (work (index (array i64)) (xs (array i64)))
  (for-each-item (array-length index) (item index xs)))
"""
CALL = """
(define index (make-array i64 20))
(define i 0)
(while (< i 20) (array-set! index i (% (* i 7) 20)) (set! i (+ i 1)))
"""
CALLS = {
    IN_PLACE: "(define a (make-array f64 20 1.5)) (work index a) (work index a)",
    OWN: "(define a (make-array i64 20)) (define b (make-array i64 20)) (work index a b)",
    COUNTED: "(define a (make-array i64 20)) (array-set! index 3 7) (work index a)",
}


def work(text: str) -> Region:
    return region(verify(ferryvm.compile(text)), "work")


def item_edges(text: str) -> list[tuple[int, bool]]:
    """The distances of the dependences of accesses to elements, and if they are those of items, in
    the loops over the items."""
    _, loops = loops_of(work(text), find("wide16"))
    found = []
    for loop in loops:
        for edge in loop.edges:
            places = [loop.nodes[n].operation.place for n in (edge.first, edge.second)]
            if all(place is not None and place.part is not None for place in places):
                is_item = all(place is not None and place.item is not None for place in places)
                found.append((edge.distance, is_item))
    return found


def test_accesses_of_different_items_do_not_wait_for_each_other() -> None:
    edges = [distance for distance, is_item in item_edges(IN_PLACE) if is_item]
    assert edges
    assert set(edges) == {0}


def test_atomic_updates_of_different_items_keep_their_order() -> None:
    assert 1 in [distance for distance, is_item in item_edges(COUNTED) if not is_item]


@pytest.mark.rotate("text", most=1)
@pytest.mark.parametrize("text", [*CALLS], ids=["in place", "own element", "updates"])
def test_results_are_those_of_the_loop_and_the_schedule_is_proved(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENVIRONMENT, "1")
    program = ferryvm.compile(text + CALL + CALLS[text])
    choice = {"name": "vliw", "device": "multi16", "background": False, "required": True}
    rule = {"when": {"function": "work"}, "backends": [choice]}
    policy = build_ours({"profile": {"function_threshold": 1}, "rule": [rule]})
    found, expected = Engine(policy=policy).start(program), Engine("threaded").start(program)
    found.run()
    expected.run()
    assert found.machine.snapshot() == expected.machine.snapshot()


def test_the_prover_finds_an_items_load_above_its_own_store(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(ENVIRONMENT, "1")
    meet = Iteration._meet

    def forgotten(self: Iteration, one: DependenceNode, other: DependenceNode) -> int | None:
        places = one.operation.place, other.operation.place
        if all(place is not None and place.item is not None for place in places):
            return None
        return meet(self, one, other)

    monkeypatch.setattr(Iteration, "_meet", forgotten)
    with pytest.raises(ScheduleError):
        compiled(work(OWN), find("multi16"))
