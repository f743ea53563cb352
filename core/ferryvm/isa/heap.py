# SPDX-License-Identifier: Apache-2.0
"""Heap: loads and stores of all widths, allocation, vectors.

An address is an i64 byte offset into the heap; an access is in bounds when all its bytes lie
below the heap pointer. A vector is an i64 length followed by its elements:

    address ─> │ length: 8 bytes │ element 0 │ element 1 │ …
"""

from __future__ import annotations

from typing import TypeVar

from ferryvm.isa.emitter import Condition, Emitter
from ferryvm.isa.table import Immediate, instruction
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import F32, F64, I32, I64, Type

V = TypeVar("V")

VECTOR_HEADER_BYTES = 8
LARGEST_ALLOCATION = 1 << 48
"""The largest request in bytes; larger ones are refused before arithmetic on them could wrap."""


def checked_address(m: Emitter[V], address: V, offset: V, bytes_: int) -> V:
    """`address + offset`, after a trap unless all `bytes_` bytes from there are in bounds."""
    in_use = m.heap_pointer()
    reach = m.add(I64, offset, m.constant(I64, bytes_ - 1))
    end = m.select(
        m.compare(I64, Condition.GT_U, in_use, reach),
        m.sub(I64, in_use, reach),
        m.constant(I64, 0),
    )
    m.trap_if(m.compare(I64, Condition.GE_U, address, end), Trap.MEMORY_OUT_OF_BOUNDS)
    return m.add(I64, address, offset)


def from_memory(m: Emitter[V], t: Type, bits: int, is_signed: bool, raw: V) -> V:
    """The value of type `t` that `bits` bits in memory are, given zero-extended as an i64."""
    if is_signed and bits < t.bits:
        distance = m.constant(I64, 64 - bits)
        raw = m.shr_s(I64, m.shl(I64, raw, distance), distance)
    narrow = m.wrap(raw) if t.bits == 32 else raw
    return m.reinterpret(t, t.integer, narrow) if t.is_float else narrow


def to_memory(m: Emitter[V], t: Type, value: V) -> V:
    """The i64 whose low bits are those of a value in memory."""
    narrow = m.reinterpret(t.integer, t, value) if t.is_float else value
    return m.extend_u(narrow) if t.bits == 32 else narrow


def _load(t: Type, bits: int, is_signed: bool | None) -> None:
    """Declare a load of `bits` bits; `is_signed` is None for the full width."""
    suffix = "" if is_signed is None else f"{bits}_{'s' if is_signed else 'u'}"

    def load(m: Emitter[V], offset: V, address: V) -> V:
        raw = m.heap_load(bits // 8, checked_address(m, address, offset, bits // 8))
        return from_memory(m, t, bits, bool(is_signed), raw)

    if is_signed is None:
        load.__doc__ = f"The {bits // 8} bytes at address + offset."
    else:
        extension = "sign" if is_signed else "zeros"
        unit = "byte" if bits == 8 else f"{bits // 8} bytes"
        load.__doc__ = f"The {unit} at address + offset, extended by {extension}."
    instruction(f"{t}.load{suffix}", Immediate.OFFSET, pops=(I64,), pushes=(t,))(load)


def _store(t: Type, bits: int) -> None:
    suffix = "" if bits == t.bits else str(bits)

    def store(m: Emitter[V], offset: V, address: V, value: V) -> None:
        where = checked_address(m, address, offset, bits // 8)
        m.heap_store(bits // 8, where, to_memory(m, t, value))

    unit = "byte" if bits == 8 else f"{bits // 8} bytes"
    store.__doc__ = f"Store the low {unit} of the second operand at address + offset."
    instruction(f"{t}.store{suffix}", Immediate.OFFSET, pops=(I64, t))(store)


for _t in (I32, I64, F32, F64):
    _load(_t, _t.bits, None)
for _t in (I32, I64):
    for _bits in (8, 16, 32):
        if _bits < _t.bits:
            _load(_t, _bits, True)
            _load(_t, _bits, False)
for _t in (I32, I64, F32, F64):
    _store(_t, _t.bits)
for _t in (I32, I64):
    for _bits in (8, 16, 32):
        if _bits < _t.bits:
            _store(_t, _bits)


def _allocate(m: Emitter[V], size: V) -> V:
    """Address of `size` fresh zero bytes; `size` is at most LARGEST_ALLOCATION."""
    padding = m.constant(I64, 7)
    rounded = m.bit_and(I64, m.add(I64, size, padding), m.constant(I64, I64.mask ^ 7))
    address = m.heap_pointer()
    end = m.add(I64, address, rounded)
    m.grow_if(m.compare(I64, Condition.GT_U, end, m.heap_capacity()), end)
    m.set_heap_pointer(end)
    return address


def _refuse_huge(m: Emitter[V], size: V) -> None:
    huge = m.compare(I64, Condition.GT_U, size, m.constant(I64, LARGEST_ALLOCATION))
    m.trap_if(huge, Trap.HEAP_EXHAUSTED)


@instruction("heap.alloc", pops=(I64,), pushes=(I64,))
def heap_alloc(m: Emitter[V], size: V) -> V:
    """Address of that many fresh zero bytes (unsigned), aligned to 8; traps if there is no
    space."""
    _refuse_huge(m, size)
    return _allocate(m, size)


@instruction("heap.size", pushes=(I64,))
def heap_size(m: Emitter[V]) -> V:
    """Bytes of the heap in use."""
    return m.heap_pointer()


def _vector(bits: int) -> None:
    """Declare the vector instructions for elements of `bits` bits."""
    shift = (bits // 8).bit_length() - 1

    def vector_new(m: Emitter[V], length: V) -> V:
        _refuse_huge(m, length)
        elements = m.shl(I64, length, m.constant(I64, shift))
        header = m.constant(I64, VECTOR_HEADER_BYTES)
        address = _allocate(m, m.add(I64, elements, header))
        m.heap_store(8, address, length)
        return address

    vector_new.__doc__ = f"A new vector of that many zero elements of {bits} bits."
    instruction(f"vector.new{bits}", pops=(I64,), pushes=(I64,))(vector_new)

    def vector_element(m: Emitter[V], vector: V, index: V) -> V:
        header = checked_address(m, vector, m.constant(I64, 0), VECTOR_HEADER_BYTES)
        length = m.heap_load(8, header)
        past = m.compare(I64, Condition.GE_U, index, length)
        m.trap_if(past, Trap.INDEX_OUT_OF_BOUNDS)
        elements = m.add(I64, vector, m.constant(I64, VECTOR_HEADER_BYTES))
        return m.add(I64, elements, m.shl(I64, index, m.constant(I64, shift)))

    vector_element.__doc__ = (
        f"Address of the element of {bits} bits at an index; traps unless it is below the length."
    )
    instruction(f"vector.element{bits}", pops=(I64, I64), pushes=(I64,))(vector_element)


for _bits in (8, 16, 32, 64):
    _vector(_bits)
