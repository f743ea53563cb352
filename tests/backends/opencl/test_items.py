# SPDX-License-Identifier: Apache-2.0
"""Launches whose items are work-items: results, output and trap are those of the loop in order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import ferryvm
from ferryvm import Engine
from ferryvm.backend import BackendError, Forcing
from ferryvm.backend import Options as CompilerOptions
from ferryvm.engine import launching
from ferryvm.engine.execution import Execution
from ferryvm.item_range import RangeOutcome
from ferryvm.machine.state import Machine
from ferryvm.policy import Choice, Options, Policy, Profile, Rule
from ferryvm.policy.condition import Like
from ferryvm.policy.predicate import Test, When
from ferryvm.region.launch import launch_numbers
from ferryvm.region.region import Region, RegionKind, region
from ferryvm.verify import verify
from ferryvm_backends.opencl import OpenClBackend
from ferryvm_backends.opencl.build import session
from ferryvm_backends.opencl.device import Device
from ferryvm_backends.opencl.item import bound, code, item_region, suspension
from ferryvm_backends.opencl.item import range as item_range
from ferryvm_backends.opencl.item.range import ItemRanges
from ferryvm_backends.opencl.text import WRAPPED

from ...launching import ranges_of, run_interrupted
from .entering import NAME, named

TEXT = """
(define (down n) (if (= n 0) 0 (+ 1 (down (- n 1)))))
(define (inner item to at) (array-set! to at (+ (array-ref to at) item)))
(define (body item kind every rest to)
  (array-set! to item (+ (* (array-ref to item) 3) item 1))
  (if (= (% item every) rest)
    (begin
      (if (= kind 1) (print! item))
      (if (= kind 2) (array-set! to -1 0))
      (if (= kind 3) (array-set! to item (array-length (make-array i64 item))))
      (if (= kind 4) (array-set! to item (down 3000)))
      (if (= kind 5) (for-each-item 9 (inner to item)))
      (if (= kind 6) (while (= kind 6) (array-set! to item 0))))))
(define (go n kind every rest)
  (define to (make-array i64 (+ n 1)))
  (define sum 0)
  (define i 0)
  (define round 0)
  (while (< round 2)
    (for-each-item n (body kind every rest to))
    (array-set! to 0 (+ (array-ref to 0) 7))
    (set! round (+ round 1)))
  (while (< i n) (set! sum (+ (* sum 31) (array-ref to i))) (set! i (+ i 1)))
  sum)
(define first (go 5 0 9 0))
(+ first (go {items} {kind} {every} {rest}))
"""
"""Items with the number `rest` modulo `every` do what `kind` says."""

SLICE = 256
ITEMS = 2 * SLICE + 70

CASES = {
    "a map": (ITEMS, 0, 2, 0),
    "no item": (0, 1, 1, 0),
    "one item that prints": (1, 1, 1, 0),
    "items that print": (ITEMS, 1, 100, 7),
    "a trap in the first item": (ITEMS, 2, 9999, 0),
    "a trap in the middle": (ITEMS, 2, 9999, 300),
    "a trap in the last item": (ITEMS, 2, 9999, ITEMS - 1),
    "traps in many items": (ITEMS, 2, 50, 49),
    "items that make arrays": (ITEMS, 3, 60, 3),
    "items that recur deeply": (ITEMS, 4, 290, 100),
    "items that launch": (ITEMS, 5, 3, 0),
    "all items print": (ITEMS, 1, 1, 0),
}


def make_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let any launch be worth an NDRange, and take several; few suspended items stop it."""
    monkeypatch.setattr(suspension, "SLICE", SLICE)
    monkeypatch.setattr(suspension, "_ENOUGH", dict.fromkeys((True, False), 4))
    monkeypatch.setattr(launching, "WORTH", 0.0)
    monkeypatch.setattr(launching, "SAMPLE", 0.0)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    make_small(monkeypatch)
    return


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The ranges that kernels have run."""
    run = ItemRanges._run_in_pool

    def strict(
        self: ItemRanges, machine: Machine, first: int, limit: int, defers: bool
    ) -> RangeOutcome:
        try:
            return run(self, machine, first, limit, defers)
        except BackendError as error:
            raise AssertionError(str(error)) from None  # the engine would go on in order

    monkeypatch.setattr(ItemRanges, "_run_in_pool", strict)
    return ranges_of(ItemRanges, monkeypatch)


def program(case: tuple[int, int, int, int]) -> ferryvm.Program:
    items, kind, every, rest = case
    return ferryvm.compile(TEXT.format(items=items, kind=kind, every=every, rest=rest))


def on(backend: OpenClBackend) -> Engine:
    """An engine that has the backend run launches."""
    when = When((Test("kind", (Like("launch"),)),))
    rule = Rule(when=when, backends=(Choice(NAME, Options(background=False)),))
    policy = Policy(rules=(rule,), profile=Profile(loop_threshold=2))
    return Engine(policy=policy, registry=named(backend))


def started(backend: OpenClBackend, case: tuple[int, int, int, int]) -> Execution:
    return on(backend).start(program(case))


def outcome(execution: Execution) -> tuple[object, ...]:
    """Result or trap, the output, the state."""
    printed: list[str] = []
    execution.output = printed.append
    try:
        found: object = execution.run().value
    except ferryvm.TrapError as error:
        found = str(error)
    return found, printed, execution.machine.snapshot()


@pytest.mark.rotate("name", "backend", most=4)
@pytest.mark.parametrize("name", CASES)
def test_a_launch_ends_as_the_loop_in_order(
    name: str, backend: OpenClBackend, launched: list[tuple[int, int]]
) -> None:
    found = outcome(started(backend, CASES[name]))
    assert launched
    expected = outcome(Engine("threaded").start(program(CASES[name])))
    if isinstance(expected[0], str):  # higher items may be done
        found, expected = found[:2], expected[:2]
    assert found == expected


LEAVING_FIRST = """
(define (body item n from to)
  (define found (if (= (% item 50) 7) (array-length (make-array i64 item)) 1))
  (define j 0)
  (while (< j n)
    (set! found (+ found (array-ref from (- (array-length from) j 1))))
    (set! j (+ j 1)))
  (array-set! to (- (array-length to) item 1) found))
