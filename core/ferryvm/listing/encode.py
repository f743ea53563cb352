# SPDX-License-Identifier: Apache-2.0
"""From a listing to a program: names become numbers. Every front end and the builder end here.

    items ──flattened──┐
                       ├──> FunctionCode of each function ──linked──> Program
    FunctionCode ──────┘

Linking puts the functions behind each other, in their order and without gaps.
"""

from __future__ import annotations

import bisect
from array import array
from collections.abc import Mapping

from ferryvm.errors import Diagnostic, FerryError, Position, SourceError, suggestion
from ferryvm.isa import BY_MNEMONIC, INSTRUCTIONS, Immediate
from ferryvm.isa.frame import return_immediate, word_of
from ferryvm.listing import (
    ClauseListing,
    FunctionCode,
    FunctionListing,
    Label,
    Line,
    Listing,
    peephole,
)
from ferryvm.program import Clause, Code, Export, Function, Program, Signature, SourceMap

_JUMP = BY_MNEMONIC["jump"].opcode
_KINDS = [row.immediate for row in INSTRUCTIONS]
_ALL_BITS = (1 << 64) - 1


class EncodeError(FerryError):
    """A listing refers to an undefined name, or defines a name twice."""


def encode(listing: Listing, optimize: bool = False) -> Program:
    """The program of a listing; `optimize`: after the peephole.

    Raises SourceError (EncodeError for lines without a position) when a name is not defined or
    is defined twice.
    """
    return _Linker(peephole.optimize(listing) if optimize else listing).program()


class _Linker:
    def __init__(self, listing: Listing) -> None:
        self.listing = listing
        self.functions = {f.name: number for number, f in enumerate(listing.functions)}
        if len(self.functions) != len(listing.functions):
            raise EncodeError("two functions have the same name")
        self.hosts = {host.name: number for number, host in enumerate(listing.hosts)}
        self.tags = {tag.name: number for number, tag in enumerate(listing.tags)}
        if len(self.tags) != len(listing.tags):
            raise EncodeError("two tags have the same name")
        self.clauses: list[Clause] = []
        self.signatures: dict[Signature, int] = {}
        for signature in listing.extra_signatures:
            self._signature(signature)
        self.opcodes: list[int] = []
        self.immediates: list[int] = []
        self.rows = _SourceRows()

    def _signature(self, signature: Signature) -> int:
        return self.signatures.setdefault(signature, len(self.signatures))

    def program(self) -> Program:
        functions = []
        for function in self.listing.functions:
            entry = len(self.opcodes)
            signature = self._signature(function.signature)
            functions.append(
                Function(
                    function.name,
                    entry,
                    signature,
                    tuple(function.locals),
                    tuple(function.parameters),
                )
            )
            code = function.code or _flattened(function)
            self.rows.add(entry, code)
            self.opcodes += code.opcodes
            self.immediates += code.immediates
            self._relocate(entry, code)
            for clause in function.clauses:
                self.clauses.append(self._clause(entry, clause, code.labels))
        return Program(
            code=Code.of(self.opcodes, self.immediates),
            functions=tuple(functions),
            signatures=tuple(self.signatures),
            statics=tuple(self.listing.statics),
            data=tuple(self.listing.data),
            table=tuple(_named(self.functions, "function", n) for n in self.listing.table),
            hosts=tuple(self.listing.hosts),
            exports=tuple(
                Export(name, _named(self.functions, "function", function))
                for name, function in self.listing.exports.items()
            ),
            tags=tuple(self.listing.tags),
            types=tuple(self.listing.types),
            clauses=tuple(self.clauses),
            source_map=self.rows.source_map(),
        )

    def _clause(self, entry: int, clause: ClauseListing, labels: Mapping[str, int]) -> Clause:
        start, end, handler = (
            entry + _named(labels, "label", name)
            for name in (clause.start, clause.end, clause.handler)
        )
        tag = None if clause.tag is None else _named(self.tags, "tag", clause.tag)
        return Clause(start, end, handler, clause.depth, tag, clause.record)

    def _relocate(self, entry: int, code: FunctionCode) -> None:
        """Fill in the immediates that depend on other functions or on this one's entry."""
        labels, opcodes, immediates = code.labels, code.opcodes, self.immediates
        tables: dict[Immediate, Mapping[str, int]] = {
            Immediate.FUNCTION: self.functions,
            Immediate.ITEM: self.functions,
            Immediate.HOST: self.hosts,
            Immediate.TAG: self.tags,
        }
        for pc, what in code.relocations:
            kind = _KINDS[opcodes[pc]]
            if isinstance(what, Signature):
                number = self._signature(what)
            elif kind is Immediate.TARGET:
                target = labels.get(what)
                number = entry + (
                    _named(labels, "label", what, code, pc) if target is None else target
                )
            else:
                found = tables[kind].get(what)
                number = (
                    _named(tables[kind], kind.value, what, code, pc) if found is None else found
                )
            immediates[entry + pc] = number


