# SPDX-License-Identifier: Apache-2.0
"""The collector as native code: the same as `ferryvm.machine.collection.collect`, to the bit.

    collect ── roots ──> forward(request, reference) ──> copies an object once
       └──── scan ─────────────^

It is one function with a request's address as its argument. `forward` is inlined. Checks are as in
Python: whatever words it finds, it reads and writes only memory that the request names.
"""

from __future__ import annotations

import functools

from ferryvm import cache
from ferryvm.isa.object import (
    ARRAY_HEADER_BYTES,
    FIRST_OFFSET,
    LARGEST_LENGTH,
    LENGTH_OFFSET,
    PLACE_OFFSET,
    TYPE_MASK,
)
from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine.collection import (
    OUTSIDE_WORDS,
    ROW_WORDS,
    SHAPE_WORDS,
    CollectionFault,
    Request,
    ShapeKind,
)
from ferryvm_backends._llvm import ir, native
from ferryvm_backends._llvm.arithmetic import WORD, word
from ferryvm_backends._llvm.loader import NativeCode
from ferryvm_backends._llvm.word_code import WordCode

_SYMBOL = "ferry_collect"
_BYTE, _POINTER = ir.IntType(8), ir.PointerType()
_LAST = WORD_BYTES * (ROW_WORDS - 1)
"""Bytes from the n-th word of a row of frames to the n-th position, counted from 1."""

_SHAPE_BYTES, _OUTSIDE_BYTES = SHAPE_WORDS * WORD_BYTES, OUTSIDE_WORDS * WORD_BYTES


def address() -> int:
    """The address of a C function from a request's address to its fault. Raises BackendError."""
    return _loaded().address(_SYMBOL)


def soon() -> int:
    """The same. Raises NotYetError while it is compiled, in the background."""
    return native.soon(_entry(), _loaded).address(_SYMBOL)


def _entry() -> cache.Entry:
    key = cache.key([native.key("ferryvm_backends._llvm")])
    return cache.Entry("collector", key)


@functools.cache
def _loaded() -> NativeCode:
    def build() -> bytes:
        from ferryvm_backends._llvm.build import compile_loops  # it takes LLVM

        return compile_loops(module())

    return native.made(_entry(), build)[0]


def module() -> ir.Module:
    """The collector as LLVM IR."""
    made = ir.Module(_SYMBOL)
    forward = ir.Function(made, ir.FunctionType(WORD, [_POINTER, WORD]), "forward")
    forward.linkage = "private"
    collect = ir.Function(made, ir.FunctionType(WORD, [_POINTER]), _SYMBOL)
    for function in (forward, collect):
        # A loop that copies a few words is not to become a call of memcpy.
        function.attributes |= {"nounwind", '"no-builtins"'}
    forward.attributes.add("alwaysinline")
    _Forward(forward).build()
    _Collect(collect, forward).build()
    return made


class _Code(WordCode):
    """Code of a collection, whose request is the function's argument."""

    def __init__(self, function: ir.Function) -> None:
        super().__init__(function)
        self.request: ir.Value = function.args[0]

    def _field(self, name: str) -> ir.Value:
        offset = word(getattr(Request, name).offset)
        return self.builder.gep(self.request, [offset], source_etype=_BYTE)

    def get(self, name: str) -> ir.Value:
        """A field of the request."""
        return self.builder.load(self._field(name), align=WORD_BYTES, typ=WORD)

    def set(self, name: str, value: ir.Value) -> None:
        """Set a field of the request."""
        self.builder.store(value, self._field(name), align=WORD_BYTES)

    def fail_if(self, p: ir.Value, fault: CollectionFault) -> None:
        """Return with a fault if `p` holds."""
        with self.builder.if_then(p, likely=False):
            earlier = self.get("fault")
            is_first = self.builder.icmp_unsigned("==", earlier, word(CollectionFault.NONE))
            self.set("fault", self.builder.select(is_first, word(fault), earlier))
            self.builder.ret(word(self.failed(fault)))

    def failed(self, fault: CollectionFault) -> int:
        """The result of the function for a fault."""
        return int(fault)

    def shape(self, header: ir.Value) -> tuple[ir.Value, ir.Value]:
        """The address of the row of the type of an object with this header, and its kind."""
        builder = self.builder
        number = builder.lshr(builder.and_(header, word(TYPE_MASK)), word(1))
        is_past = builder.icmp_unsigned(">=", number, self.get("shape_count"))
        self.fail_if(is_past, CollectionFault.HEADER)
        row = builder.add(self.get("shapes"), builder.mul(number, word(_SHAPE_BYTES)))
        kind = self.at(row)
        is_none = builder.icmp_unsigned("==", kind, word(ShapeKind.NONE))
        self.fail_if(is_none, CollectionFault.HEADER)
        return row, kind

    def element_bytes(self, length: ir.Value, size: ir.Value) -> ir.Value:
        """Bytes of the elements of an array, with padding."""
        builder = self.builder
        is_long = builder.icmp_unsigned(">", length, word(LARGEST_LENGTH))
        self.fail_if(is_long, CollectionFault.SIZE)
        return builder.and_(builder.add(builder.mul(length, size), word(7)), word(~7))