(define (go n from to) (for-each-item n (body 3 from to)) (array-ref to 9))
(define to (make-array i64 {length}))
(go 5 (make-array i64 9) to)
(go 200 (make-array i64 9) to)
"""
"""Items that leave, or trap, before they have stored anything; they store from the end on."""


@pytest.mark.parametrize("kind", [suspension.Suspended, suspension.HostSuspended])
def test_each_work_item_of_a_slice_has_a_mark_whatever_slices_came_before(
    kind: type[suspension.Suspended], device: Device
) -> None:
    buffers = kind(session(device))
    for size in (64, 1 << 16, 64):
        buffers.provide(suspension.SlotLayout(slot_words=4, most=8, enough=4, slice=size))
        assert buffers.skipped.size >= size
    assert buffers.skipped_ranges(0, 1 << 16, 1) == []
    buffers.close()


@pytest.mark.rotate("length", "backend", most=1)
@pytest.mark.parametrize("length", [200, 150])
def test_items_that_leave_before_a_store_run_again_from_their_start(
    length: int, backend: OpenClBackend, launched: list[tuple[int, int]]
) -> None:
    text = ferryvm.compile(LEAVING_FIRST.format(length=length))
    found = outcome(on(backend).start(text))
    assert launched
    expected = outcome(Engine("threaded").start(text))
    assert found[:2] == expected[:2]
    assert length < 200 or found == expected


def test_a_loop_that_may_take_long_is_polled(
    monkeypatch: pytest.MonkeyPatch, launched: list[tuple[int, int]]
) -> None:
    texts: list[bool] = []
    made = code.item_text

    def noted(*given: object, polls: bool = False) -> object:
        texts.append(polls)
        return made(*given, polls=polls)  # type: ignore[arg-type]  # as it is called

    monkeypatch.setattr(code, "item_text", noted)
    monkeypatch.setattr(bound, "MOST_ITERATIONS", 2)
    text = ferryvm.compile(LEAVING_FIRST.format(length=200))
    found = on(OpenClBackend(wraps=False)).start(text).run().value
    assert texts == [False, True]
    assert found == Engine("threaded").start(text).run().value


def launch(case: tuple[int, int, int, int]) -> tuple[Region, Execution]:
    """The launch, and a program that stands in front of it, for the second time."""
    made = region(verify(program(case)), "go/launch.1.1")
    execution = Engine("threaded").start(made.verified.program)
    control = execution.machine.control
    while control.pc != made.entry or execution.machine.memory.stack[control.sp - 3] != case[0]:
        execution.run(1)
    return made, execution


@pytest.mark.rotate("backend", most=1)
def test_a_launch_with_items_left_is_saved_and_goes_on_elsewhere(
    backend: OpenClBackend, tmp_path: Path
) -> None:
    case = CASES["items that print"]
    made, execution = launch(case)
    code = backend.compile(made, CompilerOptions())
    assert code.ranges is not None
    outcome = code.ranges.run(execution.machine, 0, ITEMS)
    assert 4 <= outcome.suspended <= 6
    assert 0 < outcome.completed <= ITEMS - 6
    control, stack = execution.machine.control, execution.machine.memory.stack
    assert control.pc == made.entry
    assert stack[control.sp - 2] == ITEMS
    assert stack[control.sp - 1] != 0  # the record
    path = tmp_path / "state.ferry"
    execution.save(path)
    found = Engine("switch").resume(path).run()
    expected = Engine("threaded").start(program(case)).run()
    assert (found.value, found.output) == (expected.value, expected.output)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "name", ["items that print", "items that recur deeply", "items that launch"]
)
def test_items_may_leave_anywhere(name: str, backend: OpenClBackend) -> None:
    case = (40, *CASES[name][1:3], 1)
    made, execution = launch(case)
    code = backend.compile(made, CompilerOptions(forcing=frozenset({Forcing.DEOPT})))
    assert code.ranges is not None
    code.ranges.run(execution.machine, 0, case[0])
    control = execution.machine.control
    assert execution.machine.memory.stack[control.sp - 1] != 0  # the record
    assert outcome(execution) == outcome(Engine("threaded").start(program(case)))


@pytest.mark.rotate("backend", most=1)
def test_an_interrupt_suspends_items(
    backend: OpenClBackend, monkeypatch: pytest.MonkeyPatch, launched: list[tuple[int, int]]
) -> None:
    monkeypatch.setattr(item_range, "_POLLS", 8 << 8)  # where the device cannot see the flag
    execution = started(backend, (ITEMS, 6, 9999, SLICE + 5))
    run_interrupted(execution, launched, (0, ITEMS))
    assert launched[-1] == (0, ITEMS)


GRID = """
(define (item row column n out)
  (if (= (+ (* row n) column) {printing}) (print! row column))
  (array-set! out (+ (* row n) column) (/ (+ (* row 1000) column) (- {trapping} column))))
