# SPDX-License-Identifier: Apache-2.0
"""Program images: the `.fvm` file (see docs/image.md for the layout of each section)."""

from __future__ import annotations

import itertools
import operator
from array import array
from pathlib import Path

from ferryvm.atomic_file import replace_file
from ferryvm.image.container import ImageError, ImageKind, Reader, Writer, pack, read, unpack
from ferryvm.isa import Type
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
    3,
    ("CODE", "SIGN", "FUNC", "STAT", "DATA", "TABL", "HOST", "EXPO", "TAGS", "CLAU", "SMAP"),
)

_TYPES = tuple(Type)
_NUMBER = {t: number for number, t in enumerate(_TYPES)}
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
        },
    )


def from_bytes(content: bytes, name: str = "<bytes>") -> Program:
    """The program of an image, not verified yet. Raises ImageError."""
    sections = unpack(PROGRAM, content, name)

    def reader(tag: str) -> Reader:
        return Reader(sections[tag], f"{name}: section {tag}")

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


def _write_types(writer: Writer, types: tuple[Type, ...]) -> None:
    writer.blob(bytes(_NUMBER[t] for t in types))


def _read_types(reader: Reader) -> tuple[Type, ...]:
    numbers = reader.blob()
    if any(number >= len(_TYPES) for number in numbers):
        raise reader.fail(f"type number above {len(_TYPES) - 1}")
    return tuple(_TYPES[number] for number in numbers)


def _read_code(reader: Reader) -> Code:
    if len(reader.payload) % RECORD_BYTES:
        raise reader.fail(f"code is no multiple of {RECORD_BYTES} bytes")
    return Code(reader.payload)


def _write_signature(writer: Writer, signature: Signature) -> None:
    _write_types(writer, signature.parameters)
    _write_types(writer, signature.results)


def _read_signature(reader: Reader) -> Signature:
    return Signature(_read_types(reader), _read_types(reader))


def _signatures(program: Program) -> bytes:
    writer = Writer()
    writer.number(len(program.signatures))
    for signature in program.signatures:
        _write_signature(writer, signature)
    return writer.bytes()


def _read_signatures(reader: Reader) -> tuple[Signature, ...]:
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


def _read_functions(reader: Reader) -> tuple[Function, ...]:
    functions = tuple(_read_function(reader) for _ in range(reader.count(40)))
    reader.end()
    return functions


def _read_function(reader: Reader) -> Function:
    name, entry, signature = reader.text(), reader.number(), reader.number()
    locals_ = _read_types(reader)
    parameters = tuple(reader.text() for _ in range(reader.count(8)))
    return Function(name, entry, signature, locals_, parameters)


def _statics(program: Program) -> bytes:
    writer = Writer()
    writer.number(len(program.statics))
    for static in program.statics:
        writer.text(static.name)
        writer.number(_NUMBER[static.type])
        writer.number(static.bits)
    return writer.bytes()


def _read_statics(reader: Reader) -> tuple[Static, ...]:
    statics = []
    for _ in range(reader.count(24)):
        name, number, bits = reader.text(), reader.number(), reader.number()
        if number >= len(_TYPES):
            raise reader.fail(f"type number above {len(_TYPES) - 1}")
        statics.append(Static(name, _TYPES[number], bits))
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


def _read_hosts(reader: Reader) -> tuple[HostImport, ...]:
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


def _read_tags(reader: Reader) -> tuple[Tag, ...]:
    tags = tuple(Tag(reader.text(), _read_types(reader)) for _ in range(reader.count(16)))
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
    writer.number(len(source_map.rows))
    writer.parts.append(array("I", itertools.chain(*source_map.rows)).tobytes())
    return writer.bytes()


def _read_source_map(reader: Reader) -> SourceMap:
    files = tuple(reader.text() for _ in range(reader.count(8)))
    count = reader.count(16)
    words = reader.words("I", 4 * count).tolist()
    reader.end()
    pcs, numbers, lines, columns = (words[field::4] for field in range(4))
    if any(map(operator.ge, pcs, pcs[1:])):
        raise reader.fail("positions are not in the order of their pcs")
    if any(line and number >= len(files) for number, line in zip(numbers, lines, strict=True)):
        raise reader.fail("a position names a file that is not there")
    return SourceMap(files, tuple(zip(pcs, numbers, lines, columns, strict=True)))
