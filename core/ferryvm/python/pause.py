# SPDX-License-Identifier: Apache-2.0
"""The state of compiled Python functions where a program stopped: each frame's place and variables.

    machine ── frames, pcs ──> statements of the graph      words ── kinds ──> Python objects

The code of a function has a point for each statement and kinds of variables. What a statement has
computed before it stopped is not seen by anyone, so a frame stands in front of its statement.
"""

from __future__ import annotations

import bisect
import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ferryvm.build import Local
from ferryvm.isa.type import Reference, as_number, to_python
from ferryvm.machine.state import Machine
from ferryvm.python.graph import Block
from ferryvm.python.kind import (
    ArrayIterator,
    Enumerated,
    Kind,
    Range,
    RangeIterator,
    TupleIterator,
    Zipped,
)
from ferryvm.python.lower import Lowering
from ferryvm.python.result import value_of
from ferryvm.python.source import Source

if TYPE_CHECKING:
    from ferryvm.engine.reference import References

MOST_FRAMES = 2_000
"""Frames of which the state is taken: deeper recursion than Python's own has none."""


class Point(NamedTuple):
    """The code of a statement, for certain kinds of variables."""

    start: int
    """The number of its first instruction in the function."""
    block: Block
    number: int
    """The number of the statement; that of the end is the number of statements."""
    kinds: dict[str, Kind]


@dataclasses.dataclass(frozen=True)
class FunctionMap:
    """The places of the statements of one compiled function."""

    source: Source
    lowering: Lowering
    points: list[Point]
    """By `start`."""
    locals: dict[tuple[str, Kind], list[Local]]


@dataclasses.dataclass
class PausedFrame:
    """A frame in front of a statement, or in a call that the statement makes."""

    source: Source
    lowering: Lowering
    block: Block
    number: int
    variables: dict[str, Any]


def paused_frames(
    machine: Machine, references: Callable[[], References], maps: dict[str, FunctionMap]
) -> list[PausedFrame] | None:
    """The frames of Python functions, innermost first; None if there are none, or very many."""
    stack, program = machine.memory.stack, machine.program
    pc, fp = machine.control.pc, machine.control.fp
    found: list[PausedFrame] = []
    for _ in range(MOST_FRAMES):
        function = program.functions[machine.verified.owner(pc)]
        of = maps.get(function.name)
        if of is not None:
            found.append(_paused(of, pc - function.entry, stack, fp, references))
        elif found:
            return found
        distance = stack[fp + 1]
        if not distance:
            return found or None
        pc, fp = stack[fp] - 1, fp - distance
    return None


def _paused(
    of: FunctionMap, at: int, stack: memoryview, fp: int, references: Callable[[], References]
) -> PausedFrame:
    number = bisect.bisect_right(of.points, at, key=lambda point: point.start) - 1
    point = of.points[number]
    variables = {}
    for name, kind in point.kinds.items():
        values = [_slot(stack, fp, local, references) for local in of.locals[name, kind]]
        variables[name] = _variable(kind, values)
    return PausedFrame(of.source, of.lowering, point.block, point.number, variables)


def _slot(stack: memoryview, fp: int, local: Local, references: Callable[[], References]) -> Any:
    offset = local.word if local.word < 1 << 63 else local.word - (1 << 64)
    word: int = stack[fp + offset]
    if isinstance(local.type, Reference):
        return references().value(word)
    return to_python(as_number(local.type), word & local.type.mask)


def _variable(kind: Kind, values: Sequence[Any]) -> Any:
    """The object that a variable holds; iterators go on where they are."""
    match kind:
        case Range():
            return range(values[0], values[1], kind.step)
        case RangeIterator():
            start, end = values
            stop = end if abs(kind.step) == 1 else start + kind.step * end
            return iter(range(start, stop, kind.step))
        case TupleIterator():
            return iter(value_of(kind.of, values)[kind.at :])
        case ArrayIterator():
            return iter(value_of(kind.of, values[:-1])[values[-1] :])
        case Enumerated():
            return enumerate(_variable(kind.of, values[1:]), values[0])
        case Zipped():
            parts, start = [], 0
            for each in kind.of:
                parts.append(_variable(each, values[start : start + len(each.slots)]))
                start += len(each.slots)
            return zip(*parts, strict=False)
    return value_of(kind, values)
