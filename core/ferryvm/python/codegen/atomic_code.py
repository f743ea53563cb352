# SPDX-License-Identifier: Apache-2.0
"""Code of atomic updates of elements."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import numpy as np

from ferryvm.isa.trap import Trap
from ferryvm.python.codegen import array_code
from ferryvm.python.control_flow.graph import Atomic
from ferryvm.python.fault import NotCompilableError
from ferryvm.python.hosted.atomic_update import UPDATED, UPDATES
from ferryvm.python.value.kind import Array, Kind, Number, Scalar

if TYPE_CHECKING:
    from ferryvm.python.codegen.code import Code


def update(b: Code, statement: Atomic) -> None:
    """Add the code of an update. Raises NotCompilableError."""
    function, node = statement.function, statement.node
    array, index, *values = statement.arguments
    name, of = UPDATES[function], b.kind(array)
    what = function.__name__
    if not isinstance(of, Array) or of.dtype not in UPDATED:
        wanted = "an array of " + ", ".join(UPDATED)
        raise NotCompilableError(node, f"{what} needs {wanted}, found {of}")
    if of.dtype == "uint64" and name in ("min", "max"):
        raise NotCompilableError(node, f"{what} of uint64 is not supported; use int64")
    place = ast.copy_location(ast.Subscript(array, index, ast.Store()), node)
    element = array_code.item_kind(b, place, of)
    if isinstance(element, Array):
        raise NotCompilableError(node, f"{what} needs an index for each axis")
    b.has_effect()
    slots = b.slots(array)
    b.f.local_get(slots[0])
    array_code.push_place(b, place, of, slots)
    for value in values:
        _push(b, value, what, element)
    b.at(place)
    b.trap(place, Trap.READ_ONLY_ARRAY, ValueError, "assignment destination is read-only")
    getattr(b.f, f"array_atomic_{name}_{of.element}")()
    if statement.name is None:
        b.f.drop()
    else:
        b.set(statement.name, element)


def _push(b: Code, value: ast.expr, what: str, element: Kind) -> None:
    """Push an operand as an element."""
    found = b.kind(value)
    is_int = isinstance(found, Number) and found.type is not float
    if isinstance(found, Scalar) and isinstance(element, Scalar):
        is_int = np.can_cast(found.dtype, element.dtype)
    if not is_int:
        message = f"{what} cannot take {found} for an element that is {element}; write {element}(x)"
        raise NotCompilableError(value, message)
    b.push_as(value, element)
