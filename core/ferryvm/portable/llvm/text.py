# SPDX-License-Identifier: Apache-2.0
"""Instructions of LLVM IR as text: names, labels, loops, pointers in several address spaces."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from ferryvm.ir.graph import BOOLEAN, ValueType
from ferryvm.isa.element import Element
from ferryvm.isa.type import F32, F64, I32, I64, Type, from_float, to_float

TYPES: dict[ValueType, str] = {I32: "i32", I64: "i64", F32: "float", F64: "double", BOOLEAN: "i1"}


class InstructionText:
    """The instructions of a function so far."""

    def __init__(self, pointer: str) -> None:
        """`pointer`: the type of the usual pointers."""
        self.pointer = pointer
        self.lines: list[str] = []
        self.spaces: dict[str, str] = {}
        """The types of pointers that are not of the usual one, by names."""
        self._count = 0
        self._here = ""

    def _name(self) -> str:
        self._count += 1
        return f"%v.{self._count}"

    def _label(self) -> str:
        self._count += 1
        return f"l.{self._count}"

    def _add(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def _new(self, text: str) -> str:
        name = self._name()
        self._add(f"{name} = {text}")
        return name

    def _open(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self._here = label

    def _pointed(self, place: str) -> str:
        """A pointer with its type."""
        return f"{self.spaces.get(place, self.pointer)} {place}"

    @contextlib.contextmanager
    def _counted(self, number: str) -> Iterator[str]:
        """A loop from 0 up to a number of iterations."""
        before, head, body, behind = self._here, *(self._label() for _ in range(3))
        self._add(f"br label %{head}")
        self._open(head)
        at, next_ = self._name(), self._name()
        self._add(f"{at} = phi i64 [ 0, %{before} ], [ {next_}, %{body} ]")
        done = self._new(f"icmp uge i64 {at}, {number}")
        self._add(f"br i1 {done}, label %{behind}, label %{body}")
        self._open(body)
        yield at
        self._add(f"{next_} = add i64 {at}, 1")
        self._add(f"br label %{head}")
        self._open(behind)

    def _element_at(self, elements: Element, start: str, at: str) -> str:
        made = self._new(
            f"getelementptr {element_type(elements)}, {self._pointed(start)}, i64 {at}"
        )
        if start in self.spaces:
            self.spaces[made] = self.spaces[start]
        return made

    def _store(self, elements: Element, place: str, value: str) -> None:
        c = element_type(elements)
        self._add(f"store {c} {value}, {self._pointed(place)}, align {elements.bytes}")


def element_type(elements: Element) -> str:
    """The type of elements in memory."""
    return TYPES[elements.type] if elements.type.is_float else f"i{elements.bits}"


def constant(t: Type, bits: int) -> str:
    """A number as text."""
    if not t.is_float:
        return str(bits - (1 << t.bits) if bits >> (t.bits - 1) else bits)
    if t is F64:
        return f"0x{bits:016X}"
    if bits & 0x7FFFFFFF > 0x7F800000:  # a NaN: the same payload, in the bits of a double
        return f"0x{(bits >> 31) << 63 | 0x7FF << 52 | (bits & 0x7FFFFF) << 29:016X}"
    return f"0x{from_float(F64, to_float(F32, bits)):016X}"
