# SPDX-License-Identifier: Apache-2.0
"""Loops with more that does not change than there are registers or ports, and windows that move."""

from __future__ import annotations

import dataclasses
import functools
from collections import Counter

import pytest

from ferryvm.isa.type import I64
from ferryvm_backends.vliw import passes
from ferryvm_backends.vliw.code import tuning
from ferryvm_backends.vliw.code.liveness import live_at_entry
from ferryvm_backends.vliw.code.modulo import pipeline, prologue
from ferryvm_backends.vliw.code.modulo.attempt import LoopSearch, ScheduleAttempt
from ferryvm_backends.vliw.code.modulo.dependence_graph import Invariant, Iteration
from ferryvm_backends.vliw.code.modulo.initiation_interval import bounds, edges
from ferryvm_backends.vliw.code.modulo.register_pressure import Lifetimes
from ferryvm_backends.vliw.code.modulo.schedule import orders, schedule_iteration
from ferryvm_backends.vliw.code.modulo.spill import choose, preheader_of, reload
from ferryvm_backends.vliw.code.operation import (
    MachineBlock,
    MachineCode,
    MachineOperation,
    Register,
    Segment,
)
from ferryvm_backends.vliw.code.program import Program
from ferryvm_backends.vliw.code.schedule import KnownSchedules, schedule
from ferryvm_backends.vliw.machine.model import FileKind, Machine
from ferryvm_backends.vliw.machine.read import find, shipped

from ...tier import nightly, sample
from .looping import MACHINE, Loop, loops_of
from .program import compiled, run, whole

MIX = """
    (define (mix v w n)
      (define i 0)
      (while (< i n)
        (let ((s 0) (k 0))
          (while (< k {taps})
            (set! s (+ s (* (array-ref v (+ {step} k)) (array-ref w k))))
            (set! k (+ k 1)))
          (array-set! u i s))
        (set! i (+ i 1))))
    (define v (make-array i64 60)) (define w (make-array i64 60)) (define u (make-array i64 60))
    (define j 0)
    (while (< j 60)
      (array-set! v j (+ (* j j) 1)) (array-set! w j (- (* j 7) 30)) (set! j (+ j 1)))
    (mix v w {n})
    (define t 0)
    (set! j 0)
    (while (< j 60) (set! t (+ (* t 31) (array-ref u j))) (set! j (+ j 1)))
    t
"""


def sums(count: int) -> tuple[Loop, list[Register]]:
    """A loop that adds so many registers to one, and what is added."""
    loop = Loop()
    total, kept = loop.register(), [loop.register() for _ in range(count)]
    loop.read_after.append(total)
    for each in kept:
        loop.do("add", total, each, to=total)
    return loop, kept


def narrow(registers: int = 16, ports: int = 16) -> Machine:
    """The machine of these tests with another file for words."""
    words, predicates = MACHINE.files
    words = dataclasses.replace(words, registers=registers, read_ports=ports)
    return dataclasses.replace(MACHINE, files=(words, predicates))


# --- what is loaded -------------------------------------------------------------------------


def test_nothing_is_loaded_where_registers_and_ports_are_enough() -> None:
    loop, _ = sums(4)
    assert choose(loop.round(), narrow(), 4, 0.75) == []


def test_what_there_are_too_few_registers_for_is_loaded() -> None:
    loop, kept = sums(8)
    assert choose(loop.round(), narrow(registers=8), 8, 0.75) == kept[:2]
    assert choose(loop.round(), narrow(registers=8), 8, 0.25) == kept[:6]


def test_what_there_are_too_few_ports_for_is_loaded_as_far_as_units_have_time() -> None:
    loop, kept = sums(8)
    few = choose(loop.round(), narrow(ports=1), 8, 1)
    assert kept[: len(few)] == few
    assert 2 <= len(few) <= 0.7 * 2 * 8
    assert len(choose(loop.round(), narrow(ports=1), 1, 1)) < len(few)


def test_what_is_read_often_stays_in_its_register() -> None:
    loop = Loop()
    total, often, once = (loop.register() for _ in range(3))
    for each in (often, often, once, often):
        loop.do("add", total, each, to=total)
    assert choose(loop.round(), narrow(registers=2), 8, 0.5) == [once]


def _entered(loop: Loop) -> tuple[MachineCode, MachineBlock, MachineBlock]:
    """Machine code with a loop, and a block in front of it."""
    loop.round()
    block, _ = loop.code.blocks
    preheader = MachineBlock("preheader", [MachineOperation("jump", target=block)])
    loop.code.blocks.insert(0, preheader)
    return loop.code, preheader, block