class _Forward(_Code):
    """The reference of the copy of an object, which is made if there is none; the request's fault
    is set where there is one."""

    def failed(self, fault: CollectionFault) -> int:
        return 0

    def build(self) -> None:
        builder = self.builder
        reference = self.function.args[1]
        is_null = builder.icmp_unsigned("==", reference, word(0))
        is_i31 = builder.icmp_unsigned("!=", builder.and_(reference, word(1)), word(0))
        with builder.if_then(builder.or_(is_null, is_i31)):
            builder.ret(reference)
        limit = self.get("from_top")
        is_odd = builder.icmp_unsigned("!=", builder.and_(reference, word(7)), word(0))
        is_past = builder.icmp_unsigned(">=", reference, limit)
        self.fail_if(builder.or_(is_odd, is_past), CollectionFault.REFERENCE)
        source = builder.add(self.get("from_base"), reference)
        header = self.at(source)
        new = self.get("to_top")
        is_moved = builder.icmp_unsigned("==", builder.and_(header, word(1)), word(0))
        with builder.if_then(is_moved):
            is_null = builder.icmp_unsigned("==", header, word(0))
            is_past = builder.icmp_unsigned(">=", header, new)
            self.fail_if(builder.or_(is_null, is_past), CollectionFault.HEADER)
            builder.ret(header)
        row, kind = self.shape(header)
        size = self.variable(self.at(row, WORD_BYTES))
        remaining = builder.sub(limit, reference)
        is_array = builder.icmp_unsigned("!=", kind, word(ShapeKind.STRUCT))
        moved_place = self.variable(word(0))
        with builder.if_then(is_array):
            own = word(ARRAY_HEADER_BYTES)
            is_cut = builder.icmp_unsigned("<", remaining, own)
            self.fail_if(is_cut, CollectionFault.SIZE)
            length, place = self.at(source, LENGTH_OFFSET), self.at(source, PLACE_OFFSET)
            elements = self.element_bytes(length, builder.load(size))
            is_inline = builder.icmp_unsigned("==", place, builder.add(reference, own))
            builder.store(builder.add(own, builder.select(is_inline, elements, word(0))), size)
            distance = builder.sub(self.get("from_base"), self.get("to_base"))
            moved = builder.select(is_inline, builder.add(new, own), builder.add(place, distance))
            builder.store(moved, moved_place)
        total = builder.load(size)
        is_cut = builder.icmp_unsigned(">", total, remaining)
        is_past = builder.icmp_unsigned(">", total, builder.sub(self.get("to_end"), new))
        self.fail_if(builder.or_(is_cut, is_past), CollectionFault.SIZE)
        target = builder.add(self.get("to_base"), new)
        with self.each(builder.lshr(total, word(3))) as number:
            offset = builder.shl(number, word(3))
            self.put(self.at(builder.add(source, offset)), builder.add(target, offset))
        with builder.if_then(is_array):
            self.put(builder.load(moved_place), target, PLACE_OFFSET)
        self.put(new, source)
        self.set("to_top", builder.add(new, total))
        builder.ret(new)


