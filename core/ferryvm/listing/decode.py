# SPDX-License-Identifier: Apache-2.0
"""From a program to a listing: numbers become names, the inverse of `encode`.

    encode(decode(program)) is program, in every part        (checked before decode returns)

Encoding lays functions out in their order, without gaps, and writes every part in one way. A
program from elsewhere with another layout has no listing and is refused, because an approximate
listing would assemble to another program.
"""

from __future__ import annotations

import bisect
import dataclasses

from ferryvm.errors import FerryError
from ferryvm.isa import BY_MNEMONIC, INSTRUCTIONS, Immediate, Instruction
from ferryvm.isa.declared_type import (
    ArrayType,
    DeclarationFault,
    StructType,
    TypeHierarchy,
    check_declarations,
)
from ferryvm.isa.frame import number_of, return_counts
from ferryvm.isa.struct import field_of
from ferryvm.isa.type import Reference
from ferryvm.listing import ClauseListing, FunctionListing, Item, Label, Line, Listing, Operand
from ferryvm.listing.encode import encode
from ferryvm.program import Clause, Program, Signature

_JUMP = BY_MNEMONIC["jump"].opcode
_PARTS = tuple(field.name for field in dataclasses.fields(Program) if field.name != "code")


class DecodeError(FerryError):
    """A program is not laid out as encoding does it, so no listing represents it."""

    def __init__(self, message: str, pc: int | None = None) -> None:
        self.pc = pc
        where = "" if pc is None else f" at pc {pc}"
        super().__init__(f"this program has no listing{where}: {message}")


def decode(program: Program) -> Listing:
    """The listing that encodes to `program`; labels are L0, L1 … in the order of the code.

    Raises DecodeError if there is none: functions are out of order, jumps lead from one function
    into another, numbers name nothing, or encoding would write a part in another way.
    """
    listing = _Decoder(program).listing()
    _compare(program, encode(listing))
    return listing


