# SPDX-License-Identifier: Apache-2.0
"""Items of tuples: at an index that is written out, in a slice, or at any index of equal kinds."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ferryvm.isa.trap import Trap
from ferryvm.python.codegen import list_slice
from ferryvm.python.codegen.index_code import push_from_end
from ferryvm.python.codegen.known import known_integer
from ferryvm.python.fault import NotCompilableError
from ferryvm.python.value.kind import INT, INTEGERS, Kind, Tuple

if TYPE_CHECKING:
    from ferryvm.python.codegen.code import Code

MOST_CHOICES = 256
"""Items of a tuple whose index is computed: there is a test for each."""


def item_kind(b: Code, node: ast.Subscript, of: Tuple) -> Kind:
    """The kind of the item at an index that is computed. Raises NotCompilableError."""
    if not of.items or any(each != of.items[0] for each in of.items):
        raise NotCompilableError(
            node,
            "the index of a tuple must be a number that is written out, or its items of one type",
        )
    if len(of.items) > MOST_CHOICES:
        message = f"a tuple of more than {MOST_CHOICES} items with an index; make it a list"
        raise NotCompilableError(node, message)
    if b.kind(node.slice) not in INTEGERS:
        raise NotCompilableError(node, f"an index must be an int, found {b.kind(node.slice)}")
    return of.items[0]


def push_items(b: Code, node: ast.Subscript, of: Tuple) -> None:
    """Push an item, or the items in a slice."""
    if isinstance(node.slice, ast.Slice):
        slots = b.slots(node.value)
        for number in list_slice.of_tuple(node.slice, of):
            start = sum(len(item.slots) for item in of.items[:number])
            for local in slots[start : start + len(of.items[number].slots)]:
                b.f.local_get(local)
        return
    number_ = known_integer(node.slice)
    if number_ is None:
        _push_chosen(b, node, of)
        return
    number_ %= len(of.items)
    start = sum(len(item.slots) for item in of.items[:number_])
    for slot in range(len(of.items[number_].slots)):
        b.push_slot(node.value, start + slot)


def _push_chosen(b: Code, node: ast.Subscript, of: Tuple) -> None:
    """Push the item at an index that is computed."""
    f, at, item = b.f, b.scratch(f"%at {node.lineno} {node.col_offset}"), of.items[0]
    slots = b.slots(node.value)
    message, count = "tuple index out of range", len(of.items)
    b.push_as(node.slice, INT)
    f.local_set(at)
    push_from_end(f, at, lambda: f.i64_const(count))
    f.local_set(at)
    f.local_get(at)
    if IndexError in b.caught:
        f.i64_const(count)
        f.i64_ge_u()
        b.throw_if(node, IndexError, message)
        f.local_get(at)
    b.at(node)
    b.trap(node, Trap.INDEX_OUT_OF_BOUNDS, IndexError, message)
    f.i64_const(count)
    f.array_index()
    f.local_set(at)
    size = len(item.slots)
    found = b.locals(f"%chosen {node.lineno} {node.col_offset}", item)
    with f.block() as done:
        for number in range(count):
            for local, slot in zip(found, slots[number * size : (number + 1) * size], strict=True):
                f.local_get(slot)
                f.local_set(local)
            f.local_get(at)
            f.i64_const(number)
            f.i64_eq()
            f.br_if(done)
    for local in found:
        f.local_get(local)
