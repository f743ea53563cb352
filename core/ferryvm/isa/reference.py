# SPDX-License-Identifier: Apache-2.0
"""Meanings of instructions as text: an emitter whose values are expressions."""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable

from ferryvm.isa.binding import Lines
from ferryvm.isa.constant_table import ConstantTable
from ferryvm.isa.emitter import Atomic, Condition, Emitter, FunctionField
from ferryvm.isa.pure_function import PureFunction
from ferryvm.isa.table import Immediate, Instruction
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import CANONICAL_NAN, Type, format_value, signed, to_float

_OPERATORS = {Atomic.ADD: "+", Atomic.AND: "&", Atomic.OR: "|"}
_SIGNS = {"eq": "==", "ne": "!=", "lt": "<", "gt": ">", "le": "<=", "ge": ">="}


class TextEmitter(Emitter[str]):
    """Writes a meaning as lines that are executed in order; each value is an expression."""

    def __init__(self) -> None:
        self._lines = Lines()

    @property
    def lines(self) -> list[str]:
        """The lines written so far."""
        return self._lines.render()

    def push(self, value: str) -> None:
        """Push a value that the meaning has returned."""
        self._lines.add(f"push {value}")

    def constant(self, t: Type, bits: int) -> str:
        if t.is_float:
            return _exact(t, bits)
        return f"{bits:#x}" if abs(signed(t, bits)) >= 1 << 16 else format_value(t, bits)

    def add(self, t: Type, a: str, b: str) -> str:
        return f"({a} + {b})"

    def sub(self, t: Type, a: str, b: str) -> str:
        return f"({a} - {b})"

    def mul(self, t: Type, a: str, b: str) -> str:
        return f"({a} * {b})"

    def add_overflows(self, t: Type, a: str, b: str) -> str:
        return f"overflows({a} + {b})"

    def sub_overflows(self, t: Type, a: str, b: str) -> str:
        return f"overflows({a} - {b})"

    def mul_overflows(self, t: Type, a: str, b: str) -> str:
        return f"overflows({a} * {b})"

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

    def boolean_to_i32(self, p: str) -> str:
        return f"({p} ? 1 : 0)"

    def select(self, p: str, a: str, b: str) -> str:
        return f"({p} ? {a} : {b})"

    def lookup(self, table: ConstantTable, index: str) -> str:
        return f"{table}[{index}]"

    def fadd(self, t: Type, a: str, b: str) -> str:
        return f"({a} + {b})"

    def fsub(self, t: Type, a: str, b: str) -> str:
        return f"({a} - {b})"

    def fmul(self, t: Type, a: str, b: str) -> str:
        return f"({a} * {b})"

    def fdiv(self, t: Type, a: str, b: str) -> str:
        return f"({a} / {b})"

    def ffma(self, t: Type, a: str, b: str, c: str) -> str:
        return f"fma({a}, {b}, {c})"

    def fsqrt(self, t: Type, a: str) -> str:
        return f"sqrt({a})"

    def apply(self, function: PureFunction, *arguments: str) -> str:
        return f"{function.name.partition('.')[2]}({', '.join(arguments)})"

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
        self._lines.add(f"trap {kind.name} if {p}")

    def trap(self, kind: Trap) -> None:
        self._lines.add(f"trap {kind.name}")

    def grow_if(self, p: str, wanted: str) -> None:
        self._lines.add(f"grow the heap to {wanted} if {p}")

    def continue_launch_if(self, p: str) -> None:
        self._lines.add(f"continue the launch if {p}")

    def halt(self) -> None:
        self._lines.add("halt")

    def host(self, number: str) -> None:
        self._lines.add(f"leave for host import {number}")

    def throw(self) -> None:
        self._lines.add("go on at the handler, or trap")

    def local(self, index: str) -> str:
        return self._lines.read("stack", f"local[{index}]")

    def set_local(self, index: str, slot: str) -> None:
        self._lines.add(f"local[{index}] = {slot}", changes="stack")

    def static(self, index: str) -> str:
        return self._lines.read("statics", f"static[{index}]")

    def set_static(self, index: str, slot: str) -> None:
        self._lines.add(f"static[{index}] = {slot}", changes="statics")

    def static_count(self) -> str:
        return "static_count"

    def heap_load(self, bytes_: int, address: str) -> str:
        return self._lines.read("heap", f"heap{8 * bytes_}[{address}]")

    def heap_store(self, bytes_: int, address: str, value: str) -> None:
        self._lines.add(f"heap{8 * bytes_}[{address}] = {value}", changes="heap")

    def heap_pointer(self) -> str:
        return self._lines.read("hp", "hp")

    def set_heap_pointer(self, value: str) -> None:
        self._lines.add(f"hp = {value}", changes="hp")

    def heap_capacity(self) -> str:
        return "heap_capacity"

    def allocate_if(self, p: str, wanted: str, type_: str) -> None:
        self._lines.add(f"allocate {wanted} bytes for type {type_} if {p}")

    def object_top(self) -> str:
        return self._lines.read("object_top", "object_top")

    def object_end(self) -> str:
        return "object_end"

    def set_object_top(self, value: str) -> None:
        self._lines.add(f"object_top = {value}", changes="object_top")

    def object_load(self, bytes_: int, offset: str) -> str:
        return self._lines.read("object", f"object{8 * bytes_}[{offset}]")

    def object_store(self, bytes_: int, offset: str, value: str) -> None:
        self._lines.add(f"object{8 * bytes_}[{offset}] = {value}", changes="object")

    def object_store_words(self, offset: str, address: str, count: str) -> None:
        text = f"copy {count} words of stack from {address} to object[{offset}]"
        self._lines.add(text, changes="object")

    def prepared_place(self) -> str:
        return self._lines.read("prepared", "prepared")

    def prepared_bytes(self) -> str:
        return "prepared_bytes"

    def clear_prepared(self) -> None:
        self._lines.add("prepared = 0", changes="prepared")

    def element_load(self, bytes_: int, place: str, offset: str) -> str:
        return self._lines.read("elements", f"elements{8 * bytes_}({place})[{offset}]")

    def element_store(self, bytes_: int, place: str, offset: str, value: str) -> None:
        text = f"elements{8 * bytes_}({place})[{offset}] = {value}"
        self._lines.add(text, changes="elements")

    def _updated(self, new: Callable[[str], str], bytes_: int, place: str, offset: str) -> str:
        element = f"elements{8 * bytes_}({place})[{offset}]"
        old = self._lines.read("elements", element)
        self._lines.add(f"{element} = {new(old)}, in one step", changes="elements")
        return old

    def update_element(
        self, kind: Atomic, bytes_: int, place: str, offset: str, operand: str
    ) -> str:
        def new(old: str) -> str:
            if kind is Atomic.EXCHANGE:
                return operand
            if kind in _OPERATORS:
                return f"({old} {_OPERATORS[kind]} {operand})"
            base, _, sign = kind.value.partition("_")
            return f"{base}_{sign}{8 * bytes_}({old}, {operand})"

        return self._updated(new, bytes_, place, offset)

    def compare_exchange_element(
        self, bytes_: int, place: str, offset: str, expected: str, value: str
    ) -> str:
        return self._updated(
            lambda old: f"({old} == {expected} ? {value} : {old})", bytes_, place, offset
        )

    def fill_elements(self, bytes_: int, place: str, offset: str, count: str, value: str) -> None:
        text = f"fill {count} of elements{8 * bytes_}({place}) from {offset} with {value}"
        self._lines.add(text, changes="elements")

    def move_elements(
        self, to_place: str, to_offset: str, from_place: str, from_offset: str, size: str
    ) -> None:
        source = f"elements({from_place})[{from_offset}]"
        text = f"copy {size} bytes from {source} to elements({to_place})[{to_offset}]"
        self._lines.add(text, changes="elements")

    def elements_from_heap(self, place: str, offset: str, address: str, size: str) -> None:
        text = f"copy {size} bytes from heap[{address}] to elements({place})[{offset}]"
        self._lines.add(text, changes="elements")

    def elements_to_heap(self, address: str, place: str, offset: str, size: str) -> None:
        text = f"copy {size} bytes from elements({place})[{offset}] to heap[{address}]"
        self._lines.add(text, changes="heap")

    def type_word(self, type_: str, word: str) -> str:
        return f"types[{type_}][{word}]"

    def pop_words(self, count: str) -> str:
        first = self._lines.read("operands", f"(sp - ({count} << 3))")
        self._lines.add(f"pop {count} words", changes="operands")
        return first

    def jump(self, target: str) -> None:
        self._lines.add(f"go to {target}")

    def jump_if(self, p: str, target: str) -> None:
        self._lines.add(f"go to {target} if {p}")

    def skip(self, count: str) -> None:
        self._lines.add(f"go to pc + 1 + {count}")

    def frame_pointer(self) -> str:
        return self._lines.read("fp", "fp")

    def stack_pointer(self) -> str:
        return self._lines.read("sp", "sp")

    def stack_limit(self) -> str:
        return "stack_limit"

    def word(self, address: str) -> str:
        return self._lines.read("stack", f"stack[{address}]")

    def set_word(self, address: str, slot: str) -> None:
        self._lines.add(f"stack[{address}] = {slot}", changes="stack")

    def clear_words(self, address: str, count: str) -> None:
        self._lines.add(f"clear {count} words of stack from {address}", changes="stack")

    def move_results(self, to: str, end: str, count: str) -> None:
        self._lines.add(f"move {count} words of stack below {end} to {to}", changes="stack")

    def push_words(self, slot: str, address: str, count: str) -> None:
        self._lines.add(f"push {slot}")
        self._lines.add(f"push {count} words of stack from {address}", changes="stack")

    def next_pc(self) -> str:
        return "pc + 1"

    def function(self, function: str, field: FunctionField) -> str:
        return f"{field.name.lower()}({function})"

    def table_size(self) -> str:
        return "table_size"

    def table_function(self, index: str) -> str:
        return f"table[{index}]"

    def enter(self, function: str, frame: str, stack: str) -> None:
        self._lines.add(f"fp = {frame}", changes="fp")
        self._lines.add(f"sp = {stack}", changes="sp")
        self._lines.add(f"go to entry({function})")

    def resume(self, pc: str, frame: str, stack: str) -> None:
        self._lines.add(f"sp = {stack}", changes="sp")
        self._lines.add(f"fp = {frame}", changes="fp")
        self._lines.add(f"go to {pc}")


def _exact(t: Type, bits: int) -> str:
    """A float's exact value: short text that is read as another type may be another number."""
    value = to_float(t, bits)
    if not math.isfinite(value):
        is_plain = not math.isnan(value) or bits == CANONICAL_NAN[t]
        return repr(value) if is_plain else f"bits_as_{t}({bits:#x})"
    text = f"{decimal.Decimal(value):f}"
    if len(text) > 24:
        return value.hex()
    return text if "." in text else f"{text}.0"


def meaning(row: Instruction) -> list[str]:
    """The meaning of an instruction as lines; `a`, `b`, `c` are its operands, deepest first."""
    emitter = TextEmitter()
    literal = [] if row.immediate is Immediate.NONE else ["immediate"]
    pushed = row.meaning(emitter, *literal, *"abcdefgh"[: len(row.pops)])
    if pushed is not None:
        values = pushed if isinstance(pushed, tuple) else (pushed,)
        for value in values:
            emitter.push(value)
    return emitter.lines or ["nothing"]
