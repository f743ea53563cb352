# SPDX-License-Identifier: Apache-2.0
"""Program images: the `.fvm` file (see docs/image.md for the layout of each section)."""

from __future__ import annotations

import operator
from array import array
from pathlib import Path

from ferryvm.atomic_file import replace_file
from ferryvm.image.container import ImageError, ImageKind, Reader, Writer, pack, read, unpack
from ferryvm.isa import Type
from ferryvm.isa.declared_type import (
    LONGEST_NAME,
    PREDEFINED,
    ArrayType,
    DeclaredType,
    Field,
    StructType,
)
from ferryvm.isa.type import FIRST_DECLARED, Reference, ValueType
from ferryvm.program import (
    RECORD_BYTES,
    Clause,
    Code,
    Data,
    Export,
    Function,
    HostImport,
    Program,
    Signature,
    SourceMap,
    Static,
    Tag,
)

PROGRAM = ImageKind(
    "a ferryvm program image (.fvm)",
    b"\x89FVM\r\n\x1a\n",
    4,
    (
        "CODE",
        "SIGN",
        "FUNC",
        "STAT",
        "DATA",
        "TABL",
        "HOST",
        "EXPO",
        "TAGS",
        "CLAU",
        "SMAP",
        "TYPE",
    ),
)

_NUMBERS = tuple(Type)
_FIRST = len(_NUMBERS)
"""The stored number of the reference type 0."""
_NONE = (1 << 64) - 1
"""The parent of a struct that has none."""
_ALL = (1 << 64) - 1
"""The tag of a clause that catches every exception."""


def to_bytes(program: Program) -> bytes:
    """The image of a program; equal programs have equal images."""
    return pack(
        PROGRAM,
        {
            "CODE": program.code.tobytes(),
            "SIGN": _signatures(program),
            "FUNC": _functions(program),
            "STAT": _statics(program),
            "DATA": _data(program),
            "TABL": array("Q", program.table).tobytes(),
            "HOST": _hosts(program),
            "EXPO": _exports(program),
            "TAGS": _tags(program),
            "CLAU": _clauses(program),
            "SMAP": _source_map(program.source_map),
            "TYPE": _declared_types(program),
        },
    )


def from_bytes(content: bytes, name: str = "<bytes>") -> Program:
    """The program of an image, not verified yet. Raises ImageError."""
    sections = unpack(PROGRAM, content, name)

    types, known = _read_declared_types(Reader(sections["TYPE"], f"{name}: section TYPE"))

    def reader(tag: str) -> _TypeReader:
        return _TypeReader(sections[tag], f"{name}: section {tag}", known)

    return Program(
        code=_read_code(reader("CODE")),
        signatures=_read_signatures(reader("SIGN")),
        functions=_read_functions(reader("FUNC")),
        statics=_read_statics(reader("STAT")),
        data=_read_data(reader("DATA")),
        table=_read_table(reader("TABL")),
        hosts=_read_hosts(reader("HOST")),
        exports=_read_exports(reader("EXPO")),
        tags=_read_tags(reader("TAGS")),
        clauses=_read_clauses(reader("CLAU")),
        source_map=_read_source_map(reader("SMAP")),
        types=types,
    )


def save(program: Program, path: str | Path) -> None:
    """Write the image of a program. Raises ImageError where the file cannot be written."""
    try:
        replace_file(Path(path), to_bytes(program))
    except OSError as error:
        raise ImageError(f"{path}: cannot be written: {error.strerror}") from None


def load(path: str | Path) -> Program:
    """The program in a file, not verified yet. Raises ImageError if there is none."""
    return from_bytes(read(PROGRAM, Path(path)), str(path))


def _stored(t: ValueType) -> int:
    """The number that stands for a type."""
    return _FIRST + t.number if isinstance(t, Reference) else _NUMBERS.index(t)


class _TypeReader(Reader):
    """A reader of payloads in which types of the program occur."""

    def __init__(self, payload: bytes, where: str, known: tuple[ValueType, ...]) -> None:
        super().__init__(payload, where)
        self._known = known

    def type(self) -> ValueType:
        """One type, a number."""
        return self._type(self.number())

    def types(self) -> tuple[ValueType, ...]:
        """The number of types, then each in 4 bytes."""
        return tuple(map(self._type, self.words("I", self.count(4))))

    def _type(self, number: int) -> ValueType:
        if number >= len(self._known):
            raise self.fail(f"type number above {len(self._known) - 1}")
        return self._known[number]


