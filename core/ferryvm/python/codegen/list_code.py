# SPDX-License-Identifier: Apache-2.0
"""Code for lists: displays, items, and the kind of items of a list that was empty.

An empty list has no kind of items yet; the first that is appended determines it. Another variable
with the same list does not see that, so code for a list whose kind is not known asks the list
itself.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ferryvm.build import Function
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import I64
from ferryvm.python.codegen import either_code, list_function
from ferryvm.python.codegen.index_code import push_from_end
from ferryvm.python.codegen.known import known_integer
from ferryvm.python.codegen.mixed_item import misfit
from ferryvm.python.codegen.operation import convert
from ferryvm.python.control_flow.counter import is_from_zero
from ferryvm.python.fault import NotCompilableError, UnknownItemsError
from ferryvm.python.value.kind import (
    INT,
    INTEGERS,
    Array,
    Either,
    Kind,
    List,
    Tuple,
    is_item,
    text_of,
    united,
)
from ferryvm.python.value.list_layout import Elements, Layout, layout_of

if TYPE_CHECKING:
    from ferryvm.build import Local
    from ferryvm.python.codegen.code import Code
    from ferryvm.python.control_flow.graph import Store

_ASSIGNED = "list assignment index out of range"


def layout(kind: List) -> Layout:
    """The layout of a list whose items are known."""
    assert kind.item is not None
    return layout_of(kind.item)


def no_list_of(kind: Kind) -> str:
    """The error for a list of what no list has."""
    hint = "; a list has numbers, None, tuples and lists"
    what = "texts" if text_of(kind) is not None else "arrays" if isinstance(kind, Array) else kind
    return f"cannot compile a list of {what}{hint}"


def display_kind(b: Code, node: ast.List) -> List:
    """The kind of a list that is written out. Raises NotCompilableError."""
    found: Kind | None = None
    for each in node.elts:
        kind = b.kind(each)
        if not is_item(kind):
            raise NotCompilableError(node, no_list_of(kind))
        kind = b.list_of(kind).item or kind
        both = kind if found is None else united(found, kind)
        if both is None:
            message = f"a list of {found} and {kind}; give its items one type"
            raise misfit(node, message, found, kind)
        found = both
    return List(found)


def new(b: Code) -> None:
    """Push an empty list."""
    b.f.struct_new_default(b.list_struct)


def display(b: Code, node: ast.List, kind: List) -> None:
    """Push a new list of the values of expressions."""
    new(b)
    if kind.item is None:
        return
    f = b.f
    (made,) = b.locals(f"%list {node.lineno} {node.col_offset}", kind)
    f.local_set(made)
    for item in node.elts:
        f.local_get(made)
        push_item(b, item, kind.item)
        f.i64_const(kind.number)
        f.call(list_function.append(b, layout(kind)))
    f.local_get(made)


def push_item(b: Code, node: ast.expr, wanted: Kind) -> None:
    """Push a value that becomes an item: a list in it, whose items may be not known yet, gets their
    kind. Raises NotCompilableError for a value of another kind."""
    found = b.push(node)
    adapt(b, node, found, wanted)


def adapt(b: Code, node: ast.AST, found: Kind, wanted: Kind) -> None:
    """Turn the value on the stack into another kind with the same values, of which more is
    known."""
    if found == wanted:
        return
    if isinstance(wanted, Either) and found in wanted.kinds:
        value = b.locals(f"%item {found}", found)
        for local in reversed(value):
            b.f.local_set(local)
        either_code.push(b, found, wanted, value)
        return
    if united(found, wanted) != wanted:
        convert(b, node, found, wanted)
        return
    slots = b.locals(f"%adapted {len(b.all_locals)}", found)
    for local in reversed(slots):
        b.f.local_set(local)
    _settle_slots(b, node, slots, found, wanted)
    for local in slots:
        b.f.local_get(local)


def _settle_slots(b: Code, node: ast.AST, slots: list[Local], found: Kind, wanted: Kind) -> None:
    if isinstance(wanted, List) and found != wanted:
        settle(b, node, slots[0], wanted)
    elif isinstance(wanted, Tuple):
        assert isinstance(found, Tuple)
        start = 0
        for one, other in zip(found.items, wanted.items, strict=True):
            _settle_slots(b, node, slots[start : start + len(one.slots)], one, other)
            start += len(one.slots)


def settle(b: Code, node: ast.AST, of: Local, kind: List) -> None:
    """Give a list the kind of its items, which code did not know. CPython takes over if it has
    others."""
    f = b.f
    f.local_get(of)
    f.call(list_function.settle(b, kind))
    f.i32_eqz()
    b.throw_if(node, TypeError, "items of another type", is_limit=True)


def determine(b: Code, node: ast.AST, name: str, kind: List) -> None:
    """State the kind of the list in a variable, which code did not know: as `settle`."""
    (of,) = b.locals(name, b.env[name])
    settle(b, node, of, kind)
    b.f.local_get(of)
    b.set(name, kind)


def append(b: Code, node: ast.AST, of: Local, kind: List, value: ast.expr) -> None:
    """Append a value to a list whose items are known."""
    assert kind.item is not None
    f = b.f
    f.local_get(of)
    push_item(b, value, kind.item)
    b.at(node)
    f.i64_const(kind.number)
    f.call(list_function.append(b, layout(kind)))
    b.changes(kind)


def splice(b: Code, node: ast.AST, kind: List) -> None:
    """Replace items: list, start, number, other list."""
    b.f.i64_const(kind.number)
    b.at(node)
    b.f.call(list_function.splice(b, layout(kind)))
    b.changes(kind)


def length(b: Code, of: Local) -> None:
    """Push the length of the list in a local."""
    b.f.local_get(of)
    b.f.struct_get(b.list_struct["length"])


def check_index(b: Code, index: ast.expr) -> None:
    """Raise NotCompilableError for an index that is no integer."""
    if b.kind(index) not in INTEGERS:
        raise NotCompilableError(index, f"an index must be an int, found {b.kind(index)}")


def place(b: Code, node: ast.AST, index: ast.expr, of: Local, message: str) -> None:
    """Push the number of the item at an index; negative ones count from the end."""
    f, at = b.f, b.spare(I64)
    check_index(b, index)
    b.push_as(index, INT)
    known = known_integer(index)
    if known is None and is_from_zero(index, b.counters):
        known = 0
    if known is None or known < 0:
        f.local_set(at)
        push_from_end(f, at, lambda: length(b, of))
    if IndexError in b.caught:
        f.local_set(at)
        f.local_get(at)
        length(b, of)
        f.i64_ge_u()
        b.throw_if(node, IndexError, message)
        f.local_get(at)
    b.at(node)
    b.trap(node, Trap.INDEX_OUT_OF_BOUNDS, IndexError, message)
    length(b, of)
    f.array_index()


def load(b: Code, of: Local, at: Local, item: Kind) -> None:
    """Push the item with a number, which is there."""
    for column, place_ in layout_of(item).places():
        _element(b, of, at, column.name, column.stride, place_)
        Elements(b.f, b.list_struct, column.type).get()


def _element(b: Code, of: Local, at: Local, name: str, count: int, place_: int) -> None:
    """Push a column of a list, and the place of a slot of an item in it."""
    f = b.f
    f.local_get(of)
    f.struct_get(b.list_struct[name])
    f.local_get(at)
    if count != 1:
        f.i64_const(count)
        f.i64_mul()
    if place_:
        f.i64_const(place_)
        f.i64_add()


def item(b: Code, node: ast.Subscript, of: Local, kind: List) -> Kind:
    """Push an item of a list."""
    assert kind.item is not None
    message = "list index out of range"
    columns = layout(kind).columns
    if len(layout(kind).slots) == 1:
        b.f.local_get(of)
        b.f.struct_get(b.list_struct[columns[0].name])
        place(b, node, node.slice, of, message)
        Elements(b.f, b.list_struct, columns[0].type).get()
        return kind.item
    at = b.scratch(f"%at {node.lineno} {node.col_offset}")
    place(b, node, node.slice, of, message)
    b.f.local_set(at)
    load(b, of, at, kind.item)
    return kind.item


def check_store(b: Code, step: Store, kind: List) -> None:
    """Raise NotCompilableError for an index that is no integer or slice, and for a list that may be
    any."""
    known(step.array, kind)
    if not isinstance(step.index, ast.Slice):
        check_index(b, step.index)


def store(b: Code, node: ast.AST, index: ast.expr, of: Local, kind: List, value: ast.expr) -> None:
    """Replace an item of a list."""
    found, f = b.kind(value), b.f
    assert kind.item is not None
    if united(found, kind.item) != kind.item:
        message = f"cannot store {found} into a list of {kind.item}; convert one of them"
        raise misfit(node, message, kind.item, found)
    columns = layout(kind).columns
    b.changes(kind)
    if len(layout(kind).slots) == 1 and IndexError not in b.caught:
        f.local_get(of)
        f.struct_get(b.list_struct[columns[0].name])
        place(b, node, index, of, _ASSIGNED)
        push_item(b, value, kind.item)
        Elements(f, b.list_struct, columns[0].type).set()
        return
    at = b.scratch("%stored at")
    items = b.locals(f"%stored {kind.item}", kind.item)
    push_item(b, value, kind.item)
    for local in reversed(items):
        f.local_set(local)
    place(b, node, index, of, _ASSIGNED)
    f.local_set(at)
    for local, (column, place_) in zip(items, layout(kind).places(), strict=True):
        _element(b, of, at, column.name, column.stride, place_)
        f.local_get(local)
        Elements(f, b.list_struct, column.type).set()


def check_empty(b: Code, node: ast.AST, of: Local) -> None:
    """Leave a list to CPython that is not empty, although the kind of its items is not known."""
    length(b, of)
    b.f.i64_const(0)
    b.f.i64_ne()
    b.throw_if(node, TypeError, "items of a type that is not known here", is_limit=True)


def known(node: ast.AST, kind: List) -> List:
    """A kind of list whose items are known. Raises UnknownItemsError."""
    if kind.item is None:
        raise UnknownItemsError(node, "the list is empty here")
    return kind


def call(b: Code, node: ast.AST, function: Function) -> None:
    """Call a function at the position of a node."""
    b.at(node)
    b.f.call(function)
