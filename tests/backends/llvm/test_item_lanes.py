# SPDX-License-Identifier: Apache-2.0
"""Items of parallel regions in lanes of vectors: branches and loops of their own, where a vector
gives up, and reasons that they run one by one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest

import ferryvm
from ferryvm.backend import Options
from ferryvm.ir.graph import Module, Value
from ferryvm.ir.group import lanes as item_lanes
from ferryvm.ir.lane.emission import Emission
from ferryvm.ir.lane.linearise import Linearisation
from ferryvm.ir.lane.speculation import Speculation
from ferryvm.ir.lane.variable import LaneValue
from ferryvm.ir.parse import parse_module
from ferryvm.ir.text import module_text
from ferryvm.region.region import RegionKind, regions
from ferryvm.testing.generate import ProgramKind, skiff_source
from ferryvm.verify import verify
from ferryvm_backends.llvm.build import improved

from ..forced_exit import differences, in_lanes

OWN_LOOPS = """
(define (member item t u n)
  (define i item)
  (define sum 0)
  (while (< i n)
    (define k (% (array-ref u i) 4))
    (while (> k 0) (set! sum (+ sum (* k item))) (set! k (- k 1)))
    (if (= (% (array-ref u i) 3) 1) (set! sum (+ sum (array-ref u i))) (set! sum (- sum 1)))
    (set! i (+ i (+ 2 (% item 3)))))
  (array-set! t item sum)
  (barrier)
  (define other (array-ref t (- 8 item)))
  (if (> other 20) (array-set! u item (- other 20)) (if (> item 4) (array-set! u item item))))
(define (group n u)
  (for-each-item 9 (member (make-array i64 9) u n)))
(define u (make-array i64 30))
(define k 0)
(while (< k 30) (array-set! u k (% (* k 7) 11)) (set! k (+ k 1)))
(group 20 u)
(print! (reduce + u))
"""
"""Nine items: two vectors of four lanes, and one item that is left."""

TRAP = """
(define (member item t u n)
  (define i item)
  (define sum 0)
  (while (< i n)
    (set! sum (+ sum (array-ref u (* 2 (* i item)))))
    (set! i (+ i 4)))
  (array-set! t item sum)
  (barrier)
  (array-set! u item (array-ref t (- 7 item))))
(define (group n u)
  (for-each-item 8 (member (make-array i64 8) u n)))
(define u (make-array i64 30))
(define k 0)
(while (< k 30) (array-set! u k (- 19 k)) (set! k (+ k 1)))
(group 6 u)
(print! (reduce + u))
"""
"""Item 4 is out of bounds, behind four items that are not."""

TEXTS = {"loops and branches": OWN_LOOPS, "a trap": TRAP}


def module_of(text: str, lanes: int = 4) -> Module:
    """The module of a program's launch of items, in lanes."""
    verified = verify(ferryvm.compile(text, "p"))
    for each in regions(verified):
        if each.kind is RegionKind.LAUNCH:
            module, _ = improved(each, Options(lanes=lanes, check=True))
            if module.groups:
                return module
    raise LookupError


def lane_loops(module: Module) -> int:
    """The number of loops in lanes."""
    return sum(block.label.startswith("lanes.next") for block in module.root.blocks)


@pytest.mark.rotate("name", most=1)
@pytest.mark.parametrize("name", TEXTS)
def test_the_state_is_exact_wherever_lanes_are_left(name: str) -> None:
    assert lane_loops(module_of(TEXTS[name]))
    assert [*differences(TEXTS[name], 3, compiled=in_lanes)] == []


@pytest.mark.nightly
@pytest.mark.parametrize("number", range(20))
def test_random_kernels_in_lanes_end_as_in_the_reference(number: int) -> None:
    with contextlib.suppress(LookupError):
        text = skiff_source(28, number, kind=ProgramKind.KERNEL)
        assert [*differences(text, growth=0.5, compiled=in_lanes)] == []


def test_text_of_a_body_with_loops_in_lanes_reads_back() -> None:
    module = module_of(OWN_LOOPS)
    text = module_text(module)
    read = parse_module(text)
    assert module.root.lanes == read.root.lanes == 4
    assert module_text(read) == text


