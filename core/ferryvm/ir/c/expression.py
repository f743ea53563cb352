# SPDX-License-Identifier: Apache-2.0
"""Values as C expressions: the pure operations of the emitter protocol over text.

Operands are names and literals, so no operator needs parentheses around them. Each operation's
result gets a name of its own before the next one uses it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from ferryvm.ir.c.dialect import Dialect
from ferryvm.isa.constant_table import ConstantTable
from ferryvm.isa.emitter import Condition, PureEmitter
from ferryvm.isa.pure_function import PureFunction
from ferryvm.isa.type import F32, F64, I32, I64, Type, signed, to_float

_OPERATOR = {"eq": "==", "ne": "!=", "lt": "<", "gt": ">", "le": "<=", "ge": ">="}

_SMALL = 1 << 16
"""Integers of at least this magnitude are written as hexadecimal."""


def function_name(function: PureFunction) -> str:
    """The helper of a function of the instruction table."""
    return "ferry_" + function.name.replace(".", "_")


def table_name(table: ConstantTable) -> str:
    """The array of a table of constants."""
    return f"ferry_table_{table}"


class Arithmetic(PureEmitter[str]):
    """Constants, integers, booleans, floats and conversions in a dialect."""

    def __init__(self, dialect: Dialect, used: set[str] | None = None) -> None:
        """`used`: collects the helpers that the printed text calls."""
        self.dialect = dialect
        self.used: set[str] = set() if used is None else used

    def helper(self, name: str, *arguments: str) -> str:
        """A call of a helper."""
        self.used.add(name)
        return f"{name}({', '.join(arguments)})"

    def cast(self, t: Type, a: str) -> str:
        """`a`, converted to the type of values of type `t`."""
        return f"({self.dialect.types[t]}){a}"

    def _signed(self, t: Type, a: str) -> str:
        return f"({self.dialect.signed[t]}){a}"

    def constant(self, t: Type, bits: int) -> str:
        suffix = self.dialect.suffixes[t]
        if not t.is_float:
            value = signed(t, bits)
            return f"{value if abs(value) < _SMALL else hex(bits)}{suffix}"
        number = to_float(t, bits)
        if not math.isfinite(number):
            return self.helper(f"{t}_of_bits", self.constant(t.integer, bits))
        text = number.hex() + suffix
        return f"({text})" if text.startswith("-") else text

    def add(self, t: Type, a: str, b: str) -> str:
        return f"{a} + {b}"

    def sub(self, t: Type, a: str, b: str) -> str:
        return f"{a} - {b}"

    def mul(self, t: Type, a: str, b: str) -> str:
        return f"{a} * {b}"

    def add_overflows(self, t: Type, a: str, b: str) -> str:
        return self.helper(f"add_overflows_{t}", a, b)

    def sub_overflows(self, t: Type, a: str, b: str) -> str:
        return self.helper(f"sub_overflows_{t}", a, b)

    def mul_overflows(self, t: Type, a: str, b: str) -> str:
        return self.helper(f"mul_overflows_{t}", a, b)

    def div_s(self, t: Type, a: str, b: str) -> str:
        return self.cast(t, f"({self._signed(t, a)} / {self._signed(t, b)})")

    def div_u(self, t: Type, a: str, b: str) -> str:
        name = f"divide_{t}"
        return self.helper(name, a, b) if name in self.dialect.helpers else f"{a} / {b}"

    def rem_s(self, t: Type, a: str, b: str) -> str:
        return self.cast(t, f"({self._signed(t, a)} % {self._signed(t, b)})")

    def rem_u(self, t: Type, a: str, b: str) -> str:
        return f"{a} % {b}"

    def bit_and(self, t: Type, a: str, b: str) -> str:
        return f"{a} & {b}"

    def bit_or(self, t: Type, a: str, b: str) -> str:
        return f"{a} | {b}"

    def bit_xor(self, t: Type, a: str, b: str) -> str:
        return f"{a} ^ {b}"

    def shl(self, t: Type, a: str, b: str) -> str:
        return f"{a} << {b}"

    def shr_s(self, t: Type, a: str, b: str) -> str:
        return self.cast(t, f"({self._signed(t, a)} >> {b})")

    def shr_u(self, t: Type, a: str, b: str) -> str:
        return f"{a} >> {b}"

    def clz(self, t: Type, a: str) -> str:
        return self.helper(f"clz_{t}", a)

    def ctz(self, t: Type, a: str) -> str:
        return self.helper(f"ctz_{t}", a)

    def popcnt(self, t: Type, a: str) -> str:
        return self.helper(f"popcnt_{t}", a)

    def compare(self, t: Type, condition: Condition, a: str, b: str) -> str:
        base, _, sign = condition.value.partition("_")
        if sign == "s":
            a, b = self._signed(t, a), self._signed(t, b)
        return f"{a} {_OPERATOR[base]} {b}"

    def all(self, p: str, q: str) -> str:
        return f"{p} & {q}"

    def any(self, p: str, q: str) -> str:
        return f"{p} | {q}"

    def none(self, p: str) -> str:
        return f"!{p}"

    def boolean_to_i32(self, p: str) -> str:
        return f"{p} ? {self.constant(I32, 1)} : {self.constant(I32, 0)}"

    def select(self, p: str, a: str, b: str) -> str:
        return f"{p} ? {a} : {b}"

    def lookup(self, table: ConstantTable, index: str) -> str:
        name, last = table_name(table), self.constant(table.type.integer, len(table) - 1)
        self.used.add(name)
        return f"{name}_at({index} & {last})"

    def fadd(self, t: Type, a: str, b: str) -> str:
        return f"{a} + {b}"

    def fsub(self, t: Type, a: str, b: str) -> str:
        return f"{a} - {b}"

    def fmul(self, t: Type, a: str, b: str) -> str:
        return f"{a} * {b}"

    def fdiv(self, t: Type, a: str, b: str) -> str:
        return f"{a} / {b}"

    def ffma(self, t: Type, a: str, b: str, c: str) -> str:
        return self.helper(f"fma_{t}", a, b, c)

    def fsqrt(self, t: Type, a: str) -> str:
        return self.helper(f"sqrt_{t}", a)

    def apply(self, function: PureFunction, *arguments: str) -> str:
        return self.helper(function_name(function), *arguments)

    def fceil(self, t: Type, a: str) -> str:
        return self.helper(f"ceil_{t}", a)

    def ffloor(self, t: Type, a: str) -> str:
        return self.helper(f"floor_{t}", a)

    def ftrunc(self, t: Type, a: str) -> str:
        return self.helper(f"trunc_{t}", a)

    def fnearest(self, t: Type, a: str) -> str:
        return self.helper(f"nearest_{t}", a)

    def canonical(self, t: Type, a: str) -> str:
        """`a`, or the canonical NaN if it is any NaN."""
        return self.helper(f"canonical_{t}", a)

    def any_nan(self, t: Type, values: Sequence[str]) -> str:
        """True if one of some floats is a NaN. A comparison of two says so of both."""
        pairs = zip(values[::2], (*values[1::2], values[-1]), strict=False)
        tests = [self.helper(f"unordered_{t}", a, b) for a, b in pairs]
        return functools.reduce(self.any, tests)

    def wrap(self, a: str) -> str:
        return self.cast(I32, a)

    def extend_s(self, a: str) -> str:
        return self.cast(I64, self._signed(I64, self._signed(I32, a)))

    def extend_u(self, a: str) -> str:
        return self.cast(I64, a)

    def to_float_s(self, to: Type, t: Type, a: str) -> str:
        return self.cast(to, self._signed(t, a))

    def to_float_u(self, to: Type, t: Type, a: str) -> str:
        return self.cast(to, a)

    def to_int_s(self, to: Type, t: Type, a: str) -> str:
        return self.cast(to, self._signed(to, a))

    def to_int_u(self, to: Type, t: Type, a: str) -> str:
        return self.cast(to, a)

    def promote(self, a: str) -> str:
        return self.cast(F64, a)

    def demote(self, a: str) -> str:
        return self.cast(F32, a)

    def reinterpret(self, to: Type, t: Type, a: str) -> str:
        return self.helper(f"bits_of_{t}" if t.is_float else f"{to}_of_bits", a)

    def to_slot(self, t: Type, a: str) -> str:
        if t.is_float:
            a = self.reinterpret(t.integer, t, a)
        return self.cast(I64, a) if t.bits == 32 else a

    def from_slot(self, t: Type, a: str) -> str:
        if t.bits == 32:
            a = self.cast(I32, a)
        return self.reinterpret(t, t.integer, a) if t.is_float else a
