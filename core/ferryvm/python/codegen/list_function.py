# SPDX-License-Identifier: Apache-2.0
"""Functions that compiled code calls for lists: each is made once in a program for the slots of
items.

None of them traps once it has changed a list, so that CPython may execute the statement again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ferryvm.build import Function, Local, Program, Struct
from ferryvm.isa.type import I32, I64
from ferryvm.python.value.kind import LIST, Kind, List, Tuple, less_known
from ferryvm.python.value.list_layout import Elements, Layout, layout_of

if TYPE_CHECKING:
    from ferryvm.python.codegen.code import Code

_GROWTH = 4
"""Items that the arrays of a list have room for when it first grows."""

_Make = Callable[["_Writer", Layout], None]


class _Writer:
    """The code of one function for lists with a layout."""

    def __init__(self, f: Function, struct: Struct) -> None:
        self.f, self.struct = f, struct

    def length(self, of: Local) -> None:
        """Push the length of a list."""
        self.f.local_get(of)
        self.f.struct_get(self.struct["length"])

    def column(self, of: Local, name: str) -> None:
        """Push an array of a list."""
        self.f.local_get(of)
        self.f.struct_get(self.struct[name])

    def times(self, count: int) -> None:
        """Multiply the number on the stack by the number of slots of a column."""
        if count != 1:
            self.f.i64_const(count)
            self.f.i64_mul()

    def number(self, of: Local, count: int) -> None:
        """Push a number of items as one of slots of a column."""
        self.f.local_get(of)
        self.times(count)

    def elements(self, type_: object) -> Elements:
        """The instructions for a column."""
        return Elements(self.f, self.struct, type_)  # type: ignore[arg-type]  # a type of slots

    def set_kind(self, of: Local, kind: Local) -> None:
        """Give a list the kind of its items."""
        self.f.local_get(of)
        self.f.local_get(kind)
        self.f.struct_set(self.struct["kind"])

    def begin(self, of: Local, kind: Local, layout: Layout, capacity: int) -> None:
        """Give a list that has no kind yet its kind, and arrays."""
        f, struct = self.f, self.struct
        f.local_get(of)
        f.struct_get(struct["kind"])
        f.i64_eqz()
        with f.if_():
            self.set_kind(of, kind)
            for column in layout.columns:
                f.local_get(of)
                f.i64_const(capacity * column.stride)
                self.elements(column.type).new()
                f.struct_set(struct[column.name])

    def grow(self, of: Local, wanted: Local, layout: Layout) -> None:
        """Make room for so many items."""
        f, struct = self.f, self.struct
        first = layout.columns[0] if layout.columns else None
        if first is None:
            return
        size = f.local("size", I64)
        f.local_get(wanted)
        self.times(first.stride)
        self.column(of, first.name)
        f.array_length()
        f.i64_gt_s()
        with f.if_():
            f.local_get(wanted)
            f.i64_const(2)
            f.i64_mul()
            f.i64_const(_GROWTH)
            f.i64_add()
            f.local_set(size)
            longer = []
            for number, column in enumerate(layout.columns):  # all are made before any is changed
                elements = self.elements(column.type)
                longer.append(f.local(f"longer {number}", elements.type))
                self.number(size, column.stride)
                elements.new()
                f.local_set(longer[-1])
            for made, column in zip(longer, layout.columns, strict=True):
                f.local_get(made)
                f.i64_const(0)
                self.column(of, column.name)
                f.i64_const(0)
                self.length(of)
                self.times(column.stride)
                self.elements(column.type).copy()
                f.local_get(of)
                f.local_get(made)
                f.struct_set(struct[column.name])

    def set_length(self, of: Local, change: Local, is_less: bool = False) -> None:
        """Change the length of a list."""
        f = self.f
        f.local_get(of)
        self.length(of)
        f.local_get(change)
        (f.i64_sub if is_less else f.i64_add)()
        f.struct_set(self.struct["length"])

    def new(self, made: Local, length: Local, kind: Local, layout: Layout) -> None:
        """Make a list of a length, with arrays of zeros."""
        f, struct = self.f, self.struct
        f.struct_new_default(struct)
        f.local_set(made)
        f.local_get(made)
        f.local_get(length)
        f.struct_set(struct["length"])
        self.set_kind(made, kind)
        for column in layout.columns:
            f.local_get(made)
            self.number(length, column.stride)
            self.elements(column.type).new()
            f.struct_set(struct[column.name])


def append(b: Code, layout: Layout) -> Function:
    """list, slots of an item, kind ->: append an item."""

    def make(program: Program, name: str) -> Function:
        struct = b.list_struct
        slots = {f"slot {n}": slot for n, slot in enumerate(layout.slots)}
        f = program.function(name, {"list": struct, **slots, "kind": I64})
        of, *items, kind = f.parameters
        w, wanted = _Writer(f, struct), f.local("wanted", I64)
        w.begin(of, kind, layout, _GROWTH)
        w.length(of)
        f.i64_const(1)
        f.i64_add()
        f.local_set(wanted)
        w.grow(of, wanted, layout)
        for item, (column, place) in zip(items, layout.places(), strict=True):
            w.column(of, column.name)
            w.length(of)
            w.times(column.stride)
            if place:
                f.i64_const(place)
                f.i64_add()
            f.local_get(item)
            w.elements(column.type).set()
        f.local_get(of)
        f.local_get(wanted)
        f.struct_set(struct["length"])
        return f

    return b.shared(f"append {layout.name}", make)


def repeat(b: Code, layout: Layout) -> Function:
    """list, number -> list: a new list with the items so many times."""

    def make(program: Program, name: str) -> Function:
        struct = b.list_struct
        f = program.function(name, {"list": struct, "times": I64}, [struct])
        of, times = f.parameters
        w = _Writer(f, struct)
        size, at, one = f.local("length", I64), f.local("at", I64), f.local("one", I64)
        made, kind = f.local("made", struct), f.local("kind", I64)
        f.local_get(times)
        f.i64_const(0)
        f.local_get(times)
        f.i64_const(0)
        f.i64_gt_s()
        f.select()
        w.length(of)
        f.i64_mul_checked()
        f.local_set(size)
        w.length(of)
        f.local_set(one)
        f.local_get(of)
        f.struct_get(struct["kind"])
        f.local_set(kind)
        w.new(made, size, kind, layout)
        with f.block() as done, f.loop() as again:
            f.local_get(at)
            f.local_get(size)
            f.i64_ge_s()
            f.br_if(done)
            for column in layout.columns:
                w.column(made, column.name)
                w.number(at, column.stride)
                w.column(of, column.name)
                f.i64_const(0)
                w.number(one, column.stride)
                w.elements(column.type).copy()
            f.local_get(at)
            f.local_get(one)
            f.i64_add()
            f.local_set(at)
            f.br(again)
        f.local_get(made)
        return f

    return b.shared(f"repeat {layout.name}", make)


def part(b: Code, layout: Layout) -> Function:
    """list, start, number -> list: a new list of so many items, which are there."""

    def make(program: Program, name: str) -> Function:
        struct = b.list_struct
        f = program.function(name, {"list": struct, "start": I64, "number": I64}, [struct])
        of, start, number = f.parameters
        w = _Writer(f, struct)
        made, kind = f.local("made", struct), f.local("kind", I64)
        f.local_get(of)
        f.struct_get(struct["kind"])
        f.local_set(kind)
        w.new(made, number, kind, layout)
        f.local_get(number)
        f.i64_const(0)
        f.i64_ne()
        with f.if_():
            for column in layout.columns:
                w.column(made, column.name)
                f.i64_const(0)
                w.column(of, column.name)
                w.number(start, column.stride)
                w.number(number, column.stride)
                w.elements(column.type).copy()
        f.local_get(made)
        return f

    return b.shared(f"part {layout.name}", make)


def splice(b: Code, layout: Layout) -> Function:
    """list, start, number, other list, kind ->: replace so many items by those of the other list,
    which may be the same one."""

    def make(program: Program, name: str) -> Function:
        struct = b.list_struct
        f = program.function(
            name, {"list": struct, "start": I64, "number": I64, "other": struct, "kind": I64}
        )
        of, start, number, other, kind = f.parameters
        w = _Writer(f, struct)
        count, length, rest = f.local("count", I64), f.local("length", I64), f.local("rest", I64)
        w.length(other)
        f.local_set(count)
        with f.block() as done:
            f.local_get(count)
            f.local_get(number)
            f.i64_or()
            f.i64_eqz()
            f.br_if(done)
            w.begin(of, kind, layout, 0)
            f.local_get(other)
            f.local_get(of)
            f.ref_eq()
            with f.if_():
                f.local_get(other)
                f.i64_const(0)
                f.local_get(count)
                f.call(part(b, layout))
                f.local_set(other)
            w.length(of)
            f.local_get(count)
            f.i64_add()
            f.local_get(number)
            f.i64_sub()
            f.local_set(length)
            w.grow(of, length, layout)
            w.length(of)  # the items behind those that are replaced
            f.local_get(start)
            f.i64_sub()
            f.local_get(number)
            f.i64_sub()
            f.local_set(rest)
            for column in layout.columns:
                w.column(of, column.name)
                f.local_get(start)
                f.local_get(count)
                f.i64_add()
                w.times(column.stride)
                w.column(of, column.name)
                f.local_get(start)
                f.local_get(number)
                f.i64_add()
                w.times(column.stride)
                w.number(rest, column.stride)
                w.elements(column.type).copy()
            f.local_get(count)
            f.i64_const(0)
            f.i64_ne()
            with f.if_():
                for column in layout.columns:
                    w.column(of, column.name)
                    w.number(start, column.stride)
                    w.column(other, column.name)
                    f.i64_const(0)
                    w.number(count, column.stride)
                    w.elements(column.type).copy()
            f.local_get(of)
            f.local_get(length)
            f.struct_set(struct["length"])
        return f

    return b.shared(f"splice {layout.name}", make)


def settle(b: Code, kind: List) -> Function:
    """list -> i32: give a list, and lists in it, the kinds of items that are known now; 0 if it has
    others."""

    def make(program: Program, name: str) -> Function:
        struct = b.list_struct
        f = program.function(name, {"list": struct}, [I32])
        (of,) = f.parameters
        w = _Writer(f, struct)
        item = kind.item
        assert item is not None
        number, found = f.local("number", I64), f.local("kind", I64)
        f.i64_const(kind.number)
        f.local_set(number)
        f.local_get(of)
        f.struct_get(struct["kind"])
        f.local_set(found)
        f.local_get(found)
        f.local_get(number)
        f.i64_eq()
        with f.if_():
            f.i32_const(1)
            f.return_()
        f.local_get(found)
        f.i64_eqz()
        with f.if_():
            w.begin(of, number, layout_of(item), 0)
            f.i32_const(1)
            f.return_()
        others = [List(each).number for each in less_known(item)]
        f.i32_const(0)
        for each in others:
            f.local_get(found)
            f.i64_const(each)
            f.i64_eq()
            f.i32_or()
        f.i32_eqz()
        with f.if_():
            f.i32_const(0)
            f.return_()
        if others:
            _settle_items(b, w, of, item)
            w.set_kind(of, number)
        f.i32_const(1)
        return f

    return b.shared(f"settle {kind}", make)


def _settle_items(b: Code, w: _Writer, of: Local, item: Kind) -> None:
    """Settle the lists in the items of a list; return 0 where one has other items."""
    f, at = w.f, w.f.local("at", I64)
    inner = [*_lists_in(item)]
    with f.block() as done, f.loop() as again:
        f.local_get(at)
        w.length(of)
        f.i64_ge_s()
        f.br_if(done)
        for place, kind in enumerate(inner):
            if kind.item is None:
                continue
            w.column(of, "lists")
            w.number(at, len(inner))
            f.i64_const(place)
            f.i64_add()
            w.elements(LIST).get()
            f.call(settle(b, kind))
            f.i32_eqz()
            with f.if_():
                f.i32_const(0)
                f.return_()
        f.local_get(at)
        f.i64_const(1)
        f.i64_add()
        f.local_set(at)
        f.br(again)


def _lists_in(item: Kind) -> list[List]:
    """The lists among the slots of an item."""
    if isinstance(item, Tuple):
        return [found for each in item.items for found in _lists_in(each)]
    return [item] if isinstance(item, List) else []
