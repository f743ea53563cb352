# SPDX-License-Identifier: Apache-2.0
"""Elements and slices of NumPy arrays: places of elements from indices, lengths and strides.

A contiguous array has the slots (array, lengths); what a slice, or fewer indices than dimensions,
makes of it is a *view*, with the slots (array, first element, lengths, strides), in elements.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ferryvm.isa.trap import Trap
from ferryvm.isa.type import I64
from ferryvm.python.codegen import complex_code
from ferryvm.python.codegen.index_code import push_from_end
from ferryvm.python.codegen.known import known_integer
from ferryvm.python.control_flow.counter import is_from_zero
from ferryvm.python.fault import NotCompilableError
from ferryvm.python.value.kind import (
    BOOL,
    INT,
    INTEGERS,
    PAIRS,
    Array,
    Kind,
    List,
    Scalar,
    Tuple,
    element_kind,
)

if TYPE_CHECKING:
    from ferryvm.build import Local
    from ferryvm.python.codegen.code import Code


def parts(node: ast.Subscript) -> list[ast.expr]:
    """The indices and slices of a subscript."""
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def item_kind(b: Code, node: ast.Subscript, of: Array) -> Kind:
    """The kind of an element or a view. Raises NotCompilableError."""
    found = parts(node)
    if len(found) > of.dimensions:
        shown = f"too many indices: {len(found)}, the array has {of.dimensions} dimensions"
        raise NotCompilableError(node, shown)
    for part in found:
        if isinstance(part, ast.Slice):
            _step(b, part)
        elif (kind := b.kind(part)) in (BOOL, Scalar("bool")):
            raise NotCompilableError(part, f"{kind} as an index of an array; write int(i)")
        elif kind not in INTEGERS:
            hint = "; write a loop" if isinstance(kind, Array | List | Tuple) else ""
            raise NotCompilableError(part, f"an index must be an int, found {kind}{hint}")
    left = of.dimensions - sum(not isinstance(part, ast.Slice) for part in found)
    return Array(of.dtype, left, is_view=True) if left else element_kind(of.dtype)


def _step(b: Code, part: ast.Slice) -> int | None:
    """The step of a slice; None for one that is computed, which must be above 0."""
    if part.step is None:
        return 1
    step = known_integer(part.step)
    if step is None and b.kind(part.step) in INTEGERS:
        return None
    if not step:
        raise NotCompilableError(part, "the step of a slice must be an int, and not 0")
    return step


def length(of: Array, slots: Sequence[Local], axis: int) -> Local:
    """The local with the length of an axis."""
    return slots[(2 if of.is_view else 1) + axis]


def push_stride(b: Code, of: Array, slots: Sequence[Local], axis: int) -> None:
    """Push the distance of the elements of an axis."""
    f = b.f
    if of.is_view:
        f.local_get(slots[2 + of.dimensions + axis])
    elif axis == of.dimensions - 1:
        f.i64_const(1)
    else:
        for other in range(axis + 1, of.dimensions):
            f.local_get(length(of, slots, other))
            if other > axis + 1:
                f.i64_mul()


def push_place(b: Code, node: ast.Subscript, of: Array, slots: Sequence[Local]) -> None:
    """Push the number of the element that indices name."""
    f = b.f
    if of.is_view:
        f.local_get(slots[1])
    for axis, index in enumerate(parts(node)):
        if axis and not of.is_view:
            f.local_get(length(of, slots, axis))
            f.i64_mul()
        push_index(b, node, index, of, slots, axis)
        if of.is_view:
            push_stride(b, of, slots, axis)
            f.i64_mul()
        if axis or of.is_view:
            f.i64_add()


def push_index(
    b: Code, node: ast.AST, index: ast.expr, of: Array, slots: Sequence[Local], axis: int
) -> None:
    """Push an index from 0 up to the length of an axis; negative ones count from the end."""
    f = b.f
    size = length(of, slots, axis)
    b.push_as(index, INT)
    known = known_integer(index)
    if known is None and is_from_zero(index, b.counters):
        known = 0
    if known is None:
        value = b.spare(I64)
        f.local_set(value)
        push_from_end(f, value, lambda: f.local_get(size))
    elif known < 0:
        f.local_get(size)
        f.i64_add()
    b.at(node)
    message = f"index out of bounds for axis {axis}"
    if IndexError in b.caught:
        place = b.spare(I64)
        f.local_set(place)
        f.local_get(place)
        f.local_get(size)
        f.i64_ge_u()
        b.throw_if(node, IndexError, message)
        f.local_get(place)
    b.trap(node, Trap.INDEX_OUT_OF_BOUNDS, IndexError, message)
    if of.dimensions > 1 or of.is_view or of.dtype in PAIRS:  # else the access checks it
        f.local_get(size)
        f.array_index()


def push_element(b: Code, of: Array) -> None:
    """Turn an array and the number of an element on the stack into the element."""
    if of.dtype in PAIRS:
        complex_code.push_element(b, of)
    else:
        getattr(b.f, f"array_get_{of.element}")()


def store_element(b: Code, of: Array) -> None:
    """Pop an array, the number of an element, and the element, and store it."""
    if of.dtype in PAIRS:
        complex_code.store_element(b, of)
    else:
        getattr(b.f, f"array_set_{of.element}")()


def push_view(b: Code, node: ast.Subscript, of: Array, slots: Sequence[Local]) -> None:
    """Push the slots of a view of an array."""
    f = b.f
    name = f"%view {node.lineno} {node.col_offset} {node.end_col_offset}"
    first, *lengths = (b.locals(f"{name} {n}", INT)[0] for n in range(1 + of.dimensions))
    steps: list[tuple[int, int | Local]] = []
    if of.is_view:
        f.local_get(slots[1])
    else:
        f.i64_const(0)
    f.local_set(first)
    found = [*parts(node), *(ast.Slice() for _ in range(of.dimensions - len(parts(node))))]
    for axis, part in enumerate(found):
        f.local_get(first)
        if isinstance(part, ast.Slice):
            step = _step(b, part)
            by = _computed_step(b, part, f"{name} step {axis}") if step is None else step
            steps.append((axis, by))
            _push_start(b, part, by, length(of, slots, axis), lengths[axis])
        else:
            push_index(b, node, part, of, slots, axis)
        push_stride(b, of, slots, axis)
        f.i64_mul()
        f.i64_add()
        f.local_set(first)
    f.local_get(slots[0])
    f.local_get(first)
    for axis, _ in steps:
        f.local_get(lengths[axis])
    for axis, by in steps:
        push_stride(b, of, slots, axis)
        if by != 1:
            _push_step(b, by)
            f.i64_mul()


def _computed_step(b: Code, part: ast.Slice, name: str) -> Local:
    """A local with the step of a slice, where it is above 0; elsewhere CPython goes on."""
    assert part.step is not None
    f, (step,) = b.f, b.locals(name, INT)
    b.push_as(part.step, INT)
    f.local_set(step)
    f.local_get(step)
    f.i64_const(0)
    f.i64_le_s()
    b.throw_if(part, ValueError, "the step of a slice", is_limit=True)
    return step


def _push_step(b: Code, step: int | Local) -> None:
    if isinstance(step, int):
        b.f.i64_const(step)
    else:
        b.f.local_get(step)


def _push_start(b: Code, part: ast.Slice, by: int | Local, size: Local, result: Local) -> None:
    """Push the first index of a slice of an axis, and put the number of its elements into a local
    (the Python data model: `slice.indices`). `by`: the step; one in a local is above 0."""
    f, step = b.f, by if isinstance(by, int) else 1
    start, stop = b.spare(I64), b.spare(I64)
    # Between 0 and the length for a step forwards, between -1 and the length - 1 backwards.
    for bound, local, is_start in ((part.lower, start, True), (part.upper, stop, False)):
        if bound is None or _is_none(bound):
            if is_start == (step > 0):
                f.i64_const(0 if step > 0 else -1)
            else:
                f.local_get(size)
                if step < 0:
                    f.i64_const(1)
                    f.i64_sub()
            f.local_set(local)
            continue
        b.push_as(bound, INT)
        f.local_set(local)
        push_from_end(f, local, lambda: f.local_get(size))
        f.local_set(local)
        low = 0 if step > 0 else -1
        f.i64_const(low)
        f.local_get(local)
        f.local_get(local)
        f.i64_const(low)
        f.i64_lt_s()
        f.select()
        f.local_set(local)
        f.local_get(size)
        if step < 0:
            f.i64_const(1)
            f.i64_sub()
        f.local_get(local)
        f.local_get(local)
        f.local_get(size)
        if step < 0:
            f.i64_const(1)
            f.i64_sub()
        f.i64_gt_s()
        f.select()
        f.local_set(local)
    low_end, high_end = (start, stop) if step > 0 else (stop, start)
    f.i64_const(0)
    f.local_get(high_end)
    f.local_get(low_end)
    f.i64_sub()
    if isinstance(by, int):
        f.i64_const(abs(step) - 1)
        f.i64_add()
        f.i64_const(abs(step))
        f.i64_div_s()
    else:  # without a sum that may leave 64 bits
        f.i64_const(1)
        f.i64_sub()
        f.local_get(by)
        f.i64_div_s()
        f.i64_const(1)
        f.i64_add()
    f.local_get(high_end)
    f.local_get(low_end)
    f.i64_le_s()
    f.select()
    f.local_set(result)
    f.local_get(start)


def _is_none(node: ast.expr) -> bool:
    return getattr(node, "value", node) is None
