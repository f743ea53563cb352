# SPDX-License-Identifier: Apache-2.0
"""Scans: each element becomes the combination of all elements up to it, itself included.

    elements      │ block 0    │ block 1    │ ...        BLOCK elements each, combined from the left
    last ones     │ 0 │ 1 │ ...            │            of the blocks, scanned in the same way
    results       │ block 0    │ scanned 0 combined with each of block 1 │ ...

Two launches a level: the blocks, and the combinations. An item has ITEM_BLOCKS blocks, of which it
advances every STRIDE-th side by side: each is a chain of operations, and a chain alone would wait
for each result. Neighbours side by side would be in one page of memory, where processors prefetch
for one stream of accesses. A function of the program advances them one by one. This does not change
any result.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from ferryvm.isa.type import I64
from ferryvm.listing import FunctionListing
from ferryvm.skeleton.array_type import ArrayType, of_values
from ferryvm.skeleton.operation import Operation
from ferryvm.skeleton.writer import Writer

BLOCK_SHIFT = 8
BLOCK = 1 << BLOCK_SHIFT
"""Elements of a block."""

ITEM_SHIFT = 3
ITEM_BLOCKS = 1 << ITEM_SHIFT
"""Blocks of an item."""

STRIDE = 2
CHAINS = ITEM_BLOCKS // STRIDE
"""Blocks side by side."""


def scan_name(operation: Operation, array: ArrayType, *, in_place: bool = False) -> str:
    """The name of the function that scans such arrays; `in_place`: into an array that is given."""
    return f"scan{'!' if in_place else ''} {operation} {array}"


def scan(
    operation: Operation, array: ArrayType, *, in_place: bool = False
) -> list[FunctionListing]:
    """The function that scans arrays of numbers, ( array -- array ), and those that it needs;
    `in_place`: into an array of the same length that is given, ( array array -- ), which may be the
    same one. Of arrays of pairs the operation is a function."""
    results = of_values(array)
    functions = [_levels(operation, array, in_place=True)] if in_place else []
    for source in dict.fromkeys((array, results)):
        name = scan_name(operation, source)
        functions += [
            _levels(operation, source),
            _blocks(f"{name}: blocks", operation, source),
        ]
    return [*functions, _combinations(operation, results)]


def _combinations_name(operation: Operation, results: ArrayType) -> str:
    return f"scan {operation} {results}: combinations"


def _levels(operation: Operation, array: ArrayType, *, in_place: bool = False) -> FunctionListing:
    """The function that launches the blocks, scans their last results, and launches the
    combinations."""
    results = of_values(array)
    name, type_ = scan_name(operation, array), results.reference
    given = [array.reference, type_] if in_place else [array.reference]
    writer = Writer(
        scan_name(operation, array, in_place=in_place), given, [] if in_place else [type_]
    )
    source, items, blocks = 0, writer.local(I64), writer.local(I64)
    to, last = 1 if in_place else writer.local(type_), writer.local(type_)
    over = writer.label()
    if not in_place:
        array.push_count(writer, source)
        results.make(writer)
        writer.set(to)
    results.push_count(writer, to)
    writer.emit("i64.eqz")
    writer.emit("jump_if", over)
    for local, shift in ((blocks, BLOCK_SHIFT), (items, BLOCK_SHIFT + ITEM_SHIFT)):
        results.push_count(writer, to)
        writer.i64(1)
        writer.emit("i64.sub")
        writer.i64(shift)
        writer.emit("i64.shr_u")
        writer.i64(1)
        writer.emit("i64.add")
        writer.set(local)
    writer.get(blocks)
    results.make(writer)
    writer.set(last)
    writer.launch(f"{name}: blocks", [source, to, last], items)
    writer.get(blocks)
    writer.i64(1)
    writer.emit("i64.eq")
    writer.emit("jump_if", over)
    writer.get(last)
    writer.emit("call", scan_name(operation, results))
    writer.set(last)
    writer.launch(_combinations_name(operation, results), [last, to], items)
    writer.place(over)
    if not in_place:
        writer.get(to)
    return writer.listing()


class _Item:
    """Locals and loops of an item function: its blocks one by one."""

    def __init__(self, writer: Writer, to: int, results: ArrayType) -> None:
        """`to`: the local of the array for the results, which has the type `results`."""
        self.writer = writer
        self.block, self.at, self.end, self.stop = (writer.local(I64) for _ in range(4))
        writer.get(0)
        writer.i64(ITEM_SHIFT)
        writer.emit("i64.shl")
        writer.set(self.block)
        writer.get(self.block)
        writer.i64(BLOCK_SHIFT)
        writer.emit("i64.shl")
        writer.set(self.at)
        results.push_count(writer, to)
        writer.set(self.end)
        self.at_most(self.end, BLOCK * ITEM_BLOCKS, None)

    def at_most(self, local: int, count: int, limit: int | None) -> None:
        """Make a local the index `count` elements on, at most the limit; None is the local."""
        writer, whole = self.writer, self.writer.label()
        if limit is not None:
            writer.get(limit)
            writer.set(local)
        writer.get(local, self.at)
        writer.emit("i64.sub")
        writer.i64(count)
        writer.emit("i64.le_s")
        writer.emit("jump_if", whole)
        writer.get(self.at)
        writer.i64(count)
        writer.emit("i64.add")
        writer.set(local)
        writer.place(whole)

    def jump_unless_below(self, bound: int, label: str) -> None:
        """Jump if the index is not below a local."""
        self.writer.get(self.at, bound)
        self.writer.emit("i64.ge_s")
        self.writer.emit("jump_if", label)


def _blocks(name: str, operation: Operation, array: ArrayType) -> FunctionListing:
    """The item function: ( item source to last -- )."""
    value, results = array.value, of_values(array)
    writer = Writer(name, [I64, array.reference, results.reference, results.reference])
    source, to, last = 1, 2, 3
    item = _Item(writer, to, results)
    at, total = item.at, writer.locals(array.values)
    few, next_, again, done, over = (writer.label() for _ in range(5))

    def index(local: int, offset: int) -> None:
        writer.get(local)
        if offset:
            writer.i64(offset)
            writer.emit("i64.add")

    def element(offset: int) -> None:
        array.push_element(writer, source, functools.partial(index, at, offset))

    def store(offset: int, locals_: Sequence[int]) -> None:
        results.set_element(writer, to, functools.partial(index, at, offset), locals_)

    if not operation.is_function:
        totals = [writer.locals(array.values) for _ in range(CHAINS)]
        writer.get(item.end, at)
        writer.emit("i64.sub")
        writer.i64(BLOCK * ITEM_BLOCKS)
        writer.emit("i64.lt_s")
        writer.emit("jump_if", few)
        for first in range(STRIDE):
            rows, ended = writer.label(), writer.label()
            item.at_most(item.stop, BLOCK, item.end)
            for chain, local in enumerate(totals):
                element(chain * STRIDE * BLOCK)
                writer.set(*local)
                store(chain * STRIDE * BLOCK, local)
            writer.increment(at)
            writer.place(rows)
            item.jump_unless_below(item.stop, ended)
            for chain, local in enumerate(totals):
                right = functools.partial(element, chain * STRIDE * BLOCK)
                operation.combine(writer, local, right, value)
                store(chain * STRIDE * BLOCK, local)
            writer.increment(at)
            writer.emit("jump", rows)
            writer.place(ended)
            for chain, local in enumerate(totals):
                block = functools.partial(index, item.block, first + chain * STRIDE)
                results.set_element(writer, last, block, local)
        writer.emit("return", 0)
    writer.place(few)
    writer.place(next_)
    item.jump_unless_below(item.end, over)
    item.at_most(item.stop, BLOCK, item.end)
    element(0)
    writer.set(*total)
    store(0, total)
    writer.increment(at)
    writer.place(again)
    item.jump_unless_below(item.stop, done)
    operation.combine(writer, total, functools.partial(element, 0), value)
    store(0, total)
    writer.increment(at)
    writer.emit("jump", again)
    writer.place(done)
    results.set_element(writer, last, functools.partial(writer.get, item.block), total)
    writer.increment(item.block)
    writer.emit("jump", next_)
    writer.place(over)
    return writer.listing()


def _combinations(operation: Operation, results: ArrayType) -> FunctionListing:
    """The item function: ( item scanned to -- ), which combines with each element of a block the
    scanned last one of the block before."""
    name = _combinations_name(operation, results)
    writer = Writer(name, [I64, results.reference, results.reference])
    scanned, to = 1, 2
    item = _Item(writer, to, results)
    at, left, found = item.at, *(writer.locals(results.values) for _ in range(2))
    next_, first, again, done, over = (writer.label() for _ in range(5))

    def index() -> None:
        writer.get(at)

    def index_before() -> None:
        writer.get(item.block)
        writer.i64(1)
        writer.emit("i64.sub")

    def element() -> None:
        results.push_element(writer, to, index)

    writer.place(next_)
    item.jump_unless_below(item.end, over)
    item.at_most(item.stop, BLOCK, item.end)
    writer.get(item.block)
    writer.emit("i64.eqz")
    writer.emit("jump_if", first)
    results.push_element(writer, scanned, index_before)
    writer.set(*left)
    writer.place(again)
    item.jump_unless_below(item.stop, done)
    writer.get(*left)
    writer.set(*found)
    operation.combine(writer, found, element, results.value)
    results.set_element(writer, to, index, found)
    writer.increment(at)
    writer.emit("jump", again)
    writer.place(first)
    writer.get(item.stop)
    writer.set(at)
    writer.place(done)
    writer.increment(item.block)
    writer.emit("jump", next_)
    writer.place(over)
    return writer.listing()
