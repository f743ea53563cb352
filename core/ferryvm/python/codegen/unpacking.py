# SPDX-License-Identifier: Apache-2.0
"""Unpacking: `a, b = value`, of tuples, lists and arrays, also with a starred name."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ferryvm.python.codegen import array_code, list_code, list_function
from ferryvm.python.control_flow.graph import Unpack
from ferryvm.python.control_flow.graph_builder import name_of
from ferryvm.python.fault import NotCompilableError, UnknownItemsError
from ferryvm.python.value.kind import INT, Array, List, Tuple, is_item

if TYPE_CHECKING:
    from ferryvm.build import Local
    from ferryvm.python.codegen.body import Body


def check(b: Body, step: Unpack) -> None:
    """Raise NotCompilableError for what cannot be unpacked."""
    kind = b.kind(step.value)
    if isinstance(kind, List) and kind.item is None:
        raise UnknownItemsError(step.value, "the list is empty here")
    if not isinstance(kind, Tuple | List | Array):
        raise NotCompilableError(step.node, f"cannot unpack {kind}")


def unpack(b: Body, step: Unpack) -> None:
    """Assign the items of a value to variables. Raises NotCompilableError."""
    kind = b.kind(step.value)
    if isinstance(kind, Tuple):
        _unpack_tuple(b, step, kind)
    elif isinstance(kind, List):
        _unpack_list(b, step, kind)
    else:
        assert isinstance(kind, Array)
        _unpack_array(b, step, kind)


def _unpack_tuple(b: Body, step: Unpack, kind: Tuple) -> None:
    names, items, place = step.names, kind.items, step.starred
    wanted, found = len(names) - (place is not None), len(items)
    if found < wanted or (found > wanted and place is None):
        few = f"too many values to unpack (expected {wanted})"
        if found < wanted:
            least = "at least " if place is not None else ""
            few = f"not enough values to unpack (expected {least}{wanted}, got {found})"
        raise NotCompilableError(step.node, few)
    many = found - wanted
    parts = [(n, 1) for n in range(found)]
    if place is not None:
        parts = [(n, 1) for n in range(place)] + [(place, many)]
        parts += [(n, 1) for n in range(place + many, found)]
    b.push(step.value)
    saved = [f"%unpacked {n}" for n in range(found)]
    for name, item in reversed([*zip(saved, items, strict=True)]):
        b.set(name, item)
    for number, (name, (first, count)) in enumerate(zip(names, parts, strict=True)):
        if number != place:
            b.get(saved[first], items[first])
            b.set(name, items[first])
            continue
        elements: list[ast.expr] = [
            name_of(each, step.node) for each in saved[first : first + count]
        ]
        display = ast.copy_location(ast.List(elements, ast.Load()), step.node)
        made = list_code.display_kind(b, display)
        list_code.display(b, display, made)
        b.set(name, made)
    for name in saved:
        del b.env[name]


def _check_length(b: Body, step: Unpack, length: Local) -> None:
    """CPython raises the exception for another number of items."""
    f = b.f
    f.local_get(length)
    f.i64_const(len(step.names) - (step.starred is not None))
    (f.i64_ne if step.starred is None else f.i64_lt_s)()
    b.throw_if(step.node, ValueError, None, is_limit=True)


def _unpack_list(b: Body, step: Unpack, kind: List) -> None:
    f, item = b.f, kind.item
    assert item is not None
    (of,) = b.locals("%unpacked", kind)
    length, at = b.scratch("%unpacked length"), b.scratch("%unpacked at")
    b.push(step.value)
    f.local_set(of)
    list_code.length(b, of)
    f.local_set(length)
    _check_length(b, step, length)
    for number, name in enumerate(step.names):
        is_behind = step.starred is not None and number > step.starred
        f.i64_const(number - len(step.names) if is_behind else number)
        if is_behind:
            f.local_get(length)
            f.i64_add()
        f.local_set(at)
        if number == step.starred:
            f.local_get(of)
            f.local_get(at)
            f.local_get(length)
            f.i64_const(len(step.names) - 1)
            f.i64_sub()
            list_code.call(b, step.node, list_function.part(b, list_code.layout(kind)))
            b.set(name, kind)
        else:
            list_code.load(b, of, at, item)
            b.set(name, item)


def _unpack_array(b: Body, step: Unpack, kind: Array) -> None:
    slots = b.slots(step.value)
    length = array_code.length(kind, slots, 0)
    _check_length(b, step, length)
    for number, name in enumerate(step.names):
        if number == step.starred:
            b.set(name, _push_rest(b, step, length))
            continue
        is_behind = step.starred is not None and number > step.starred
        place = ast.Constant(number - len(step.names) if is_behind else number)
        b.set(name, b.push(_element(step, place)))


def _push_rest(b: Body, step: Unpack, length: Local) -> List:
    """Push the list of the elements that the starred name takes."""
    f, first = b.f, step.starred
    assert first is not None
    item = b.kind(_element(step, ast.Constant(0)))
    if not is_item(item):
        raise NotCompilableError(step.node, list_code.no_list_of(item))
    kind = List(item)
    (rest,) = b.locals("%rest", kind)
    list_code.new(b)
    f.local_set(rest)
    f.i64_const(first)
    b.set("%place in rest", INT)
    (place,) = b.locals("%place in rest", INT)
    with f.block() as done, f.loop() as again:
        f.local_get(place)
        f.i64_const(len(step.names) - 1 - first)
        f.i64_add()
        f.local_get(length)
        f.i64_ge_s()
        f.br_if(done)
        element = _element(step, name_of("%place in rest", step.node))
        list_code.append(b, step.node, rest, kind, element)
        f.local_get(place)
        f.i64_const(1)
        f.i64_add()
        f.local_set(place)
        f.br(again)
    del b.env["%place in rest"]
    f.local_get(rest)
    return kind


def _element(step: Unpack, place: ast.expr) -> ast.expr:
    """An element, or a row, of the array that is unpacked."""
    node = ast.Subscript(step.value, ast.copy_location(place, step.value), ast.Load())
    return ast.copy_location(node, step.value)
