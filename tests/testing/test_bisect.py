# SPDX-License-Identifier: Apache-2.0
"""Bisecting ends at the instruction at which a backend goes wrong."""

from __future__ import annotations

import itertools

import pytest

import ferryvm
from ferryvm.errors import FerryError
from ferryvm.testing import Differ
from ferryvm.testing.bisect import Bisector, DivergenceMode, LateError, UnpreparedError
from ferryvm.testing.region import regions
from ferryvm.testing.schedule import Schedule
from ferryvm.testing.trace import LONGEST
from ferryvm.verify import Verified, verify

from ..double.meaning import with_wrong

PROGRAM = """(define total 5)
(define s 1)
(define (square x) (* x x))
(define (half x) (if (> x 10) (/ x 2) (- x 1)))
(define i 0)
(while (< i 5)
  (set! total (+ total (half i)))
  (set! s (+ (<< s (+ i 30)) i))
  (set! i (+ i 1)))
(square total)
"""


def program(text: str = PROGRAM) -> Verified:
    return verify(ferryvm.compile(text, "p.skiff"))


def bisector(bad: str, text: str = PROGRAM, patience: float = 60.0) -> Bisector:
    return Bisector(Differ([bad], registry=with_wrong()), bad, program(text), patience=patience)


@pytest.mark.parametrize(
    ("bad", "mode", "mnemonic", "line", "field"),
    [
        ("wrong-shift", DivergenceMode.COUNTED, "i64.shl", 8, "operand 0 of main"),
        ("wrong-operands", DivergenceMode.COUNTED, "i64.sub", 4, "operand 0 of half"),
        ("wrong-uncounted", DivergenceMode.UNCOUNTED, "i64.sub", 4, "static 0 (total)"),
        ("wrong-return", DivergenceMode.COUNTED, "return", 4, "operand 1 of main"),
        ("wrong-raise", DivergenceMode.COUNTED, "i64.mul", 3, "failure"),
        ("wrong-sp", DivergenceMode.MOVED, "i64.const", 1, "failure"),
        ("wrong-leaving", DivergenceMode.MOVED, "i64.add", 8, "static 0 (total)"),
        ("wrong-entering", DivergenceMode.ENTERED, None, None, "static 0 (total)"),
    ],
)
def test_wrong_backend_parts_where_it_goes_wrong(
    bad: str, mode: DivergenceMode, mnemonic: str | None, line: int | None, field: str
) -> None:
    parting = bisector(bad).find()
    assert parting is not None
    assert (parting.mode, parting.bad) == (mode, bad)
    assert parting.difference.field == field
    if mnemonic is not None and bad != "wrong-leaving":
        assert parting.mnemonic == mnemonic
        assert parting.position is not None
        assert parting.position.line == line


@pytest.mark.parametrize("bad", ["wrong-shift", "wrong-operands", "wrong-return"])
def test_states_are_equal_before_and_differ_after(bad: str) -> None:
    search = bisector(bad)
    place = search.search()
    assert place is not None
    assert place.entered == place.number > 0
    assert search.segment(0, place.number) is None
    assert search.segment(place.number, place.number + 1) == place.difference


def test_last_entry_that_goes_wrong_without_counting_is_found() -> None:
    search = bisector("wrong-uncounted")
    place = search.search()
    assert place is not None
    assert search.uncounted(place.entered) == place.difference
    assert search.uncounted(place.entered + 1) is None


def test_run_in_one_go_that_it_takes_is_told() -> None:
    place = bisector("wrong-leaving").search()
    assert place is not None
    assert place.number + 1 - place.entered == 3


def test_backends_that_agree_have_no_place() -> None:
    for bad in ("switch", "threaded"):
        assert bisector(bad, "(define (f x) (* x 2)) (f 4)").find() is None


def test_backend_that_does_not_come_back_has_failed() -> None:
    parting = bisector(
        "wrong-spin", "(define x (* 2 3)) (while (< x 9) (set! x (+ x 1)))", patience=0.3
    ).find()
    assert parting is not None
    assert (parting.mode, parting.mnemonic) == (DivergenceMode.UNCOUNTED, "i64.mul")
    assert parting.difference.right == "it was still running after 0.3 s"


def test_trap_that_only_one_side_has_is_the_place() -> None:
    parting = bisector("wrong-operands", "(define x (- 1 1)) (/ 8 (- 9 2 x))").find()
    assert parting is not None
    traps = bisector("wrong-shift", "(define x 1) (/ 8 (- (<< x 40) (<< x 8)))").find()
    assert traps is not None
    assert traps.mnemonic == "i64.shl"
    search = bisector("wrong-shift", "(/ 1 0)")
    assert search.find() is None
    assert search.boundaries == search.end.instructions + 1