def test_a_loop_that_loads_stores_in_front_and_can_be_as_it_was() -> None:
    loop, kept = sums(3)
    code, preheader, block = _entered(loop)
    before = [*block.operations]
    assert preheader_of(code, block) is preheader
    made = reload(code, block, preheader, kept[:2])
    assert [o.name for o in preheader.operations] == ["store", "store", "jump"]
    assert [o.operands for o in preheader.operations[:2]] == [(0, kept[0]), (0, kept[1])]
    names = [operation.name for operation in block.operations]
    assert names == ["load", "add", "load", "add", "add", "jump"]
    loads = [o for o in block.operations if o.name == "load"]
    assert [o.place for o in loads] == [o.place for o in preheader.operations[:2]]
    graph = Iteration(block, live_at_entry(code))
    assert {s for n in graph.nodes for s in n.sources if isinstance(s, Invariant)} == {
        Invariant(kept[2])
    }
    made.undo()
    assert block.operations == before
    assert [o.name for o in preheader.operations] == ["jump"]


def test_a_loop_that_is_entered_from_two_places_has_no_front() -> None:
    loop, _ = sums(1)
    code, preheader, block = _entered(loop)
    code.blocks.insert(0, MachineBlock("other", [*preheader.operations]))
    assert preheader_of(code, block) is None


def _reloaded(program: Program) -> int:
    """Loads of spilled words in loops that are pipelined."""
    return sum(
        slot.name == "load" and slot.place is not None and slot.place.segment is Segment.SPILL
        for loop in program.loops
        if loop.is_pipelined
        for bundle in program.bundles[loop.start : loop.end]
        for slot in bundle
    )


@functools.cache
def _usual(text: str) -> Program:
    """What `single` runs, whose loops have ports enough."""
    return compiled(whole(text), find("single"))


def _is_right(program: Program, text: str) -> None:
    """A program ends as the usual one."""
    part = whole(text)
    ended = [run(each, part, is_native=False) for each in (program, _usual(text))]
    for each in ended:
        each.memory.update(spill=b"", calls=b"")
    assert ended[0].registers == ended[1].registers
    assert ended[0].memory == ended[1].memory


@pytest.mark.nightly
@pytest.mark.parametrize("machine", ["single", "multi16"])
def test_the_state_is_the_same_with_registers_and_with_loads(
    monkeypatch: pytest.MonkeyPatch, machine: str
) -> None:
    text = MIX.format(taps=12, n=20, step="(* i 2)")
    description = find(machine)
    if machine == "single":
        words, predicates = description.files
        files = dataclasses.replace(words, registers=24), predicates
        description = dataclasses.replace(description, files=files)
    part = whole(text)
    loading = compiled(part, description)
    assert _reloaded(loading)
    assert run(loading, part, is_native=True) == run(loading, part, is_native=False)
    monkeypatch.setattr(pipeline, "choose", lambda *_: [])
    keeping = compiled(part, description)
    assert not _reloaded(keeping)
    _is_right(loading, text)
    _is_right(keeping, text)


@pytest.mark.nightly
@pytest.mark.rotate("machine", "registers", most=1)
@pytest.mark.parametrize("taps", [8, nightly(14)])
@pytest.mark.parametrize("registers", [nightly(6), 12, 20])
@pytest.mark.parametrize("machine", ["single", "dsp4", "wide16"])
def test_a_loop_that_is_given_up_after_its_registers_went_to_memory_is_right(
    machine: str, registers: int, taps: int
) -> None:
    """What a loop has loaded for it may be in memory by the time that it is planned again."""
    text = MIX.format(taps=taps, n=12, step="i")
    usual = find(machine)
    files = tuple(
        dataclasses.replace(f, registers=registers) if f.kind is FileKind.INTEGER else f
        for f in usual.files
    )
    few = compiled(whole(text), dataclasses.replace(usual, files=files))
    assert few.spilled
    _is_right(few, text)


# --- lifetimes ----------------------------------------------------------------------------------


@pytest.mark.nightly
@pytest.mark.rotate("machine", most=1)
@pytest.mark.parametrize("machine", sorted(shipped()))
def test_a_schedule_has_no_more_lives_than_its_files_have_registers(machine: str) -> None:
    description = find(machine)
    for loop in loops_of(whole(MIX.format(taps=8, n=20, step="i")), description)[1]:
        failures: Counter[str] = Counter()
        least = bounds(loop, description).least
        found = schedule_iteration(loop, description, least, 4 * least, frozenset(), failures)
        if found is None:
            assert failures or least > 60
            continue
        assert Lifetimes(found.loop, description, found.partial).highest()[0] <= 1
        # One register less than is needed anywhere is told.
        needed = Lifetimes(found.loop, description, found.partial)._needed()
        name = max(needed, key=lambda each: needed[each])
        files = tuple(
            dataclasses.replace(f, registers=needed[name] - 1) if f.name == name else f
            for f in description.files
        )
        tight = dataclasses.replace(description, files=files)
        part, highest = Lifetimes(found.loop, tight, found.partial).highest()
        assert highest == name
        assert part > 1