def _write_types(writer: Writer, types: tuple[ValueType, ...]) -> None:
    writer.number(len(types))
    writer.parts.append(array("I", map(_stored, types)).tobytes())


def _declared_types(program: Program) -> bytes:
    writer = Writer()
    writer.number(len(program.types))
    for declared in program.types:
        if isinstance(declared, ArrayType):
            writer.number(1)
            writer.number(declared.element.number)
            continue
        writer.number(0)
        writer.text(declared.name)
        writer.number(_NONE if declared.parent is None else declared.parent)
        writer.number(len(declared.fields))
        for name, t in declared.fields:
            writer.text(name)
            writer.number(_stored(t))
    return writer.bytes()


def _read_declared_types(
    reader: Reader,
) -> tuple[tuple[DeclaredType, ...], tuple[ValueType, ...]]:
    """The declared types, and all types of the program by the number that stands for each."""
    rows: list[tuple[str, int | None, list[tuple[str, int]]] | int] = []
    for _ in range(reader.count(16)):
        kind = reader.number()
        if kind > 1:
            raise reader.fail("a type is a struct or an array, 0 or 1")
        if kind == 1:
            rows.append(reader.number())
            continue
        name, parent = reader.text(), reader.number()
        fields = [(reader.text(), reader.number()) for _ in range(reader.count(16))]
        rows.append((name, None if parent == _NONE else parent, fields))
    reader.end()
    known: list[ValueType] = [*_NUMBERS, *PREDEFINED]
    for number, row in enumerate(rows, FIRST_DECLARED):
        name = row[0] if isinstance(row, tuple) else ""
        if isinstance(row, int):
            if row >= number:
                raise reader.fail(f"the elements of type {number} are of none before it")
            name = f"{known[_FIRST + row]}[]"
            if len(name) > LONGEST_NAME:
                raise reader.fail(f"a type has a name of more than {LONGEST_NAME} characters")
        known.append(Reference(number, name))
    types: list[DeclaredType] = []
    for row in rows:
        if isinstance(row, int):
            element = known[_FIRST + row]
            assert isinstance(element, Reference)
            types.append(ArrayType(element))
            continue
        name, parent_number, pairs = row
        if any(number >= len(known) for _, number in pairs):
            raise reader.fail(f"type number above {len(known) - 1}")
        own = tuple(Field(field, known[number]) for field, number in pairs)
        types.append(StructType(name, parent_number, own))
    return tuple(types), tuple(known)


def _read_code(reader: Reader) -> Code:
    if len(reader.payload) % RECORD_BYTES:
        raise reader.fail(f"code is no multiple of {RECORD_BYTES} bytes")
    return Code(reader.payload)


def _write_signature(writer: Writer, signature: Signature) -> None:
    _write_types(writer, signature.parameters)
    _write_types(writer, signature.results)


def _read_signature(reader: _TypeReader) -> Signature:
    return Signature(reader.types(), reader.types())


def _signatures(program: Program) -> bytes:
    writer = Writer()
    writer.number(len(program.signatures))
    for signature in program.signatures:
        _write_signature(writer, signature)
    return writer.bytes()


def _read_signatures(reader: _TypeReader) -> tuple[Signature, ...]:
    signatures = tuple(_read_signature(reader) for _ in range(reader.count(16)))
    reader.end()
    return signatures


def _functions(program: Program) -> bytes:
    writer = Writer()
    writer.number(len(program.functions))
    for function in program.functions:
        writer.text(function.name)
        writer.number(function.entry)
        writer.number(function.signature)
        _write_types(writer, function.locals)
        writer.number(len(function.parameters))
        for name in function.parameters:
            writer.text(name)
    return writer.bytes()


def _read_functions(reader: _TypeReader) -> tuple[Function, ...]:
    functions = tuple(_read_function(reader) for _ in range(reader.count(40)))
    reader.end()
    return functions


