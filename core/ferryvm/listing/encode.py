# SPDX-License-Identifier: Apache-2.0
"""From a listing to a program: names become numbers."""

from __future__ import annotations

from ferryvm.errors import Diagnostic, FerryError, Position, SourceError, suggestion
from ferryvm.isa import BY_MNEMONIC, Immediate
from ferryvm.isa.frame import return_immediate, word_of
from ferryvm.listing import ClauseListing, FunctionListing, Label, Line, Listing, peephole
from ferryvm.program import Clause, Code, Export, Function, Program, Signature, SourceMap


class EncodeError(FerryError):
    """A listing names what it does not define, or defines a name twice."""


def encode(listing: Listing, optimize: bool = False) -> Program:
    """The program of a listing; `optimize`: after the peephole.

    Raises SourceError (EncodeError for lines without a position) when a name is not defined or
    is defined twice.
    """
    return _Encoder(peephole.optimize(listing) if optimize else listing).program()


class _Encoder:
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
        self.files: dict[str, int] = {}
        self.rows: list[tuple[int, int, int, int]] = []
        self.position: Position | None = None

    def _signature(self, signature: Signature) -> int:
        return self.signatures.setdefault(signature, len(self.signatures))

    def program(self) -> Program:
        functions = []
        for function in self.listing.functions:
            entry = len(self.opcodes)
            signature = self._signature(function.signature)
            functions.append(Function(function.name, entry, signature, tuple(function.locals)))
            self._function(function)
        return Program(
            code=Code.of(self.opcodes, self.immediates),
            functions=tuple(functions),
            signatures=tuple(self.signatures),
            statics=tuple(self.listing.statics),
            data=tuple(self.listing.data),
            table=tuple(
                self._named(self.functions, "function", n, None) for n in self.listing.table
            ),
            hosts=tuple(self.listing.hosts),
            exports=tuple(
                Export(name, self._named(self.functions, "function", function, None))
                for name, function in self.listing.exports.items()
            ),
            tags=tuple(self.listing.tags),
            clauses=tuple(self.clauses),
            source_map=SourceMap(tuple(self.files), tuple(self.rows)),
        )

    def _function(self, function: FunctionListing) -> None:
        labels: dict[str, int] = {}
        pc = len(self.opcodes)
        for item in function.items:
            if isinstance(item, Label):
                if item.name in labels:
                    raise EncodeError(f"function {function.name}: label {item.name} twice")
                labels[item.name] = pc
            else:
                pc += 1 + (len(item.operand) if isinstance(item.operand, tuple) else 0)
        for item in function.items:
            if isinstance(item, Line):
                self._line(item, labels, len(function.signature.parameters))
        self.clauses.extend(self._clause(clause, labels) for clause in function.clauses)

    def _clause(self, clause: ClauseListing, labels: dict[str, int]) -> Clause:
        start, end, handler = (
            self._named(labels, "label", name, None)
            for name in (clause.start, clause.end, clause.handler)
        )
        tag = None if clause.tag is None else self._named(self.tags, "tag", clause.tag, None)
        return Clause(start, end, handler, clause.depth, tag, clause.record)

    def _line(self, line: Line, labels: dict[str, int], parameters: int) -> None:
        self._locate(line.position)
        row, operand = line.row, line.operand
        if row.immediate is Immediate.LABELS:
            assert isinstance(operand, tuple)
            self._emit(row.opcode, len(operand) - 1)
            for name in operand:
                target = self._named(labels, "label", name, line)
                self._emit(BY_MNEMONIC["jump"].opcode, target)
        elif row.immediate is Immediate.SIGNATURE:
            assert isinstance(operand, Signature)
            self._emit(row.opcode, self._signature(operand))
        elif isinstance(operand, str):
            known = {
                Immediate.TARGET: labels,
                Immediate.FUNCTION: self.functions,
                Immediate.HOST: self.hosts,
            }[row.immediate]
            self._emit(row.opcode, self._named(known, row.immediate.value, operand, line))
        else:
            assert operand is None or isinstance(operand, int)
            immediate = operand or 0
            if row.immediate is Immediate.LOCAL:
                immediate = word_of(immediate, parameters)
            elif row.immediate is Immediate.RESULTS:
                immediate = return_immediate(parameters, immediate)
            self._emit(row.opcode, immediate)

    def _emit(self, opcode: int, immediate: int) -> None:
        self.opcodes.append(opcode)
        self.immediates.append(immediate & 0xFFFF_FFFF_FFFF_FFFF)

    def _locate(self, position: Position | None) -> None:
        if position == self.position:
            return
        self.position = position
        if position is None:
            self.rows.append((len(self.opcodes), 0, 0, 0))
        else:
            file = self.files.setdefault(position.file, len(self.files))
            self.rows.append((len(self.opcodes), file, position.line, position.column))

    def _named(self, known: dict[str, int], kind: str, name: str, line: Line | None) -> int:
        if name in known:
            return known[name]
        message = f"no {kind} {name!r}{suggestion(name, known)}"
        if line is None or line.position is None:
            raise EncodeError(message)
        raise SourceError([Diagnostic(line.position, message)])
