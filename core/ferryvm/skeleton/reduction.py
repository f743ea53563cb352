# SPDX-License-Identifier: Apache-2.0
"""Reductions: all elements of an array become one value, in an order that depends on their number.

    elements   │ block 0      │ block 1      │ ...  │ last block │     BLOCK elements each
                 │ a launch: an item for each block    │
    results    │ 0 │ 1 │ ...                        │     again in blocks, until one is left

In a block, accumulator `a` of ACCUMULATORS combines every ACCUMULATORS-th element from the block's
element `a` on; then the accumulators are combined in halves, and elements that fill no row follow
in order. A function of the program has one accumulator, so its operands are in the order of the
elements, and it need not commute. docs/decisions/2026-11-26-skeletons.md has the measurements.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from ferryvm.isa.type import I64, Type, ValueType
from ferryvm.listing import FunctionListing
from ferryvm.skeleton.array_type import ArrayType, of_values
from ferryvm.skeleton.operation import Operation
from ferryvm.skeleton.writer import Writer

BLOCK_SHIFT = 10
BLOCK = 1 << BLOCK_SHIFT
"""Elements of a block."""

ACCUMULATORS = 16
"""Accumulators of an operation of the table in a block."""


def reduction_name(operation: Operation, array: ArrayType, has_initial: bool) -> str:
    """The name of the function that reduces such arrays."""
    return f"reduce {operation}{' from' if has_initial else ''} {array}"


def reduction(
    operation: Operation, array: ArrayType, has_initial: bool = False
) -> list[FunctionListing]:
    """The function that reduces arrays of numbers, ( array -- value ) or ( initial array -- value
    ), and those that it needs. With a function and no initial value an empty array traps. Of an
    array of pairs a value is both parts, and the operation is a function."""
    results = of_values(array)
    sources = {f"reduce {operation} {source}: block": source for source in (array, results)}
    name = reduction_name(operation, array, has_initial)
    parameters: list[ValueType] = [*(array.values if has_initial else ()), array.reference]
    functions = [_levels(Writer(name, parameters, array.values), operation, array, [*sources])]
    for name, source in sources.items():
        writer = Writer(name, [I64, source.reference, results.reference])
        functions.append(_block(writer, operation, source))
    return functions


def _levels(
    writer: Writer, operation: Operation, array: ArrayType, blocks: list[str]
) -> FunctionListing:
    """The function that launches the blocks of each level; `blocks`: the item functions of the
    first one, and of the others."""
    value, results = array.value, of_values(array)
    assert isinstance(value, Type)
    source = len(writer.signature.parameters) - 1
    initial = range(source)
    count, total = writer.local(I64), writer.locals(array.values)
    upper, lower = writer.local(results.reference), writer.local(results.reference)
    full, again, over = writer.label(), writer.label(), writer.label()
    array.push_count(writer, source)
    writer.set(count)
    writer.get(count)
    writer.i64(0)
    writer.emit("i64.ne")
    writer.emit("jump_if", full)
    if operation.is_function and not initial:
        writer.emit("trap")
    else:
        if initial:
            writer.get(*initial)
        else:
            writer.emit(f"{value}.const", operation.identity(value))
        writer.emit("return", len(array.values))
    writer.place(full)
    _make_results(writer, results, count, upper)
    writer.launch(blocks[0], [source, upper], count)
    writer.place(again)
    writer.get(count)
    writer.i64(1)
    writer.emit("i64.eq")
    writer.emit("jump_if", over)
    writer.get(upper)
    writer.set(lower)
    _make_results(writer, results, count, upper)
    writer.launch(blocks[-1], [lower, upper], count)
    writer.emit("jump", again)
    writer.place(over)

    def push_result() -> None:
        results.push_element(writer, upper, functools.partial(writer.i64, 0))

    if initial:
        writer.get(*initial)
        writer.set(*total)
        operation.combine(writer, total, push_result, value)
        writer.get(*total)
    else:
        push_result()
    return writer.listing()


def _make_results(writer: Writer, results: ArrayType, count: int, to: int) -> None:
    """Make a local, a number of elements that is not 0, the number of their blocks, and another one
    an array for the results of these."""
    count_blocks(writer, count)
    writer.get(count)
    results.make(writer)
    writer.set(to)


def count_blocks(writer: Writer, count: int) -> None:
    """Make a local, a number of elements that is not 0, the number of their blocks."""
    writer.increment(count, -1)
    writer.get(count)
    writer.i64(BLOCK_SHIFT)
    writer.emit("i64.shr_u")
    writer.set(count)
    writer.increment(count)


def _block(writer: Writer, operation: Operation, array: ArrayType) -> FunctionListing:
    """The item function that reduces one block of an array into an element of another one."""
    block, source, to = range(3)
    at, end = (writer.local(I64) for _ in range(2))
    _block_bounds(writer, block, source, array, at, end)
    total = reduce_elements(writer, operation, array, source, at, end)
    of_values(array).set_element(writer, to, functools.partial(writer.get, block), total)
    return writer.listing()


def reduce_elements(
    writer: Writer, operation: Operation, array: ArrayType, source: int, at: int, end: int
) -> Sequence[int]:
    """Reduce the elements of an array from one index up to another one above it, which are in
    locals; the locals with the result."""
    value = array.value
    bound = writer.local(I64)
    width = 1 if operation.is_function else ACCUMULATORS
    accumulators = [writer.locals(array.values) for _ in range(width)]
    total = accumulators[0]
    few, rows, tree, rest, over = (writer.label() for _ in range(5))

    def index(offset: int) -> None:
        writer.get(at)
        if offset:
            writer.i64(offset)
            writer.emit("i64.add")

    def element(offset: int) -> None:
        array.push_element(writer, source, functools.partial(index, offset))

    if width > 1:
        writer.get(end)
        writer.i64(width - 1)
        writer.emit("i64.sub")
        writer.set(bound)  # rows begin below it: from such a comparison compilers know indices
        _jump_unless_below(writer, at, bound, few)
    if width == 1:
        element(0)
        writer.set(*total)
        writer.increment(at)
    else:
        assert isinstance(value, Type)  # operations of the table combine no references
        for accumulator in accumulators:
            writer.emit(f"{value}.const", operation.neutral(value))
            writer.set(*accumulator)
        writer.place(rows)
        _jump_unless_below(writer, at, bound, tree)
        for offset, accumulator in enumerate(accumulators):
            operation.combine(writer, accumulator, functools.partial(element, offset), value)
        writer.increment(at, width)
        writer.emit("jump", rows)
        writer.place(tree)
        while width > 1:
            width //= 2
            for left, right in zip(accumulators[:width], accumulators[width:], strict=False):
                operation.combine(writer, left, functools.partial(writer.get, *right), value)
        writer.emit("jump", rest)
        writer.place(few)
        element(0)
        writer.set(*total)
        writer.increment(at)
    writer.place(rest)
    _jump_unless_below(writer, at, end, over)
    operation.combine(writer, total, functools.partial(element, 0), value)
    writer.increment(at)
    writer.emit("jump", rest)
    writer.place(over)
    return total


def _jump_unless_below(writer: Writer, local: int, bound: int, label: str) -> None:
    writer.get(local, bound)
    writer.emit("i64.ge_s")
    writer.emit("jump_if", label)


def _block_bounds(
    writer: Writer, block: int, source: int, array: ArrayType, start: int, end: int
) -> None:
    """Set two locals to the first index of a block of an array and the one after the last."""
    whole = writer.label()
    writer.get(block)
    writer.i64(BLOCK_SHIFT)
    writer.emit("i64.shl")
    writer.set(start)
    array.push_count(writer, source)
    writer.set(end)
    writer.get(end, start)
    writer.emit("i64.sub")
    writer.i64(BLOCK)
    writer.emit("i64.le_s")
    writer.emit("jump_if", whole)
    writer.get(start)
    writer.i64(BLOCK)
    writer.emit("i64.add")
    writer.set(end)
    writer.place(whole)
