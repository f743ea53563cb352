# SPDX-License-Identifier: Apache-2.0
"""Arrays: of each element kind, and of references. Indices, lengths and counts are unsigned i64."""

from __future__ import annotations

from typing import TypeVar

from ferryvm.isa.cast import header_of, trap_null
from ferryvm.isa.element import Element
from ferryvm.isa.emitter import Condition, Emitter
from ferryvm.isa.heap import from_memory, to_memory
from ferryvm.isa.object import (
    ARRAY_HEADER_BYTES,
    LARGEST_INLINE,
    LARGEST_LENGTH,
    LARGEST_TRANSFER,
    LENGTH_OFFSET,
    PLACE_OFFSET,
    READ_ONLY,
)
from ferryvm.isa.table import REF, Immediate, Meaning, Operand, T, instruction
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import ARRAYREF, I64, WORD_BYTES

V = TypeVar("V")


@instruction("array.length", pops=(ARRAYREF,), pushes=(I64,))
def array_length(m: Emitter[V], reference: V) -> V:
    """The number of elements; traps on null."""
    return _length(m, trap_null(m, reference))


@instruction("array.index", pops=(I64, I64), pushes=(I64,))
def array_index(m: Emitter[V], index: V, length: V) -> V:
    """The first operand, an index; traps unless it is below the second, a length (unsigned)."""
    past = m.compare(I64, Condition.GE_U, index, length)
    m.trap_if(past, Trap.INDEX_OUT_OF_BOUNDS)
    return index


def _length(m: Emitter[V], array: V) -> V:
    return m.object_load(WORD_BYTES, m.add(I64, array, m.constant(I64, LENGTH_OFFSET)))


def _place(m: Emitter[V], array: V) -> V:
    return m.object_load(WORD_BYTES, m.add(I64, array, m.constant(I64, PLACE_OFFSET)))


def _bytes(m: Emitter[V], shift: int, count: V) -> V:
    """Bytes of so many elements."""
    return m.shl(I64, count, m.constant(I64, shift)) if shift else count


def _trap_index(m: Emitter[V], array: V, index: V) -> None:
    past = m.compare(I64, Condition.GE_U, index, _length(m, array))
    m.trap_if(past, Trap.INDEX_OUT_OF_BOUNDS)


def _trap_range(m: Emitter[V], array: V, index: V, count: V) -> None:
    """Trap unless `count` elements from an index on are there."""
    length = _length(m, array)
    too_many = m.compare(I64, Condition.GT_U, count, length)
    past = m.compare(I64, Condition.GT_U, index, m.sub(I64, length, count))
    m.trap_if(m.any(too_many, past), Trap.INDEX_OUT_OF_BOUNDS)


def _trap_read_only(m: Emitter[V], array: V) -> None:
    flag = m.bit_and(I64, m.object_load(WORD_BYTES, array), m.constant(I64, READ_ONLY))
    m.trap_if(m.compare(I64, Condition.NE, flag, m.constant(I64, 0)), Trap.READ_ONLY_ARRAY)


def writable_element(m: Emitter[V], shift: int, reference: V, index: V) -> tuple[V, V]:
    """The place of an array's elements and the offset of one that can be stored to; traps on null,
    outside of the array, and if it is read-only."""
    word = trap_null(m, reference)
    _trap_index(m, word, index)
    _trap_read_only(m, word)
    return _place(m, word), _bytes(m, shift, index)


def _leave_if_long(m: Emitter[V], type_: V, bytes_: V) -> None:
    """Leave for the engine if so many bytes take long: it can be interrupted."""
    is_long = m.compare(I64, Condition.GT_U, bytes_, m.constant(I64, LARGEST_TRANSFER))
    m.allocate_if(is_long, bytes_, type_)


