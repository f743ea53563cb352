# SPDX-License-Identifier: Apache-2.0
"""References of any type: null, identity, tests and casts, integers without memory."""

from __future__ import annotations

from typing import TypeVar

from ferryvm.isa.emitter import Condition, Emitter
from ferryvm.isa.object import ROW_ANCESTORS, ROW_DEPTH, TYPE_MASK
from ferryvm.isa.table import REF, Immediate, instruction
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import ANYREF, I31REF, I32, I64, WORD_BYTES

V = TypeVar("V")

I31_MASK = 0xFFFF_FFFF
"""The bits of a word that an i31 can have set."""


def trap_null(m: Emitter[V], reference: V) -> V:
    """The word that a reference is, an i64, after trapping if it is null."""
    word = m.from_slot(I64, reference)
    m.trap_if(m.compare(I64, Condition.EQ, word, m.constant(I64, 0)), Trap.NULL_REFERENCE)
    return word


def header_of(m: Emitter[V], number: V) -> V:
    """The header of a new object of a type number (i64), i64."""
    return m.add(I64, m.shl(I64, number, m.constant(I64, 1)), m.constant(I64, 1))


def _is_of(m: Emitter[V], word: V, type_: V) -> V:
    """The boolean that a reference, not null, is of a type."""
    one, zero = m.constant(I64, 1), m.constant(I64, 0)
    is_i31 = m.compare(I64, Condition.NE, m.bit_and(I64, word, one), zero)
    header = m.object_load(WORD_BYTES, m.select(is_i31, zero, word))
    found = m.shr_u(I64, m.bit_and(I64, header, m.constant(I64, TYPE_MASK)), one)
    own = m.select(is_i31, m.constant(I64, I31REF.number), found)
    depth = m.type_word(type_, m.constant(I64, ROW_DEPTH))
    ancestor = m.type_word(own, m.add(I64, depth, m.constant(I64, ROW_ANCESTORS)))
    is_any = m.compare(I64, Condition.EQ, type_, m.constant(I64, ANYREF.number))
    return m.any(is_any, m.compare(I64, Condition.EQ, ancestor, type_))


@instruction("ref.null", Immediate.TYPE, pushes=(REF,))
def ref_null(m: Emitter[V], type_: V) -> V:
    """The null reference, as one of the type."""
    return m.to_slot(I64, m.constant(I64, 0))


@instruction("ref.is_null", pops=(ANYREF,), pushes=(I32,))
def ref_is_null(m: Emitter[V], reference: V) -> V:
    """1 if the reference is null, else 0."""
    word = m.from_slot(I64, reference)
    return m.boolean_to_i32(m.compare(I64, Condition.EQ, word, m.constant(I64, 0)))


@instruction("ref.eq", pops=(ANYREF, ANYREF), pushes=(I32,))
def ref_eq(m: Emitter[V], a: V, b: V) -> V:
    """1 if the references are the same object, the same small integer or both null, else 0."""
    left, right = m.from_slot(I64, a), m.from_slot(I64, b)
    return m.boolean_to_i32(m.compare(I64, Condition.EQ, left, right))


@instruction("ref.test", Immediate.TYPE, pops=(ANYREF,), pushes=(I32,))
def ref_test(m: Emitter[V], type_: V, reference: V) -> V:
    """1 if the reference is of the type and not null, else 0."""
    word = m.from_slot(I64, reference)
    is_there = m.compare(I64, Condition.NE, word, m.constant(I64, 0))
    return m.boolean_to_i32(m.all(is_there, _is_of(m, word, type_)))


@instruction("ref.cast", Immediate.TYPE, pops=(ANYREF,), pushes=(REF,))
def ref_cast(m: Emitter[V], type_: V, reference: V) -> V:
    """The reference, as one of the type; traps if it is neither of the type nor null."""
    word = m.from_slot(I64, reference)
    is_there = m.compare(I64, Condition.NE, word, m.constant(I64, 0))
    m.trap_if(m.all(is_there, m.none(_is_of(m, word, type_))), Trap.CAST_FAILURE)
    return reference


@instruction("ref.i31", pops=(I32,), pushes=(I31REF,))
def ref_i31(m: Emitter[V], a: V) -> V:
    """The low 31 bits of the operand as a reference without memory."""
    doubled = m.shl(I64, m.extend_u(a), m.constant(I64, 1))
    low = m.bit_and(I64, doubled, m.constant(I64, I31_MASK))
    return m.to_slot(I64, m.bit_or(I64, low, m.constant(I64, 1)))


@instruction("i31.get_s", pops=(I31REF,), pushes=(I32,))
def i31_get_s(m: Emitter[V], reference: V) -> V:
    """The integer of 31 bits, extended by sign; traps on null."""
    return m.shr_s(I32, m.wrap(trap_null(m, reference)), m.constant(I32, 1))


@instruction("i31.get_u", pops=(I31REF,), pushes=(I32,))
def i31_get_u(m: Emitter[V], reference: V) -> V:
    """The integer of 31 bits, extended by zero; traps on null."""
    return m.shr_u(I32, m.wrap(trap_null(m, reference)), m.constant(I32, 1))
