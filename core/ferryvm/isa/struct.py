# SPDX-License-Identifier: Apache-2.0
"""Structs: made from their fields or from zeros, and their fields."""

from __future__ import annotations

from typing import TypeVar

from ferryvm.isa.cast import header_of, trap_null
from ferryvm.isa.emitter import Condition, Emitter
from ferryvm.isa.object import ROW_KIND, ROW_SIZE_SHIFT, STRUCT_HEADER_BYTES
from ferryvm.isa.table import REF, Immediate, T, instruction
from ferryvm.isa.type import I64, WORD_BYTES

V = TypeVar("V")

FIELD_TYPE_BIT = 32
"""Bit of the immediate of `struct.get` and `struct.set` at which the type number starts; the bits
below hold the bytes from the struct to the field."""


def field_immediate(number: int, field: int) -> int:
    """The immediate for a field, by its number, of a struct type."""
    return number << FIELD_TYPE_BIT | STRUCT_HEADER_BYTES + WORD_BYTES * field


def field_of(immediate: int) -> tuple[int, int]:
    """The type number and the field's number in an immediate; the latter is -1 if no field is at
    its offset."""
    number, offset = immediate >> FIELD_TYPE_BIT, immediate & ((1 << FIELD_TYPE_BIT) - 1)
    field, rest = divmod(offset - STRUCT_HEADER_BYTES, WORD_BYTES)
    return number, -1 if rest else field


def _size(m: Emitter[V], type_: V) -> V:
    """Bytes of a struct of the type, which fit: this leaves if they do not."""
    size = m.shr_u(
        I64, m.type_word(type_, m.constant(I64, ROW_KIND)), m.constant(I64, ROW_SIZE_SHIFT)
    )
    end = m.add(I64, m.object_top(), size)
    m.allocate_if(m.compare(I64, Condition.GT_U, end, m.object_end()), size, type_)
    return size


@instruction("struct.new", Immediate.FIELDS, pushes=(REF,))
def struct_new(m: Emitter[V], type_: V) -> V:
    """A new struct with the operands as its fields, the first one deepest."""
    size = _size(m, type_)
    top = m.object_top()
    count = m.sub(I64, m.shr_u(I64, size, m.constant(I64, 3)), m.constant(I64, 1))
    address = m.pop_words(count)
    m.object_store(WORD_BYTES, top, header_of(m, type_))
    m.object_store_words(m.add(I64, top, m.constant(I64, STRUCT_HEADER_BYTES)), address, count)
    m.set_object_top(m.add(I64, top, size))
    return m.to_slot(I64, top)


@instruction("struct.new_default", Immediate.STRUCT, pushes=(REF,))
def struct_new_default(m: Emitter[V], type_: V) -> V:
    """A new struct whose fields are zero or null."""
    size = _size(m, type_)
    top = m.object_top()
    m.object_store(WORD_BYTES, top, header_of(m, type_))
    m.set_object_top(m.add(I64, top, size))
    return m.to_slot(I64, top)


def _offset(m: Emitter[V], field: V, reference: V) -> V:
    """The offset of a field."""
    word = trap_null(m, reference)
    mask = m.constant(I64, (1 << FIELD_TYPE_BIT) - 1)
    return m.add(I64, word, m.bit_and(I64, field, mask))


@instruction("struct.get", Immediate.FIELD, pops=(REF,), pushes=(T,))
def struct_get(m: Emitter[V], field: V, reference: V) -> V:
    """The value of a field; traps on null."""
    return m.to_slot(I64, m.object_load(WORD_BYTES, _offset(m, field, reference)))


@instruction("struct.set", Immediate.FIELD, pops=(REF, T))
def struct_set(m: Emitter[V], field: V, reference: V, value: V) -> None:
    """Store into a field; traps on null."""
    m.object_store(WORD_BYTES, _offset(m, field, reference), m.from_slot(I64, value))