def _new(m: Emitter[V], type_: V, shift: int, length: V) -> tuple[V, V, V]:
    """A new array: its offset, its place, and 1 if it is so large that the engine has prepared its
    elements with their first values; otherwise they are zero."""
    huge = m.compare(I64, Condition.GT_U, length, m.constant(I64, LARGEST_LENGTH))
    m.trap_if(huge, Trap.HEAP_EXHAUSTED)
    own = m.constant(I64, ARRAY_HEADER_BYTES)
    padding = m.constant(I64, WORD_BYTES - 1)
    rounded = m.add(I64, _bytes(m, shift, length), padding)
    elements = m.bit_and(I64, rounded, m.constant(I64, I64.mask ^ (WORD_BYTES - 1)))
    is_outside = m.compare(I64, Condition.GT_U, elements, m.constant(I64, LARGEST_INLINE))
    whole = m.add(I64, elements, own)
    top = m.object_top()
    end = m.add(I64, top, m.select(is_outside, own, whole))
    prepared = m.prepared_place()
    is_none = m.compare(I64, Condition.EQ, prepared, m.constant(I64, 0))
    is_other = m.compare(I64, Condition.NE, m.prepared_bytes(), elements)
    is_unprepared = m.all(is_outside, m.any(is_none, is_other))
    is_past = m.compare(I64, Condition.GT_U, end, m.object_end())
    m.allocate_if(m.any(is_past, is_unprepared), whole, type_)
    place = m.select(is_outside, prepared, m.add(I64, top, own))
    m.object_store(WORD_BYTES, top, header_of(m, type_))
    m.object_store(WORD_BYTES, m.add(I64, top, m.constant(I64, LENGTH_OFFSET)), length)
    m.object_store(WORD_BYTES, m.add(I64, top, m.constant(I64, PLACE_OFFSET)), place)
    m.clear_prepared()
    m.set_object_top(end)
    return top, place, m.compare(I64, Condition.GT_U, elements, m.constant(I64, LARGEST_TRANSFER))


