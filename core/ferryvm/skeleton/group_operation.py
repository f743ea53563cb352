# SPDX-License-Identifier: Apache-2.0
"""Operations of a group: each of its items gives a value, and gets what became of all of them.

    item 0     value ───────────── barrier ─┬─ values[0] = value, combine ─ barrier ─ values[0] ─>
    item i     values[i] = value ─ barrier ─┘                               barrier ─ values[0] ─>

The values are in an array of the group, an element for each item, and item 0 combines them there,
in the order of a reduction, or of a scan, of that array. It launches nothing and makes no object.
Two barriers are enough for one operation after another on the same array: before the first one an
item writes its own element, which nobody else reads then. Item 0, whose element all read behind the
second one, waits with its value until they have done so.
docs/decisions/2026-11-26-group-operations.md has the reasons.
"""

from __future__ import annotations

from collections.abc import Callable

from ferryvm.isa.type import I64, Type, ValueType
from ferryvm.listing import FunctionListing
from ferryvm.skeleton.array_type import OF_VALUE, ArrayType
from ferryvm.skeleton.operation import Operation
from ferryvm.skeleton.reduction import BLOCK, BLOCK_SHIFT, count_blocks, reduce_elements
from ferryvm.skeleton.scan import BLOCK as SCAN_BLOCK
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
    """The function that reduces the values of a group, ( value item values -- value ), of which
    there is one."""

    def combine(item: _Item) -> None:
        writer = item.writer
        count, blocks, block, at, end = (writer.local(I64) for _ in range(5))
        level, again = writer.label(), writer.label()
        item.push_count()
        writer.set(count)
        writer.place(level)
        writer.get(count)
        writer.set(blocks)
        count_blocks(writer, blocks)
        writer.i64(0)
        writer.set(block)
        writer.place(again)
        writer.get(block)
        writer.i64(BLOCK_SHIFT)
        writer.emit("i64.shl")
        writer.set(at)
        _set_end(item, at, count, BLOCK, end)
        (total,) = reduce_elements(writer, operation, values, item.values, at, end)
        writer.get(item.values, block, total)  # whose elements are all in the result
        values.store(writer)
        writer.increment(block)
        writer.get(block, blocks)
        writer.emit("i64.lt_s")
        writer.emit("jump_if", again)
        writer.get(blocks)
        writer.set(count)
        writer.get(count)
        writer.i64(1)
        writer.emit("i64.gt_s")
        writer.emit("jump_if", level)

    return [_Item(group_reduction_name(operation, values), values).meet(combine)]


def _set_end(item: _Item, at: int, count: int, block: int, end: int) -> None:
    """Set a local to the end of a block that begins at an index."""
    writer, whole = item.writer, item.writer.label()
    writer.get(at)
    writer.i64(block)
    writer.emit("i64.add")
    writer.set(end)
    writer.get(end, count)
    writer.emit("i64.le_s")
    writer.emit("jump_if", whole)
    writer.get(count)
    writer.set(end)
    writer.place(whole)


def group_scan(
    operation: Operation, values: ArrayType, *, is_exclusive: bool
) -> list[FunctionListing]:
    """The function that scans the values of a group, ( value item values -- value ), of which there
    is one. An item gets the combination of the values of all items up to it; `is_exclusive`:
    without its own, the identity if it is the first, so the operation is no function."""

    def combine(item: _Item) -> None:
        writer = item.writer
        rows, next_block, row, ended, over = (writer.label() for _ in range(5))
        count, at, end = (writer.local(I64) for _ in range(3))
        total, before, found = (writer.local(item.type) for _ in range(3))
        item.push_count()
        writer.set(count)
        writer.i64(0)
        writer.set(at)
        _set_end(item, at, count, SCAN_BLOCK, end)
        writer.get(0)
        writer.set(total)
        writer.place(rows)  # of the first block
        writer.increment(at)
        item.jump_unless_below(at, end, ended)
        operation.combine(writer, [total], lambda: item.load(at), item.type)
        item.store(at, total)
        writer.emit("jump", rows)
        writer.place(ended)
        writer.get(total)
        writer.set(before)
        writer.place(next_block)
        item.jump_unless_below(at, count, over)
        _set_end(item, at, count, SCAN_BLOCK, end)
        item.load(at)
        writer.set(total)
        writer.place(row)
        writer.get(before)
        writer.set(found)
        operation.combine(writer, [found], lambda: writer.get(total), item.type)
        item.store(at, found)
        writer.increment(at)
        last = writer.label()
        item.jump_unless_below(at, end, last)
        operation.combine(writer, [total], lambda: item.load(at), item.type)
        writer.emit("jump", row)
        writer.place(last)
        writer.get(found)
        writer.set(before)
        writer.emit("jump", next_block)
        writer.place(over)
        if is_exclusive:
            _shift(item, operation.identity(item.type))

    name = group_scan_name(operation, values, is_exclusive=is_exclusive)
    return [_Item(name, values, result=1).meet(combine)]


def _shift(item: _Item, first: int) -> None:
    """Move each value to the next element, and make the first one that of no values."""
    writer = item.writer
    at, count, value, before = (writer.local(type_) for type_ in (I64, I64, item.type, item.type))
    again, over = writer.label(), writer.label()
    writer.emit(f"{item.type}.const", first)
    writer.set(before)
    item.push_count()
    writer.set(count)
    writer.i64(0)
    writer.set(at)
    writer.place(again)
    item.jump_unless_below(at, count, over)
    item.load(at)
    writer.set(value)
    item.store(at, before)
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
        """`further`: the number of i64 parameters behind the value; `result`: the parameter with
        the index of the value that an item gets, if that is not 0."""
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

    def store(self, at: int, local: int) -> None:
        """Store a local as the value at the index in another one."""
        self.writer.get(self.values, at, local)
        self.array.store(self.writer)

    def store_first(self, local: int) -> None:
        """Store a local as the first value."""
        self.writer.get(self.values)
        self.writer.i64(0)
        self.writer.get(local)
        self.array.store(self.writer)

    def push_count(self) -> None:
        """Push the number of values."""
        self.writer.get(self.values)
        self.writer.emit("array.length")

    def jump_unless_below(self, at: int, count: int, label: str) -> None:
        """Jump if a local is not below another one."""
        self.writer.get(at, count)
        self.writer.emit("i64.ge_s")
        self.writer.emit("jump_if", label)

    def meet(self, combine: Callable[[_Item], None]) -> FunctionListing:
        """The function, in which item 0 runs generated code when all values are in the array."""
        writer = self.writer
        first, done = writer.label(), writer.label()
        writer.get(self.item)
        writer.emit("i64.eqz")
        writer.emit("jump_if", first)
        self.store(self.item, 0)
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
