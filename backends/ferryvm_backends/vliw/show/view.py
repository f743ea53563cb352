# SPDX-License-Identifier: Apache-2.0
"""The content of the page of a schedule: texts and numbers, nothing to compute.

A block is a table: a row a cycle, a column a unit that does something in the block. A cell is an
operation, and its colour and number the source line that it was made for.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Mapping
from pathlib import PurePath

from ferryvm.page import shown
from ferryvm.program import SourceMap
from ferryvm_backends.vliw.code.program import LoopSummary, Program, Slot
from ferryvm_backends.vliw.code.text import operation_name, slot_text
from ferryvm_backends.vliw.show.line import Line, line_at, texts

NO_LINE = "\N{EN DASH}"
"""Stands where a line's number would."""

_GOLDEN = 137.508
"""Degrees between the hues of lines that follow each other, so that they are far apart."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """A line of the legend."""

    css: str
    number: str
    """Its form in cells."""
    position: str
    text: str
    operations: int
    hue: int | None
    """None where there is no line."""


@dataclasses.dataclass(frozen=True)
class Target:
    """A block at which control may continue."""

    anchor: str
    label: str


@dataclasses.dataclass(frozen=True)
class Cell:
    """An operation."""

    name: str
    number: str
    """Of its line."""
    css: str
    tip: str
    """All about it, some lines."""
    target: Target | None


@dataclasses.dataclass(frozen=True)
class Row:
    """A cycle."""

    number: int
    cells: list[Cell | None]
    """By column; empty where nothing is issued."""
    note: str
    """The note above the row about a loop that starts here."""
    kind: str
    """`kernel` or `loop` in one, nothing elsewhere."""
    css: str
    """With the kind."""


@dataclasses.dataclass(frozen=True)
class Block:
    """A block with its rows."""

    anchor: str
    label: str
    units: list[str]
    """Names of its columns."""
    idle: str
    """Names of all other units."""
    rows: list[Row]
    operations: int
    stalls: int
    is_return: bool
    """True if calls return here."""


@dataclasses.dataclass(frozen=True)
class LoopRow:
    """A loop and its timing."""

    target: Target
    line: str
    interval: int
    bundles: int
    iterations: int
    copies: int
    stages: int
    resource: str
    recurrence: int
    reason: str


@dataclasses.dataclass(frozen=True)
class Picture:
    """The page of a program."""

    name: str
    machine: str
    source: str
    """The files that its lines are in."""
    bundles: int
    operations: int
    stalls: int
    units: int
    legend: list[Entry]
    loops: list[LoopRow]
    blocks: list[Block]


def picture(program: Program, source_map: SourceMap) -> Picture:
    """The picture of a program."""
    return _Painter(program, source_map).picture()


class _Painter:
    def __init__(self, program: Program, source_map: SourceMap) -> None:
        self.program, self.source_map = program, source_map
        slots = [slot for bundle in program.bundles for slot in bundle]
        self.uses = collections.Counter(self.line(slot.pc) for slot in slots)
        self.lines = sorted(line for line in self.uses if line is not None)
        self.texts = {line: shown(text) for line, text in texts(self.lines).items()}
        self.has_one_file = len({file for file, _ in self.lines}) < 2
        self.css: Mapping[Line | None, str] = {
            None: "l",
            **{line: f"l{index}" for index, line in enumerate(self.lines)},
        }

    def line(self, pc: int) -> Line | None:
        return line_at(self.source_map, pc)

    def number(self, line: Line | None) -> str:
        if line is None:
            return NO_LINE
        file, number = line
        return f"{number}" if self.has_one_file else shown(f"{PurePath(file).name}:{number}")

    def position(self, line: Line | None) -> str:
        return "no source line" if line is None else shown(f"{line[0]}:{line[1]}")

    def target(self, bundle: int) -> Target:
        return Target(f"b{bundle}", shown(self.program.labels[bundle]))

    # --- the page ---------------------------------------------------------------------------

    def picture(self) -> Picture:
        program = self.program
        starts = sorted(program.labels)
        ends = [*starts[1:], len(program.bundles)]
        return Picture(
            shown(program.name),
            shown(program.machine.name),
            ", ".join(dict.fromkeys(shown(file) for file, _ in self.lines)),
            len(program.bundles),
            self.uses.total(),
            sum(not bundle for bundle in program.bundles),
            len(program.machine.units),
            self.legend(),
            [self.loop(loop) for loop in program.loops],
            [self.block(start, end) for start, end in zip(starts, ends, strict=True)],
        )

    def legend(self) -> list[Entry]:
        found = [
            Entry(
                self.css[line],
                self.number(line),
                self.position(line),
                self.texts.get(line, ""),
                self.uses[line],
                round(index * _GOLDEN) % 360,
            )
            for index, line in enumerate(self.lines)
        ]
        if None in self.uses:
            none = self.position(None)
            found.append(Entry(self.css[None], NO_LINE, none, "", self.uses[None], None))
        return found

    def loop(self, loop: LoopSummary) -> LoopRow:
        start = max(first for first in self.program.labels if first <= loop.start)
        bound = f"{loop.resource_bound}"
        return LoopRow(
            dataclasses.replace(self.target(start), label=shown(loop.label)),
            self.position(self.line(loop.pc)),
            loop.interval,
            loop.end - loop.start,
            loop.iterations,
            loop.copies,
            loop.stages,
            f"{bound} ({shown(loop.resource)})" if loop.resource else bound,
            loop.recurrence_bound,
            shown(loop.reason),
        )

    def block(self, start: int, end: int) -> Block:
        program, bundles = self.program, self.program.bundles[start:end]
        units = sorted({slot.unit for bundle in bundles for slot in bundle})
        others = (unit.name for n, unit in enumerate(program.machine.units) if n not in units)
        target = self.target(start)
        return Block(
            target.anchor,
            target.label,
            [program.machine.units[unit].name for unit in units],
            ", ".join(others),
            [self.row(number, units) for number in range(start, end)],
            sum(map(len, bundles)),
            sum(not bundle for bundle in bundles),
            start in program.returns,
        )

    def row(self, number: int, units: list[int]) -> Row:
        slots = {slot.unit: slot for slot in self.program.bundles[number]}
        cells = [self.cell(slots[unit]) if unit in slots else None for unit in units]
        css = [] if slots else ["stall"]
        note = kind = ""
        for loop in self.program.loops:
            if loop.start <= number < loop.end:
                kind = _kind(loop)
                css.append(kind)
                css += ["first"] * (number == loop.start) + ["last"] * (number == loop.end - 1)
            if loop.start == number:
                note = self.note(loop)
        return Row(number, cells, note, kind, " ".join(css))

    def note(self, loop: LoopSummary) -> str:
        parts = [
            f"{_kind(loop)} of {self.position(self.line(loop.pc))}: II {loop.interval}",
            f"at least {loop.resource_bound} by resources"
            + (f" ({loop.resource})" if loop.resource else ""),
            f"at least {loop.recurrence_bound} by recurrences",
            _stages(loop) if loop.is_pipelined else "not pipelined",
        ]
        return shown(", ".join(parts) + (f": {loop.reason}" if loop.reason else ""))

    def cell(self, slot: Slot) -> Cell:
        program, line = self.program, self.line(slot.pc)
        unit = program.machine.units[slot.unit]
        latency = program.timing(slot).latency
        where = f"pc {slot.pc}, {self.position(line)}" if slot.pc >= 0 else "added by the compiler"
        target = None if slot.target is None else self.target(slot.target)
        tip = [
            f"{unit.name}: {slot_text(program, slot)}",
            f"latency {latency}",
            where,
            self.texts.get(line, "") if line else "",
        ]
        if slot.name == "jump_to":
            labels = ", ".join(self.target(bundle).label for bundle in program.returns)
            tip.append(f"goes on in one of: {labels}")
        return Cell(
            operation_name(slot),
            self.number(line),
            self.css[line],
            "\n".join(filter(None, tip)),
            target,
        )


def _kind(loop: LoopSummary) -> str:
    return "kernel" if loop.is_pipelined else "loop"


def _stages(loop: LoopSummary) -> str:
    return "1 stage" if loop.stages == 1 else f"{loop.stages} stages"
