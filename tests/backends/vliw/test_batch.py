# SPDX-License-Identifier: Apache-2.0
"""Batches of groups: their results, traps, objects and exits are those of one group after the
other."""

from __future__ import annotations

import dataclasses

import pytest

import ferryvm
from ferryvm.backend import Options
from ferryvm.engine import Engine
from ferryvm.engine.execution import Execution
from ferryvm.errors import FerryError
from ferryvm.ir.graph import Module
from ferryvm.ir.group import batch_builder
from ferryvm.ir.group.batch_access import OwnArray, own_arrays
from ferryvm.ir.group.batch_builder import BatchBuilder
from ferryvm.region.region import RegionKind, regions
from ferryvm.verify import verify
from ferryvm_backends.vliw.machine.read import find
from ferryvm_backends.vliw.passes import optimised
from ferryvm_backends.vliw.prove import ENVIRONMENT

from ...tier import nightly
from .. import forced_exit

KERNEL = """
(define (item (row i64) (column i64) (x (array i64)) (tile (array i64)) (to (array i64)) (n i64))
  (define at (+ (* 8 row) column))
  FIRST
  (barrier)
  SECOND)
(define (group number (x (array i64)) (to (array i64)))
  (for-each-item (4 8) (item x (make-array i64 32) to (* number 32))))
(define (work groups (x (array i64)) (to (array i64)))
  (for-each-item groups (group x to)))
(define x (make-array i64 LENGTH))
(define to (make-array i64 160))
(define i 0)
(while (< i LENGTH) (array-set! x i (+ 1 (* i i))) (set! i (+ i 1)))
(define groups 1)
(while (< groups 6)
  (work groups x to)
  (set! groups (* 5 groups)))
"""
"""One group of 4 x 8 items, then five; with `MOST` a batch has three of them."""
MOST = 100
TURNED = (
    "(array-set! tile at (* 3 (array-ref x (+ at n))))",
    "(array-set! to (+ at n) (+ n (array-ref tile (+ row (* 4 column)))))",
)
"""All elements of the tile are stored before others are loaded."""
FEW = (
    "(array-set! tile (* 8 row) (+ row n))",
    "(array-set! to (+ at n) (array-ref tile (- 31 at)))",
)
"""Most of the tile is never stored, and is zero."""
ALL = "(array-set! to (+ at n) (+ (array-ref x (+ at n)) (array-ref to (+ at n))))"
MIXED = (
    "(array-set! tile at (array-ref x (+ at n)))",
    "(array-set! to (+ at n) (% (array-ref tile (- 31 at)) (+ 1 column)))",
)
TAKEN = (
    "(array-set! to (+ at n) (atomic-fetch-add! x 0 1))",
    "(array-set! to (+ at n) (+ (array-ref to (+ at n)) (atomic-fetch-add! x 0 1)))",
)
"""The order of updates matters."""
PROGRAMS = {"turned": TURNED, "few": FEW, "read": (ALL, ALL), "mixed": MIXED}


def _text(regions: tuple[str, str], length: int = 160) -> str:
    first, second = regions
    text = KERNEL.replace("FIRST", first).replace("SECOND", second)
    return text.replace("LENGTH", str(length))


def _module(text: str) -> Module:
    """The launch over groups."""
    verified = verify(ferryvm.compile(text, "p"))
    launches = (each for each in regions(verified) if each.kind is RegionKind.LAUNCH)
    modules = (optimised(each, Options(check=True), find("multi16")) for each in launches)
    return next(each for each in modules if each.groups)


def _bounds(text: str) -> list[int]:
    """The most iterations of loops that do not poll."""
    return [o.fact(0, int) for o in _module(text).root.operations if o.name == "bounded"]


def _run(backend: str, text: str) -> tuple[Execution, str]:
    execution = Engine(backend).start(ferryvm.compile(text, "p"))
    try:
        execution.run()
    except FerryError as error:
        return execution, str(error)
    return execution, ""


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_builder, "MOST_ITEMS", MOST)
    monkeypatch.setenv(ENVIRONMENT, "1")


def _same(text: str) -> str:
    """Compare a program's ends; the error with which it ends."""
    (found, said), (expected, wanted) = (_run(each, text) for each in ("vliw", "reference"))
    assert said == wanted
    assert found.machine.snapshot() == expected.machine.snapshot()
    return said


def test_the_rows_of_all_groups_are_one_loop_without_exits() -> None:
    module = _module(_text(TURNED))
    assert sorted(_bounds(_text(TURNED))) == [3, 3, 12, 12]
    states = [o.state for o in module.root.operations if o.state is not None]
    assert not any(state.phase for state in states)


@pytest.mark.parametrize("name", ["turned", *map(nightly, ["few", "read", "mixed"])])
def test_a_batch_does_as_one_group_after_the_other(name: str) -> None:
    assert _bounds(_text(PROGRAMS[name]))
    assert _same(_text(PROGRAMS[name])) == ""


def test_a_group_that_traps_has_those_before_it_done() -> None:
    assert "bounds" in _same(_text(TURNED, 140))


@pytest.mark.nightly
def test_a_batch_that_is_left_goes_on_elsewhere() -> None:
    assert [*forced_exit.differences(_text(TURNED), 1, 0.7, forced_exit.vliw)] == []


def test_an_array_whose_elements_are_not_all_stored_is_an_object() -> None:
    stores = {o.name for o in _module(_text(FEW)).root.operations}
    assert "element_store" in stores
    loads = [o for o in _module(_text(TURNED)).root.operations if o.name == "element_load"]
    assert len(loads) == 8  # of x


def test_groups_that_update_elements_in_two_regions_run_one_by_one() -> None:
    assert _bounds(_text(TAKEN)) == []


@pytest.mark.nightly
def test_updates_in_two_regions_are_in_the_order_of_groups() -> None:
    assert _same(_text(TAKEN)) == ""


def _shorter(*arguments: object) -> list[OwnArray]:
    return [dataclasses.replace(a, bytes=a.bytes - 8) for a in own_arrays(*arguments)]  # type: ignore[arg-type]


FAULTS: dict[str, tuple[object, str, object, str]] = {
    "later-check-ignored": (BatchBuilder, "_failing", lambda *_: iter(()), _text(TURNED, 140)),
    "value-of-the-first-group": (
        BatchBuilder,
        "_computed",
        lambda self, _index: {o: o for o in self.computed},
        _text(TURNED),
    ),
    "object-of-the-first-group": (
        BatchBuilder,
        "_moved_by",
        lambda *_: lambda value: value,
        _text(FEW),
    ),
    "arrays-overlap": (batch_builder, "own_arrays", _shorter, _text(TURNED)),
    "updated-in-two-regions": (batch_builder, "UPDATES", frozenset(), _text(TAKEN)),
}
"""What is patched, by what, and the program that shows it."""


@pytest.mark.parametrize(
    "name", [nightly(each) if place else each for place, each in enumerate(FAULTS)]
)
def test_a_planted_fault_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    target, attribute, planted, text = FAULTS[name]
    monkeypatch.setattr(target, attribute, planted)
    found, said = _run("vliw", text)
    expected, wanted = _run("reference", text)
    assert (said, found.machine.snapshot()) != (wanted, expected.machine.snapshot())
