# SPDX-License-Identifier: Apache-2.0
"""The instruction table is complete: numbered, documented, typed, and covered by golden cases."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path

from ferryvm.isa import INSTRUCTIONS, Flow, Immediate, Instruction, Trap, Type
from ferryvm.isa.table import REF, T, Variable
from ferryvm.isa.type import Reference
from ferryvm.testing.conformance.golden import GoldenCase, cases, object_cases

from ..tier import together

PINNED = Path(__file__).parent / "opcodes.txt"

RENUMBERED = """opcodes changed.
Images (.fvm) and saved states (.ferry) hold opcodes: after a renumbering, those written before
it mean other instructions. The table's fingerprint makes them refused, so users must compile
again. If that is wanted, write the table's numbers to tests/isa/opcodes.txt and say so in
CHANGELOG.md; if not, declare new instructions last (ferryvm/isa/__init__.py has the order)."""

EVERY = (*cases(), *object_cases())

LENT = Trap.READ_ONLY_ARRAY
"""The trap that no case of the files has: only a host makes such arrays (tests/object)."""

by_mnemonic = together("row", INSTRUCTIONS, label=lambda row: row.mnemonic)


class Recorder:
    """An emitter whose values are nothing: it notes which traps a meaning can raise."""

    def __init__(self) -> None:
        self.traps: set[Trap] = set()

    def trap_if(self, p: object, kind: Trap) -> None:
        self.traps.add(kind)

    def trap(self, kind: Trap) -> None:
        self.traps.add(kind)

    def grow_if(self, p: object, wanted: object) -> None:
        self.traps.add(Trap.HEAP_EXHAUSTED)  # what becomes of it when the heap cannot grow

    def set_object_top(self, value: object) -> None:
        self.traps.add(Trap.HEAP_EXHAUSTED)  # what becomes of it when the object space is full

    def throw(self) -> None:
        self.traps.add(Trap.UNCAUGHT_EXCEPTION)  # what becomes of it when nothing catches it

    def __getattr__(self, name: str) -> Callable[..., object]:
        return lambda *operands: object()


def _arguments(row: Instruction) -> list[object]:
    count = len(row.pops) + (row.immediate is not Immediate.NONE)
    return [object() for _ in range(count)]


def _cases(row: Instruction) -> list[GoldenCase]:
    return [case for case in EVERY if case.row is row]


def test_opcodes_are_the_pinned_ones() -> None:
    table = [f"{row.opcode} {row.mnemonic}" for row in INSTRUCTIONS]
    pinned = [
        line
        for line in PINNED.read_text(encoding="utf-8").splitlines()
        if line and not line.startswith("#")
    ]
    changed = [f"  {p} is now {t}" for p, t in zip(pinned, table, strict=False) if p != t][:5]
    changed += [f"  {p} is gone" for p in pinned[len(table) :]]
    changed += [f"  {t} is not pinned" for t in table[len(pinned) :]]
    assert table == pinned, "\n".join([RENUMBERED, *changed])


def test_opcode_is_the_index_in_the_table() -> None:
    assert [row.opcode for row in INSTRUCTIONS] == list(range(len(INSTRUCTIONS)))


@by_mnemonic
def test_instruction_is_documented_in_a_sentence(row: Instruction) -> None:
    summary = row.summary.splitlines()[0]
    assert summary[:1].isupper() or summary[:1].isdigit()
    assert summary.endswith(".")


@by_mnemonic
def test_stack_effect_is_legal(row: Instruction) -> None:
    for operand in (*row.pops, *row.pushes):
        assert isinstance(operand, Type | Reference | Variable)
    bound = {operand for operand in row.pops if isinstance(operand, Variable)}
    if row.immediate in (Immediate.LOCAL, Immediate.STATIC):
        bound.add(Variable("t"))  # the local's or static's type
    if row.immediate in (Immediate.TYPE, Immediate.STRUCT, Immediate.FIELDS):
        bound.add(REF)
    if row.immediate in (Immediate.ARRAY, Immediate.FIELD):
        bound |= {REF, T}
    free = {operand for operand in row.pushes if isinstance(operand, Variable)}
    assert free <= bound, "a pushed type must follow from an operand or the immediate"
    if row.immediate.literal:
        assert row.pushes == (row.immediate.literal,)
    if row.flow is not Flow.NEXT:
        assert row.pushes == ()


@by_mnemonic
def test_meaning_takes_and_returns_what_the_row_declares(row: Instruction) -> None:
    arguments = _arguments(row)
    inspect.signature(row.meaning).bind(Recorder(), *arguments)
    result = row.meaning(Recorder(), *arguments)
    if row.pushes == ():
        assert result is None
    elif len(row.pushes) > 1:
        assert isinstance(result, tuple)
        assert len(result) == len(row.pushes)
    else:
        assert result is not None
        assert not isinstance(result, tuple)


@by_mnemonic
def test_instruction_has_golden_cases(row: Instruction) -> None:
    is_numeric = row.chapter in ("numeric", "mathematical", "conversion")
    wanted = (10 if len(row.pops) == 2 else 6) if is_numeric else 3
    assert len(_cases(row)) >= wanted


@by_mnemonic
def test_every_trap_of_an_instruction_has_a_golden_case(row: Instruction) -> None:
    recorder = Recorder()
    row.meaning(recorder, *_arguments(row))
    covered = set()
    for case in EVERY:
        trapping = case.marked.row if case.marked else case.row
        if trapping is row and case.outcome.trap:
            covered.add(case.outcome.trap)
    assert covered == recorder.traps - {LENT}


def test_no_golden_case_stands_twice() -> None:
    seen: dict[tuple[object, ...], GoldenCase] = {}
    for case in EVERY:
        code = repr(case.code)
        key = (case.row.mnemonic, repr(case.setting), case.immediate, case.operands, code)
        assert key not in seen, f"{case} repeats {seen[key]}"
        seen[key] = case
