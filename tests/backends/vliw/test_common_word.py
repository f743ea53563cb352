# SPDX-License-Identifier: Apache-2.0
"""Words that exits have in common are written by each of them."""

from __future__ import annotations

import pytest

import ferryvm
from ferryvm import Engine, TrapError
from ferryvm.backend import Options
from ferryvm.ir.graph import Body, FrameState
from ferryvm.ir.lift import lift
from ferryvm.region.region import RegionKind, regions
from ferryvm.verify import verify
from ferryvm_backends.vliw import BACKEND
from ferryvm_backends.vliw.code.lower import common_word
from ferryvm_backends.vliw.code.lower.common_word import CommonWords

from .. import forced_exit
from ..llvm.test_groups import FIRST

TRAP = """
(define (inner a b c d (x (array i64)))
  (+ (* a (array-ref x b)) (+ (array-ref x c) (array-ref x d))))
(define x (make-array i64 9))
(define i 0)
(define sum 0)
(while (< i 9)
  (array-set! x i i)
  (set! sum (+ sum (inner i (- 8 i) (* i (- i 2)) i x)))
  (set! i (+ i 1)))
sum
"""
"""The index `i * (i - 2)` is -1, in an inlined call."""


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(common_word, "MOST_WRITTEN", 0)
    monkeypatch.setattr(common_word, "FEWEST", 3)


def _states(body: Body) -> list[FrameState]:
    return [o.state for b in body.blocks for o in (*b.operations, b.end) if o.state is not None]


def _launch() -> Body:
    verified = verify(ferryvm.compile(FIRST, "p"))
    place = next(each for each in regions(verified) if each.kind is RegionKind.LAUNCH)
    return lift(place, False, frozenset()).root


def test_parts_with_one_number_have_the_same_words_up_to_their_end() -> None:
    body = _launch()
    words: dict[int, tuple[object, ...]] = {}
    common = CommonWords(body)
    for state in _states(body):
        for first, past, number in common.parts(state):
            assert first < past <= len(state.words)
            assert words.setdefault(number, state.words[:past]) == state.words[:past]
    assert words


def test_parts_of_a_state_are_its_first_words() -> None:
    body = _launch()
    common = CommonWords(body)
    for state in _states(body):
        end = 0
        for first, past, _ in reversed(common.parts(state)):
            assert first == end
            end = past


def test_few_words_are_written_by_each_exit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(common_word, "MOST_WRITTEN", 10**6)
    body = _launch()
    assert not any(CommonWords(body).parts(state) for state in _states(body))


def _labels() -> set[str]:
    verified = verify(ferryvm.compile(FIRST, "p"))
    place = forced_exit.grouped(verified)
    code = BACKEND.compile(place, Options(cache=False))
    return {*code.program.labels.values()}  # type: ignore[attr-defined]


@pytest.mark.nightly
@pytest.mark.parametrize("step", [99, 2])
def test_a_program_that_is_left_goes_on_elsewhere(step: int) -> None:
    assert any(label.startswith("words") for label in _labels())
    assert [*forced_exit.differences(FIRST, step, 0.7, forced_exit.vliw)] == []


def _differs() -> bool:
    """True if a trap in an inlined call of the processor's code leaves another state."""
    program = ferryvm.compile(TRAP)
    found, expected = Engine("vliw").start(program), Engine("reference").start(program)
    for each in (found, expected):
        with pytest.raises(TrapError):
            each.run()
    return found.machine.snapshot() != expected.machine.snapshot()


def test_a_trap_in_an_inlined_call_has_all_words() -> None:
    assert not _differs()


def test_a_word_that_is_not_written_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = CommonWords.parts

    def fewer(self: CommonWords, state: FrameState) -> list[tuple[int, int, int]]:
        return [(past - 1, past, number) for _, past, number in parts(self, state)]

    monkeypatch.setattr(CommonWords, "parts", fewer)
    assert _differs()
