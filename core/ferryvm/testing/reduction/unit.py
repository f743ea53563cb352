# SPDX-License-Identifier: Apache-2.0
"""A program as a sequence of choices: the parts of it that remain, and the values of its numbers.

Every choice is a whole number; 0 is the simplest, `start` restores the program. A removed
instruction is replaced by *filler* of the same effect on the stack: its operands are dropped, its
results are zeros. So the types of the stack are the same everywhere, and nearly every combination
of choices is a valid program; the verifier decides. Filler that cancels, unreachable code, and
functions without calls are removed.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence

from ferryvm.isa import INSTRUCTIONS, Flow, Immediate
from ferryvm.isa.declared_type import StructType
from ferryvm.isa.frame import number_of
from ferryvm.isa.type import WORD_BYTES, Reference, ValueType
from ferryvm.listing import ClauseListing, FunctionListing, Item, Label, Line, Listing
from ferryvm.listing.encode import encode
from ferryvm.program import Data, Program, Static
from ferryvm.testing.reduction.cut import constant, plain
from ferryvm.testing.reduction.number import literal, most, simplicity
from ferryvm.testing.reduction.relist import relist
from ferryvm.testing.reduction.tidy import (
    called,
    covering,
    reachable,
    targets,
    uses_host,
    uses_table,
    uses_tags,
    without_locals,
    without_statics,
    without_steps,
)
from ferryvm.testing.reduction.type_cut import without_types
from ferryvm.verify import Verified

_MOST_LITERALS = 400
"""The largest number of literals of a program that are choices; in a larger one, the remaining
lines are chosen first."""


@dataclasses.dataclass(frozen=True)
class NumberChoice:
    """A number to be chosen."""

    most: int
    """The largest one: all ones in binary."""
    start: int
    """The units that give the program back."""


class _Slots:
    """Hands the chosen numbers out in the order in which the choices were made."""

    def __init__(self) -> None:
        self.choices: list[NumberChoice] = []

    def add(self, most: int, start: int) -> int:
        self.choices.append(NumberChoice((1 << most.bit_length()) - 1, start))
        return len(self.choices) - 1

    def flag(self) -> int:
        return self.add(1, 1)


@dataclasses.dataclass
class _Unit:
    """One line of a function, or a label."""

    item: Item
    flag: int = -1
    """The choice whether it remains; -1 for a label."""
    drops: int = 0
    pushes: tuple[ValueType, ...] = ()
    """Filler that replaces it."""
    literal: int = -1
    """The choice of its number, -1 if it has none."""
    is_barrier: bool = False
    """True if it separates control from code where the stack is another one: a handler, or the
    other arm of a branch."""

    def remains(self, chosen: Sequence[int]) -> bool:
        """True if it remains."""
        return self.flag < 0 or self.is_barrier or chosen[self.flag] != 0


class Units:
    """The choices of one program."""

    def __init__(self, verified: Verified) -> None:
        """Raises FerryError for a program that no listing represents."""
        self.program = verified.program
        self.listing, self._pcs = relist(verified)
        self._slots = _Slots()
        self._functions = [
            self._units(verified, number) for number in range(len(self.listing.functions))
        ]
        self._clauses = [
            [self._slots.flag() for _ in function.clauses] for function in self.listing.functions
        ]
        self._statics = [self._slots.flag() for _ in self.listing.statics]
        self._types = [self._slots.flag() for _ in self.listing.types]
        self._locals = [
            [self._slots.flag() for _ in function.locals] for function in self.listing.functions
        ]
        self._table = [self._slots.flag() for _ in self.listing.table]
        self._data = list(self._words())
        self._heap_end = max((d.address + len(d.bytes) for d in self.listing.data), default=0)
        self._end_flag = self._slots.flag()
        self.structure = len(self._slots.choices)
        """Choices below this one select lines; the numbers follow."""
        if self.structure <= _MOST_LITERALS:
            self._literals()
        self._static_bits = [
            self._slots.add(_most_bits(static.type), static.bits)
            for static in self.listing.statics
            if len(self.listing.statics) <= _MOST_LITERALS
        ]

    @property
    def choices(self) -> Sequence[NumberChoice]:
        """All of them, in order."""
        return self._slots.choices

    # --- from the program to choices --------------------------------------------------------

    def _units(self, verified: Verified, number: int) -> list[_Unit]:
        units: list[_Unit] = []
        items = self.listing.functions[number].items
        for item, pc in zip(items, self._pcs[number], strict=True):
            unit = _Unit(item)
            units.append(unit)
            if isinstance(item, Label):
                continue
            unit.drops, unit.pushes = self._filler(verified, pc, item)
            unit.is_barrier = _separates(verified, pc)
            unit.flag = self._slots.flag()
        handlers = {clause.handler for clause in self.listing.functions[number].clauses}
        for unit, after in itertools.pairwise(units):
            is_handler = isinstance(after.item, Label) and after.item.name in handlers
            unit.is_barrier = unit.is_barrier or is_handler
        return units

    def _filler(self, verified: Verified, pc: int, line: Line) -> tuple[int, tuple[ValueType, ...]]:
        """Operands to drop, then types of zeros to push."""
        row, program = line.row, self.program
        before = verified.operand_types(pc)
        immediate = program.code.immediates[pc]
        pops = len(row.pops)
        pushes: tuple[ValueType, ...] = _fixed(row.pushes)
        match row.flow:
            case Flow.CALL | Flow.CALL_INDIRECT:
                called = immediate
                if row.flow is Flow.CALL:
                    called = program.functions[immediate].signature
                signature = program.signatures[called]
                return pops + len(signature.parameters), signature.results
            case Flow.HOST:
                of = program.hosts[immediate].signature
                pops, pushes = len(of.parameters), of.results
            case Flow.RETURN:
                return 0, ()
            case Flow.THROW if row.immediate is Immediate.TAG:
                pops = len(program.tags[immediate].parameters)
            case Flow.NEXT if row.immediate is Immediate.FIELDS:
                declared = verified.types.declared(immediate)
                pops = len(declared.fields) if isinstance(declared, StructType) else 0
        taken = before[len(before) - pops :]
        if row.mnemonic == "local.get":
            number = number_of(immediate, verified.parameters(pc))
            assert number is not None
            pushes = (program.frame_types(verified.owner(pc))[number],)
        elif row.mnemonic == "static.get":
            pushes = (program.statics[immediate].type,)
        elif len(pushes) != len(row.pushes):  # dup, swap, select, and those of references
            pushes = verified.operand_types(pc + 1)[len(before) - pops :]
        same = 0
        while same < min(pops, len(pushes)) and taken[same] is pushes[same]:
            same += 1
        return pops - same, pushes[same:]

    def _words(self) -> Iterator[tuple[int, int]]:
        """(address, choice) of each word of the data that is not zero."""
        for data in self.listing.data:
            for at in range(0, len(data.bytes), WORD_BYTES):
                word = int.from_bytes(data.bytes[at : at + WORD_BYTES], "little")
                if word:
                    yield data.address + at, self._slots.add((1 << 64) - 1, word)

    def _literals(self) -> None:
        for units in self._functions:
            for unit in units:
                if isinstance(unit.item, Line):
                    t = unit.item.row.immediate.literal
                    if t is not None:
                        coded = simplicity(t, int(unit.item.operand))  # type: ignore[arg-type]  # a literal
                        unit.literal = self._slots.add(most(t, coded), coded)
                    elif unit.item.row.immediate is Immediate.OFFSET:
                        offset = int(unit.item.operand)  # type: ignore[arg-type]  # an offset
                        unit.literal = self._slots.add(offset, offset)

    # --- from choices to a program ----------------------------------------------------------

    def build(self, chosen: Sequence[int]) -> Program:
        """The program of these choices. Raises EncodeError if there is none."""
        functions = {}
        for function, units, flags in zip(
            self.listing.functions, self._functions, self._clauses, strict=True
        ):
            clauses = [
                clause for clause, flag in zip(function.clauses, flags, strict=True) if chosen[flag]
            ]
            items = _code(units, chosen, clauses)
            functions[function.name] = FunctionListing(
                function.name, function.signature, function.locals, items, covering(clauses, items)
            )
        table = [
            name for name, flag in zip(self.listing.table, self._table, strict=True) if chosen[flag]
        ]
        used = called(functions, self.listing.functions[0].name, table)
        statics = self.listing.statics
        if self._static_bits:
            statics = [
                Static(static.name, static.type, min(chosen[slot], _most_bits(static.type)))
                for static, slot in zip(statics, self._static_bits, strict=True)
            ]
        listing = Listing(
            functions=used,
            statics=statics,
            data=self._chosen_data(chosen),
            table=table if any(uses_table(function) for function in used) else [],
            hosts=[host for host in self.listing.hosts if uses_host(used, host.name)],
            types=list(self.listing.types),
            tags=self.listing.tags if any(uses_tags(function) for function in used) else [],
        )
        names = [function.name for function in self.listing.functions]
        for function in used:
            flags = self._locals[names.index(function.name)]
            without_locals(function, [chosen[flag] for flag in flags])
        without_statics(listing, [chosen[flag] for flag in self._statics])
        without_types(listing, [chosen[flag] for flag in self._types])
        return encode(listing)

    def _chosen_data(self, chosen: Sequence[int]) -> list[Data]:
        found: list[Data] = []
        for address, slot in self._data:
            if chosen[slot]:
                content = chosen[slot].to_bytes(WORD_BYTES, "little")
                if found and found[-1].address + len(found[-1].bytes) == address:
                    content = found.pop().bytes + content
                    address -= len(content) - WORD_BYTES
                found.append(Data(address, content))
        end = max((data.address + len(data.bytes) for data in found), default=0)
        if chosen[self._end_flag] and end < self._heap_end:
            found.append(Data(self._heap_end - 1, bytes(1)))
        return found


def _separates(verified: Verified, pc: int) -> bool:
    """True for a jump over code that is reached with other operands."""
    if INSTRUCTIONS[verified.program.code.opcodes[pc]].flow is not Flow.JUMP:
        return False
    if pc + 1 >= len(verified.program.code) or not verified.is_reachable(pc + 1):
        return False
    here, after = verified.operand_types(pc), verified.operand_types(pc + 1)
    return [_class(t) for t in here] != [_class(t) for t in after]


def _class(t: ValueType) -> object:
    """The property that operands on two paths to one place share."""
    return Reference if isinstance(t, Reference) else t


def _most_bits(t: ValueType) -> int:
    """The largest initial value of a static."""
    return 0 if isinstance(t, Reference) else t.mask


def _fixed(types: Sequence[object]) -> tuple[ValueType, ...]:
    return tuple(t for t in types if isinstance(t, ValueType))


def _code(
    units: list[_Unit], chosen: Sequence[int], clauses: Sequence[ClauseListing]
) -> list[Item]:
    """The remaining lines, with filler, without unreachable ones."""
    items: list[Item] = []
    fillers: list[bool] = []
    used = targets(unit.item for unit in units if unit.remains(chosen))
    for clause in clauses:
        used |= {clause.start, clause.end, clause.handler}

    def emit(item: Item, is_filler: bool = False) -> None:
        items.append(item)
        fillers.append(is_filler)

    for unit in units:
        if unit.flag < 0:
            if isinstance(unit.item, Label) and unit.item.name in used:
                emit(unit.item)
        elif unit.remains(chosen):
            emit(unit.item if unit.literal < 0 else _with_literal(unit.item, chosen[unit.literal]))
        else:
            for _ in range(unit.drops):
                if fillers and fillers[-1] and _pushes(items[-1]):
                    items.pop()
                    fillers.pop()
                else:
                    emit(plain("drop"), True)
            for t in unit.pushes:
                emit(constant(t, 0), True)
    items = reachable(items, clauses)
    unwanted = [unit.item for unit in units if unit.is_barrier and not chosen[unit.flag]]
    return reachable(without_steps(items, unwanted), clauses) if unwanted else items


def _pushes(item: Item) -> bool:
    if not isinstance(item, Line):
        return False
    return item.row.immediate.literal is not None or item.row.mnemonic == "ref.null"


def _with_literal(item: Item, coded: int) -> Line:
    assert isinstance(item, Line)
    t = item.row.immediate.literal
    if t is None:
        return Line(item.row, coded)
    assert isinstance(item.operand, int)
    return Line(item.row, literal(t, coded, item.operand))