class _Decoder:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.opcodes: list[int] = program.code.opcodes.tolist()
        self.immediates: list[int] = program.code.immediates.tolist()
        self.tables: dict[int, int] = {}
        """pc of each jump table: pc past its jumps."""

    def listing(self) -> Listing:
        program = self.program
        self._check_names()
        self._check_types()
        bounds = [function.entry for function in program.functions] + [len(self.opcodes)]
        if bounds[0] != 0:
            raise DecodeError("code stands before the first function", 0)
        if max(bounds) > len(self.opcodes):
            raise DecodeError("a function starts past the end of the code", max(bounds))
        mine = self._clauses(bounds)
        listing = Listing(
            statics=list(program.statics),
            data=list(program.data),
            table=[self._function_name(number, None) for number in program.table],
            hosts=list(program.hosts),
            exports={
                export.name: self._function_name(export.function, None)
                for export in program.exports
            },
            tags=list(program.tags),
            types=list(program.types),
        )
        for number, function in enumerate(program.functions):
            start, end = bounds[number], bounds[number + 1]
            if end < start:
                raise DecodeError(
                    f"function {function.name!r} does not come before the one after it", start
                )
            if function.signature >= len(program.signatures):
                raise DecodeError(
                    f"function {function.name!r} has signature {function.signature}, "
                    f"of {len(program.signatures)}"
                )
            signature = program.signature(number)
            clauses = mine.get(number, [])
            labels = self._labels(start, end, clauses)
            items = self._items(start, end, labels, len(signature.parameters))
            handlers = [self._clause(clause, labels) for clause in clauses]
            listing.functions.append(
                FunctionListing(
                    function.name, signature, function.locals, items, handlers, function.parameters
                )
            )
        if _natural_signatures(listing) != program.signatures:
            listing.extra_signatures = program.signatures
        return listing

    def _check_names(self) -> None:
        for kind, names in (
            ("function", [function.name for function in self.program.functions]),
            ("host import", [host.name for host in self.program.hosts]),
            ("export", [export.name for export in self.program.exports]),
            ("tag", [tag.name for tag in self.program.tags]),
        ):
            seen: set[str] = set()
            for name in names:
                if name in seen:
                    raise DecodeError(f"two {kind}s are named {name!r}")
                seen.add(name)
        for static in self.program.statics:
            if not 0 <= static.bits <= static.type.mask:
                message = f"static {static.name!r} starts with more bits than {static.type}"
                raise DecodeError(message)

    def _check_types(self) -> None:
        try:
            check_declarations(self.program.types)
        except DeclarationFault as fault:
            raise DecodeError(str(fault)) from None
        self.hierarchy = TypeHierarchy(self.program.types)
        for where, types in self.program.used_types():
            for t in types:
                if isinstance(t, Reference) and not self.hierarchy.has(t):
                    raise DecodeError(f"{where} has a type {t} that is not one of the program")

    def _clauses(self, bounds: list[int]) -> dict[int, list[Clause]]:
        """The clauses by the number of their function; `bounds`: starts and ends of the
        functions."""
        found: dict[int, list[Clause]] = {}
        for clause in self.program.clauses:
            number = bisect.bisect_right(bounds, clause.start) - 1
            if number >= len(bounds) - 1:
                raise DecodeError("a clause starts past the end of the code", clause.start)
            for pc in (clause.end, clause.handler):
                if not bounds[number] <= pc <= bounds[number + 1]:
                    raise DecodeError("a clause of another function refers to it", pc)
            found.setdefault(number, []).append(clause)
        return found

    def _clause(self, clause: Clause, labels: dict[int, str]) -> ClauseListing:
        tag = None
        if clause.tag is not None:
            if clause.record:
                raise DecodeError("a clause of one tag pushes a record", clause.start)
            if clause.tag >= len(self.program.tags):
                raise DecodeError(f"no tag has number {clause.tag}")
            tag = self.program.tags[clause.tag].name
        start, end, handler = (labels[pc] for pc in (clause.start, clause.end, clause.handler))
        return ClauseListing(start, end, handler, clause.depth, tag, clause.record)

    def _labels(self, start: int, end: int, clauses: list[Clause]) -> dict[int, str]:
        """Names of the pcs that jumps and clauses of a function refer to."""
        targets = self._targets(start, end, clauses)
        return {target: f"L{number}" for number, target in enumerate(sorted(targets))}

    def _items(self, start: int, end: int, labels: dict[int, str], parameters: int) -> list[Item]:
        items: list[Item] = []
        pc = start
        while pc < end:
            if pc in labels:
                items.append(Label(labels[pc]))
            row = INSTRUCTIONS[self.opcodes[pc]]
            position = self.program.source_map.position(pc)
            past = self.tables.get(pc, pc + 1)
            operand: Operand
            if row.immediate is Immediate.LABELS:
                operand = tuple(labels[target] for target in self.immediates[pc + 1 : past])
            elif row.immediate is Immediate.TARGET:
                operand = labels[self.immediates[pc]]
            else:
                operand = self._operand(row, pc, parameters)
            items.append(Line(row, operand, position))
            pc = past
        if end in labels:
            items.append(Label(labels[end]))
        return items

    def _targets(self, start: int, end: int, clauses: list[Clause]) -> set[int]:
        """pcs in the function that jumps and clauses refer to; fills in `tables`."""
        targets = {pc for clause in clauses for pc in (clause.start, clause.end, clause.handler)}
        inside_tables: set[int] = set()
        pc = start
        while pc < end:
            if self.opcodes[pc] >= len(INSTRUCTIONS):
                raise DecodeError(f"no instruction has opcode {self.opcodes[pc]}", pc)
            row = INSTRUCTIONS[self.opcodes[pc]]
            past = pc + 1
            if row.immediate is Immediate.LABELS:
                past = pc + 2 + self.immediates[pc]
                if past > end or any(opcode != _JUMP for opcode in self.opcodes[pc + 1 : past]):
                    raise DecodeError("not every entry of a jump table is a jump", pc)
                self.tables[pc] = past
                inside_tables.update(range(pc + 1, past))
                targets.update(self.immediates[pc + 1 : past])
            elif row.immediate is Immediate.TARGET:
                targets.add(self.immediates[pc])
            pc = past
        for target in targets:
            if not start <= target <= end:
                raise DecodeError("a jump goes to it from another function", target)
            if target in inside_tables:
                raise DecodeError("a jump goes into a jump table", target)
        return targets

    def _operand(self, row: Instruction, pc: int, parameters: int) -> Operand:
        number = self.immediates[pc]
        match row.immediate:
            case Immediate.NONE:
                return None
            case Immediate.FUNCTION | Immediate.ITEM:
                return self._function_name(number, pc)
            case Immediate.HOST:
                if number >= len(self.program.hosts):
                    raise DecodeError(f"no host import has number {number}", pc)
                return self.program.hosts[number].name
            case Immediate.TAG:
                if number >= len(self.program.tags):
                    raise DecodeError(f"no tag has number {number}", pc)
                return self.program.tags[number].name
            case Immediate.SIGNATURE:
                if number >= len(self.program.signatures):
                    raise DecodeError(f"no signature has number {number}", pc)
                return self.program.signatures[number]
            case Immediate.LOCAL:
                local = number_of(number, parameters)
                if local is None:
                    raise DecodeError("no local has a word of the frame's header", pc)
                return local
            case (
                Immediate.TYPE
                | Immediate.FIELDS
                | Immediate.STRUCT
                | Immediate.ARRAY
                | Immediate.FIELD
            ):
                self._check_type(row, pc, number)
            case Immediate.RESULTS:
                return return_counts(number)[1]
        literal = row.immediate.literal
        if literal is not None and number > literal.mask:
            raise DecodeError(f"the literal has more bits than {literal}", pc)
        return number

    def _check_type(self, row: Instruction, pc: int, immediate: int) -> None:
        number, field = immediate, 0
        if row.immediate is Immediate.FIELD:
            number, field = field_of(immediate)
        if number >= len(self.hierarchy.references):
            raise DecodeError(f"no type has number {number}", pc)
        declared = self.hierarchy.declared(number)
        wanted = {Immediate.TYPE: object, Immediate.ARRAY: ArrayType}
        if not isinstance(declared, wanted.get(row.immediate, StructType)):
            name = self.hierarchy.references[number]
            raise DecodeError(f"type {name} is no {row.immediate.value}", pc)
        fields = declared.fields if isinstance(declared, StructType) else ()
        if row.immediate is Immediate.FIELD and not 0 <= field < len(fields):
            raise DecodeError(f"type {self.hierarchy.references[number]} has no such field", pc)

    def _function_name(self, number: int, pc: int | None) -> str:
        if number >= len(self.program.functions):
            raise DecodeError(f"no function has number {number}", pc)
        return self.program.functions[number].name


def _natural_signatures(listing: Listing) -> tuple[Signature, ...]:
    """The signatures in the order in which encoding numbers them by default."""
    found: dict[Signature, None] = {}
    for function in listing.functions:
        found.setdefault(function.signature)
        for item in function.items:
            if isinstance(item, Line) and isinstance(item.operand, Signature):
                found.setdefault(item.operand)
    return tuple(found)


def _compare(program: Program, again: Program) -> None:
    """Raise DecodeError if encoding would write the program in another way."""
    for part in _PARTS:
        if getattr(program, part) != getattr(again, part):
            raise DecodeError(f"encoding would write its {part.replace('_', ' ')} otherwise")
    if program.code.tobytes() != again.code.tobytes():
        differs = (program.code.records != again.code.records).nonzero()[0]
        raise DecodeError("unused bits of the instruction are set", int(differs[0]))
