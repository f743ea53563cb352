# SPDX-License-Identifier: Apache-2.0
"""Loops that are not pipelined: why, and that their code does the same."""

from __future__ import annotations

import dataclasses

import pytest

from ferryvm.backend import Options
from ferryvm.compiler import Compilation
from ferryvm_backends.vliw import VliwBackend
from ferryvm_backends.vliw.code import register_allocation, tuning
from ferryvm_backends.vliw.code.live_range import LiveRanges
from ferryvm_backends.vliw.code.operation import Register
from ferryvm_backends.vliw.code.program import LIMIT
from ferryvm_backends.vliw.code.program import LoopSummary as Told
from ferryvm_backends.vliw.code.text import program_text
from ferryvm_backends.vliw.machine.model import FileKind, Machine
from ferryvm_backends.vliw.machine.read import find

from ...tier import sample
from .loop_program import COUNTS, TRAP
from .program import compiled, run, whole
from .test_predicate import PROGRAMS


def _with_registers(machine: Machine, kind: FileKind, count: int) -> Machine:
    files = tuple(
        dataclasses.replace(file, registers=count) if file.kind is kind else file
        for file in machine.files
    )
    return dataclasses.replace(machine, files=files)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("kind", "file", "text", "counts"),
    [
        (FileKind.INTEGER, "int", COUNTS, (12, 8)),
        (FileKind.BOOLEAN, "bool", PROGRAMS["swap"], (8, 1)),
    ],
)
def test_a_loop_that_finds_too_few_registers_is_unrolled_and_says_in_which_file(
    kind: FileKind,
    file: str,
    text: str,
    counts: tuple[int, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tuning, "REGION_PLACEMENTS", 1 << 30)
    part, usual = whole(text), find("wide16")
    right = run(compiled(part, usual), part, is_native=True)
    found: list[Told] = []
    for count in counts:
        program = compiled(part, _with_registers(usual, kind, count))
        ended = run(program, part, is_native=True)
        for each in (ended, right):  # what only the code sees differs
            each.memory.update(spill=b"", calls=b"")
        assert (ended.registers, ended.memory) == (right.registers, right.memory)
        found += [loop for loop in program.loops if not loop.is_pipelined]
    assert found
    assert {loop.reason for loop in found} == {f"file {file} has too few registers"}
    assert {loop.stages for loop in found} == {1}


@pytest.mark.parametrize("is_given_up", [False, True])
def test_what_a_loop_leaves_is_in_registers_also_when_it_is_given_up(
    monkeypatch: pytest.MonkeyPatch, is_given_up: bool
) -> None:
    """Whatever may be in memory is, and then a loop is given up: what its exits need is not
    lost."""
    part, machine = whole(TRAP), find("wide16")
    right = run(compiled(part, machine), part, is_native=True)
    colour, spilled = register_allocation._colour, list[Register]()

    def crowded(spans: LiveRanges, machine: Machine) -> tuple[dict[Register, int], list[Register]]:
        found, _ = colour(spans, machine)
        if not spilled:
            spilled.extend(r for r in spans.taken if r not in spans.fixed and not r.is_spill)
            return found, spilled
        blocks = {block for r in spans.fixed for block in spans.taken[r]}
        if is_given_up and spans.fixed:
            raise register_allocation._CrowdedError("int", [blocks])
        return found, []

    monkeypatch.setattr(register_allocation, "_colour", crowded)
    program = compiled(part, machine)
    assert program.spilled == len(spilled) > 0
    assert [loop.is_pipelined for loop in program.loops] == [not is_given_up]
    ended = run(program, part, is_native=True)
    for each in (ended, right):
        each.memory.update(spill=b"", calls=b"")
    assert (ended.registers, ended.memory) == (right.registers, right.memory)


@pytest.mark.nightly
def test_a_loop_that_is_too_large_is_not_tried() -> None:
    sums = " ".join(f"(set! s (+ s (* {n} (vector-ref v {n % 8}))))" for n in range(2, 200))
    text = (
        "(define v (make-vector i64 8)) (define s 1) (define i 0)"
        f"(while (< i 5) {sums} (vector-set! v i s) (set! i (+ i 1))) s"
    )
    (loop,) = compiled(whole(text), find("multi16")).loops
    assert loop.reason == "it has more than 320 operations"


def test_a_large_loop_whose_rounds_wait_for_each_other_is_not_tried() -> None:
    sums = " ".join(f"(set! s (+ (* s {n}) i))" for n in range(2, 50))
    text = f"(define s 1) (define i 0) (while (< i 5) {sums} (set! i (+ i 1))) s"
    (loop,) = compiled(whole(text), find("multi16")).loops
    assert loop.reason == "its iterations would hardly overlap"


@pytest.mark.nightly
@pytest.mark.parametrize("machine", sample(["multi16", "single"], 1))
def test_quick_code_pipelines_nothing_and_does_the_same(machine: str) -> None:
    part, full = whole(COUNTS), compiled(whole(COUNTS), find(machine))
    (target,) = VliwBackend(find(machine)).targets(Options(optimize=1))
    quick = Compilation(target, part, Options(optimize=1), {}).lowered
    assert any(loop.is_pipelined for loop in full.loops)
    assert {loop.reason for loop in quick.loops} == {"the code is made quickly"}
    assert {loop.iterations for loop in quick.loops} == {1}
    one, other = run(full, part, is_native=True), run(quick, part, is_native=True)
    assert one.registers == other.registers
    for segment in ("heap", "statics"):
        assert one.memory[segment] == other.memory[segment]
    assert one.counts.cycles < other.counts.cycles


@pytest.mark.nightly
def test_a_search_ends_with_its_budget_and_the_code_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    part, machine = whole(COUNTS), find("multi16")
    full = compiled(part, machine)
    assert not full.limited
    monkeypatch.setattr(tuning, "REGION_PLACEMENTS", 40)
    limited = compiled(part, machine)
    assert {loop.reason for loop in limited.loops if not loop.is_pipelined} == {LIMIT}
    assert limited.limited.endswith(f"loops not pipelined: {LIMIT}")
    assert f":  not pipelined: {LIMIT}\n" in program_text(limited)
    one, other = run(full, part, is_native=True), run(limited, part, is_native=True)
    assert one.registers == other.registers
    assert one.memory["heap"] == other.memory["heap"]
