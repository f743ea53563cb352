# SPDX-License-Identifier: Apache-2.0
"""Heap: loads and stores of all widths, and allocation.

An address is an i64 byte offset into the heap; an access is in bounds when all its bytes lie
below the heap pointer.
"""

from __future__ import annotations

from typing import TypeVar

from ferryvm.isa.emitter import Condition, Emitter
from ferryvm.isa.table import Immediate, instruction
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import F32, F64, I32, I64, Type

V = TypeVar("V")

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


@instruction("heap.alloc", pops=(I64,), pushes=(I64,))
def heap_alloc(m: Emitter[V], size: V) -> V:
    """Address of that many fresh zero bytes (unsigned), aligned to 8; traps if there is no
    space."""
    huge = m.compare(I64, Condition.GT_U, size, m.constant(I64, LARGEST_ALLOCATION))
    m.trap_if(huge, Trap.HEAP_EXHAUSTED)
    padding = m.constant(I64, 7)
    rounded = m.bit_and(I64, m.add(I64, size, padding), m.constant(I64, I64.mask ^ 7))
    address = m.heap_pointer()
    end = m.add(I64, address, rounded)
    m.grow_if(m.compare(I64, Condition.GT_U, end, m.heap_capacity()), end)
    m.set_heap_pointer(end)
    return address


@instruction("heap.size", pushes=(I64,))
def heap_size(m: Emitter[V]) -> V:
    """Bytes of the heap in use."""
    return m.heap_pointer()
