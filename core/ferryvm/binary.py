# SPDX-License-Identifier: Apache-2.0
"""Why bytes are no object file that a loader may be given: loaders crash on what is none.

Not a linker: of an ELF file is asked that each table, name, symbol and relocation lies inside of
the file and of the section that it speaks of (System V Application Binary Interface, chapters 4
and 5); of one of macOS, what it begins with.
"""

from __future__ import annotations

import enum
import platform
import struct
import sys

import numpy as np
import numpy.typing as npt

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_IDENTITY = b"\x7fELF\x02\x01\x01"
"""Of 64 bits, little-endian, version 1."""
_MACH_O = b"\xcf\xfa\xed\xfe"
_MACHINES = {"x86_64": 62, "amd64": 62, "aarch64": 183, "arm64": 183}

_SECTION = np.dtype(
    [
        ("name", "<u4"),
        ("type", "<u4"),
        ("flags", "<u8"),
        ("address", "<u8"),
        ("offset", "<u8"),
        ("size", "<u8"),
        ("link", "<u4"),
        ("info", "<u4"),
        ("alignment", "<u8"),
        ("entry", "<u8"),
    ]
)
_SEGMENT = np.dtype(
    [
        ("type", "<u4"),
        ("flags", "<u4"),
        ("offset", "<u8"),
        ("address", "<u8"),
        ("physical", "<u8"),
        ("size", "<u8"),
        ("memory", "<u8"),
        ("alignment", "<u8"),
    ]
)
_SYMBOL = np.dtype(
    [
        ("name", "<u4"),
        ("info", "u1"),
        ("other", "u1"),
        ("section", "<u2"),
        ("value", "<u8"),
        ("size", "<u8"),
    ]
)
_RELOCATION = np.dtype([("offset", "<u8"), ("info", "<u8"), ("addend", "<i8")])
_SYMBOLS, _STRINGS, _RELOCATIONS, _NO_BITS = 2, 3, 4, 8
"""Types of sections."""
_RESERVED_SECTION = 0xFF00
_LOADED, _DYNAMIC = 1, 2
"""Types of segments."""
_LARGEST_ALIGNMENT = 1 << 21
_LARGEST = 1 << 30
"""Bytes that a file may ask to have in memory."""

_Table = npt.NDArray[np.void]


class Kind(enum.IntEnum):
    """What an object file is for: its `e_type`."""

    RELOCATABLE = 1
    SHARED = 3


class _FaultError(Exception):
    """Its text says what is wrong."""


def fault(content: bytes, kind: Kind) -> str | None:
    """Why this is no whole object file of a kind for this machine; None if it is one."""
    if sys.platform == "darwin":
        return None if content.startswith(_MACH_O) else "it is no Mach-O file"
    try:
        header = _header(content, kind)
        _check_sections(content, header)
        if kind is Kind.SHARED:
            _check_segments(content, header)
    except _FaultError as error:
        return str(error)
    return None


def _header(content: bytes, kind: Kind) -> tuple[int, ...]:
    _ask(len(content) >= _HEADER.size and content.startswith(_IDENTITY), "it is no ELF file")
    _, *header = _HEADER.unpack_from(content)
    machine = _MACHINES.get(platform.machine().lower())
    _ask(header[0] == kind, f"its type is {header[0]} instead of {int(kind)}")
    _ask(header[1] == machine, f"it is for machine {header[1]} instead of {machine}")
    return tuple(header)


def _check_sections(content: bytes, header: tuple[int, ...]) -> None:
    offset, size, number, names = header[5], *header[10:13]
    if number == 0:
        return
    sections = _table(content, offset, number * size, _SECTION, size, "section table")
    types, sizes = sections["type"], sections["size"]
    held = (types != _NO_BITS) & (types != 0)
    _ask_inside(sections["offset"][held], sizes[held], len(content), "a section")
    _ask(int(sum(map(int, sizes))) <= _LARGEST, "its sections are too large")
    _check_alignments(sections["alignment"], "a section")
    _ask(bool((sections["link"] < number).all()), "a section is linked to none")
    _ask(names < number and types[names] == _STRINGS, "its sections have no names")
    _check_names(content, sections[names], sections["name"])
    for section in sections[types == _SYMBOLS]:
        _check_symbols(content, sections, section)
    for section in sections[types == _RELOCATIONS]:
        _check_relocations(content, sections, section, kind=header[0])


