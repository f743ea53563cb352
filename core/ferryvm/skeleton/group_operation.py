# SPDX-License-Identifier: Apache-2.0
"""Operations of a group: each of its items gives a value, and gets what became of all of them.

    item 0     value ───────────── barrier ─┬─ values[0] = value, combine ─ barrier ─ values[0] ─>
    item i     values[i] = value ─ barrier ─┘                               barrier ─ values[0] ─>

The values are in an array of the group, an element for each item, and item 0 combines them, in the
order of a reduction, or of a scan, of that array. So these functions have no order of their own.
Two barriers are enough for one operation after another on the same array: before the first one an
item writes its own element, which nobody else reads then. Item 0, whose element all read behind the
second one, waits with its value until they have done so.
docs/decisions/2026-11-26-group-operations.md has the reasons.
"""

from __future__ import annotations

from collections.abc import Callable

from ferryvm.isa.type import I64, Type, ValueType
from ferryvm.listing import FunctionListing
from ferryvm.skeleton import scan as scans
from ferryvm.skeleton.array_type import OF_VALUE, ArrayType
from ferryvm.skeleton.operation import Operation
from ferryvm.skeleton.reduction import BLOCK, reduction, reduction_name
from ferryvm.skeleton.scan import scan, scan_name
from ferryvm.skeleton.writer import Writer

VALUE_ARRAYS = frozenset(OF_VALUE.values())
"""Arrays that such operations take: their elements are values as they are."""


def group_reduction_name(operation: Operation, values: ArrayType) -> str:
    """The name of the function that reduces the values of a group."""
    return f"group reduce {operation} {values}"


def group_scan_name(operation: Operation, values: ArrayType, *, is_exclusive: bool) -> str:
    """The name of the function that scans the values of a group."""
    return f"group scan{' before' if is_exclusive else ''} {operation} {values}"


def group_broadcast_name(values: ArrayType) -> str:
    """The name of the function that gives all items of a group the value of one of them."""
    return f"group broadcast {values}"


def group_reduction(operation: Operation, values: ArrayType) -> list[FunctionListing]:
    """The function that reduces the values of a group, ( value item values -- value ), and those
    that it needs."""
    whole = reduction_name(operation, values, has_initial=False)

    def combine(item: _Item) -> None:
        writer = item.writer
        many, over, total = writer.label(), writer.label(), writer.local(item.type)
        item.jump_if_more(BLOCK, many)
        writer.i64(0)
        writer.get(item.values, item.values)
        writer.emit("call", f"reduce {operation} {values}: block")
        writer.emit("jump", over)
        writer.place(many)
        writer.get(item.values)
        writer.emit("call", whole)
        writer.set(total)
        item.store_first(total)
        writer.place(over)

    name = group_reduction_name(operation, values)
    return [_Item(name, values).meet(combine), *reduction(operation, values)]


def group_scan(
    operation: Operation, values: ArrayType, *, is_exclusive: bool
) -> list[FunctionListing]:
    """The function that scans the values of a group, ( value item values -- value ), and those that
    it needs. An item gets the combination of the values of all items up to it; `is_exclusive`:
    without its own, the identity if it is the first, so the operation is no function."""

    def combine(item: _Item) -> None:
        writer = item.writer
        many, again, over = writer.label(), writer.label(), writer.label()
        at, total = writer.local(I64), writer.local(item.type)
        item.jump_if_more(scans.BLOCK, many)
        writer.get(0)
        writer.set(total)
        writer.i64(1)
        writer.set(at)
        writer.place(again)
        _jump_unless_below(item, at, over)
        operation.combine(writer, total, lambda: item.load(at), item.type)
        writer.get(item.values, at, total)
        values.store(writer)
        writer.increment(at)
        writer.emit("jump", again)
        writer.place(many)
        writer.get(item.values, item.values)
        writer.emit("call", scan_name(operation, values, in_place=True))
        writer.place(over)
        if is_exclusive:
            _shift(item, operation.identity(item.type))

    name = group_scan_name(operation, values, is_exclusive=is_exclusive)
    found = _Item(name, values, result=1).meet(combine)
    return [found, *scan(operation, values, in_place=True)]


