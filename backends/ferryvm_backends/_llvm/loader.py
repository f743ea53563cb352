# SPDX-License-Identifier: Apache-2.0
"""Object files into memory, without LLVM where one needs nothing but itself.

    object   .ltext   .rodata   .lbss   .rela: place = symbol + addend
                │         │        └────────────────┐
    memory   │ text, read and run │ data, read only │ data, written │

Interpreters and nearly all regions are such objects on x86-64: each relocation puts the address of
a place in the object into a whole word (System V ABI, AMD64 supplement, R_X86_64_64), and of other
libraries they need no more than the C library's functions on bytes. LLVM's loader, which takes
longer to import than most programs run, loads all others.
"""

from __future__ import annotations

import abc
import collections
import contextlib
import ctypes
import itertools
import mmap
import operator
import struct
import sys
from array import array
from collections.abc import Callable

from ferryvm import binary
from ferryvm.architecture import IS_X86
from ferryvm.backend import BackendError
from ferryvm.binary import Section
from ferryvm.machine.python_call import API

PUBLISH = "ferry_publish"
"""Name of the function behind `NativeCode.publisher`; `cell.define_publish` makes it."""

_ALLOCATED, _WRITABLE, _EXECUTABLE = 2, 1, 4
"""Flags of sections."""
_PROGRAM_BITS, _SYMBOLS, _RELOCATIONS, _NO_BITS, _UNWIND = 1, 2, 4, 8, 0x70000001
"""Types of sections. Nothing unwinds through an interpreter."""
_WORD_RELOCATION = 1
_SYMBOL = struct.Struct("<IBBHQQ")
_WORD = struct.Struct("<Q")

_libc = ctypes.CDLL(None, use_errno=True)

_FOREIGN = frozenset([b"memcpy", b"memmove", b"memset"])
"""Functions of the C library that code may call."""

_PYTHON = frozenset(name.encode() for name in API)
"""Functions of Python that code may call."""

_libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


class NativeCode(abc.ABC):
    """A loaded object; addresses are valid as long as this lives."""

    @abc.abstractmethod
    def address(self, symbol: str) -> int:
        """Address of a function or variable."""

    def function(self, symbol: str) -> Callable[[int], None]:
        """A C function from a control block's address to nothing; it releases the GIL."""
        return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.address(symbol))

    def call(self, symbol: str) -> Callable[[int], int]:
        """A C function from a control block's address to a status; it releases the GIL."""
        return ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p)(self.address(symbol))

    def publisher(self) -> Callable[[int, int], None]:
        """Stores a word at an address, at once and after all stores before it."""
        # It holds the GIL, which takes longer to release than a store.
        kind = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64)
        return kind(self.address(PUBLISH))


def self_contained(content: bytes) -> NativeCode | None:
    """The code of a relocatable object, of which `ferryvm.binary` finds no fault; None if it takes
    LLVM to load it."""
    if sys.platform == "linux" and IS_X86:
        with contextlib.suppress(_NeedsLinkerError):
            return _SelfContained(content)
    return None


class _NeedsLinkerError(Exception):
    """The object has something in it that takes more than `_SelfContained` does."""


class _SelfContained(NativeCode):
    """An object whose relocations are words with addresses of its own."""

    def __init__(self, content: bytes) -> None:
        sections = binary.section_table(content)
        offsets, ends = _layout(sections)
        size = ends[-1]
        symbols = [section for section in sections if section.type == _SYMBOLS]
        if len(symbols) != 1:
            raise _NeedsLinkerError
        self._map = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        base = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        for number, offset in offsets.items():
            section = sections[number]
            if section.type != _NO_BITS:
                self._map[offset : offset + section.size] = _content(content, section)
        names = sections[symbols[0].link]
        addresses: list[int] = []
        self._addresses: dict[str, int] = {}
        for name, info, _, number, value, _ in _SYMBOL.iter_unpack(_content(content, symbols[0])):
            address = base + offsets[number] + value if number in offsets else 0
            if info >> 4:  # not local
                start = names.offset + name
                word = content[start : content.index(0, start)]
                if not address:
                    if number or word not in _FOREIGN | _PYTHON:
                        raise _NeedsLinkerError
                    address = _foreign(word.decode())
                self._addresses[word.decode()] = address
            addresses.append(address)
        for section in sections:
            if section.type == _RELOCATIONS and section.info in offsets:
                offset, size_there = offsets[section.info], sections[section.info].size
                self._relocate(_content(content, section), offset, size_there, addresses)
        text_end, read_end, _ = ends
        _protect(base, text_end, mmap.PROT_READ | mmap.PROT_EXEC)
        _protect(base + text_end, read_end - text_end, mmap.PROT_READ)

    def _relocate(self, table: memoryview, offset: int, size: int, addresses: list[int]) -> None:
        words = table.cast("q").tolist()
        places, infos, addends = words[0::3], words[1::3], words[2::3]
        if not places:
            return
        bases = {info: addresses[info >> 32] for info in set(infos)}  # one for each symbol
        if not all(bases.values()) or any(info & 0xFFFF_FFFF != _WORD_RELOCATION for info in bases):
            raise _NeedsLinkerError
        first, past = places[0], max(places) + _WORD.size
        if past > size:
            raise _NeedsLinkerError
        values = map(operator.add, map(bases.__getitem__, infos), addends)
        with memoryview(self._map) as memory, memory[offset : offset + size] as section:
            if past - first == len(table) // 3 and places == list(range(first, past, _WORD.size)):
                section[first:past] = array("Q", values).tobytes()  # a table of addresses
            else:  # a third less time than a loop
                stores = map(_WORD.pack_into, itertools.repeat(section), places, values)
                collections.deque(stores, maxlen=0)

    def address(self, symbol: str) -> int:
        return self._addresses[symbol]


def _foreign(name: str) -> int:
    """The address of a function of the C library, or of Python."""
    library = ctypes.pythonapi if name.encode() in _PYTHON else _libc
    found = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    assert found is not None
    return found


def _content(content: bytes, section: Section) -> memoryview:
    return memoryview(content)[section.offset : section.offset + section.size]


def _layout(sections: list[Section]) -> tuple[dict[int, int], tuple[int, int, int]]:
    """The start in memory of each allocated section, by its number; then the ends, in whole pages,
    of code, of what is read, and of what is written."""
    offsets: dict[int, int] = {}
    ends: list[int] = []
    size = 0
    for kind in (_EXECUTABLE, 0, _WRITABLE):
        for number, section in enumerate(sections):
            is_needed = section.flags & _ALLOCATED and section.size and section.type != _UNWIND
            if not is_needed or section.flags & (_EXECUTABLE | _WRITABLE) != kind:
                continue
            if section.type != _PROGRAM_BITS and (section.type, kind) != (_NO_BITS, _WRITABLE):
                raise _NeedsLinkerError
            size = _rounded(size, max(section.alignment, 1))
            offsets[number] = size
            size += section.size
        size = _rounded(size, mmap.PAGESIZE)
        ends.append(size)
    written_and_run = _EXECUTABLE | _WRITABLE
    if not ends[0] or any(each.flags & written_and_run == written_and_run for each in sections):
        raise _NeedsLinkerError
    text_end, read_end, end = ends
    return offsets, (text_end, read_end, end)


def _rounded(number: int, unit: int) -> int:
    return -(-number // unit) * unit


def _protect(address: int, size: int, protection: int) -> None:
    if size and _libc.mprotect(address, size, protection):
        raise BackendError(f"native code cannot be made to run: errno {ctypes.get_errno()}")
