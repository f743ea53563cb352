# SPDX-License-Identifier: Apache-2.0
"""Objects for trials of fused groups: the types that a trial's program declares, and the same few
objects at the same offsets in each machine."""

from __future__ import annotations

import functools
import random
from array import array

from ferryvm.isa.declared_type import ArrayType, DeclaredType, Field, StructType
from ferryvm.isa.element import Element
from ferryvm.isa.object import ARRAY_HEADER_BYTES, FIRST_OFFSET, READ_ONLY, header
from ferryvm.isa.type import (
    ANYREF,
    ARRAYREF,
    F32,
    F64,
    FIRST_DECLARED,
    I31REF,
    I32,
    I64,
    WORD_BYTES,
    Reference,
    ValueType,
)
from ferryvm.machine.state import Machine

CELL = Reference(FIRST_DECLARED, "cell")
CELLS = Reference(FIRST_DECLARED + 1, "cell[]")
PAIR = Reference(FIRST_DECLARED + 2, "pair")
"""The only type of which `struct.new` makes objects: a group has no more than two operands for
it."""
FIELDS: tuple[ValueType, ...] = (
    I32,
    I64,
    F32,
    F64,
    ANYREF,
    I31REF,
    CELL,
    *(e.array for e in Element),
)
"""Types of the fields of a cell; each once, so that the type of an operand says which field."""
TYPES: list[DeclaredType] = [
    StructType("cell", None, tuple(Field(f"f{n}", t) for n, t in enumerate(FIELDS))),
    ArrayType(CELL),
    StructType("pair", None, (Field("left", I64), Field("right", I64))),
]
LENGTH = 5
"""Elements of each array."""


class _Layout:
    """The words of all objects, and the references by type."""

    def __init__(self) -> None:
        self.words = array("Q", [0])
        self.of: dict[Reference, list[int]] = {I31REF: [1, 3, 0xFFFF_FFFF, 0x8000_0001]}
        content = [(0x0101_0301_FF00_4002 * number) % (1 << 64) for number in range(2, 2 + LENGTH)]
        for element in Element:
            size = -(-LENGTH * element.bytes // WORD_BYTES)
            for flags in (0, READ_ONLY):
                self._array(element.array, flags, content[:size])
        first = self._cell(0)
        self._array(CELLS, 0, [first, 0, self._cell(first), first, 0])
        self._add(PAIR, [3, 4])

    def _add(self, t: Reference, content: list[int], flags: int = 0) -> int:
        reference = WORD_BYTES * len(self.words)
        self.words.extend((header(t.number) | flags, *content))
        self.of.setdefault(t, []).append(reference)
        return reference

    def _array(self, t: Reference, flags: int, content: list[int]) -> None:
        place = WORD_BYTES * len(self.words) + ARRAY_HEADER_BYTES
        self._add(t, [LENGTH, place, *content], flags)

    def _cell(self, following: int) -> int:
        values: dict[ValueType, int] = {I32: 7, I64: 1 << 40, F32: 0x3F80_0000, F64: 0x4008 << 48}
        values |= {t: found[0] for t, found in self.of.items()}
        values[CELL] = values[ANYREF] = following
        return self._add(CELL, [values[t] for t in FIELDS])


@functools.cache
def _layout() -> _Layout:
    return _Layout()


def reference(rng: random.Random, t: Reference) -> int:
    """A reference of the type, sometimes null."""
    of = _layout().of
    if rng.random() < 0.15:
        return 0
    if t is ANYREF:
        return rng.choice([each for found in of.values() for each in found])
    if t is ARRAYREF:
        return rng.choice([each for e in Element for each in of[e.array]])
    return rng.choice(of[t])


def put(machine: Machine, free: int) -> None:
    """Make the objects those of a machine, with so many bytes free before a collection is due."""
    objects, control = machine.objects, machine.control
    if objects is None:
        return
    words = _layout().words
    before = max(control.object_top, FIRST_OFFSET) // WORD_BYTES
    objects.space.words[: len(words)] = memoryview(words)
    for at in range(len(words), before):
        objects.space.words[at] = 0
    control.object_top = WORD_BYTES * len(words)
    control.object_end = control.object_top + free


def content(machine: Machine) -> bytes:
    """The bytes of the objects of a machine."""
    found = machine.objects
    return b"" if found is None else bytes(found.space.bytes[: machine.control.object_top])