class _SourceRows:
    """The rows of a program's source map, as parallel lists: pcs, numbers of files, lines,
    columns."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._columns: list[list[int]] = [[], [], [], []]

    def add(self, entry: int, code: FunctionCode) -> None:
        """Add the positions of a function that starts at `entry`."""
        where = code.positions
        if not code.opcodes:
            return
        if not where.pcs or where.pcs[0] > 0:  # its first instructions have no position
            self._add([entry], [0], [0], [0])
        used = bisect.bisect_left(where.pcs, len(code.opcodes))
        if used:
            files = where.files[:used]
            number_of = {file: self._number(file) for file in dict.fromkeys(files)}
            self._add(
                list(map(entry.__add__, where.pcs[:used])),
                list(map(number_of.__getitem__, files)),
                where.lines[:used],
                where.columns[:used],
            )

    def _number(self, file: str | None) -> int:
        return 0 if file is None else self._numbers.setdefault(file, len(self._numbers))

    def _add(self, *added: list[int]) -> None:
        """Add rows; the first one is omitted if it repeats the last row present."""
        last = [column[-1] if column else 0 for column in self._columns]
        is_repeated = last[1:] == [column[0] for column in added[1:]]
        for column, more in zip(self._columns, added, strict=True):
            column += more[1:] if is_repeated else more

    def source_map(self) -> SourceMap:
        """The source map of these rows. Raises EncodeError for a number that has not 32 bits."""
        files = tuple(self._numbers)
        words = array("I", bytes(16 * len(self._columns[0])))
        try:
            for field, column in enumerate(self._columns):
                words[field::4] = array("I", column)
        except OverflowError:
            raise self._out_of_range(files) from None
        return SourceMap.packed(files, words.tobytes())

    def _out_of_range(self, files: tuple[str, ...]) -> EncodeError:
        for _, file, line, column in zip(*self._columns, strict=True):
            if not (0 <= line < 1 << 32 and 0 <= column < 1 << 32):
                where = Position(files[file], line, column)
                return EncodeError(f"{where}: lines and columns are from 0 to {(1 << 32) - 1}")
        return EncodeError(f"a program has at most {(1 << 32) - 1} instructions")


def _named(
    known: Mapping[str, int], kind: str, name: str, code: FunctionCode | None = None, pc: int = 0
) -> int:
    """The number of a name; `code` and `pc` locate the instruction that refers to it, if there is
    one."""
    if name in known:
        return known[name]
    message = f"no {kind} {name!r}{suggestion(name, known)}"
    position = code.positions.at(pc) if code is not None else None
    if position is None:
        raise EncodeError(message)
    raise SourceError([Diagnostic(position, message)])


def _flattened(function: FunctionListing) -> FunctionCode:
    """The items of a function as arrays."""
    code = FunctionCode()
    parameters = len(function.signature.parameters)
    position: Position | None = None
    for item in function.items:
        pc = len(code.opcodes)
        if isinstance(item, Label):
            if item.name in code.labels:
                raise EncodeError(f"function {function.name}: label {item.name} twice")
            code.labels[item.name] = pc
            continue
        if item.position != position:
            position = item.position
            code.positions.set(pc, position)
        _add(code, item, parameters)
    return code


def _add(code: FunctionCode, line: Line, parameters: int) -> None:
    """Add an instruction to a function with this number of parameters."""
    row, operand = line.row, line.operand
    pc = len(code.opcodes)
    immediate = 0
    if operand is None or isinstance(operand, int):
        immediate = operand or 0
        if row.immediate is Immediate.LOCAL:
            immediate = word_of(immediate, parameters)
        elif row.immediate is Immediate.RESULTS:
            immediate = return_immediate(parameters, immediate)
    elif isinstance(operand, tuple):
        immediate = len(operand) - 1
    else:
        code.relocations.append((pc, operand))
    code.opcodes.append(row.opcode)
    code.immediates.append(immediate & _ALL_BITS)
    if isinstance(operand, tuple):
        for name in operand:
            code.relocations.append((len(code.opcodes), name))
            code.opcodes.append(_JUMP)
            code.immediates.append(0)
