# SPDX-License-Identifier: Apache-2.0
"""The check that bytes are an object file that is safe to load: loaders crash on others.

It is not a linker. In an ELF file each table, name, symbol and relocation must be inside the file
and the section that it refers to (System V Application Binary Interface, chapters 4 and 5); in a
macOS file only the first bytes are checked. It does not use NumPy, which may crash if fields of a
structured array get no memory.
"""

from __future__ import annotations

import enum
import struct
import sys
from array import array
from collections.abc import Iterable

from ferryvm import architecture
from ferryvm.named_tuple import NamedTuple

__all__ = ["ObjectType", "fault"]

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_IDENTITY = b"\x7fELF\x02\x01\x01"
"""Of 64 bits, little-endian, version 1."""
_MACH_O = b"\xcf\xfa\xed\xfe"
_MACHINES = {"x86_64": 62, "amd64": 62, "aarch64": 183, "arm64": 183}


class Section(NamedTuple):
    """A row of the section table."""

    name: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry: int


class _Segment(NamedTuple):
    type: int
    flags: int
    offset: int
    address: int
    physical: int
    size: int
    memory: int
    alignment: int


_SECTION, _SEGMENT = struct.Struct("<IIQQQQIIQQ"), struct.Struct("<IIQQQQQQ")
_SYMBOL_BYTES = _RELOCATION_BYTES = 24
"""A symbol: name (4 bytes), info, other, section (2), value, size; a relocation: offset, info,
addend."""
_SYMBOLS, _STRINGS, _RELOCATIONS, _NO_BITS = 2, 3, 4, 8
"""Types of sections."""
_RESERVED_SECTION = 0xFF00
_LOADED, _DYNAMIC = 1, 2
"""Types of segments."""
_LARGEST_ALIGNMENT = 1 << 21
_LARGEST = 1 << 30
"""The largest size in memory that a file may request, in bytes."""


class ObjectType(enum.IntEnum):
    """The type of an object file: its `e_type`."""

    RELOCATABLE = 1
    SHARED = 3


class _FaultError(Exception):
    """A fault; its text describes it."""


def fault(content: bytes, kind: ObjectType) -> str | None:
    """The reason that this is not a complete object file of a kind for this machine; None if it
    is."""
    if sys.platform == "darwin":
        return None if content.startswith(_MACH_O) else "it is no Mach-O file"
    try:
        header = _header(content, kind)
        _check_sections(content, header)
        if kind is ObjectType.SHARED:
            _check_segments(content, header)
    except _FaultError as error:
        return str(error)
    return None


def section_table(content: bytes) -> list[Section]:
    """The sections of a 64-bit ELF file in which `fault` finds nothing."""
    header = _HEADER.unpack_from(content)
    start, size = header[6], _SECTION.size * header[12]
    return list(map(Section._make, _SECTION.iter_unpack(content[start : start + size])))


def _header(content: bytes, kind: ObjectType) -> tuple[int, ...]:
    _require(len(content) >= _HEADER.size and content.startswith(_IDENTITY), "it is no ELF file")
    _, *header = _HEADER.unpack_from(content)
    machine = _MACHINES.get(architecture.NAME)
    _require(header[0] == kind, f"its type is {header[0]} instead of {int(kind)}")
    _require(header[1] == machine, f"it is for machine {header[1]} instead of {machine}")
    return tuple(header)


def _check_sections(content: bytes, header: tuple[int, ...]) -> None:
    offset, size, number, names = header[5], *header[10:13]
    if number == 0:
        return
    _table(content, offset, number * size, _SECTION.size, size, "section table")
    sections = section_table(content)
    for section in sections:
        if section.type not in (0, _NO_BITS):
            _require_inside(section.offset, section.size, len(content), "a section")
        _check_alignment(section.alignment, "a section")
        _require(section.link < number, "a section is linked to none")
    _require(sum(section.size for section in sections) <= _LARGEST, "its sections are too large")
    _require(names < number and sections[names].type == _STRINGS, "its sections have no names")
    _check_names(content, sections[names], (section.name for section in sections))
    for section in sections:
        if section.type == _SYMBOLS:
            _check_symbols(content, sections, section)
        if section.type == _RELOCATIONS:
            _check_relocations(content, sections, section, kind=header[0])


def _check_symbols(content: bytes, sections: list[Section], section: Section) -> None:
    symbols = _inner(content, section, _SYMBOL_BYTES, "symbol table")
    strings = sections[section.link]
    _require(strings.type == _STRINGS, "its symbols have no names")
    _check_names(content, strings, symbols.cast("I")[::6])
    numbers = (number for number in symbols.cast("H")[3::12] if number < _RESERVED_SECTION)
    _require(max(numbers, default=0) < len(sections), "a symbol is in no section")


def _check_relocations(
    content: bytes, sections: list[Section], section: Section, kind: int
) -> None:
    table = _inner(content, section, _RELOCATION_BYTES, "relocation table")
    relocations = array("Q", table.tobytes())  # slices of views take three times as long
    if kind != ObjectType.RELOCATABLE:
        return  # the dynamic linker's tables, which use addresses
    symbols, target = sections[section.link], section.info
    _require(symbols.type == _SYMBOLS and target < len(sections), "relocations belong to nothing")
    if not relocations:
        return
    count = symbols.size // _SYMBOL_BYTES
    _require(max(relocations[1::3]) >> 32 < count, "a relocation has no symbol")
    last = max(relocations[::3]) + 4
    _require(last <= sections[target].size, "a relocation is outside of its section")


def _check_segments(content: bytes, header: tuple[int, ...]) -> None:
    offset, size, number = header[4], *header[8:10]
    table = _table(content, offset, number * size, _SEGMENT.size, size, "program header")
    segments = list(map(_Segment._make, _SEGMENT.iter_unpack(table)))
    for segment in segments:
        _require_inside(segment.offset, segment.size, len(content), "a segment")
        _require(segment.size <= segment.memory, "a segment has too few bytes")
        _require_inside(segment.address, segment.memory, _LARGEST, "a segment's memory")
        _check_alignment(segment.alignment, "a segment")
    types = {segment.type for segment in segments}
    for kind in (_LOADED, _DYNAMIC):
        _require(kind in types, f"it has no segment of type {kind}")


def _inner(content: bytes, section: Section, row: int, name: str) -> memoryview:
    return _table(content, section.offset, section.size, row, section.entry, name)


def _table(content: bytes, offset: int, size: int, row: int, entry: int, name: str) -> memoryview:
    """A table whose rows have `row` bytes."""
    _require(entry == row and size % entry == 0, f"its {name} has entries of {entry} bytes")
    _require(offset + size <= len(content), f"its {name} is cut off")
    return memoryview(content)[offset : offset + size]


def _check_names(content: bytes, strings: Section, names: Iterable[int]) -> None:
    start, size = strings.offset, strings.size
    ends = size > 0 and start + size <= len(content) and content[start + size - 1] == 0
    _require(ends and max(names, default=0) < size, "a name is not in it")


def _check_alignment(alignment: int, name: str) -> None:
    is_power = alignment & (alignment - 1) == 0
    is_right = is_power and alignment <= _LARGEST_ALIGNMENT
    _require(is_right, f"{name} has an alignment that no file has")


def _require_inside(start: int, size: int, end: int, name: str) -> None:
    _require(start + size <= end, f"{name} is cut off")


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise _FaultError(otherwise)