def _family(element: Element | None) -> None:
    """Declare the instructions for arrays of an element kind; None: of references.

    Their meanings take the type number of the array first. It is the immediate of those for
    references, and a constant in the others."""
    suffix = "ref" if element is None else element.kind
    size = WORD_BYTES if element is None else element.bytes
    shift = size.bit_length() - 1
    array: Operand = REF if element is None else element.array
    value: Operand = T if element is None else element.type
    what = "references" if element is None else f"`{suffix}`"

    def declare(
        name: str,
        meaning: Meaning,
        summary: str,
        pops: tuple[Operand, ...],
        pushes: tuple[Operand, ...] = (),
    ) -> None:
        def of_kind(m: Emitter[V], *operands: V) -> V | None:
            assert element is not None
            result: V | None = meaning(m, m.constant(I64, element.array.number), *operands)
            return result

        taken = meaning if element is None else of_kind
        taken.__doc__ = summary
        immediate = Immediate.ARRAY if element is None else Immediate.NONE
        instruction(f"array.{name}_{suffix}", immediate, pops=pops, pushes=pushes)(taken)

    def from_raw(m: Emitter[V], raw: V) -> V:
        if element is None:
            return m.to_slot(I64, raw)
        return from_memory(m, element.type, element.bits, element.is_signed, raw)

    def to_raw(m: Emitter[V], operand: V) -> V:
        if element is None:
            return m.from_slot(I64, operand)
        return to_memory(m, element.type, operand)

    def new(m: Emitter[V], type_: V, first: V, length: V) -> V:
        top, place, is_filled = _new(m, type_, shift, length)
        none = m.constant(I64, 0)
        count = m.select(is_filled, none, length)
        m.fill_elements(size, place, none, count, to_raw(m, first))
        return m.to_slot(I64, top)

    def new_default(m: Emitter[V], type_: V, length: V) -> V:
        return m.to_slot(I64, _new(m, type_, shift, length)[0])

    def get(m: Emitter[V], type_: V, reference: V, index: V) -> V:
        word = trap_null(m, reference)
        _trap_index(m, word, index)
        return from_raw(m, m.element_load(size, _place(m, word), _bytes(m, shift, index)))

    def set_(m: Emitter[V], type_: V, reference: V, index: V, operand: V) -> None:
        place, offset = writable_element(m, shift, reference, index)
        m.element_store(size, place, offset, to_raw(m, operand))

    def fill(m: Emitter[V], type_: V, reference: V, index: V, operand: V, count: V) -> None:
        word = trap_null(m, reference)
        _trap_range(m, word, index, count)
        _trap_read_only(m, word)
        _leave_if_long(m, type_, _bytes(m, shift, count))
        raw = to_raw(m, operand)
        m.fill_elements(size, _place(m, word), _bytes(m, shift, index), count, raw)

    def copy(m: Emitter[V], type_: V, to: V, index: V, from_: V, start: V, count: V) -> None:
        target, source = trap_null(m, to), trap_null(m, from_)
        _trap_range(m, target, index, count)
        _trap_range(m, source, start, count)
        _trap_read_only(m, target)
        _leave_if_long(m, type_, _bytes(m, shift, count))
        m.move_elements(
            _place(m, target),
            _bytes(m, shift, index),
            _place(m, source),
            _bytes(m, shift, start),
            _bytes(m, shift, count),
        )

    declare("new", new, f"A new array of {what}, all the first operand.", (value, I64), (array,))
    zeros = "null references" if element is None else f"{what} zeros"
    declare("new_default", new_default, f"A new array of {zeros}.", (I64,), (array,))
    declare("get", get, f"The element at an index in an array of {what}.", (array, I64), (value,))
    declare("set", set_, f"Store into an array of {what}.", (array, I64, value))
    fill_summary = f"Store the third operand into a number of {what} from an index on."
    declare("fill", fill, fill_summary, (array, I64, value, I64))
    copy_summary = (
        f"Copy a number of {what} to the first array from those of the second, each from an index "
        "on; as if through a copy if they overlap."
    )
    declare("copy", copy, copy_summary, (array, I64, array, I64, I64))
    if element is None:
        return

    def trap_heap(m: Emitter[V], address: V, count: V) -> V:
        """Bytes of the elements, which are in bounds of the heap."""
        # No array is as large as that, so the size has not wrapped: this has trapped.
        bytes_ = _bytes(m, shift, count)
        in_use = m.heap_pointer()
        too_many = m.compare(I64, Condition.GT_U, bytes_, in_use)
        past = m.compare(I64, Condition.GT_U, address, m.sub(I64, in_use, bytes_))
        m.trap_if(m.any(too_many, past), Trap.MEMORY_OUT_OF_BOUNDS)
        return bytes_

    def load(m: Emitter[V], type_: V, reference: V, index: V, address: V, count: V) -> None:
        word = trap_null(m, reference)
        _trap_range(m, word, index, count)
        _trap_read_only(m, word)
        bytes_ = trap_heap(m, address, count)
        _leave_if_long(m, type_, bytes_)
        m.elements_from_heap(_place(m, word), _bytes(m, shift, index), address, bytes_)

    def store(m: Emitter[V], type_: V, reference: V, index: V, address: V, count: V) -> None:
        word = trap_null(m, reference)
        _trap_range(m, word, index, count)
        bytes_ = trap_heap(m, address, count)
        _leave_if_long(m, type_, bytes_)
        m.elements_to_heap(address, _place(m, word), _bytes(m, shift, index), bytes_)

    operands = (array, I64, I64, I64)
    load_summary = f"Copy a number of {what}, from an index on, from the bytes at a heap address."
    declare("load", load, load_summary, operands)
    store_summary = f"Copy a number of {what}, from an index on, to the bytes at a heap address."
    declare("store", store, store_summary, operands)


for _element in Element:
    _family(_element)
_family(None)
