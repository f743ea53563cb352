# SPDX-License-Identifier: Apache-2.0
"""Each fault of a file is one clear line that names the file and the fault."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

import ferryvm
from ferryvm import Program
from ferryvm.engine.saved import STATE
from ferryvm.image import ImageError, container, from_bytes, to_bytes
from ferryvm.image.container import pack, unpack
from ferryvm.image.program import PROGRAM

HEADER_BYTES = 56
SECTION_BYTES = 16


def refusal(content: bytes) -> str:
    """The message for a file of this content."""
    with pytest.raises(ImageError) as caught:
        from_bytes(content, "a.fvm")
    return str(caught.value)


def refusal_of_section(program: Program, tag: str, payload: bytes) -> str:
    """The message for a file with a right checksum and this section."""
    sections = unpack(PROGRAM, to_bytes(program), "a.fvm")
    return refusal(pack(PROGRAM, {**sections, tag: payload}))


def numbers(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}Q", *values)


@pytest.mark.parametrize(
    "content",
    [b"", b"\0", b"(print! 1)\n", b".function main\n    halt\n" * 9, b"\x7fELF" + bytes(99)],
    ids=["empty", "one byte", "skiff", "assembly", "program of the machine"],
)
def test_other_file_is_no_image(content: bytes) -> None:
    assert refusal(content) == "a.fvm: not a ferryvm program image (.fvm)"


def test_saved_state_is_no_image(program: Program) -> None:
    state = to_bytes(program).replace(PROGRAM.magic, STATE.magic, 1)
    assert refusal(state) == "a.fvm: not a ferryvm program image (.fvm)"


def test_image_that_went_through_text_mode_is_no_image(program: Program) -> None:
    converted = to_bytes(program).replace(b"\r\n", b"\n")
    assert refusal(converted) == "a.fvm: not a ferryvm program image (.fvm)"


def test_other_version_is_named(program: Program) -> None:
    content = bytearray(to_bytes(program))
    content[8] = 9
    expected = "a.fvm: a ferryvm program image (.fvm) of version 9; this is 4"
    assert refusal(bytes(content)) == expected


def test_image_of_another_instruction_table_is_refused(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(container, "fingerprint", lambda: 12345)
        content = to_bytes(program)
    assert refusal(content) == "a.fvm: made for another instruction table; build it again"


def test_image_is_refused_at_every_length_but_its_own(program: Program) -> None:
    content = to_bytes(program)
    body = len(content) - HEADER_BYTES
    for length in range(len(content)):
        found = refusal(content[:length])
        if length < HEADER_BYTES:
            assert found == "a.fvm: not a ferryvm program image (.fvm)"
        else:
            there = length - HEADER_BYTES
            assert (
                found
                == f"a.fvm: truncated or extended: {there} bytes of content, its header says {body}"
            )


def test_bytes_after_the_end_are_refused(program: Program) -> None:
    content = to_bytes(program)
    body = len(content) - HEADER_BYTES
    assert (
        refusal(content + b"\0")
        == f"a.fvm: truncated or extended: {body + 1} bytes of content, its header says {body}"
    )


@pytest.mark.parametrize("change", [0x01, 0x80, 0xFF])
def test_every_byte_is_protected(program: Program, change: int) -> None:
    content = bytearray(to_bytes(program))
    for offset in range(len(content)):
        content[offset] ^= change
        found = refusal(bytes(content))
        content[offset] ^= change
        if offset < 8:
            assert found == "a.fvm: not a ferryvm program image (.fvm)"
        elif offset < 10:
            assert "of version" in found
        elif 16 <= offset < 24:
            assert "truncated or extended" in found
        else:
            assert found == "a.fvm: altered: its checksum does not match its content"


@pytest.mark.parametrize("tag", PROGRAM.tags)
def test_section_that_is_missing_or_damaged_is_named(program: Program, tag: str) -> None:
    sections = unpack(PROGRAM, to_bytes(program), "a.fvm")
    number = PROGRAM.tags.index(tag)
    start = sum(
        SECTION_BYTES + len(sections[t]) + -len(sections[t]) % 8 for t in PROGRAM.tags[:number]
    )
    body = to_bytes(program)[HEADER_BYTES:]

    def split(altered: bytes) -> str:
        with pytest.raises(ImageError) as caught:
            container._split(PROGRAM, altered, "a.fvm")
        return str(caught.value)

    assert split(body[:start]) == f"a.fvm: section {tag} is missing"
    damaged = f"a.fvm: section {tag} is damaged"
    length_at = start + 8
    assert split(body[:start] + b"XXXX" + body[start + 4 :]) == damaged
    assert split(body[: start + 4] + b"\1" + body[start + 5 :]) == damaged
    assert split(body[:length_at] + numbers(1 << 63) + body[length_at + 8 :]) == damaged


def test_padding_and_what_follows_the_last_section_are_checked() -> None:
    content = to_bytes(ferryvm.assemble(".function long\n halt"))
    sections = unpack(PROGRAM, content, "a.fvm")
    body = bytearray(content[HEADER_BYTES:])
    at = SECTION_BYTES * 3 + sum(len(sections[tag]) for tag in ("CODE", "SIGN", "FUNC"))
    assert len(sections["FUNC"]) % 8
    body[at] = 1
    with pytest.raises(ImageError, match=r"^a: section FUNC has padding that is not zero$"):
        container._split(PROGRAM, bytes(body), "a")
    with pytest.raises(ImageError, match=r"^a: 8 bytes after the last section$"):
        container._split(PROGRAM, content[HEADER_BYTES:] + bytes(8), "a")


FAULTS = [
    ("TYPE", numbers(1, 2), "section ends too early at byte 8"),
    ("TYPE", numbers(1, 2, 0), "a type is a struct or an array, 0 or 1 at byte 16"),
    ("TYPE", numbers(1, 1, 14), "the elements of type 14 are of none before it at byte 24"),
    ("TYPE", numbers(1, 0, 1) + b"a" + numbers(14, 1, 0, 19), "type number above 18 at byte 57"),
    ("TYPE", numbers(0, 0), "bytes after the last item at byte 8"),
    ("CODE", bytes(17), "code is no multiple of 16 bytes at byte 0"),
    ("SIGN", b"", "section ends too early at byte 0"),
    ("SIGN", numbers(1), "section ends too early at byte 8"),
    ("SIGN", numbers((1 << 64) - 1), "section ends too early at byte 8"),
    ("SIGN", numbers(1, 1) + b"\x12\0\0\0" + numbers(0), "type number above 17 at byte 20"),
    ("SIGN", numbers(1, 0, 0, 0), "bytes after the last item at byte 24"),
    ("FUNC", numbers(1, 99, 0, 0, 0, 0), "section ends too early at byte 16"),
    ("FUNC", numbers(1, 1) + b"\xff" + numbers(0, 0, 0, 0), "text that is not UTF-8 at byte 17"),
    ("FUNC", numbers(1, 3) + b"\xed\xa0\x80" + numbers(0, 0, 0, 0), "text that is not UTF-8 at byte 19"),
    ("FUNC", numbers(0) + b"x", "bytes after the last item at byte 8"),
    ("STAT", numbers(1, 0, 18, 0), "type number above 17 at byte 24"),
    ("STAT", numbers(2, 0, 0, 0), "section ends too early at byte 8"),
    ("STAT", numbers(0, 0), "bytes after the last item at byte 8"),
    ("DATA", numbers(1, 0, 1), "section ends too early at byte 24"),
    ("DATA", numbers(0, 0), "bytes after the last item at byte 8"),
    ("TABL", bytes(7), "the function table is no multiple of 8 bytes at byte 0"),
    ("HOST", numbers(1, 0, 0), "section ends too early at byte 8"),
    ("HOST", numbers(0) + b"\0", "bytes after the last item at byte 8"),
    ("EXPO", numbers(1, 0), "section ends too early at byte 8"),
    ("EXPO", numbers(0, 0), "bytes after the last item at byte 8"),
    ("TAGS", numbers(1, 0, 1) + b"\x12\0\0\0", "type number above 17 at byte 28"),
    ("TAGS", numbers(0, 0), "bytes after the last item at byte 8"),
    ("CLAU", numbers(1, 0, 1, 2, 0, 0), "section ends too early at byte 8"),
    ("CLAU", numbers(1, 0, 1, 2, 0, 0, 2), "a clause pushes a record or not, 1 or 0 at byte 56"),
    ("CLAU", numbers(0, 0), "bytes after the last item at byte 8"),
    ("SMAP", numbers(1), "section ends too early at byte 8"),
    ("SMAP", numbers(0, 1), "section ends too early at byte 16"),
    ("SMAP", numbers(0, 2) + struct.pack("<8I", 5, 0, 0, 0, 5, 0, 0, 0),
     "positions are not in the order of their pcs at byte 48"),
    ("SMAP", numbers(0, 1) + struct.pack("<4I", 0, 0, 1, 1),
     "a position names a file that is not there at byte 32"),
    ("SMAP", numbers(0, 0, 0), "bytes after the last item at byte 16"),
]  # fmt: skip


@pytest.mark.parametrize(("tag", "payload", "message"), FAULTS)
def test_fault_in_a_section_names_it_and_its_place(
    program: Program, tag: str, payload: bytes, message: str
) -> None:
    assert refusal_of_section(program, tag, payload) == f"a.fvm: section {tag}: {message}"


def test_every_section_has_a_fault_among_these() -> None:
    assert {tag for tag, _, _ in FAULTS} == set(PROGRAM.tags)


@pytest.mark.parametrize("tag", PROGRAM.tags)
def test_section_cut_anywhere_is_refused_or_another_program(program: Program, tag: str) -> None:
    payload = unpack(PROGRAM, to_bytes(program), "a.fvm")[tag]
    sections = unpack(PROGRAM, to_bytes(program), "a.fvm")
    for length in range(len(payload)):
        content = pack(PROGRAM, {**sections, tag: payload[:length]})
        if (tag == "CODE" and length % 16 == 0) or (tag == "TABL" and length % 8 == 0):
            assert to_bytes(from_bytes(content)) == content
        else:
            assert refusal(content).startswith(f"a.fvm: section {tag}: ")


@pytest.mark.parametrize(
    ("place", "message"),
    [
        (lambda folder: folder / "absent.fvm", "cannot be read: No such file or directory"),
        (lambda folder: folder, "cannot be read: Is a directory"),
        (lambda folder: folder / ("x" * 300), "cannot be read: File name too long"),
        (lambda _: Path("/proc/self/mem"), "cannot be read: Input/output error"),
        (lambda _: Path("/dev/zero"), "cannot be read: it is a device, not a file"),
    ],
    ids=["absent", "directory", "long name", "unreadable", "endless"],
)
def test_file_that_cannot_be_read_is_named(
    tmp_path: Path, place: Callable[[Path], Path], message: str
) -> None:
    path = place(tmp_path)
    with pytest.raises(ImageError, match=f"^{re.escape(f'{path}: {message}')}$"):
        ferryvm.load(path)