def _read_function(reader: _TypeReader) -> Function:
    name, entry, signature = reader.text(), reader.number(), reader.number()
    locals_ = reader.types()
    parameters = tuple(reader.text() for _ in range(reader.count(8)))
    return Function(name, entry, signature, locals_, parameters)


def _statics(program: Program) -> bytes:
    writer = Writer()
    writer.number(len(program.statics))
    for static in program.statics:
        writer.text(static.name)
        writer.number(_stored(static.type))
        writer.number(static.bits)
    return writer.bytes()


def _read_statics(reader: _TypeReader) -> tuple[Static, ...]:
    statics = []
    for _ in range(reader.count(24)):
        statics.append(Static(reader.text(), reader.type(), reader.number()))
    reader.end()
    return tuple(statics)


def _data(program: Program) -> bytes:
    writer = Writer()
    writer.number(len(program.data))
    for data in program.data:
        writer.number(data.address)
        writer.blob(data.bytes)
    return writer.bytes()


def _read_data(reader: Reader) -> tuple[Data, ...]:
    data = tuple(Data(reader.number(), reader.blob()) for _ in range(reader.count(16)))
    reader.end()
    return data


def _read_table(reader: Reader) -> tuple[int, ...]:
    if len(reader.payload) % 8:
        raise reader.fail("the function table is no multiple of 8 bytes")
    return tuple(reader.words("Q", len(reader.payload) // 8).tolist())


def _hosts(program: Program) -> bytes:
    writer = Writer()
    writer.number(len(program.hosts))
    for host in program.hosts:
        writer.text(host.name)
        _write_signature(writer, host.signature)
    return writer.bytes()


def _read_hosts(reader: _TypeReader) -> tuple[HostImport, ...]:
    hosts = tuple(
        HostImport(reader.text(), _read_signature(reader)) for _ in range(reader.count(24))
    )
    reader.end()
    return hosts


def _exports(program: Program) -> bytes:
    writer = Writer()
    writer.number(len(program.exports))
    for export in program.exports:
        writer.text(export.name)
        writer.number(export.function)
    return writer.bytes()


def _read_exports(reader: Reader) -> tuple[Export, ...]:
    exports = tuple(Export(reader.text(), reader.number()) for _ in range(reader.count(16)))
    reader.end()
    return exports


def _tags(program: Program) -> bytes:
    writer = Writer()
    writer.number(len(program.tags))
    for tag in program.tags:
        writer.text(tag.name)
        _write_types(writer, tag.parameters)
    return writer.bytes()


def _read_tags(reader: _TypeReader) -> tuple[Tag, ...]:
    tags = tuple(Tag(reader.text(), reader.types()) for _ in range(reader.count(16)))
    reader.end()
    return tags


def _clauses(program: Program) -> bytes:
    words = [len(program.clauses)]
    for clause in program.clauses:
        tag = _ALL if clause.tag is None else clause.tag
        words += [*clause[:4], tag, clause.record]
    return array("Q", words).tobytes()


def _read_clauses(reader: Reader) -> tuple[Clause, ...]:
    count = reader.count(48)
    words = reader.words("Q", 6 * count).tolist()
    reader.end()
    if any(record > 1 for record in words[5::6]):
        raise reader.fail("a clause pushes a record or not, 1 or 0")
    return tuple(
        Clause(start, end, handler, depth, None if tag == _ALL else tag, bool(record))
        for start, end, handler, depth, tag, record in zip(
            *(words[field::6] for field in range(6)), strict=True
        )
    )


def _source_map(source_map: SourceMap) -> bytes:
    writer = Writer()
    writer.number(len(source_map.files))
    for file in source_map.files:
        writer.text(file)
    writer.number(len(source_map))
    writer.parts.append(source_map.tobytes())
    return writer.bytes()


def _read_source_map(reader: Reader) -> SourceMap:
    files = tuple(reader.text() for _ in range(reader.count(8)))
    content = reader.take(16 * reader.count(16))
    reader.end()
    pcs, numbers, lines = (memoryview(content).cast("I")[field::4].tolist() for field in range(3))
    if any(map(operator.ge, pcs, pcs[1:])):
        raise reader.fail("positions are not in the order of their pcs")
    if any(line and number >= len(files) for number, line in zip(numbers, lines, strict=True)):
        raise reader.fail("a position names a file that is not there")
    return SourceMap.packed(files, content)