def _jump_unless_below(item: _Item, at: int, label: str) -> None:
    """Jump if an index is not that of an element."""
    item.writer.get(at, item.values)
    item.writer.emit("array.length")
    item.writer.emit("i64.ge_s")
    item.writer.emit("jump_if", label)


def _shift(item: _Item, first: int) -> None:
    """Move each value to the next element, and make the first one that of no values."""
    writer, values = item.writer, item.values
    at, value, before = writer.local(I64), writer.local(item.type), writer.local(item.type)
    again, over = writer.label(), writer.label()
    writer.emit(f"{item.type}.const", first)
    writer.set(before)
    writer.i64(0)
    writer.set(at)
    writer.place(again)
    _jump_unless_below(item, at, over)
    item.load(at)
    writer.set(value)
    writer.get(values, at, before)
    item.array.store(writer)
    writer.get(value)
    writer.set(before)
    writer.increment(at)
    writer.emit("jump", again)
    writer.place(over)


def group_broadcast(values: ArrayType) -> list[FunctionListing]:
    """The function that gives all items of a group the value of one of them, ( value from item
    values -- value ); the number of that one is the `from` of item 0."""

    def choose(item: _Item) -> None:
        chosen = item.writer.local(item.type)
        item.load(1)
        item.writer.set(chosen)
        item.store_first(chosen)

    return [_Item(group_broadcast_name(values), values, further=1).meet(choose)]


class _Item:
    """A function for the items of a group: ( value … item values -- value )."""

    def __init__(
        self, name: str, values: ArrayType, *, further: int = 0, result: int | None = None
    ) -> None:
        """`further`: the number of i64 parameters behind the value; `result`: the parameter with the
        index of the value that an item gets, if that is not 0."""
        assert isinstance(values.value, Type)
        assert values in VALUE_ARRAYS
        self.type, self.array, self._result = values.value, values, result
        numbers: list[Type] = [I64] * (further + 1)
        parameters: list[ValueType] = [self.type, *numbers, values.reference]
        self.writer = Writer(name, parameters, [self.type])
        self.item, self.values = further + 1, further + 2

    def load(self, at: int) -> None:
        """Push the value at the index in a local."""
        self.writer.get(self.values, at)
        self.array.load(self.writer)

    def store_first(self, local: int) -> None:
        """Store a local as the first value."""
        self.writer.get(self.values)
        self.writer.i64(0)
        self.writer.get(local)
        self.array.store(self.writer)

    def jump_if_more(self, count: int, label: str) -> None:
        """Jump if there are more values than so many."""
        writer = self.writer
        writer.get(self.values)
        writer.emit("array.length")
        writer.i64(count)
        writer.emit("i64.gt_s")
        writer.emit("jump_if", label)

    def meet(self, combine: Callable[[_Item], None]) -> FunctionListing:
        """The function, in which item 0 runs generated code when all values are in the array."""
        writer = self.writer
        first, done = writer.label(), writer.label()
        writer.get(self.item)
        writer.emit("i64.eqz")
        writer.emit("jump_if", first)
        writer.get(self.values, self.item, 0)
        self.array.store(writer)
        writer.place(first)
        _barrier(writer)
        writer.get(self.item)
        writer.i64(0)
        writer.emit("i64.ne")
        writer.emit("jump_if", done)
        self.store_first(0)
        combine(self)
        writer.place(done)
        _barrier(writer)
        if self._result is None:
            writer.get(self.values)
            writer.i64(0)
            self.array.load(writer)
        else:
            self.load(self._result)
        return writer.listing()


def _barrier(writer: Writer) -> None:
    writer.emit("i32.const", 0)
    writer.emit("launch.barrier")
