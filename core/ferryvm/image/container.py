# SPDX-License-Identifier: Apache-2.0
"""The container of files on disk: a checked header, then tagged sections.

    byte  0   magic          8 bytes; names the kind of file and shows damage by text conversion
          8   version        u16, of the kind of file
         10   zero           u16
         12   fingerprint    u32, CRC-32 of the instruction table's mnemonics in opcode order
         16   length         u64, bytes of the sections
         24   checksum       32 bytes, SHA-256 of bytes 8 to 23 and of the sections
         56   sections       each: tag (4 ASCII bytes), zero u32, length u64, payload, padding to 8

All numbers are little-endian. Every section of a kind is present once, in the kind's order.
"""

from __future__ import annotations

import dataclasses
import hashlib
import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from ferryvm.errors import FerryError
from ferryvm.input_file import read_bytes
from ferryvm.isa.table import fingerprint

_HEADER = struct.Struct("<8sHHIQ32s")
_SECTION = struct.Struct("<4sIQ")


MOST_BYTES = 1 << 30
"""The largest program image that is read, in bytes."""


class ImageError(FerryError):
    """A file is not usable: it has another format or version, or is truncated or altered."""


@dataclasses.dataclass(frozen=True)
class ImageKind:
    """A kind of file."""

    name: str
    magic: bytes
    version: int
    tags: Sequence[str]


_AT_ONCE = 1 << 24
"""Bytes that are hashed at a time: signals are handled between two such chunks."""

Payload = bytes | Sequence[bytes | memoryview]
"""A section: its bytes, or the parts that make it up."""


def _checksum(header: bytes, content: Iterable[bytes | memoryview]) -> bytes:
    digest = hashlib.sha256(header[8:24])
    for part in content:
        view = memoryview(part)
        for start in range(0, len(view), _AT_ONCE):
            digest.update(view[start : start + _AT_ONCE])
    return digest.digest()


def pack(kind: ImageKind, sections: Mapping[str, Payload]) -> bytes:
    """The file with these sections."""
    return b"".join(pack_parts(kind, sections))


def pack_parts(kind: ImageKind, sections: Mapping[str, Payload]) -> list[bytes | memoryview]:
    """The file with these sections, in parts; the payloads are not copied."""
    parts: list[bytes | memoryview] = []
    for tag in kind.tags:
        payload = sections[tag]
        inner = [payload] if isinstance(payload, bytes) else payload
        size = sum(map(len, inner))
        parts += [_SECTION.pack(tag.encode(), 0, size), *inner, bytes(-size % 8)]
    length = sum(map(len, parts))
    bare = _HEADER.pack(kind.magic, kind.version, 0, fingerprint(), length, bytes(32))
    return [bare[:24], _checksum(bare, parts), *parts]


def read(kind: ImageKind, path: Path, most: int = MOST_BYTES) -> bytes:
    """The content of a file of at most `most` bytes.

    Raises ImageError where it cannot be read or is of another kind.
    """
    content = read_bytes(path, most, kind.magic, ImageError)
    if content is None:
        raise ImageError(f"{path}: not {kind.name}")
    return content


def unpack(kind: ImageKind, content: bytes, name: str) -> dict[str, bytes]:
    """The sections of a file called `name`. Raises ImageError, naming file and cause."""
    return {tag: bytes(part) for tag, part in unpack_views(kind, content, name).items()}


def unpack_views(kind: ImageKind, content: bytes, name: str) -> dict[str, memoryview]:
    """As `unpack`, with views instead of copies of the payloads."""
    if len(content) < _HEADER.size or not content.startswith(kind.magic):
        raise ImageError(f"{name}: not {kind.name}")
    _, version, zero, table, length, checksum = _HEADER.unpack_from(content)
    body = memoryview(content)[_HEADER.size :]
    if version != kind.version:
        raise ImageError(f"{name}: {kind.name} of version {version}; this is {kind.version}")
    if len(body) != length:
        raise ImageError(
            f"{name}: truncated or extended: {len(body)} bytes of content, its header says {length}"
        )
    if zero or checksum != _checksum(content[:24], [body]):
        raise ImageError(f"{name}: altered: its checksum does not match its content")
    if table != fingerprint():
        raise ImageError(f"{name}: made for another instruction table; build it again")
    return _split(kind, body, name)


def _split(kind: ImageKind, body: memoryview, name: str) -> dict[str, memoryview]:
    sections = {}
    offset = 0
    for tag in kind.tags:
        if offset + _SECTION.size > len(body):
            raise ImageError(f"{name}: section {tag} is missing")
        found, zero, length = _SECTION.unpack_from(body, offset)
        offset += _SECTION.size
        if found != tag.encode() or zero or length > len(body) - offset:
            raise ImageError(f"{name}: section {tag} is damaged")
        sections[tag] = body[offset : offset + length]
        end = offset + length + -length % 8
        if any(body[offset + length : end]):
            raise ImageError(f"{name}: section {tag} has padding that is not zero")
        offset = end
    if offset != len(body):
        raise ImageError(f"{name}: {len(body) - offset} bytes after the last section")
    return sections


class Writer:
    """Builds a payload."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def number(self, value: int) -> None:
        """A u64."""
        self.parts.append(struct.pack("<Q", value))

    def blob(self, value: bytes) -> None:
        """A u64 length, then the bytes."""
        self.number(len(value))
        self.parts.append(value)

    def text(self, value: str) -> None:
        """A blob of UTF-8.

        A lone surrogate, which has no UTF-8, is written as its escape: file names that are not
        UTF-8 reach Python as such, and they must not prevent a program from being saved.
        """
        self.blob(value.encode(errors="backslashreplace"))

    def bytes(self) -> bytes:
        """The bytes written so far."""
        return b"".join(self.parts)


class Reader:
    """Reads a payload; every fault is an ImageError that names file and section."""

    def __init__(self, payload: bytes, where: str) -> None:
        self.payload, self.where, self.offset = payload, where, 0

    def fail(self, problem: str) -> ImageError:
        """An error about this section."""
        return ImageError(f"{self.where}: {problem} at byte {self.offset}")

    def take(self, count: int) -> bytes:
        """The next `count` bytes."""
        if count > len(self.payload) - self.offset:
            raise self.fail("section ends too early")
        start = self.offset
        self.offset += count
        return self.payload[start : self.offset]

    def number(self) -> int:
        """A u64."""
        return int(struct.unpack("<Q", self.take(8))[0])

    def count(self, least: int) -> int:
        """A u64 that counts items of at least `least` bytes each; checks that so many bytes are
        present."""
        value = self.number()
        if value * least > len(self.payload) - self.offset:
            raise self.fail("section ends too early")
        return value

    def blob(self) -> bytes:
        """A u64 length, then the bytes."""
        return self.take(self.count(1))

    def text(self) -> str:
        """A blob of UTF-8."""
        try:
            return self.blob().decode()
        except UnicodeDecodeError:
            raise self.fail("text that is not UTF-8") from None

    def words(self, format: Literal["I", "Q"], count: int) -> memoryview[int]:
        """`count` numbers of 32 (I) or 64 bits (Q)."""
        return memoryview(self.take(count * struct.calcsize(format))).cast(format)

    def end(self) -> None:
        """Raise ImageError if bytes are left."""
        if self.offset != len(self.payload):
            raise self.fail("bytes after the last item")
