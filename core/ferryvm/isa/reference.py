# SPDX-License-Identifier: Apache-2.0
"""The instruction set as text: an emitter whose values are expressions, and docs/isa.md."""

from __future__ import annotations

from collections.abc import Iterator

from ferryvm.isa.emitter import Condition, Emitter, FunctionField
from ferryvm.isa.table import INSTRUCTIONS, Immediate, Instruction
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import Type, format_value, signed

_SIGNS = {"eq": "==", "ne": "!=", "lt": "<", "gt": ">", "le": "<=", "ge": ">="}


class TextEmitter(Emitter[str]):
    """Writes a meaning as lines: what it does in order, each value an expression."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def constant(self, t: Type, bits: int) -> str:
        if not t.is_float and abs(signed(t, bits)) >= 1 << 16:
            return f"{bits:#x}"
        return format_value(t, bits)

    def add(self, t: Type, a: str, b: str) -> str:
        return f"({a} + {b})"

    def sub(self, t: Type, a: str, b: str) -> str:
        return f"({a} - {b})"

    def mul(self, t: Type, a: str, b: str) -> str:
        return f"({a} * {b})"

    def div_s(self, t: Type, a: str, b: str) -> str:
        return f"({a} /s {b})"

    def div_u(self, t: Type, a: str, b: str) -> str:
        return f"({a} /u {b})"

    def rem_s(self, t: Type, a: str, b: str) -> str:
        return f"({a} %s {b})"

    def rem_u(self, t: Type, a: str, b: str) -> str:
        return f"({a} %u {b})"

    def bit_and(self, t: Type, a: str, b: str) -> str:
        return f"({a} & {b})"

    def bit_or(self, t: Type, a: str, b: str) -> str:
        return f"({a} | {b})"

    def bit_xor(self, t: Type, a: str, b: str) -> str:
        return f"({a} ^ {b})"

    def shl(self, t: Type, a: str, b: str) -> str:
        return f"({a} << {b})"

    def shr_s(self, t: Type, a: str, b: str) -> str:
        return f"({a} >>s {b})"

    def shr_u(self, t: Type, a: str, b: str) -> str:
        return f"({a} >>u {b})"

    def clz(self, t: Type, a: str) -> str:
        return f"leading_zeros({a})"

    def ctz(self, t: Type, a: str) -> str:
        return f"trailing_zeros({a})"

    def popcnt(self, t: Type, a: str) -> str:
        return f"ones({a})"

    def compare(self, t: Type, condition: Condition, a: str, b: str) -> str:
        base, _, sign = condition.value.partition("_")
        return f"({a} {_SIGNS[base]}{sign} {b})"

    def all(self, p: str, q: str) -> str:
        return f"({p} and {q})"

    def any(self, p: str, q: str) -> str:
        return f"({p} or {q})"

    def none(self, p: str) -> str:
        return f"not {p}"

    def truth_to_i32(self, p: str) -> str:
        return f"({p} ? 1 : 0)"

    def select(self, p: str, a: str, b: str) -> str:
        return f"({p} ? {a} : {b})"

    def fadd(self, t: Type, a: str, b: str) -> str:
        return f"({a} + {b})"

    def fsub(self, t: Type, a: str, b: str) -> str:
        return f"({a} - {b})"

    def fmul(self, t: Type, a: str, b: str) -> str:
        return f"({a} * {b})"

    def fdiv(self, t: Type, a: str, b: str) -> str:
        return f"({a} / {b})"

    def fsqrt(self, t: Type, a: str) -> str:
        return f"sqrt({a})"

    def fceil(self, t: Type, a: str) -> str:
        return f"ceil({a})"

    def ffloor(self, t: Type, a: str) -> str:
        return f"floor({a})"

    def ftrunc(self, t: Type, a: str) -> str:
        return f"trunc({a})"

    def fnearest(self, t: Type, a: str) -> str:
        return f"nearest({a})"

    def wrap(self, a: str) -> str:
        return f"low32({a})"

    def extend_s(self, a: str) -> str:
        return f"sign_extend({a})"

    def extend_u(self, a: str) -> str:
        return f"zero_extend({a})"

    def to_float_s(self, to: Type, t: Type, a: str) -> str:
        return f"{to}_of_signed({a})"

    def to_float_u(self, to: Type, t: Type, a: str) -> str:
        return f"{to}_of_unsigned({a})"

    def to_int_s(self, to: Type, t: Type, a: str) -> str:
        return f"signed_{to}({a})"

    def to_int_u(self, to: Type, t: Type, a: str) -> str:
        return f"unsigned_{to}({a})"

    def promote(self, a: str) -> str:
        return f"f64({a})"

    def demote(self, a: str) -> str:
        return f"f32({a})"

    def reinterpret(self, to: Type, t: Type, a: str) -> str:
        return f"bits_as_{to}({a})"

    def to_slot(self, t: Type, a: str) -> str:
        return a

    def from_slot(self, t: Type, a: str) -> str:
        return a

    def trap_if(self, p: str, kind: Trap) -> None:
        self.lines.append(f"trap {kind.name} if {p}")

    def trap(self, kind: Trap) -> None:
        self.lines.append(f"trap {kind.name}")

    def grow_if(self, p: str, wanted: str) -> None:
        self.lines.append(f"grow the heap to {wanted} if {p}")

    def halt(self) -> None:
        self.lines.append("halt")

    def host(self, number: str) -> None:
        self.lines.append(f"leave for host import {number}")

    def local(self, index: str) -> str:
        return f"local[{index}]"

    def set_local(self, index: str, slot: str) -> None:
        self.lines.append(f"local[{index}] = {slot}")

    def static(self, index: str) -> str:
        return f"static[{index}]"

    def set_static(self, index: str, slot: str) -> None:
        self.lines.append(f"static[{index}] = {slot}")

    def static_count(self) -> str:
        return "static_count"

    def heap_load(self, bytes_: int, address: str) -> str:
        return f"heap{8 * bytes_}[{address}]"

    def heap_store(self, bytes_: int, address: str, value: str) -> None:
        self.lines.append(f"heap{8 * bytes_}[{address}] = {value}")

    def heap_pointer(self) -> str:
        return "hp"

    def set_heap_pointer(self, value: str) -> None:
        self.lines.append(f"hp = {value}")

    def heap_capacity(self) -> str:
        return "heap_capacity"

    def jump(self, target: str) -> None:
        self.lines.append(f"go to {target}")

    def jump_if(self, p: str, target: str) -> None:
        self.lines.append(f"go to {target} if {p}")

    def skip(self, count: str) -> None:
        self.lines.append(f"go to pc + 1 + {count}")

    def frame_pointer(self) -> str:
        return "fp"

    def stack_pointer(self) -> str:
        return "sp"

    def stack_limit(self) -> str:
        return "stack_limit"

    def word(self, address: str) -> str:
        return f"stack[{address}]"

    def set_word(self, address: str, slot: str) -> None:
        self.lines.append(f"stack[{address}] = {slot}")

    def clear_words(self, address: str, count: str) -> None:
        self.lines.append(f"clear {count} words of stack from {address}")

    def next_pc(self) -> str:
        return "pc + 1"

    def function(self, function: str, field: FunctionField) -> str:
        return f"{field.name.lower()}({function})"

    def table_size(self) -> str:
        return "table_size"

    def table_function(self, index: str) -> str:
        return f"table[{index}]"

    def enter(self, function: str, frame: str, stack: str) -> None:
        self.lines += [f"fp = {frame}", f"sp = {stack}", f"go to entry({function})"]

    def resume(self, pc: str, frame: str, stack: str) -> None:
        self.lines += [f"go to {pc}", f"  with fp = {frame}", f"  with sp = {stack}"]


def meaning(row: Instruction) -> list[str]:
    """What an instruction does, as lines; `a`, `b`, `c` are its operands, deepest first."""
    emitter = TextEmitter()
    literal = [] if row.immediate is Immediate.NONE else ["immediate"]
    pushed = row.meaning(emitter, *literal, *"abc"[: len(row.pops)])
    if pushed is not None:
        values = pushed if isinstance(pushed, tuple) else (pushed,)
        emitter.lines += [f"push {value}" for value in values]
    return emitter.lines or ["nothing"]


_CHAPTERS = {
    "variable": "Constants, locals, statics, operand stack",
    "numeric": "Arithmetic and comparison",
    "conversion": "Conversions",
    "heap": "Heap and vectors",
    "control": "Control",
}


def markdown() -> str:
    """The reference of the whole instruction set, docs/isa.md."""
    return "\n".join(_pages()) + "\n"


def _pages() -> Iterator[str]:
    yield "# The instruction set"
    yield ""
    yield "<!-- Generated from the instruction table by `ferry isa --markdown`; do not edit. -->"
    yield ""
    yield f"{len(INSTRUCTIONS)} instructions. A stack effect `( before -- after )` lists operands"
    yield "deepest first; `t` and `u` stand for any type, the same letter for the same type. In a"
    yield "meaning `a`, `b`, `c` are the operands, deepest first; a suffix `s` or `u` makes a sign"
    yield "signed or unsigned. A trap leaves the state as it was before the instruction."
    for chapter, title in _CHAPTERS.items():
        yield ""
        yield f"## {title}"
        for row in INSTRUCTIONS:
            if row.chapter == chapter:
                yield from _entry(row)


def _entry(row: Instruction) -> Iterator[str]:
    immediate = "" if row.immediate is Immediate.NONE else f" *{row.immediate.value}*"
    yield ""
    yield f"### `{row.mnemonic}`{immediate}"
    yield ""
    yield f"`{row.effect}` · opcode {row.opcode} · {row.summary}"
    yield ""
    yield "```"
    yield from meaning(row)
    yield "```"
