# SPDX-License-Identifier: Apache-2.0
"""Assignments to elements: of arrays, with the rules of NumPy for other types, and of lists."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ferryvm.isa.trap import Trap
from ferryvm.isa.type import I64
from ferryvm.python.codegen import array_code, list_code, list_slice
from ferryvm.python.codegen.operation import boolean, convert
from ferryvm.python.control_flow.graph import Store
from ferryvm.python.fault import NotCompilableError
from ferryvm.python.hosted import builtin_array
from ferryvm.python.value.kind import (
    BOOL,
    FLOAT,
    INT,
    NONE,
    Array,
    Complex,
    Kind,
    List,
    Number,
    Scalar,
    Tuple,
    element_kind,
)

if TYPE_CHECKING:
    from ferryvm.python.codegen.code import Code

_HOLD_INTEGERS = frozenset({"int64", "float64", "float32", "bool"})
"""Types of elements that a Python integer of 64 bits becomes without an exception."""


def store(b: Code, statement: Store) -> None:
    """Store a value into an element of an array or a list. Raises NotCompilableError."""
    of = b.kind(statement.array)
    b.compared.check_stored(of, statement.value)
    b.compared.check_value(b.kind, statement.value)
    if isinstance(of, List):
        (local,) = b.slots(statement.array)
        if isinstance(statement.index, ast.Slice):
            bounds = statement.index
            list_slice.store(b, statement.node, bounds, local, of, statement.value)
            return
        list_code.store(b, statement.node, statement.index, local, of, statement.value)
        return
    node = ast.copy_location(
        ast.Subscript(statement.array, statement.index, ast.Store()), statement.node
    )
    if not isinstance(of, Array):
        raise NotCompilableError(statement.node, f"cannot store into {of}")
    part = array_code.item_kind(b, node, of)
    b.has_effect()
    if isinstance(part, Array):
        _store_part(b, statement, node, part)
        return
    slots = b.slots(statement.array)
    b.f.local_get(slots[0])
    array_code.push_place(b, node, of, slots)
    found = b.push(statement.value)
    b.at(node)
    element = element_kind(of.dtype)
    _check_element(statement, found, element)
    if isinstance(found, Scalar) and found.dtype == "float64" and element == Scalar("float32"):
        b.f.f32_demote_f64()
    elif element == Scalar("bool") and isinstance(found, Scalar):
        boolean(b, statement.node, found)
    elif isinstance(found, Number) or element.slots != found.slots:
        convert(b, statement.node, found, element)
    b.trap(node, Trap.READ_ONLY_ARRAY, ValueError, "assignment destination is read-only")
    array_code.store_element(b, of)


def _check_element(statement: Store, found: Kind, element: Scalar | Complex) -> None:
    """Raise NotCompilableError for a number that NumPy would cut off or wrap in an element."""
    if not isinstance(element, Scalar) or element.is_float or element.dtype == "bool":
        return
    function = "int"
    if isinstance(found, Scalar) and not found.is_float:
        is_wider = element.word is I64 and found.word is not I64
        if is_wider or np.can_cast(found.dtype, element.dtype):
            return
        function = f"numpy.{element.dtype}"
    elif found != FLOAT and not isinstance(found, Scalar):
        return
    message = f"cannot store {found} into an array of {element.dtype}; write {function}(x)"
    raise NotCompilableError(statement.node, message)


def _store_part(b: Code, statement: Store, node: ast.Subscript, part: Array) -> None:
    """Store a value into a slice or a row: a number, or the items of a sequence."""
    f, value = b.f, statement.value
    found = b.kind(value)
    items = _items(b, statement, found, part)
    if items is None:
        b.push(node)
        b.push(value)
        b.call_hosted(node, fill(part, found), [part, found], NONE)
        return
    given = b.locals(f"%stored {node.lineno} {node.col_offset}", items)
    if isinstance(items, Tuple) and isinstance(found, Tuple):
        b.push(value)
        slots = b.locals(f"%given {node.lineno} {node.col_offset}", found)
        for slot in reversed(slots):
            f.local_set(slot)
        for slot, kind, wanted in zip(slots, found.items, items.items, strict=True):
            f.local_get(slot)
            convert(b, node, kind, wanted)
    else:
        b.push(value)
    for slot in reversed(given):
        f.local_set(slot)
    b.push(node)
    for slot in given:
        f.local_get(slot)
    if not isinstance(items, Array):
        b.call_hosted(node, builtin_array.stored_items, [part, items], NONE)
        return
    f.local_get(b.slots(statement.array)[0])
    f.local_get(given[0])
    f.ref_eq()
    b.call_hosted(node, builtin_array.stored, [part, items, BOOL], NONE)


def fill(part: Array, found: Kind) -> Callable[..., Any]:
    """The function that fills a part of an array with a value."""
    is_number = isinstance(found, Number) and found != INT
    if is_number or (found == INT and part.dtype in _HOLD_INTEGERS):
        return builtin_array.filled
    return builtin_array.filled_if_valid


def _items(b: Code, statement: Store, found: Kind, part: Array) -> Kind | None:
    """The kind of a sequence whose items are stored, with the type that NumPy makes of them; None
    for a value that fills. Raises NotCompilableError."""
    match found:
        case Array() if found.dimensions == part.dimensions:
            return found
        case Array() if found.dimensions < part.dimensions:
            return None
        case Number() | Scalar() | Complex():
            return None
        case List(item=Number() as item) if part.dimensions == 1 and _holds(part.dtype, item):
            return found
        case Tuple() if part.dimensions == 1 and found.items:
            common = _common(found.items)
            if common is not None and _holds(part.dtype, common):
                return Tuple((common,) * len(found.items))
    message = f"cannot store {found} into a part of {b.kind(statement.array)}; write a loop"
    raise NotCompilableError(statement.node, message)


def _common(kinds: tuple[Kind, ...]) -> Number | None:
    """The kind of Python numbers that items of a tuple have together; None if they have none."""
    like: dict[Number, tuple[Kind, ...]] = {
        BOOL: (BOOL,),
        INT: (INT, Scalar("int64")),
        FLOAT: (FLOAT, Scalar("float64"), INT),
    }
    return next((each for each in like if all(kind in like[each] for kind in kinds)), None)


def _holds(dtype: str, item: Number) -> bool:
    """True if elements hold numbers without another rule than for one of them."""
    wanted = {INT: ("int64", "float64"), FLOAT: ("float64", "float32"), BOOL: ("bool",)}
    return dtype in wanted[item]