class _Collect(_Code):
    """The collection itself."""

    def __init__(self, function: ir.Function, forward: ir.Function) -> None:
        super().__init__(function)
        self._forward = forward

    def forward_at(self, address: ir.Value) -> None:
        """Replace a reference in memory by the one of the copy."""
        new = self.builder.call(self._forward, [self.request, self.at(address)])
        self.put(new, address)

    def build(self) -> None:
        builder = self.builder
        self.set("fault", word(CollectionFault.NONE))
        self.set("to_top", word(FIRST_OFFSET))
        statics, numbers = self.get("statics"), self.get("static_numbers")
        with self.each(self.get("static_count")) as index:
            number = self.at(builder.add(numbers, builder.shl(index, word(3))))
            self.forward_at(builder.add(statics, builder.shl(number, word(3))))
        self._forward_frames()
        scanned = self.variable(word(FIRST_OFFSET))
        self._scan_all(scanned)
        self.set("own_top", self.get("to_top"))
        handles = self.get("handles")
        with self.each(self.get("handle_count")) as index:
            self.forward_at(builder.add(handles, builder.shl(index, word(3))))
        self._scan_all(scanned)
        builder.ret(self.get("fault"))

    def _scan_all(self, scanned: ir.Place) -> None:
        """Forward the references in the objects copied so far, and in those that these lead to."""
        builder = self.builder
        with self.while_(
            lambda: builder.and_(
                builder.icmp_unsigned("<", builder.load(scanned), self.get("to_top")),
                builder.icmp_unsigned("==", self.get("fault"), word(CollectionFault.NONE)),
            )
        ):
            self._scan(scanned)

    def _forward_frames(self) -> None:
        """Forward the references in frames: find them from the innermost frame out, take them in
        the opposite order."""
        builder = self.builder
        stack, rows = self.get("stack"), self.get("rows")
        end = self.get("slots")
        free = self.variable(end)
        fp, row = self.variable(self.get("fp")), self.variable(self.get("row"))
        is_last = self.variable(word(0))
        with self.while_(lambda: builder.icmp_unsigned("==", builder.load(is_last), word(0))):
            at = builder.add(rows, builder.shl(builder.load(row), word(3)))
            frame = builder.load(fp)
            remaining = self.variable(self.at(at))
            with self.while_(lambda: builder.icmp_unsigned("!=", builder.load(remaining), word(0))):
                number = builder.load(remaining)
                offset = self.at(builder.add(at, builder.shl(number, word(3))), _LAST)
                slot = builder.sub(builder.load(free), word(WORD_BYTES))
                address = builder.add(stack, builder.shl(builder.add(frame, offset), word(3)))
                self.put(address, slot)
                builder.store(slot, free)
                builder.store(builder.sub(number, word(1)), remaining)
            header = builder.add(stack, builder.shl(frame, word(3)))
            return_pc, distance = self.at(header), self.at(header, WORD_BYTES)
            is_outermost = builder.icmp_unsigned("==", distance, word(0))
            builder.store(builder.zext(is_outermost, WORD), is_last)
            with builder.if_then(builder.not_(is_outermost)):
                is_far = builder.icmp_unsigned(">", distance, frame)
                pc = builder.sub(return_pc, word(1))
                is_past = builder.icmp_unsigned(">=", pc, self.get("pc_count"))
                self.fail_if(builder.or_(is_far, is_past), CollectionFault.FRAME)
                builder.store(builder.sub(frame, distance), fp)
                is_entered = builder.icmp_unsigned("!=", self.at(at, WORD_BYTES), word(0))
                table = builder.select(is_entered, self.get("stops"), self.get("calls"))
                builder.store(self.at(builder.add(table, builder.shl(pc, word(3)))), row)
        with self.while_(lambda: builder.icmp_unsigned("<", builder.load(free), end)):
            slot = builder.load(free)
            self.forward_at(self.at(slot))
            builder.store(builder.add(slot, word(WORD_BYTES)), free)

    def _scan(self, scanned: ir.Place) -> None:
        """Forward the references in the object at an offset, and step over it."""
        builder = self.builder
        offset = builder.load(scanned)
        at = builder.add(self.get("to_base"), offset)
        row, kind = self.shape(self.at(at))
        bytes_ = self.at(row, WORD_BYTES)
        size = self.variable(bytes_)
        is_array = builder.icmp_unsigned("!=", kind, word(ShapeKind.STRUCT))
        # Of a struct the fields with references; of an array its elements.
        with builder.if_then(builder.not_(is_array)):
            first = self.at(row, 2 * WORD_BYTES)
            list_ = builder.add(self.get("offsets"), builder.shl(first, word(3)))
            with self.each(self.at(row, 3 * WORD_BYTES)) as number:
                field = self.at(builder.add(list_, builder.shl(number, word(3))))
                self.forward_at(builder.add(at, field))
        with builder.if_then(is_array):
            length, place = self.at(at, LENGTH_OFFSET), self.at(at, PLACE_OFFSET)
            elements = self.element_bytes(length, bytes_)
            own = word(ARRAY_HEADER_BYTES)
            is_inline = builder.icmp_unsigned("==", place, builder.add(offset, own))
            builder.store(builder.add(own, builder.select(is_inline, elements, word(0))), size)
            address_ = builder.add(self.get("to_base"), place)
            with builder.if_then(builder.not_(is_inline)):
                self._mark(address_, elements, offset)
            is_held = builder.icmp_unsigned("==", kind, word(ShapeKind.REFERENCES))
            with builder.if_then(is_held), self.each(length) as number:
                self.forward_at(builder.add(address_, builder.shl(number, word(3))))
        builder.store(builder.add(offset, builder.load(size)), scanned)

    def _mark(self, address_: ir.Value, elements: ir.Value, offset: ir.Value) -> None:
        """Note that the array at an offset has the elements at an address: a binary search."""
        builder = self.builder
        rows, count = self.get("outside"), self.get("outside_count")
        low, high = self.variable(word(0)), self.variable(count)

        def row(number: ir.Value) -> ir.Value:
            return builder.add(rows, builder.mul(number, word(_OUTSIDE_BYTES)))

        with self.while_(lambda: builder.icmp_unsigned("<", builder.load(low), builder.load(high))):
            middle = builder.lshr(builder.add(builder.load(low), builder.load(high)), word(1))
            is_below = builder.icmp_unsigned("<", self.at(row(middle)), address_)
            following = builder.add(middle, word(1))
            builder.store(builder.select(is_below, following, builder.load(low)), low)
            builder.store(builder.select(is_below, builder.load(high), middle), high)
        found = builder.load(low)
        is_past = builder.icmp_unsigned(">=", found, count)
        self.fail_if(is_past, CollectionFault.ELEMENTS)
        is_other = builder.icmp_unsigned("!=", self.at(row(found)), address_)
        is_small = builder.icmp_unsigned("<", self.at(row(found), WORD_BYTES), elements)
        self.fail_if(builder.or_(is_other, is_small), CollectionFault.ELEMENTS)
        self.put(offset, row(found), 2 * WORD_BYTES)
