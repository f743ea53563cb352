# SPDX-License-Identifier: Apache-2.0
"""Cuts of a program down to the instructions right before two backends diverge.

A cut is a new program that sets up, from constants, the state that the good backend has some
instructions before the divergence, and continues from there:

    straight-line   only the instructions that were run from there on, one after another
    body            the whole function that runs there, entered in its middle; other functions stay

Both omit the history of the state. They are candidates like any other: they do not find a
disagreement that needs that history.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np

from ferryvm.errors import FerryError
from ferryvm.isa import BY_MNEMONIC, Flow
from ferryvm.isa.frame import HEADER_WORDS
from ferryvm.isa.type import I64, WORD_BYTES, Reference, ValueType
from ferryvm.listing import FunctionListing, Item, Label, Line, Listing
from ferryvm.listing.encode import encode
from ferryvm.program import Data, Program, Signature, Static
from ferryvm.testing.bisect import Bisector, DivergenceMode, DivergencePoint
from ferryvm.testing.reduction.relist import function_names, line_of, relist
from ferryvm.testing.trace import instruction_at, left, taken

_MOST_DATA = 1 << 20
"""Bytes of heap that a cut sets up at most."""

_MOST_LABELS = 64
"""Of a jump table in a cut."""

_DIRT = 12
"""Words above the stack that a cut fills: they are not part of a state, and should not matter."""

_DEEPEST = 4096
"""Words of the stack that a cut fills at most."""

_TAILS = (0, 1, 2, 3, 5, 8, 16)
"""Instructions after the divergence that a cut includes, if the bad backend does not count: it may
fuse several of them."""


def cuts(bisector: Bisector, place: DivergencePoint) -> Iterator[Program]:
    """Candidates, the smallest first."""
    tails = _TAILS if place.mode in (DivergenceMode.UNCOUNTED, DivergenceMode.ENTERED) else (0,)
    back = 1
    while True:
        near = max(0, place.number + 1 - back)
        first = min(place.entered, near)
        for tail in tails:
            last = min(place.number + 1 + tail, bisector.boundaries)
            yield from _made(bisector, first, last)
            yield from _made(bisector, near, last, dirt=_DIRT)
            yield from _made(bisector, near, last, is_deep=True)
        if first == 0 or back > 4096:
            return
        back *= 2


def bodies(bisector: Bisector, place: DivergencePoint) -> Iterator[Program]:
    """Candidates with whole functions, entered ever earlier."""
    back = 1
    while True:
        first = max(0, min(place.entered, place.number + 1 - back))
        with contextlib.suppress(FerryError, _NoCut):
            yield encode(_body(bisector, first))
        if first == 0 or back > 1 << 20:
            return
        back *= 4


class _NoCut(Exception):  # noqa: N818 - no error: this kind of cut is not possible there
    pass


def _made(
    bisector: Bisector, first: int, last: int, dirt: int = 0, is_deep: bool = False
) -> Iterator[Program]:
    try:
        yield encode(_straight_line(bisector, first, last, dirt, is_deep))
    except (FerryError, _NoCut):
        return


def constant(t: ValueType, bits: int) -> Line:
    """The instruction that pushes a value. Raises _NoCut for an object: no constant is one."""
    if isinstance(t, Reference):
        if bits:
            raise _NoCut
        return Line(BY_MNEMONIC["ref.null"], t.number)
    return Line(BY_MNEMONIC[f"{t}.const"], bits)


def plain(mnemonic: str, operand: int | str | None = None) -> Line:
    """A line by its mnemonic."""
    return Line(BY_MNEMONIC[mnemonic], operand)


class _Setup:
    """The state at a boundary, with the lines of a listing that set it up."""

    def __init__(self, bisector: Bisector, number: int) -> None:
        machine = bisector.at(number).execution.machine
        self.program, self.verified = machine.program, machine.verified
        self.names = function_names(self.program)
        self.pc, fp, sp = machine.control.pc, machine.control.fp, machine.control.sp
        self.owner = self.verified.owner(self.pc)
        self.locals = self.program.frame_types(self.owner)
        first, stack = fp - self.verified.parameters(self.pc), machine.memory.stack
        end = first + HEADER_WORDS + len(self.locals)
        self.words = [*stack[first:fp].tolist(), *stack[fp + HEADER_WORDS : end].tolist()]
        self.kinds = self.verified.operand_types(self.pc)
        self.operands = machine.memory.stack[sp - len(self.kinds) : sp].tolist()
        self.statics = [
            Static(static.name, static.type, bits)
            for static, bits in zip(
                self.program.statics, machine.memory.statics.tolist(), strict=True
            )
        ]
        self.data = _data(bytes(machine.memory.heap[: min(machine.control.hp, _MOST_DATA + 1)]))

    def items(self, operands: int) -> list[Item]:
        """Lines that set the locals, then push the last `operands` words of the stack."""
        lines: list[Item] = []
        for number, (t, bits) in enumerate(zip(self.locals, self.words, strict=True)):
            if bits:
                lines += [constant(t, bits), plain("local.set", number)]
        first = len(self.kinds) - operands
        if first < 0:
            raise _NoCut
        pairs = zip(self.kinds[first:], self.operands[first:], strict=True)
        return [*lines, *(constant(kind, bits) for kind, bits in pairs)]

    def listing(self, items: list[Item], others: list[FunctionListing]) -> Listing:
        """A program whose main, or a function that main calls, runs these items."""
        return_types = self.program.signature(self.owner).results
        functions = [FunctionListing("main", Signature(), self.locals, items)]
        if any(isinstance(item, Line) and item.row.flow is Flow.RETURN for item in items):
            inner = FunctionListing("cut", Signature((), return_types), self.locals, items)
            lines: list[Item] = [plain("call", "cut"), plain("halt")]
            functions = [FunctionListing("main", items=lines), inner]
        names = {function.name for function in functions}
        functions += [other for other in others if other.name not in names]
        known = {function.name for function in functions}
        table = [self.names[number] for number in self.program.table]
        return Listing(
            functions,
            self.statics,
            self.data,
            table if set(table) <= known else [],
            list(self.program.hosts),
            tags=list(self.program.tags),
            types=list(self.program.types),
        )


def _data(heap: bytes) -> list[Data]:
    """The heap as initial data: runs of words that are not zero, and its end."""
    if len(heap) > _MOST_DATA:
        raise _NoCut
    words = np.frombuffer(heap, "<u8")
    used = np.flatnonzero(words)
    found = []
    for run in np.split(used, np.flatnonzero(np.diff(used) > 1) + 1):
        if len(run):
            start, end = int(run[0]) * WORD_BYTES, (int(run[-1]) + 1) * WORD_BYTES
            found.append(Data(start, heap[start:end]))
    if heap and (not found or found[-1].address + len(found[-1].bytes) < len(heap)):
        found.append(Data(len(heap) - WORD_BYTES, bytes(1)))  # keeps hp where it is
    return found


def _straight_line(bisector: Bisector, first: int, last: int, dirt: int, is_deep: bool) -> Listing:
    """The program of the instructions from boundary `first` to `last`.

    `dirt`: words above the stack that are not zero at first, as an earlier call would leave them;
    `is_deep`: have the stack as full as it was there, by locals that nothing uses.
    """
    setup = _Setup(bisector, first)
    program = setup.program
    trial = bisector.at(first).fork()
    pcs, frames = [], []
    for _ in range(last - first):
        pcs.append(trial.pc)
        frames.append(trial.execution.machine.control.fp)
        trial.run(bisector.good, 1)
    if not pcs or len(set(frames)) > 1:
        raise _NoCut
    depth = needed = 0
    for pc in pcs:
        row, immediate = instruction_at(program, pc)
        pops = taken(program, row, immediate)
        needed = max(needed, pops - depth)
        depth += left(program, row, immediate) - pops
    full, empty = constant(I64, I64.mask), plain("drop")
    items: list[Item] = [*[full] * dirt, *[empty] * dirt]
    items += setup.items(needed)
    for pc in pcs[:-1]:
        line = line_of(setup.verified, setup.names, pc)
        match line.row.flow:
            case Flow.NEXT | Flow.HOST:
                items.append(line)
            case Flow.BRANCH | Flow.TABLE:
                items.append(plain("drop"))
            case Flow.JUMP:
                pass
            case _:
                raise _NoCut
    items += _ending(setup, pcs[-1])
    if is_deep:
        if not 0 < frames[0] <= _DEEPEST:
            raise _NoCut
        setup.locals += (I64,) * frames[0]
    return setup.listing(items, _stubs(setup, pcs[-1]))


def _ending(setup: _Setup, pc: int) -> list[Item]:
    """The last instruction of a cut, with somewhere to go."""
    program = setup.program
    line = line_of(setup.verified, setup.names, pc)
    match line.row.flow:
        case Flow.JUMP | Flow.BRANCH:
            jump = Line(line.row, "past")
            return [jump, plain("nop"), Label("past"), plain("halt")]
        case Flow.TABLE:
            count = program.code.immediates[pc] + 1
            if count > _MOST_LABELS:
                raise _NoCut
            names = tuple(f"case{number}" for number in range(count))
            items: list[Item] = [Line(line.row, names)]
            for name in names:
                items += [Label(name), plain("nop")]
            return [*items, plain("halt")]
        case Flow.RETURN | Flow.STOP:
            return [line]
    return [line, plain("halt")]


def _stubs(setup: _Setup, pc: int) -> list[FunctionListing]:
    """Functions that the call at `pc` can reach, with bodies that only end the program."""
    program = setup.program
    row, immediate = instruction_at(program, pc)
    numbers: tuple[int, ...] = ()
    if row.flow is Flow.CALL:
        numbers = (immediate,)
    elif row.flow is Flow.CALL_INDIRECT:
        numbers = tuple(dict.fromkeys(program.table))
    stubs = []
    for number in numbers:
        function, of = program.functions[number], program.signature(number)
        # It remains there, since a faulty frame is lost when its function returns.
        stubs.append(FunctionListing(setup.names[number], of, function.locals, [plain("halt")]))
    return stubs


def _body(bisector: Bisector, first: int) -> Listing:
    """The program that enters the function which runs at boundary `first` right there."""
    setup = _Setup(bisector, first)
    whole, places = relist(setup.verified)
    entry, items = "entered", list[Item]()
    for item, pc in zip(whole.functions[setup.owner].items, places[setup.owner], strict=True):
        if isinstance(item, Line) and pc == setup.pc and Label(entry) not in items:
            items.append(Label(entry))
        items.append(item)
    if Label(entry) not in items:
        raise _NoCut  # it is in the middle of a jump table
    start = [*setup.items(len(setup.kinds)), plain("jump", entry)]
    others = [other for number, other in enumerate(whole.functions) if number != 0]
    return setup.listing([*start, *items], others)
