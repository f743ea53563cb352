# SPDX-License-Identifier: Apache-2.0
"""Mutated files: raw bytes changed, or sections changed and packed again with a right checksum.

An obviously invalid change tests only the first check, so most changes are plausible in their
context: another opcode with the same stack effect, another constant, a nearby target. The original
files are in `origin`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from ferryvm.engine.saved import STATE
from ferryvm.image.container import ImageKind, pack, unpack
from ferryvm.image.program import PROGRAM
from ferryvm.isa import BY_MNEMONIC, INSTRUCTIONS, Flow, Immediate
from ferryvm.testing.generate.chance import Chance

_RECORD = struct.Struct("<HHIQ")
"""One instruction: opcode, zero, zero, immediate."""

_MASK = (1 << 64) - 1

_WORDS = (
    0, 1, 2, 3, 7, 8, 16, 31, 32, 63, 64, 255, 256, 4095, 65535, 1 << 20,
    (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, (1 << 63) - 1, 1 << 63, _MASK,
    0x3F80_0000, 0x7F80_0000, 0x7FC0_0001, 0xFF80_0000, 0x8000_0000,
    0x3FF0_0000_0000_0000, 0x7FF0_0000_0000_0000, 0x7FF8_0000_0000_0001, 0xC1E0_0000_0000_0000,
)  # fmt: skip
"""Values at which something changes, as integers and as floats."""


def kind_of(content: bytes) -> ImageKind:
    """The original kind of a file that may be mutated: a saved state or a program."""
    return STATE if content.startswith(STATE.magic) else PROGRAM


def mutate(chance: Chance, content: bytes) -> bytes:
    """An altered copy of a good file."""
    if chance.flip(0.05):
        return _file(chance, content)
    kind = kind_of(content)
    sections = {tag: bytes(part) for tag, part in unpack(kind, content, "origin").items()}
    _sections(chance, kind, sections, chance.pick((1, 1, 1, 2, 3)))
    return pack(kind, sections)


def mutate_state(chance: Chance, content: bytes) -> bytes:
    """An altered copy of a good saved state, with a right checksum: mostly one register or word of
    the stack, with sections of the sizes that the registers then ask for."""
    sections = {tag: bytes(part) for tag, part in unpack(STATE, content, "origin").items()}
    for _ in range(chance.pick((1, 1, 1, 2))):
        choice = chance.random()
        if choice < 0.35:
            sections["REGS"] = _register(chance, sections["REGS"], len(sections["STCK"]) // 8)
        elif choice < 0.6:
            sections["STCK"] = _state(chance, sections["STCK"], sections["REGS"])
        elif choice < 0.9:
            tag = chance.pick(("STAT", "STCK", "HEAP"))
            table = _heap_table(sections["HEAP"]) if tag == "HEAP" else 0
            sections[tag] = sections[tag][:table] + _nudge(chance, sections[tag][table:])
        else:
            _sections(chance, STATE, sections, 1)
    if len(sections["REGS"]) == _REGISTERS.size and chance.flip(0.8):
        _, _, _, sp, _, hp, _ = _REGISTERS.unpack(sections["REGS"])
        if 8 * sp <= _LARGEST:
            sections["STCK"] = sections["STCK"][: 8 * sp].ljust(8 * sp, b"\0")
        heap = sections["HEAP"]
        sections["HEAP"] = heap[:8] + struct.pack("<Q", hp) + heap[16:]
    return pack(STATE, sections)


_REGISTERS = struct.Struct("<7Q")
"""status, trap, pc, sp, fp, hp, instructions."""

_LARGEST = 1 << 20
"""Bytes of a stack that is made longer, at most."""


def _heap_table(payload: bytes) -> int:
    """The size of the table before a heap's content, with the number of its runs, its size, and
    their positions."""
    if len(payload) < 16:
        return 0
    (count,) = struct.unpack_from("<Q", payload)
    return int(min(16 * (1 + count), len(payload)))


def _register(chance: Chance, payload: bytes, words: int) -> bytes:
    """Registers with one changed; `words`: of the stack."""
    if len(payload) != _REGISTERS.size:
        return _nudge(chance, payload)
    values = list(_REGISTERS.unpack(payload))
    number = chance.below(len(values))
    near = values[number] + chance.pick((-8, -2, -1, 1, 2, 8, 4096))
    other = chance.pick((chance.pick(values), chance.below(words + 2), chance.below(12)))
    values[number] = chance.pick((near, near, other, chance.pick(_WORDS))) & _MASK
    return _REGISTERS.pack(*values)


def _sections(chance: Chance, kind: ImageKind, sections: dict[str, bytes], changes: int) -> None:
    for _ in range(changes):
        tag = "CODE" if kind is PROGRAM and chance.flip(0.8) else chance.pick(kind.tags)
        if tag == "PROG":
            program = unpack(PROGRAM, sections[tag], "origin")
            _sections(chance, PROGRAM, program, 1)
            sections[tag] = pack(PROGRAM, program)
        elif tag == "CODE" and chance.flip(0.95):
            sections[tag] = _code(chance, sections[tag])
        elif tag in ("REGS", "STCK") and chance.flip(0.7):
            sections[tag] = _state(chance, sections[tag], sections["REGS"])
        else:
            sections[tag] = chance.pick(_PAYLOADS)(chance, sections[tag])


# --- bytes ----------------------------------------------------------------------------------


def _noise(chance: Chance, size: int) -> bytes:
    return bytes(chance.below(256) for _ in range(size))


def _file(chance: Chance, content: bytes) -> bytes:
    if chance.flip(0.3):
        return content[: chance.below(len(content))] + _noise(chance, chance.pick((0, 0, 1, 40)))
    return _flip(chance, content)


def _flip(chance: Chance, payload: bytes) -> bytes:
    if not payload:
        return _noise(chance, 8)
    changed = bytearray(payload)
    for _ in range(chance.pick((1, 1, 1, 4))):
        changed[chance.below(len(changed))] ^= 1 << chance.below(8)
    return bytes(changed)


def _nudge(chance: Chance, payload: bytes) -> bytes:
    """One aligned word changed a little, or to a remarkable value."""
    if len(payload) < 8:
        return _flip(chance, payload)
    offset = 8 * chance.below(len(payload) // 8)
    (word,) = struct.unpack_from("<Q", payload, offset)
    changed = chance.pick((word + 1, word - 1, word ^ (1 << 32), chance.pick(_WORDS)))
    return payload[:offset] + struct.pack("<Q", changed & _MASK) + payload[offset + 8 :]


def _swap(chance: Chance, payload: bytes) -> bytes:
    return _rearrange(chance, payload, lambda a, b: b + a)


def _duplicate(chance: Chance, payload: bytes) -> bytes:
    return _rearrange(chance, payload, lambda a, b: a + a + b)


def _delete(chance: Chance, payload: bytes) -> bytes:
    return _rearrange(chance, payload, lambda _, b: b)


def _rearrange(chance: Chance, payload: bytes, arrange: Callable[[bytes, bytes], bytes]) -> bytes:
    """Two adjacent blocks of equal size, recombined."""
    size = chance.pick((8, 16, 24, 32))
    if len(payload) < 2 * size:
        return _nudge(chance, payload)
    start = 8 * chance.below((len(payload) - 2 * size) // 8 + 1)
    first = payload[start : start + size]
    second = payload[start + size : start + 2 * size]
    return payload[:start] + arrange(first, second) + payload[start + 2 * size :]


_PAYLOADS = (_flip, _nudge, _nudge, _nudge, _swap, _duplicate, _delete)


def _state(chance: Chance, payload: bytes, registers: bytes) -> bytes:
    """Registers or stack with a word that occurs elsewhere in them, or could."""
    if len(payload) < 8 or len(payload) % 8:
        return _nudge(chance, payload)
    words: list[int] = memoryview(payload).cast("Q").tolist()
    near = max(0, chance.pick(words) + chance.pick((-1, 1)))
    others = memoryview(registers[: len(registers) & ~7]).cast("Q").tolist() or words
    word = chance.pick((near, chance.pick(others), chance.pick(words), chance.below(130)))
    words[chance.below(len(words))] = word & _MASK
    return struct.pack(f"<{len(words)}Q", *words)


# --- code -----------------------------------------------------------------------------------


def _alike() -> list[list[int]]:
    """For each opcode, the opcodes with the same stack effect, which can replace it."""
    by_form: dict[object, list[int]] = {}
    forms = [(row.pops, row.pushes, row.immediate, row.flow) for row in INSTRUCTIONS]
    for opcode, form in enumerate(forms):
        by_form.setdefault(form, []).append(opcode)
    return [by_form[form] for form in forms]


_ALIKE = _alike()
_LITERALS = (Immediate.I32, Immediate.I64, Immediate.F32, Immediate.F64)
_NARROW = (Immediate.I32, Immediate.F32, Immediate.OFFSET)
_NOP = BY_MNEMONIC["nop"].opcode


def _code(chance: Chance, payload: bytes) -> bytes:
    """Code with one instruction changed, moved, doubled or taken away."""
    count = len(payload) // _RECORD.size
    if not count:
        return payload
    pc = chance.below(count)
    before, after = payload[: _RECORD.size * pc], payload[_RECORD.size * (pc + 1) :]
    record = payload[len(before) : len(before) + _RECORD.size]
    opcode, low, high, immediate = _RECORD.unpack(record)
    choice = chance.random()
    if choice < 0.03:
        return before + record + record + after
    if choice < 0.06:
        return before + after
    if choice < 0.09 and after:
        return before + after[: _RECORD.size] + record + after[_RECORD.size :]
    if choice < 0.13:
        opcode = chance.pick((_NOP, chance.below(len(INSTRUCTIONS))))
        immediate = chance.pick((0, immediate))
    elif opcode >= len(INSTRUCTIONS):
        return before + after
    elif INSTRUCTIONS[opcode].immediate is Immediate.NONE or choice < 0.3:
        opcode = chance.pick(_ALIKE[opcode])
        if INSTRUCTIONS[opcode].flow is Flow.NEXT and choice > 0.97:
            immediate = chance.pick(_WORDS)
    else:
        immediate = _immediate(chance, INSTRUCTIONS[opcode].immediate, immediate, count)
    return before + _RECORD.pack(opcode, low, high, immediate & _MASK) + after


def _immediate(chance: Chance, kind: Immediate, immediate: int, count: int) -> int:
    most = (1 << 32) - 1 if kind in _NARROW else _MASK
    if kind in _LITERALS or kind is Immediate.OFFSET or chance.flip(0.05):
        near = immediate + chance.pick((-8, -1, 1, 8))
        return chance.pick((near, chance.pick(_WORDS), chance.bits(64))) & most
    if kind is Immediate.FIELD:
        return immediate + chance.pick((-8, 8, 1, -(1 << 32), 1 << 32, 1 << 63))
    if kind is Immediate.TARGET:
        near = max(0, immediate + chance.between(-4, 4))
        return chance.pick((chance.below(count), near))
    return chance.pick((0, 1, max(0, immediate - 1), immediate + 1, chance.below(8)))
