# SPDX-License-Identifier: Apache-2.0
"""Altered files: raw bytes changed, or sections changed and packed again with a right checksum.

A change that nobody would let pass tests only the first check, so most changes keep what surrounds
them plausible: another opcode with the same stack effect, another constant, a nearby target.
"""

from __future__ import annotations

import dataclasses
import random
import struct
from collections.abc import Callable

from ferryvm.engine.saved import STATE
from ferryvm.image.container import Kind, pack, unpack
from ferryvm.image.program import PROGRAM
from ferryvm.isa import BY_MNEMONIC, INSTRUCTIONS, Flow, Immediate

RECORD = struct.Struct("<HHIQ")
"""One instruction: opcode, zero, zero, immediate."""

_WORDS = (
    0, 1, 2, 3, 7, 8, 16, 31, 32, 63, 64, 255, 256, 4095, 65535, 1 << 20,
    (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1,
    0x3F80_0000, 0x7F80_0000, 0x7FC0_0001, 0xFF80_0000, 0x8000_0000,
    0x3FF0_0000_0000_0000, 0x7FF0_0000_0000_0000, 0x7FF8_0000_0000_0001, 0xC1E0_0000_0000_0000,
)  # fmt: skip
"""Values at which something changes, as integers and as floats."""


@dataclasses.dataclass(frozen=True)
class Seed:
    """A good file to start from."""

    name: str
    content: bytes

    @property
    def kind(self) -> Kind:
        """What kind of file it is."""
        return STATE if self.content.startswith(STATE.magic) else PROGRAM


def mutate(rng: random.Random, seed: Seed) -> bytes:
    """An altered copy of the file."""
    if rng.random() < 0.05:
        return _file(rng, seed.content)
    sections = {tag: bytes(part) for tag, part in unpack(seed.kind, seed.content, "seed").items()}
    _sections(rng, seed.kind, sections, rng.choice((1, 1, 1, 2, 3)))
    return pack(seed.kind, sections)


def _sections(rng: random.Random, kind: Kind, sections: dict[str, bytes], changes: int) -> None:
    for _ in range(changes):
        tag = "CODE" if kind is PROGRAM and rng.random() < 0.8 else rng.choice(kind.tags)
        if tag == "PROG":
            program = unpack(PROGRAM, sections[tag], "seed")
            _sections(rng, PROGRAM, program, 1)
            sections[tag] = pack(PROGRAM, program)
        elif tag == "CODE" and rng.random() < 0.95:
            sections[tag] = _code(rng, sections[tag])
        elif tag in ("REGS", "STCK") and rng.random() < 0.7:
            sections[tag] = _state(rng, sections[tag], sections["REGS"])
        else:
            sections[tag] = rng.choice(_PAYLOADS)(rng, sections[tag])


# --- bytes ----------------------------------------------------------------------------------


def _file(rng: random.Random, content: bytes) -> bytes:
    if rng.random() < 0.3:
        return content[: rng.randrange(len(content))] + rng.randbytes(rng.choice((0, 0, 1, 40)))
    return _flip(rng, content)


def _flip(rng: random.Random, payload: bytes) -> bytes:
    if not payload:
        return rng.randbytes(8)
    changed = bytearray(payload)
    for _ in range(rng.choice((1, 1, 1, 4))):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _nudge(rng: random.Random, payload: bytes) -> bytes:
    """One aligned word changed a little, or to a remarkable value."""
    if len(payload) < 8:
        return _flip(rng, payload)
    offset = 8 * rng.randrange(len(payload) // 8)
    (word,) = struct.unpack_from("<Q", payload, offset)
    changed = rng.choice((word + 1, word - 1, word ^ (1 << 32), rng.choice(_WORDS)))
    return payload[:offset] + struct.pack("<Q", changed & _WORDS[22]) + payload[offset + 8 :]


def _swap(rng: random.Random, payload: bytes) -> bytes:
    return _rearrange(rng, payload, lambda a, b: b + a)


def _duplicate(rng: random.Random, payload: bytes) -> bytes:
    return _rearrange(rng, payload, lambda a, b: a + a + b)


def _delete(rng: random.Random, payload: bytes) -> bytes:
    return _rearrange(rng, payload, lambda _, b: b)


def _rearrange(
    rng: random.Random, payload: bytes, arrange: Callable[[bytes, bytes], bytes]
) -> bytes:
    """Two neighbouring blocks of one size put together in another way."""
    size = rng.choice((8, 16, 24, 32))
    if len(payload) < 2 * size:
        return _nudge(rng, payload)
    start = 8 * rng.randrange((len(payload) - 2 * size) // 8 + 1)
    first = payload[start : start + size]
    second = payload[start + size : start + 2 * size]
    return payload[:start] + arrange(first, second) + payload[start + 2 * size :]


_PAYLOADS = (_flip, _nudge, _nudge, _nudge, _swap, _duplicate, _delete)


def _state(rng: random.Random, payload: bytes, registers: bytes) -> bytes:
    """Registers or stack with a word that stands elsewhere in them, or could."""
    if len(payload) < 8 or len(payload) % 8:
        return _nudge(rng, payload)
    words: list[int] = memoryview(payload).cast("Q").tolist()
    near = max(0, rng.choice(words) + rng.choice((-1, 1)))
    others = memoryview(registers[: len(registers) & ~7]).cast("Q").tolist() or words
    word = rng.choice((near, rng.choice(others), rng.choice(words), rng.randrange(130)))
    words[rng.randrange(len(words))] = word & _WORDS[22]
    return struct.pack(f"<{len(words)}Q", *words)


# --- code -----------------------------------------------------------------------------------


def _alike() -> list[list[int]]:
    """For each opcode, those that take and give the same and can stand in its place."""
    by_form: dict[object, list[int]] = {}
    forms = [(row.pops, row.pushes, row.immediate, row.flow) for row in INSTRUCTIONS]
    for opcode, form in enumerate(forms):
        by_form.setdefault(form, []).append(opcode)
    return [by_form[form] for form in forms]


_ALIKE = _alike()
_LITERALS = (Immediate.I32, Immediate.I64, Immediate.F32, Immediate.F64)
_NARROW = (Immediate.I32, Immediate.F32, Immediate.OFFSET)
_NOP = BY_MNEMONIC["nop"].opcode


def _code(rng: random.Random, payload: bytes) -> bytes:
    """Code with one instruction changed, moved, doubled or taken away."""
    count = len(payload) // RECORD.size
    if not count:
        return payload
    pc = rng.randrange(count)
    before, after = payload[: RECORD.size * pc], payload[RECORD.size * (pc + 1) :]
    record = payload[len(before) : len(before) + RECORD.size]
    opcode, low, high, immediate = RECORD.unpack(record)
    choice = rng.random()
    if choice < 0.03:
        return before + record + record + after
    if choice < 0.06:
        return before + after
    if choice < 0.09 and after:
        return before + after[: RECORD.size] + record + after[RECORD.size :]
    if choice < 0.13:
        opcode = rng.choice((_NOP, rng.randrange(len(INSTRUCTIONS))))
        immediate = rng.choice((0, immediate))
    elif opcode >= len(INSTRUCTIONS):
        return before + after
    elif INSTRUCTIONS[opcode].immediate is Immediate.NONE or choice < 0.3:
        opcode = rng.choice(_ALIKE[opcode])
        if INSTRUCTIONS[opcode].flow is Flow.NEXT and choice > 0.97:
            immediate = rng.choice(_WORDS)
    else:
        immediate = _immediate(rng, INSTRUCTIONS[opcode].immediate, immediate, count)
    return before + RECORD.pack(opcode, low, high, immediate & ((1 << 64) - 1)) + after


def _immediate(rng: random.Random, kind: Immediate, immediate: int, count: int) -> int:
    most = (1 << 32) - 1 if kind in _NARROW else (1 << 64) - 1
    if kind in _LITERALS or kind is Immediate.OFFSET or rng.random() < 0.05:
        near = immediate + rng.choice((-8, -1, 1, 8))
        return rng.choice((near, rng.choice(_WORDS), rng.getrandbits(64))) & most
    if kind is Immediate.TARGET:
        return rng.choice((rng.randrange(count), max(0, immediate + rng.randrange(-4, 5))))
    return rng.choice((0, 1, max(0, immediate - 1), immediate + 1, rng.randrange(8)))
