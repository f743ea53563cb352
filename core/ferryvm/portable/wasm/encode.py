# SPDX-License-Identifier: Apache-2.0
"""WebAssembly modules of one function, in the binary format (WebAssembly Core Specification 2.0,
chapter 5).

An instruction is a mnemonic of the text format and its immediates: numbers, or bits of a constant.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

from ferryvm.isa.type import Type, to_float

Instruction = tuple[str, tuple[int, ...]]

TYPES = {Type.I32: 0x7F, Type.I64: 0x7E, Type.F32: 0x7D, Type.F64: 0x7C}
"""Bytes of value types."""

_NO_RESULT = 0x40
"""The type of a block without results."""

_INTEGER = "clz ctz popcnt add sub mul div_s div_u rem_s rem_u and or xor shl shr_s shr_u rotl rotr"
_FLOAT = "abs neg ceil floor trunc nearest sqrt add sub mul div min max copysign"
_TESTS = "eqz eq ne lt_s lt_u gt_s gt_u le_s le_u ge_s ge_u"
_ORDER = "eq ne lt gt le ge"
_MEMORY = """
i32.load i64.load f32.load f64.load i32.load8_s i32.load8_u i32.load16_s i32.load16_u i64.load8_s i64.load8_u
i64.load16_s i64.load16_u i64.load32_s i64.load32_u i32.store i64.store f32.store f64.store i32.store8
i32.store16 i64.store8 i64.store16 i64.store32
"""
_CONVERSIONS = """
i32.wrap_i64 i32.trunc_f32_s i32.trunc_f32_u i32.trunc_f64_s i32.trunc_f64_u i64.extend_i32_s i64.extend_i32_u
i64.trunc_f32_s i64.trunc_f32_u i64.trunc_f64_s i64.trunc_f64_u f32.convert_i32_s f32.convert_i32_u
f32.convert_i64_s f32.convert_i64_u f32.demote_f64 f64.convert_i32_s f64.convert_i32_u f64.convert_i64_s
f64.convert_i64_u f64.promote_f32 i32.reinterpret_f32 i64.reinterpret_f64 f32.reinterpret_i32
f64.reinterpret_i64 i32.extend8_s i32.extend16_s i64.extend8_s i64.extend16_s i64.extend32_s
"""


def _numbered(first: int, names: Iterable[str]) -> dict[str, int]:
    return dict(zip(names, itertools.count(first), strict=False))


def _of(t: str, names: str) -> list[str]:
    return [f"{t}.{name}" for name in names.split()]


OPCODES = {
    **_numbered(0x00, ("unreachable", "nop", "block", "loop", "if", "else")),
    **_numbered(0x0B, ("end", "br", "br_if", "br_table", "return")),
    **_numbered(0x1A, ("drop", "select")),
    **_numbered(0x20, ("local.get", "local.set", "local.tee")),
    **_numbered(0x28, _MEMORY.split()),
    **_numbered(0x41, ("i32.const", "i64.const", "f32.const", "f64.const")),
    **_numbered(0x45, [*_of("i32", _TESTS), *_of("i64", _TESTS)]),
    **_numbered(0x5B, [*_of("f32", _ORDER), *_of("f64", _ORDER)]),
    **_numbered(0x67, [*_of("i32", _INTEGER), *_of("i64", _INTEGER)]),
    **_numbered(0x8B, [*_of("f32", _FLOAT), *_of("f64", _FLOAT)]),
    **_numbered(0xA7, _CONVERSIONS.split()),
}
"""Opcodes of one byte, by mnemonic."""

_BLOCKS = ("block", "loop", "if")


def unsigned(value: int) -> bytes:
    """A number in unsigned LEB128."""
    found = bytearray()
    while True:
        value, low = value >> 7, value & 0x7F
        found.append(low | (0x80 if value else 0))
        if not value:
            return bytes(found)


def signed(value: int) -> bytes:
    """A number in signed LEB128."""
    found = bytearray()
    while True:
        value, low = value >> 7, value & 0x7F
        is_last = value == (-1 if low & 0x40 else 0)
        found.append(low | (0 if is_last else 0x80))
        if is_last:
            return bytes(found)


def _encoded(instruction: Instruction) -> bytes:
    name, immediates = instruction
    if name == "memory.copy":
        return b"\xfc\x0a\x00\x00"
    opcode = bytes([OPCODES[name]])
    if name in _BLOCKS:
        return opcode + bytes([_NO_RESULT])
    if name in ("i32.const", "i64.const"):
        bits = 32 if name == "i32.const" else 64
        (value,) = immediates
        return opcode + signed(value - (1 << bits) if value >> (bits - 1) else value)
    if name in ("f32.const", "f64.const"):
        return opcode + immediates[0].to_bytes(4 if name == "f32.const" else 8, "little")
    return opcode + b"".join(map(unsigned, immediates))


def _vector(parts: Sequence[bytes]) -> bytes:
    return unsigned(len(parts)) + b"".join(parts)


def _section(number: int, content: bytes) -> bytes:
    return bytes([number]) + unsigned(len(content)) + content


def _name(text: str) -> bytes:
    return unsigned(len(text)) + text.encode()


def module(
    name: str,
    parameters: Sequence[Type],
    locals_: Sequence[Type],
    code: Iterable[Instruction],
    pages: int = 1,
) -> bytes:
    """A module that exports a memory of so many pages, which may grow, as `memory`, and a function
    with these parameters that returns an i32."""
    signature = b"\x60" + _vector([bytes([TYPES[t]]) for t in parameters])
    signature += _vector([bytes([TYPES[Type.I32]])])
    runs = [(t, len([*same])) for t, same in itertools.groupby(locals_)]
    body = _vector([unsigned(count) + bytes([TYPES[t]]) for t, count in runs])
    body += b"".join(map(_encoded, code)) + bytes([OPCODES["end"]])
    exports = [_name("memory") + b"\x02\x00", _name(name) + b"\x00\x00"]
    return b"".join(
        (
            b"\x00asm\x01\x00\x00\x00",
            _section(1, _vector([signature])),
            _section(3, _vector([unsigned(0)])),
            _section(5, _vector([b"\x00" + unsigned(pages)])),
            _section(7, _vector(exports)),
            _section(10, _vector([unsigned(len(body)) + body])),
        )
    )


def text(
    name: str,
    parameters: Sequence[Type],
    locals_: Sequence[Type],
    code: Iterable[Instruction],
    pages: int = 1,
) -> str:
    """The same module in the text format, without names."""
    given = "".join(f" {t.value}" for t in parameters)
    lines = [
        "(module",
        f'  (memory (export "memory") {pages})',
        f'  (func (export "{name}") (param{given}) (result i32)',
        "    (local" + "".join(f" {t.value}" for t in locals_) + ")",
    ]
    depth = 2
    for mnemonic, immediates in code:
        if mnemonic in ("end", "else"):
            depth -= 1
        lines.append("  " * depth + " ".join([mnemonic, *_shown(mnemonic, immediates)]))
        if mnemonic in (*_BLOCKS, "else"):
            depth += 1
    return "\n".join([*lines, "  )", ")", ""])


def _shown(mnemonic: str, immediates: tuple[int, ...]) -> Iterable[str]:
    if mnemonic in ("f32.const", "f64.const"):
        t = Type(mnemonic[:3])
        return (_float(t, immediates[0]),)
    if ".load" in mnemonic or ".store" in mnemonic:
        return (f"align={1 << immediates[0]}",)
    return map(str, immediates)


def _float(t: Type, bits: int) -> str:
    """A float constant, exactly."""
    value = to_float(t, bits)
    if math.isnan(value):
        mantissa = 23 if t is Type.F32 else 52
        sign = "-" if bits >> (t.bits - 1) else ""
        return f"{sign}nan:{bits & ((1 << mantissa) - 1):#x}"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value.hex()