def test_a_loop_whose_items_may_leave_behind_a_store_runs_one_by_one() -> None:
    module = module_of("""
(define (member item t u)
  (define i 0)
  (while (< i item)
    (array-set! u (+ i (array-ref u item)) item)
    (set! i (+ i 1)))
  (array-set! t item item)
  (barrier)
  (array-set! u item (array-ref t (- 7 item))))
(define (group u) (for-each-item 8 (member (make-array i64 8) u)))
(group (make-array i64 30))
""")
    assert [*module.one_by_one.values()] == ["one may leave when it has stored"]
    assert not lane_loops(module)


def test_a_loop_in_which_other_items_may_have_stored_runs_one_by_one() -> None:
    module = module_of("""
(define (member item t u)
  (if (= (% (array-ref u item) 3) 0)
    (array-set! t item (array-ref u (array-ref u item)))
    (array-set! u item (array-ref t (array-ref u item))))
  (barrier)
  (array-set! u item (array-ref t (- 7 item))))
(define (group u) (for-each-item 8 (member (make-array i64 8) u)))
(group (make-array i64 30))
""")
    assert "one may leave when it has stored" in module.one_by_one.values()
    assert not lane_loops(module)


def test_loops_that_items_go_through_together_get_no_lanes() -> None:
    """nbody took 3.5 times as long with both."""
    module = module_of("""
(define (member item b c t)
  (array-set! t item (array-ref b item))
  (barrier)
  (define sum 0.0)
  (define k 0)
  (while (< k 16)
    (set! sum (+ sum (* (array-ref t k) (array-ref b (+ (* k 16) item)))))
    (set! k (+ k 1)))
  (array-set! c item sum))
(define (group b c) (for-each-item 16 (member b c (make-array f64 16))))
(group (make-array f64 256) (make-array f64 256))
""")
    assert any(block.label.startswith("jammed") for block in module.root.blocks)
    assert not lane_loops(module)


def test_items_without_branches_and_loops_are_left_to_llvm() -> None:
    module = module_of("""
(define (member item t u)
  (array-set! t item (* item 3))
  (barrier)
  (array-set! u item (array-ref t (- 7 item))))
(define (group u) (for-each-item 8 (member (make-array i64 8) u)))
(group (make-array i64 8))
""")
    assert module.one_by_one == {}
    assert not lane_loops(module)


# --- planted faults -------------------------------------------------------------------------

_blend, _masks, _give_up = Emission.blend, Linearisation._masks, Speculation.give_up_if


def _swapped(self: Emission, mask: Value, new: LaneValue, old: LaneValue | None) -> LaneValue:
    """Each lane gets the value of the other path where they meet."""
    return _blend(self, mask, new if old is None else old, old if old is None else new)


def _all_take_it(self: Linearisation, *arguments: Any) -> list[Value]:
    """The second edge of a branch is taken by all lanes of the mask."""
    return [*_masks(self, *arguments)[:-1], self.emission.mask]


def _goes_on(self: Speculation, p: Value) -> None:
    """A check in lanes is not made."""


def _at_second(self: Any, block: Any, number: Value) -> Any:
    """A poll in lanes leaves in front of the second item of the vector."""
    state = _state(self, block, number)
    assert state.phase is not None
    following = state.phase.values[0]
    one = self.m.add(following.type, following, self.m.constant(following.type, 1))
    return state.replace({following: one})


_state = item_lanes._Lanes._state

FAULTS: dict[str, tuple[Any, str, Callable[..., Any], str]] = {
    "blend-swapped": (Emission, "blend", _swapped, OWN_LOOPS),
    "mask-of-all": (Linearisation, "_masks", _all_take_it, OWN_LOOPS),
    "check-not-made": (Speculation, "give_up_if", _goes_on, TRAP),
    "state-of-the-second": (item_lanes._Lanes, "_state", _at_second, OWN_LOOPS),
}


@pytest.mark.rotate("name", most=2)
@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults_of_lanes_are_found(name: str) -> None:
    owner, function, faulty, text = FAULTS[name]
    with mock.patch.object(owner, function, faulty):
        assert any(True for _ in differences(text, compiled=in_lanes))
