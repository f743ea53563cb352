# SPDX-License-Identifier: Apache-2.0
"""Assignments to elements: of arrays, with the rules of NumPy for other types, and of lists."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import numpy as np

from ferryvm.isa.trap import Trap
from ferryvm.python.codegen import array_code, list_code, list_slice
from ferryvm.python.codegen.operation import convert
from ferryvm.python.control_flow.graph import Store
from ferryvm.python.fault import NotCompilableError
from ferryvm.python.value.kind import Array, Complex, List, Scalar, element_kind

if TYPE_CHECKING:
    from ferryvm.python.codegen.code import Code


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
    if isinstance(array_code.item_kind(b, node, of), Array):
        raise NotCompilableError(statement.node, "cannot store into a slice; write a loop")
    b.has_effect()
    slots = b.slots(statement.array)
    b.f.local_get(slots[0])
    array_code.push_place(b, node, of, slots)
    found = b.push(statement.value)
    b.at(node)
    element = element_kind(of.dtype)
    if not isinstance(found, Scalar) or isinstance(element, Complex):
        convert(b, statement.node, found, element)
    elif found.word is not element.word:
        if found.is_float and not element.is_float:
            message = f"cannot store {found} into an array of {of.dtype}; write int(x)"
            raise NotCompilableError(statement.node, message)
        if element.dtype == "float32" and found.dtype == "float64":
            b.f.f32_demote_f64()
        else:
            convert(b, statement.node, found, element)
    elif found != element and not np.can_cast(found.dtype, element.dtype):
        message = f"cannot store {found} into an array of {of.dtype}; write int(x)"
        raise NotCompilableError(statement.node, message)
    b.trap(node, Trap.READ_ONLY_ARRAY, ValueError, "assignment destination is read-only")
    array_code.store_element(b, of)
