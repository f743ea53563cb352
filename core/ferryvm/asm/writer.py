# SPDX-License-Identifier: Apache-2.0
"""A listing as assembly text; reading it gives the same listing, positions included."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

from ferryvm.asm.literal import format_bytes, format_literal, format_name, format_string
from ferryvm.errors import Position
from ferryvm.isa import Immediate
from ferryvm.isa.declared_type import ArrayType, DeclaredType, StructType, TypeHierarchy
from ferryvm.isa.struct import field_of
from ferryvm.isa.type import Reference
from ferryvm.listing import ClauseListing, FunctionListing, Label, Line, Listing
from ferryvm.program import Data, Signature, Static

_BYTES_A_LINE = 64
_TYPES = (Immediate.TYPE, Immediate.FIELDS, Immediate.STRUCT, Immediate.ARRAY)


def write(listing: Listing) -> str:
    """The assembly text of a listing, with every position stated by `.file` and `.loc`."""
    return "".join(f"{line}\n" for line in _Writer(listing).lines())


def _signature(
    signature: Signature, names: tuple[str, ...] = (), types_: Collection[str] = ()
) -> str:
    """A signature for the end of a statement, with a space before it; empty for () -> (). `names`:
    the names of the parameters; `types_`: names of types, which such a name must not be read as."""
    text = ""
    if signature.parameters:
        types = [str(t) for t in signature.parameters]
        if names:
            pairs = zip(names, types, strict=True)
            types = [f"{_parameter(name, types_)} {t}" if name else t for name, t in pairs]
        text += f" ({' '.join(types)})"
    if signature.results:
        text += f" -> ({' '.join(map(str, signature.results))})"
    return text


def _parameter(name: str, types: Collection[str]) -> str:
    return format_string(name) if name in types else format_name(name)


class _Writer:
    def __init__(self, listing: Listing) -> None:
        self.listing = listing
        self.files: dict[str, int] = {}
        for function in listing.functions:
            for item in function.items:
                if isinstance(item, Line) and item.position is not None:
                    self.files.setdefault(item.position.file, len(self.files) + 1)
        bearers = Counter(static.name for static in listing.statics)
        self.statics = [
            format_name(static.name) if bearers[static.name] == 1 else str(number)
            for number, static in enumerate(listing.statics)
        ]
        self.types = TypeHierarchy(listing.types)
        self.type_names = frozenset(map(str, self.types.references))
        self.location: Position | None = None
        self.is_located = False
        """True after a `.loc`: without one, the position of a line is the line itself."""
        self.pc = 0

    def lines(self) -> Iterator[str]:
        listing = self.listing
        for name, number in self.files.items():
            yield f".file {number} {format_string(name)}"
        for declared in listing.types:
            yield self._declared(declared)
        for signature in listing.extra_signatures:
            yield ".signature" + (_signature(signature) or " ()")
        for host in listing.hosts:
            yield f".host {format_name(host.name)}{_signature(host.signature)}"
        for tag in listing.tags:
            yield " ".join([".tag", format_name(tag.name), *map(str, tag.parameters)])
        for static in listing.statics:
            yield self._static(static)
        for data in listing.data:
            yield from self._data(data)
        for function in listing.table:
            yield f".table {format_name(function)}"
        for name, exported in listing.exports.items():
            alias = "" if name == exported else f" as {format_name(name)}"
            yield f".export {format_name(exported)}{alias}"
        for function_listing in listing.functions:
            yield ""
            yield from self._function(function_listing)

    def _static(self, static: Static) -> str:
        head = f".static {format_name(static.name)} {static.type}"
        if isinstance(static.type, Reference):
            return head
        return f"{head} = {format_literal(static.type, static.bits)}"

    def _declared(self, declared: DeclaredType) -> str:
        if isinstance(declared, ArrayType):
            return f".array {declared.name}"
        words = [".struct", format_name(declared.name)]
        inherited = 0
        if declared.parent is not None:
            parent = self.types.declared(declared.parent)
            assert isinstance(parent, StructType)
            words += ["extends", format_name(parent.name)]
            inherited = len(parent.fields)
        for name, t in declared.fields[inherited:]:
            words += [format_string(name) if name == "extends" else format_name(name), str(t)]
        return " ".join(words)

    def _data(self, data: Data) -> Iterator[str]:
        yield f".data {data.address}"
        for start in range(0, len(data.bytes), _BYTES_A_LINE):
            yield f".bytes {format_bytes(data.bytes[start : start + _BYTES_A_LINE])}"

    def _function(self, function: FunctionListing) -> Iterator[str]:
        head = f".function {format_name(function.name)}{self._of(function)}"
        yield f"{head}  ; pc {self.pc}"
        if function.locals:
            yield f".local {' '.join(map(str, function.locals))}"
        for item in function.items:
            if isinstance(item, Label):
                yield f":{format_name(item.name)}"
                continue
            if item.position != self.location or not self.is_located:
                yield self._locate(item.position)
            yield f"    {item.row.mnemonic}{self._operand(item)}"
            self.pc += 1 + (len(item.operand) if isinstance(item.operand, tuple) else 0)

        for clause in function.clauses:
            yield self._clause(clause)

    def _of(self, function: FunctionListing) -> str:
        return _signature(function.signature, function.parameters, self.type_names)

    def _clause(self, clause: ClauseListing) -> str:
        head = ".catch_record" if clause.record else ".catch_all"
        if clause.tag is not None:
            head = f".catch {format_name(clause.tag)}"
        start, end, handler = map(format_name, (clause.start, clause.end, clause.handler))
        depth = f" depth {clause.depth}" if clause.depth else ""
        return f"{head} from {start} to {end} using {handler}{depth}"

    def _locate(self, position: Position | None) -> str:
        self.location, self.is_located = position, True
        if position is None:
            return ".loc none"
        return f".loc {self.files[position.file]} {position.line} {position.column}"

    def _operand(self, line: Line) -> str:
        kind, operand = line.row.immediate, line.operand
        if kind is Immediate.NONE or operand is None:
            return ""
        if isinstance(operand, tuple):
            return "".join(f" {format_name(name)}" for name in operand)
        if isinstance(operand, Signature):
            return _signature(operand) or " ()"
        if isinstance(operand, str):
            return f" {format_name(operand)}"
        if kind.literal is not None:
            return f" {format_literal(kind.literal, operand)}"
        if kind is Immediate.FIELD:
            number, field = field_of(operand)
            declared = self.types.declared(number)
            assert isinstance(declared, StructType)
            return f" {declared.name}.{declared.fields[field].name}"
        if kind in _TYPES:
            return f" {self.types.references[operand]}"
        if kind is Immediate.STATIC and operand < len(self.statics):
            return f" {self.statics[operand]}"
        return f" {operand}"