def test_traces_end_at_the_place_and_differ_there() -> None:
    parting = bisector("wrong-shift").find()
    assert parting is not None
    assert len(parting.good_trace) == len(parting.bad_trace) == LONGEST
    assert parting.good_trace[:-1] == parting.bad_trace[:-1]
    good, bad = parting.good_trace[-1], parting.bad_trace[-1]
    assert (good.pc, good.mnemonic, good.operands) == (parting.pc, "i64.shl", bad.operands)
    value, distance = good.operands
    assert good.results == (value << distance & 0xFFFF_FFFF_FFFF_FFFF,)
    assert bad.results == (value << (distance & 31) & 0xFFFF_FFFF_FFFF_FFFF,)
    differing = [row[0] for row in parting.after if row[1] != row[2]]
    assert differing == ["operand 0"]


def test_regions_name_function_loops_and_block() -> None:
    text = "(define i 0)\n(while (< i 9)\n  (while (< i 5) (set! i (+ i 1)))\n  (set! i (+ i 2)))\n"
    verified = verify(ferryvm.compile(text, "p.skiff"))
    depths = {
        pc: [region.kind for region in regions(verified, pc)]
        for pc in range(len(verified.program.code))
        if verified.is_reachable(pc)
    }
    assert max(depths.values(), key=len) == ["function", "loop", "loop", "block"]
    for pc in depths:
        found = regions(verified, pc)
        assert found[0].name == "main"
        for outer, inner in itertools.pairwise(found):
            assert outer.first <= inner.first <= pc <= inner.last <= outer.last
    first = regions(verified, 0)[-1]
    assert str(first).startswith("block (pc 0 to ")


def test_backend_that_differs_from_itself_is_an_error() -> None:
    search = bisector("wrong-shift")
    place = search.search()
    assert place is not None
    outcomes = iter([place.difference] + [None] * 50)
    search.segment = lambda first, last: next(outcomes)  # type: ignore[method-assign]  # unstable
    with pytest.raises(FerryError, match="'wrong-shift' does not do the same twice"):
        search.search(DivergenceMode.COUNTED)


def test_bad_backend_gets_the_patience_of_the_comparison_that_found_it() -> None:
    differ = Differ(["wrong-spin"], registry=with_wrong(), patience=0.25)
    assert Bisector(differ, "wrong-spin", program()).patience == 0.25


def test_search_ends_when_its_time_is_over() -> None:
    differ = Differ(["wrong-spin"], registry=with_wrong(), patience=60.0)
    with pytest.raises(LateError, match=r"^no place where they part was found within 0\.3 s$"):
        Bisector(differ, "wrong-spin", program(), seconds=0.3).find()


@pytest.mark.parametrize(
    ("bad", "raised"),
    [("wrong-prepare", "ValueError: too many registers"), ("wrong-accepts", "KeyError: 'no such")],
)
def test_backend_that_fails_before_the_program_begins_has_no_place(bad: str, raised: str) -> None:
    with pytest.raises(UnpreparedError) as caught:
        bisector(bad).find()
    assert str(caught.value).startswith(
        f"pc: none, preparing the program failed on {bad}: {raised}"
    )
    assert "(meaning.py:" in str(caught.value)
    assert caught.value.difference.right.startswith(f"in prepare: {raised}")


FLOATS = "(define x 0.1) (define i 0) (while (< i 3) (set! x (+ x 0.7)) (set! i (+ i 1))) x"


def test_arithmetic_in_the_callers_environment_is_found_in_another_one_alone() -> None:
    differ, text = Differ(["wrong-environment"], registry=with_wrong()), program(FLOATS)
    assert Bisector(differ, "wrong-environment", text, windows=3).find() is None
    found = Bisector(differ, "wrong-environment", text, schedule=Schedule.ENVIRONMENT).find()
    assert found is not None
    assert (found.mode, found.mnemonic) == (DivergenceMode.COUNTED, "f64.add")
    assert found.environment in {"down", "up", "zero", "flush-up"}
    assert found.entered == found.number
    # Searched for again, that environment is enough.
    there = Bisector(differ, "wrong-environment", text, environment=found.environment)
    assert there.find() == found


def test_right_backend_agrees_in_every_environment() -> None:
    differ = Differ(["switch"], registry=with_wrong())
    search = Bisector(differ, "switch", program(FLOATS), windows=3, schedule=Schedule.ENVIRONMENT)
    assert search.find() is None
    assert search.environment == "usual"