(define (fill n m out) (for-each-item (n m) (item m out)))
(define out (make-array i64 3000))
(fill {rows} {columns} out)
(fill {rows} {columns} out)
"""


GRIDS = {
    "rows": (40, 75, -1, -1),
    "long rows and output": (3, 1000, 1234, -1),
    "short rows and a trap": (1000, 3, -1, 2),
    "rows and a trap": (40, 75, -1, 60),
}
"""Rows, columns, the number of the item that prints, the column that traps."""


@pytest.mark.rotate("name", "backend", most=3)
@pytest.mark.parametrize("name", GRIDS)
def test_items_of_two_dimensions_end_as_the_loops_in_order(
    name: str, backend: OpenClBackend
) -> None:
    rows, columns, printing, trapping = GRIDS[name]
    given = {"rows": rows, "columns": columns, "printing": printing, "trapping": trapping}
    source = ferryvm.compile(GRID.format(**given))
    found, expected = outcome(on(backend).start(source)), outcome(Engine("threaded").start(source))
    assert found[:2] == expected[:2]
    if trapping < 0:  # else items behind it have run, too
        assert found[2] == expected[2]


def block_texts(text: str, device: Device) -> list[str]:
    """The kernels that run the items of the launches in a program in blocks."""
    verified, options = verify(ferryvm.compile(text)), CompilerOptions()
    sources = []
    for pc in launch_numbers(verified):
        launch = Region(verified, RegionKind.LAUNCH, verified.owner(pc), pc)
        items = item_region(launch, options)
        assert items is not None
        sources.append(code.item_text(launch, items, options, device, WRAPPED)[0].source)
    return sources


@pytest.mark.parametrize(("body", "is_polled"), [("(* i 3)", False), ("(count i)", True)])
def test_blocks_are_polled_if_items_have_loops(body: str, is_polled: bool, device: Device) -> None:
    text = "(define (count i) (define k 0) (while (< k i) (set! k (+ k 2))) k)"
    text += f"(define (item i to) (array-set! to i {body}))"
    for source in block_texts(text + "(for-each-item 9 (item (make-array i64 9)))", device):
        assert ("interrupted(control)" in source) is is_polled
        assert "suspended->stop" in source  # each block looks at it before its first item


def test_blocks_of_two_dimensions_are_loops_over_rows(device: Device) -> None:
    text = "(define (item row column n out) (array-set! out (+ (* row n) column) row))"
    text += "(define (fill n m out) (for-each-item (n m) (item m out)))"
    for source in block_texts(text + "(fill 40 70 (make-array i64 2800))", device):
        lines = [line for line in source.splitlines() if "for (;;)" in line]
        loops = [len(line) - len(line.lstrip()) for line in lines]
        assert max(loops) > min(loops)  # the row within the loop over rows
