# SPDX-License-Identifier: Apache-2.0
"""Disagreements in the form for the template: both traces line by line, and the state around."""

from __future__ import annotations

import dataclasses
import itertools

from ferryvm.isa import INSTRUCTIONS, Flow
from ferryvm.isa.type import ValueType
from ferryvm.page import shown
from ferryvm.program import Program
from ferryvm.testing.differential import Comparison, Verdict
from ferryvm.testing.region import Region
from ferryvm.testing.report import text
from ferryvm.testing.report.evidence import Evidence, Group, Part
from ferryvm.testing.report.result import Report, Result
from ferryvm.testing.report.view import anchor
from ferryvm.testing.trace import TraceLine
from ferryvm.verify import Verified


@dataclasses.dataclass(frozen=True)
class Side:
    """One instruction on one side of a pair of traces."""

    pc: int
    name: str
    immediate: str
    effect: str
    then: str
    source: str
    """Function, line and column; the file too where there are several."""
    after: str = ""
    """The field that then differs, with its value on this side."""


@dataclasses.dataclass(frozen=True)
class ComparedInstruction:
    """One instruction on both sides."""

    number: str
    good: Side | None
    bad: Side | None
    css: str
    """`same`, `differs` or `first`."""


@dataclasses.dataclass(frozen=True)
class Field:
    """One field of the state on both sides."""

    name: str
    type: str
    good: str
    bad: str
    good_digits: list[tuple[str, bool]]
    bad_digits: list[tuple[str, bool]]
    differs: bool


@dataclasses.dataclass(frozen=True)
class Fields:
    """Some fields of one kind."""

    name: str
    note: str
    rows: list[Field]


@dataclasses.dataclass(frozen=True)
class Conflict:
    """One disagreement."""

    anchor: str
    program: str
    good: str
    bad: str
    end: tuple[str, str, str]
    """Field, and its values on both sides, where the runs ended."""
    is_counted: bool
    parting: tuple[str, str, str] | None
    """The same right after the instruction at which they diverge."""
    where: list[tuple[str, str]]
    lines: list[ComparedInstruction]
    groups: list[Fields]
    reason: str


def conflicts(report: Report) -> list[Conflict]:
    """All disagreements, in the order of the programs."""
    return [
        _conflict(report, result, one, program, number)
        for program, result in enumerate(report.results)
        for number, one in enumerate(result.comparisons)
        if one.verdict is Verdict.DISAGREE
    ]


def _conflict(
    report: Report, result: Result, one: Comparison, program: int, number: int
) -> Conflict:
    evidence = result.evidence.get(number, Evidence(None, "it was not looked for"))
    parting, found = evidence.parting, one.difference
    others = [name for name in one.backends if name != report.against]
    return Conflict(
        anchor(program, number),
        shown(result.name),
        shown(report.against),
        shown(parting.bad if parting else ", ".join(others)),
        _texts(found.field, found.left, found.right) if found else ("", "", ""),
        one.is_counted,
        _texts(parting.difference.field, parting.difference.left, parting.difference.right)
        if parting
        else None,
        _where(evidence),
        _lines(result.program, evidence),
        [_fields(group) for group in evidence.groups],
        shown(evidence.reason or ""),
    )


def _texts(*parts: str) -> tuple[str, str, str]:
    field, good, bad = map(shown, parts)
    return field, good, bad


def _where(evidence: Evidence) -> list[tuple[str, str]]:
    parting = evidence.parting
    if parting is None:
        return []
    found = [
        ("instruction", f"{parting.mnemonic} at pc {parting.pc}"),
        ("after", text.plural(parting.number, "instruction")),
    ]
    if parting.position is not None:
        found.append(("source", str(parting.position)))
    found += [(region.kind, _region(region)) for region in parting.regions]
    found.append(("shows when", f"{parting.mode.value}, entered at {text.number(parting.entered)}"))
    return [(name, shown(value)) for name, value in found]


def _region(region: Region) -> str:
    name = f"{region.name}, " if region.name else ""
    return f"{name}pc {region.first} to {region.last}"


def _lines(program: Verified, evidence: Evidence) -> list[ComparedInstruction]:
    parting = evidence.parting
    if parting is None:
        return []
    pairs = list(itertools.zip_longest(parting.good_trace, parting.bad_trace))
    unequal = [number for number, (good, bad) in enumerate(pairs) if good != bad]
    first = (
        unequal[0] if unequal else len(pairs) - 1
    )  # otherwise it is in a part of the state that lines do not show
    start = parting.number + 1 - len(parting.good_trace)
    found = []
    for number, (good, bad) in enumerate(pairs):
        css = "first" if number == first else "differs" if number in unequal else "same"
        sides = [_side(program, line) if line else None for line in (good, bad)]
        if number == len(pairs) - 1:
            parted = parting.difference
            sides = [
                dataclasses.replace(side, after=shown(f"{parted.field}: {value}")) if side else None
                for side, value in zip(sides, (parted.left, parted.right), strict=True)
            ]
        found.append(ComparedInstruction(text.number(start + number), sides[0], sides[1], css))
    return found


def _side(verified: Verified, line: TraceLine) -> Side:
    program = verified.program
    taken, left = _types(verified, line)
    effect = f"{text.words(taken, line.operands)} → {text.words(left, line.results)}".strip()
    position = program.source_map.position(line.pc)
    source = program.functions[verified.owner(line.pc)].name
    if position is not None:
        has_one_file = len(program.source_map.files) == 1
        place = f"{position.line}:{position.column}" if has_one_file else str(position)
        source = f"{source} {place}"
    return Side(
        line.pc,
        line.mnemonic,
        shown(line.immediate),
        "" if effect == "→" else effect,
        shown(line.then),
        shown(source),
    )


def _types(
    verified: Verified, line: TraceLine
) -> tuple[tuple[ValueType, ...], tuple[ValueType, ...]]:
    """Types of the operands and of the results of a line, if they are known."""
    before = verified.operand_types(line.pc)
    taken = before[len(before) - len(line.operands) :]
    flow = _flow(verified.program, line.pc)
    if flow is Flow.RETURN:
        return taken, taken
    past = line.pc + 1
    if flow not in (Flow.NEXT, Flow.HOST) or not verified.is_reachable(past):
        return taken, ()
    after = verified.operand_types(past)
    return taken, after[len(after) - len(line.results) :]


def _flow(program: Program, pc: int) -> Flow:
    return INSTRUCTIONS[program.code.opcodes[pc]].flow


def _fields(group: Group) -> Fields:
    hidden = group.total - len(group.parts)
    note = f"{text.number(group.differing)} of {text.number(group.total)} differ"
    if hidden:
        note += f"; shown: {len(group.parts)} around the first"
    if group.name == "registers" and not group.differing:
        note = "all equal"
    has_bits = group.name in ("stack", "statics", "heap")
    return Fields(group.name, note, [_field(part, has_bits) for part in group.parts])


def _field(part: Part, has_bits: bool) -> Field:
    def value(side: int | str | None) -> str:
        if side is None:
            return "none"
        if isinstance(side, str):
            return shown(side)
        return text.word(part.type, side) if part.type or has_bits else text.number(side)

    return Field(
        shown(part.name),
        str(part.type or ""),
        value(part.good),
        value(part.bad),
        text.digits(part.good, part.bad) if has_bits else [],
        text.digits(part.bad, part.good) if has_bits else [],
        part.differs,
    )
