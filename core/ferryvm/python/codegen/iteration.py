# SPDX-License-Identifier: Apache-2.0
"""Iterators of `for`: ranges, tuples, arrays, `enumerate` and `zip`, as kinds with slots."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ferryvm.isa.trap import Trap
from ferryvm.isa.type import I64
from ferryvm.python.codegen import array_code, list_code, text_code
from ferryvm.python.fault import NotCompilableError
from ferryvm.python.value.iterator_kind import (
    ArrayIterator,
    Enumerated,
    ListIterator,
    RangeIterator,
    TextIterator,
    TupleIterator,
    Zipped,
)
from ferryvm.python.value.kind import (
    INT,
    Array,
    Character,
    Constant,
    Kind,
    List,
    Range,
    Text,
    Tuple,
    element_kind,
    text_of,
)

if TYPE_CHECKING:
    from ferryvm.build import Local
    from ferryvm.python.codegen.code import Code


def begin(b: Code, node: ast.expr) -> Kind:
    """Push an iterator of the value of an expression. Raises NotCompilableError."""
    function = getattr(node.func, "value", None) if isinstance(node, ast.Call) else None
    if isinstance(node, ast.Call) and function is enumerate and len(node.args) in (1, 2):
        if len(node.args) == 2:
            b.push_as(node.args[1], INT)
        else:
            b.f.i64_const(0)
        return Enumerated(begin(b, node.args[0]))
    if isinstance(node, ast.Call) and function is zip:
        return Zipped(tuple(begin(b, each) for each in node.args), bool(node.keywords))
    if isinstance(node, ast.Call) and function is reversed and len(node.args) == 1:
        return _begin_backwards(b, node.args[0])
    kind = b.kind(node)
    f = b.f
    match kind:
        case Range():
            b.push(node)
            if abs(kind.step) == 1:
                return RangeIterator(kind.step)
            stop, start, step = b.spare(I64), b.spare(I64), b.spare(I64)
            if not kind.step:
                f.local_set(step)
            f.local_set(stop)
            f.local_set(start)
            f.local_get(start)
            f.local_get(start)
            f.local_get(stop)
            if kind.step:
                b.range_length(kind.step)
            else:
                f.local_get(step)
                b.stepped_length()
                f.local_get(step)
            return RangeIterator(kind.step)
        case Tuple():
            b.push(node)
            return TupleIterator(kind, 0)
        case List():
            b.push(node)
            (of,) = b.locals("%iterated", kind)
            f.local_set(of)
            if kind.item is None:
                list_code.check_empty(b, node, of)
            f.local_get(of)
            f.i64_const(0)
            return ListIterator(kind)
        case Array():
            b.push(node)
            f.i64_const(0)
            return ArrayIterator(kind)
        case Text() | Character() | Constant(value=str() | bytes()):
            text = text_code.push(b, node)
            f.i64_const(0)
            return TextIterator(text)
    raise NotCompilableError(node, f"cannot iterate over {kind}")


def _begin_backwards(b: Code, node: ast.expr) -> Kind:
    """Push an iterator of a range, a list or another sequence, from its end."""
    kind = b.kind(node)
    if isinstance(kind, List):
        (of,) = b.locals("%iterated", kind)
        b.push(node)
        b.f.local_set(of)
        if kind.item is None:
            list_code.check_empty(b, node, of)
        b.f.local_get(of)
        list_code.length(b, of)
        b.f.i64_const(1)
        b.f.i64_sub()
        return ListIterator(kind, is_backwards=True)
    if isinstance(kind, Array | Tuple) or text_of(kind) is not None:
        back = ast.copy_location(ast.UnaryOp(ast.USub(), ast.Constant(1)), node)
        subscript = ast.Subscript(node, ast.Slice(step=back), ast.Load())
        return begin(b, ast.copy_location(subscript, node))
    if not isinstance(kind, Range) or abs(kind.step) != 1:
        raise NotCompilableError(node, f"cannot iterate backwards over {kind}; count indices down")
    f, stop, start = b.f, b.spare(I64), b.spare(I64)
    b.push(node)
    f.local_set(stop)
    f.local_set(start)
    b.at(node)
    b.trap(node, Trap.INTEGER_OVERFLOW, OverflowError, None, is_limit=True)
    for end in (stop, start):
        f.local_get(end)
        f.i64_const(kind.step)
        f.i64_sub_checked()
    return RangeIterator(-kind.step)


def advance(
    b: Code, node: ast.AST, name: str, kind: Kind, over: Callable[[], None]
) -> tuple[Kind | None, Kind]:
    """Push the next item of the iterator in a variable: its kind, and that of the iterator then;
    None if there is none. Where it has ended, code that `over` adds leaves."""
    found, after, item = _advance(b, node, name, kind, b.locals(name, kind), over)
    if found is None:
        return None, kind
    if after != kind:
        for old, new in zip(b.locals(name, kind), b.locals(name, after), strict=True):
            b.f.local_get(old)
            b.f.local_set(new)
    for local in item:
        b.f.local_get(local)
    return found, after


_Advanced = tuple[Kind | None, Kind, Sequence["Local"]]
"""The kind of the item, that of the iterator after it, and the locals with the item."""


def _advance(
    b: Code, node: ast.AST, name: str, kind: Kind, slots: list[Local], over: Callable[[], None]
) -> _Advanced:
    f = b.f
    match kind:
        case RangeIterator():
            value, end, *step = slots
            (item,) = b.locals(f"{name} item", INT)
            f.local_get(value if abs(kind.step) == 1 else end)
            if kind.step == 1:
                f.local_get(end)
                f.i64_ge_s()
            elif kind.step == -1:
                f.local_get(end)
                f.i64_le_s()
            else:
                f.i64_eqz()
            with f.if_():
                over()
            if abs(kind.step) != 1:
                f.local_get(end)
                f.i64_const(1)
                f.i64_sub()
                f.local_set(end)
            f.local_get(value)
            f.local_set(item)
            f.local_get(value)
            if step:
                f.local_get(step[0])
            else:
                f.i64_const(kind.step)
            f.i64_add()
            f.local_set(value)
            return INT, kind, [item]
        case TupleIterator():
            if kind.at == len(kind.of.items):
                over()
                return None, kind, []
            start = sum(len(each.slots) for each in kind.of.items[: kind.at])
            found = kind.of.items[kind.at]
            after = TupleIterator(kind.of, kind.at + 1)
            return found, after, slots[start : start + len(found.slots)]
        case TextIterator():
            elements = ArrayIterator(kind.of.array)
            _, _, items = _of_array(b, name, elements, slots, over)
            found_items = b.locals(f"{name} item", kind.of.item)
            for local in items:
                f.local_get(local)
            text_code.as_item(b, kind.of)
            for local in reversed(found_items):
                f.local_set(local)
            return kind.of.item, kind, found_items
        case ArrayIterator():
            return _of_array(b, name, kind, slots, over)
        case ListIterator(of=List(item=None)):
            over()
            return None, kind, []
        case ListIterator():
            of, at = slots
            listed = kind.of.item
            assert listed is not None
            found_items = b.locals(f"{name} item", listed)
            f.local_get(at)
            list_code.length(b, of)
            (f.i64_ge_u if kind.is_backwards else f.i64_ge_s)()
            with f.if_():
                over()
            list_code.load(b, of, at, listed)
            for local in reversed(found_items):
                f.local_set(local)
            f.local_get(at)
            f.i64_const(-1 if kind.is_backwards else 1)
            f.i64_add()
            f.local_set(at)
            return listed, kind, found_items
        case Enumerated():
            (number,) = b.locals(f"{name} number", INT)
            rest, then, items = _advance(b, node, f"{name} of", kind.of, slots[1:], over)
            if rest is None:
                return None, kind, []
            f.local_get(slots[0])
            f.local_set(number)
            f.local_get(number)
            f.i64_const(1)
            f.i64_add()
            f.local_set(slots[0])
            return Tuple((INT, rest)), Enumerated(then), [number, *items]
        case Zipped():
            return _of_zipped(b, node, name, kind, slots, over)
    raise NotCompilableError(node, f"cannot iterate over {kind}")


def _of_zipped(
    b: Code, node: ast.AST, name: str, kind: Zipped, slots: list[Local], over: Callable[[], None]
) -> _Advanced:
    f, parts, start = b.f, list[list["Local"]](), 0
    for each in kind.of:
        parts.append(slots[start : start + len(each.slots)])
        start += len(each.slots)
    before = b.locals(f"{name} before", kind) if kind.is_strict else []
    for old, local in zip(slots, before, strict=kind.is_strict):
        f.local_get(old)
        f.local_set(local)

    def raise_() -> None:
        """Let CPython find the error, from where the iterators were."""
        for local, old in zip(before, slots, strict=True):
            f.local_get(local)
            f.local_set(old)
        b.throw(node, ValueError, None, is_limit=True)

    def end() -> None:
        """Leave after the first iterator has ended: the others have to end, too."""
        for place, each in enumerate(kind.of[1:], 1):
            with f.block() as ended:
                rest, _, _ = _advance(
                    b,
                    node,
                    f"{name} {place}",
                    each,
                    parts[place],
                    lambda: f.br(ended),  # called at once
                )
                if rest is not None:
                    raise_()
        over()

    found: list[Kind] = []
    afters: list[Kind] = []
    locals_: list[Local] = []
    for place, each in enumerate(kind.of):
        leave = over if not kind.is_strict else raise_ if place else end
        rest, then, items = _advance(b, node, f"{name} {place}", each, parts[place], leave)
        if rest is None:
            return None, kind, []
        found.append(rest)
        afters.append(then)
        locals_ += items
    return Tuple(tuple(found)), Zipped(tuple(afters), kind.is_strict), locals_


def _of_array(
    b: Code, name: str, kind: ArrayIterator, slots: list[Local], over: Callable[[], None]
) -> _Advanced:
    f, of = b.f, kind.of
    *array, at = slots
    f.local_get(at)
    f.local_get(array_code.length(of, array, 0))
    f.i64_ge_s()
    with f.if_():
        over()
    if of.dimensions == 1:
        item: Kind = element_kind(of.dtype)
        f.local_get(array[0])
        _push_first(b, of, array, at)
        array_code.push_element(b, of)
    else:
        item = Array(of.dtype, of.dimensions - 1, is_view=True)
        f.local_get(array[0])
        _push_first(b, of, array, at)
        for axis in range(1, of.dimensions):
            f.local_get(array_code.length(of, array, axis))
        for axis in range(1, of.dimensions):
            array_code.push_stride(b, of, array, axis)
    found = b.locals(f"{name} item", item)
    for local in reversed(found):
        f.local_set(local)
    f.local_get(at)
    f.i64_const(1)
    f.i64_add()
    f.local_set(at)
    return item, kind, found


def _push_first(b: Code, of: Array, slots: list[Local], at: Local) -> None:
    """Push the number of the first element at an index of the first axis."""
    f = b.f
    f.local_get(at)
    if of.is_view or of.dimensions > 1:
        array_code.push_stride(b, of, slots, 0)
        f.i64_mul()
    if of.is_view:
        f.local_get(slots[1])
        f.i64_add()