COLUMN = """
    (define (column a b n)
      (define i 0) (define s 0.0)
      (while (< i n)
        (set! s (+ s (* (array-ref a i) (array-ref b (* i n)))))
        (set! i (+ i 1)))
      s)
    (column (make-array f64 8) (make-array f64 64) 8)
"""


def test_of_schedules_of_one_interval_one_that_needs_few_registers_is_taken() -> None:
    description = find("single")
    (loop, *_) = loops_of(whole(COLUMN), description, iterations=3)[1]
    least = bounds(loop, description).least
    first = next(orders(loop, edges(loop, description), least))
    attempt = ScheduleAttempt(LoopSearch(loop, description), least, first, frozenset()).run()
    assert attempt is not None
    assert Lifetimes(attempt.loop, description, attempt.partial).highest()[0] > 0.6
    found = schedule_iteration(loop, description, least, least, frozenset(), Counter())
    assert found is not None
    assert Lifetimes(found.loop, description, found.partial).highest()[0] < 0.5


# --- windows that move ----------------------------------------------------------------------


SMALL_FIRST = [nightly(name) if name == "wide16" else name for name in sorted(shipped())]
"""Machines. A schedule of the one with the most units takes seconds."""


@pytest.fixture
def keeping(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops keep all that they have loaded."""
    monkeypatch.setattr(passes, "registers_for_forwarding", lambda machine, operations: 20)


@pytest.mark.nightly
@pytest.mark.rotate("machine", "n", most=1)
@pytest.mark.usefixtures("keeping")
@pytest.mark.parametrize("taps", [4, nightly(6), nightly(9)])
@pytest.mark.parametrize("n", sample([0, 1, 8, 40], 3))
@pytest.mark.parametrize("machine", SMALL_FIRST)
def test_samples_of_earlier_rounds_are_those(machine: str, n: int, taps: int) -> None:
    """Also where the loop ends before its first samples have been used up."""
    text = MIX.format(taps=taps, n=n, step="i")
    _is_right(compiled(whole(text), find(machine)), text)


@pytest.mark.nightly
@pytest.mark.usefixtures("keeping")
def test_what_has_no_port_in_the_first_rounds_is_brought_to_a_unit_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = MIX.format(taps=9, n=30, step="i")
    moves: list[prologue.ForwardedValue] = []
    bring = prologue.Prologue._bring

    def watched(self: prologue.Prologue, *arguments: object) -> bool:
        found = bring(self, *arguments)  # type: ignore[arg-type]
        moves.extend(self.moves[-1:])
        return found

    monkeypatch.setattr(prologue.Prologue, "_bring", watched)
    monkeypatch.setattr(tuning, "REGION_PLACEMENTS", 1 << 30)
    brought = compiled(whole(text), find("multi16"))
    assert moves
    _is_right(brought, text)


# --- blocks that are crowded ----------------------------------------------------------------


def _block(operations: int) -> tuple[MachineCode, MachineBlock]:
    code = MachineCode("by hand", [])
    found = [
        MachineOperation("add", (I64,), (1, number), code.register(FileKind.INTEGER))
        for number in range(operations)
    ]
    for each in found:
        assert each.result is not None
        each.result.file = "r"
    block = MachineBlock("b", [*found, MachineOperation("stop")])
    code.blocks.append(block)
    return code, block


def test_a_window_keeps_operations_near_their_places() -> None:
    code, block = _block(40)
    block.operations[39].operands = (1, 39)
    first, last = block.operations[0].result, block.operations[38]
    assert first is not None
    last.operands = (first, 5)
    for window in (1, 4, 16):
        placed = schedule(code, MACHINE, {}, {block: window}).blocks[block].placed
        for number, each in enumerate(placed):
            before = [p for p in placed[: max(number - window + 1, 0)] if p.cycle > each.cycle]
            assert not before


def test_what_has_not_changed_is_not_scheduled_again() -> None:
    code, block = _block(10)
    known = KnownSchedules()
    one = schedule(code, MACHINE, {}, None, known).blocks[block]
    assert schedule(code, MACHINE, {}, None, known).blocks[block] is one
    other = schedule(code, MACHINE, {}, {block: 2}, known).blocks[block]
    assert other is not one
    first, *rest = block.operations
    block.operations = [dataclasses.replace(first, operands=(2, 0)), *rest]
    new = schedule(code, MACHINE, {}, {block: 2}, known).blocks[block]
    assert new is not other


@pytest.mark.nightly
def test_a_load_of_a_spilled_word_comes_soon_before_it_is_needed() -> None:
    text = MIX.format(taps=16, n=12, step="(* i 16)")
    usual = find("single")
    files = dataclasses.replace(usual.files[0], registers=6), usual.files[1]
    program = compiled(whole(text), dataclasses.replace(usual, files=files))
    assert program.spilled
    assert tuning.SPILL_AHEAD < tuning.CROWDED_WINDOW
    _is_right(program, text)
