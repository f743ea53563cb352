# SPDX-License-Identifier: Apache-2.0
"""The state of compiled Python functions where a program stopped: each frame's place and variables.

    machine ── frames, pcs ──> statements of the graph      words ── kinds ──> Python objects

The code of a function has a point for each statement and kinds of variables. What a statement has
computed before it stopped is not seen by anyone, so a frame stands in front of its statement.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ferryvm import record
from ferryvm.build import Local
from ferryvm.isa.type import Reference, ValueType, as_number, to_python
from ferryvm.machine.state import Machine
from ferryvm.python.control_flow.graph import Block
from ferryvm.python.definition.raised import caught_error
from ferryvm.python.definition.site import Sites
from ferryvm.python.definition.source import Source
from ferryvm.python.value.iterator_kind import (
    ArrayIterator,
    Enumerated,
    ListIterator,
    RangeIterator,
    TextIterator,
    TupleIterator,
    Zipped,
)
from ferryvm.python.value.kind import INT, LIST, Kind, Raised, Range
from ferryvm.python.value.list_argument import ENTRY, passed
from ferryvm.python.value.list_value import ListReader
from ferryvm.python.value.result import value_of

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


@record.dataclass(frozen=True)
class FunctionMap:
    """The places of the statements of one compiled function."""

    source: Source
    points: list[Point]
    """By `start`."""
    locals: dict[tuple[str, Kind], list[Local]]


@record.dataclass
class PausedFrame:
    """A frame in front of a statement, or in a call that the statement makes."""

    source: Source
    block: Block
    number: int
    variables: dict[str, Any]


class _Words:
    """The words of a machine that has stopped, as Python values."""

    def __init__(
        self, machine: Machine, references: Callable[[], References], sites: Sites
    ) -> None:
        self._machine, self._references, self.sites = machine, references, sites
        self._reader: ListReader | None = None

    def value(self, type_: ValueType, word: int) -> Any:
        """The value of a word."""
        if not isinstance(type_, Reference):
            return to_python(as_number(type_), word & type_.mask)
        if not word or type_ != LIST:
            return self._references().value(word)
        return self.lists().read(word)

    def lists(self) -> ListReader:
        """The reader of its lists, each of which is one object."""
        if self._reader is None:
            self._reader = ListReader(self._references(), passed())
        return self._reader


def paused_frames(
    machine: Machine,
    references: Callable[[], References],
    maps: dict[str, FunctionMap],
    sites: Sites,
    made: int,
) -> list[PausedFrame] | None:
    """The frames of Python functions, innermost first; None if there are none, or very many.
    `made`: the word of a frame of `list_argument.entry` with the lists that the call got, which get
    their items."""
    stack, program = machine.memory.stack, machine.program
    pc, fp = machine.control.pc, machine.control.fp
    words = _Words(machine, references, sites)
    found: list[PausedFrame] = []
    for _ in range(MOST_FRAMES):
        function = program.functions[machine.verified.owner(pc)]
        of = maps.get(function.name)
        if of is not None:
            found.append(_paused(of, pc - function.entry, stack, fp, words))
        elif found:
            if (
                function.name == ENTRY
            ):  # all lists that the call got, also where no variable has them
                words.lists().read_all(stack[fp + _signed(made)])
            return found
        distance = stack[fp + 1]
        if not distance:
            return found or None
        pc, fp = stack[fp] - 1, fp - distance
    return None


def _paused(of: FunctionMap, at: int, stack: memoryview, fp: int, words: _Words) -> PausedFrame:
    number = bisect.bisect_right(of.points, at, key=lambda point: point.start) - 1
    point = of.points[number]
    variables = {}
    for name, kind in point.kinds.items():
        values = [
            words.value(local.type, stack[fp + _signed(local.word)])
            for local in of.locals.get((name, kind), ())
        ]
        if isinstance(kind, Raised):
            variables[name] = caught_error(*(words.sites.thrown[n] for n in values[::2] if n >= 0))
        else:
            variables[name] = _variable(kind, values)
    for name in of.source.hidden:
        (local,) = of.locals[name, INT]
        variables[name] = words.value(local.type, stack[fp + _signed(local.word)])
    return PausedFrame(of.source, point.block, point.number, variables)


def _signed(word: int) -> int:
    return word if word < 1 << 63 else word - (1 << 64)


def _variable(kind: Kind, values: Sequence[Any]) -> Any:
    """The object that a variable holds; iterators go on where they are."""
    match kind:
        case Range():
            return range(values[0], values[1], kind.step or values[2])
        case RangeIterator():
            start, end, *rest = values
            step = kind.step or rest[0]
            stop = end if abs(kind.step) == 1 else start + step * end
            return iter(range(start, stop, step))
        case ListIterator(is_backwards=True):
            backwards = reversed(value_of(kind.of, values[:-1]))
            backwards.__setstate__(values[-1])
            return backwards
        case ListIterator():
            items = iter(value_of(kind.of, values[:-1]))
            for _ in range(values[-1]):
                next(items)
            return items
        case TupleIterator():
            return iter(value_of(kind.of, values)[kind.at :])
        case TextIterator():
            return iter(value_of(kind.of, values[:-1])[values[-1] :])
        case ArrayIterator():
            return iter(value_of(kind.of, values[:-1])[values[-1] :])
        case Enumerated():
            return enumerate(_variable(kind.of, values[1:]), values[0])
        case Zipped():
            parts, start = [], 0
            for each in kind.of:
                parts.append(_variable(each, values[start : start + len(each.slots)]))
                start += len(each.slots)
            return zip(*parts, strict=kind.is_strict)
    return value_of(kind, values)