def _check_symbols(content: bytes, sections: _Table, section: np.void) -> None:
    symbols = _inner(content, section, _SYMBOL, "symbol table")
    strings = sections[int(section["link"])]
    _ask(strings["type"] == _STRINGS, "its symbols have no names")
    _check_names(content, strings, symbols["name"])
    numbers = symbols["section"]
    defined = (numbers < _RESERVED_SECTION) & (numbers > 0)
    _ask(bool((numbers[defined] < len(sections)).all()), "a symbol is in no section")


def _check_relocations(content: bytes, sections: _Table, section: np.void, kind: int) -> None:
    relocations = _inner(content, section, _RELOCATION, "relocation table")
    if kind != Kind.RELOCATABLE:
        return  # the dynamic linker's, which go by addresses
    symbols, target = sections[int(section["link"])], int(section["info"])
    _ask(symbols["type"] == _SYMBOLS and target < len(sections), "relocations belong to nothing")
    count = int(symbols["size"]) // _SYMBOL.itemsize
    _ask(bool((relocations["info"] >> 32 < count).all()), "a relocation has no symbol")
    size = int(sections[target]["size"])
    _ask(bool((relocations["offset"] + 4 <= size).all()), "a relocation is outside of its section")


def _check_segments(content: bytes, header: tuple[int, ...]) -> None:
    offset, size, number = header[4], *header[8:10]
    segments = _table(content, offset, number * size, _SEGMENT, size, "program header")
    _ask_inside(segments["offset"], segments["size"], len(content), "a segment")
    _ask(bool((segments["size"] <= segments["memory"]).all()), "a segment has too few bytes")
    _ask_inside(segments["address"], segments["memory"], _LARGEST, "a segment's memory")
    _check_alignments(segments["alignment"], "a segment")
    for kind in (_LOADED, _DYNAMIC):
        _ask(bool((segments["type"] == kind).any()), f"it has no segment of type {kind}")


def _inner(content: bytes, section: np.void, kind: np.dtype[np.void], name: str) -> _Table:
    place, size, entry = (int(section[field]) for field in ("offset", "size", "entry"))
    return _table(content, place, size, kind, entry, name)


def _table(
    content: bytes, offset: int, size: int, kind: np.dtype[np.void], entry: int, name: str
) -> _Table:
    _ask(entry == kind.itemsize and size % entry == 0, f"its {name} has entries of {entry} bytes")
    _ask(offset + size <= len(content), f"its {name} is cut off")
    return np.frombuffer(content, kind, size // entry, offset)


def _check_names(content: bytes, strings: np.void, names: npt.NDArray[np.uint32]) -> None:
    start, size = int(strings["offset"]), int(strings["size"])
    ends = size > 0 and content[start + size - 1] == 0
    _ask(ends and bool((names < size).all()), "a name is not in it")


def _check_alignments(alignments: npt.NDArray[np.uint64], name: str) -> None:
    is_power = (alignments & (alignments - np.uint64(1)) == 0) | (alignments == 0)
    is_right = bool((is_power & (alignments <= _LARGEST_ALIGNMENT)).all())
    _ask(is_right, f"{name} has an alignment that no file has")


def _ask_inside(
    starts: npt.NDArray[np.uint64], sizes: npt.NDArray[np.uint64], end: int, name: str
) -> None:
    is_inside = (starts <= end) & (sizes <= end) & (starts + sizes <= end)
    _ask(bool(is_inside.all()), f"{name} is cut off")


def _ask(holds: bool, otherwise: str) -> None:
    if not holds:
        raise _FaultError(otherwise)
