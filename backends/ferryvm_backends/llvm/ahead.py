# SPDX-License-Identifier: Apache-2.0
"""Elements of large arrays that the engine has prepared ahead: code takes them without leaving.

The block that is appended to is that in which an allocation does not fit. It branches on to a block
in which elements are taken, or to one that leaves with ALLOCATE.
"""

from __future__ import annotations

from ferryvm.isa.object import ARRAY_HEADER_BYTES
from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine.control import Ahead
from ferryvm_backends._llvm import ir
from ferryvm_backends._llvm.arithmetic import word
from ferryvm_backends.llvm.function import FunctionContext

_PART = "ahead"
"""The part of memory that the list of places is."""


def take_ahead(function: FunctionContext, wanted: ir.Value, otherwise: ir.Block) -> ir.Value:
    """The place of elements for an array of `wanted` bytes, header included; code is appended to
    the block where it was taken. Control is in `otherwise` if there is none, or if elements are
    there already, so that the allocation did not fit for another reason."""
    builder, storage, control = function.builder, function.storage, function.control

    def is_equal(a: ir.Value, b: ir.Value) -> ir.Value:
        return builder.icmp_unsigned("==", a, b)

    look, take = function.block("look"), function.block("take")
    elements = builder.sub(wanted, word(ARRAY_HEADER_BYTES))
    address = storage.field(control, "ahead")
    has_none = is_equal(storage.field(control, "prepared"), word(0))
    has_other = builder.not_(is_equal(storage.field(control, "prepared_bytes"), elements))
    is_there = builder.not_(is_equal(address, word(0)))
    builder.cbranch(builder.and_(is_there, builder.or_(has_none, has_other)), look, otherwise)
    builder.position_at_end(look)
    ahead = storage.pointer(address)
    count = storage.load(storage.offset(ahead, WORD_BYTES * Ahead.COUNT), _PART)
    size = storage.load(storage.offset(ahead, WORD_BYTES * Ahead.BYTES), _PART)
    is_right = builder.and_(builder.not_(is_equal(count, word(0))), is_equal(size, elements))
    end = builder.add(storage.field(control, "object_top"), word(ARRAY_HEADER_BYTES))
    fits = builder.icmp_unsigned("<=", end, storage.field(control, "object_end"))
    builder.cbranch(builder.and_(is_right, fits), take, otherwise)
    builder.position_at_end(take)
    left = builder.sub(count, word(1))
    last = storage.offset(ahead, builder.shl(left, word(3)))
    place = storage.load(storage.offset(last, WORD_BYTES * Ahead.PLACES), _PART)
    storage.store(left, storage.offset(ahead, WORD_BYTES * Ahead.COUNT), _PART)
    storage.set_field(control, "prepared", place)
    storage.set_field(control, "prepared_bytes", elements)
    return place
