# SPDX-License-Identifier: Apache-2.0
"""Every kind of exit at the first, a middle and the last item of a launch out of order: result or
trap, output and the items done are those of the loop, on each backend."""

from __future__ import annotations

import pytest

import ferryvm
from ferryvm import Engine
from ferryvm.machine.piece import elements
from ferryvm.policy import Choice, Options, Policy, Profile, Rule
from ferryvm.policy.condition import Like
from ferryvm.policy.predicate import Test, When

from ..tier import nightly

pytestmark = pytest.mark.usefixtures("threads_at_once")

EXITS = {
    "prints": "(print! item)",
    "makes an array": "(array-set! to item (array-length (make-array i64 (+ item 3))))",
    "recurs": "(array-set! to item (deep (+ 5000 item)))",
    "launches": "(for-each-item 3 (inner to item))",
    "launches items that print": "(for-each-item 2 (shown item))",
    "launches no items": "(for-each-item 0 (shown item))",
    "divides by zero": "(array-set! to item (/ 1 (- item item)))",
    "stores past the end": "(array-set! to -1 item)",
    "traps in a launch": "(for-each-item 3 (worse to))",
    "throws": "(throw item)",
}
WHICH = {"first": 0, "middle": 150, "last": 299}
PLACES = {
    "threads": Options(background=False, required=True, threads=2, lanes=1, optimize=1),
    "lanes": Options(background=False, required=True, threads=2, lanes=8, optimize=2),
    "in order": Options(background=False, required=True, optimize=1),
    "work-items": Options(background=False, required=True),
}
BACKENDS = {"threads": "llvm", "lanes": "llvm", "in order": "vliw", "work-items": "opencl"}
_TEXT = """
(define (deep n) (if (= n 0) 1 (+ 1 (deep (- n 1)))))
(define (inner other to item) (array-set! to item (+ (array-ref to item) other)))
(define (shown other item) (print! other item))
(define (worse other to) (if (= other 1) (array-set! to 300 0)))
(define (work item to which)
  (array-set! to item (+ item 1))
  (if (= item which) {exit}))
(define (go to which) (for-each-item (array-length to) (work to which)))
(define to (make-array i64 300))
(go to -1)
(go to {which})
(print! (reduce + to))"""


def outcome(engine: Engine, text: str, which: int) -> tuple[str, bytes, list[int]]:
    """The trap, if there is one, the output, and the elements of the items; after a trap of those
    below the one that trapped."""
    printed: list[bytes] = []
    program = ferryvm.compile(text, "exit.skiff")
    execution = engine.start(program)
    execution.output = printed.append
    trap = ""
    try:
        execution.run()
    except ferryvm.TrapError as error:
        trap = str(error)
    machine = execution.machine
    assert machine.objects is not None
    (number,) = [n for n, static in enumerate(program.statics) if static.name == "to"]
    items = elements(machine.objects, machine.memory.statics[number]).tolist()
    return trap, b"".join(printed), items[:which] if trap else items


def running(place: str, name: str) -> Engine:
    """An engine whose launches run at a place, in functions of a name."""
    rule = Rule(
        when=When((Test("kind", (Like("launch"),)), Test("name", (Like(name),)))),
        backends=(Choice(BACKENDS[place], PLACES[place]),),
    )
    return Engine(policy=Policy(rules=(rule,), profile=Profile(loop_threshold=1)))


@pytest.mark.parametrize("place", ["threads", "lanes", nightly("in order"), nightly("work-items")])
@pytest.mark.parametrize("which", WHICH)
@pytest.mark.parametrize("kind", EXITS)
@pytest.mark.rotate("kind", "which", "place", most=5)
def test_an_exit_of_an_item_is_that_of_the_loop(
    kind: str, which: str, place: str, launched: list[tuple[int, int]]
) -> None:
    text = _TEXT.format(exit=EXITS[kind], which=WHICH[which])
    found = outcome(running(place, "go/*"), text, WHICH[which])
    assert launched or place not in ("threads", "lanes")
    assert found == outcome(Engine("threaded"), text, WHICH[which])


@pytest.mark.nightly  # all items below the last ones run: seconds
@pytest.mark.parametrize("place", ["threads", "work-items"])
def test_an_item_above_two_to_the_31_traps(place: str) -> None:
    text = """
(define (work item to) (if (>= item 4) (if (= item 2147483650) (array-set! to item 0))))
(define to (make-array i64 4))
(for-each-item 4 (work to))
(for-each-item 2147483653 (work to))"""
    with pytest.raises(ferryvm.TrapError, match=r"index 2147483650.*, in item 2147483650\n"):
        running(place, "main/*").start(ferryvm.compile(text)).run()
