# SPDX-License-Identifier: Apache-2.0
"""Code of operations of a group: its items give values, and get what became of all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ferryvm.build import Function
from ferryvm.python.control_flow.graph import GroupOperation
from ferryvm.python.fault import NotCompilableError
from ferryvm.python.hosted.work_item import (
    group_broadcast,
    group_max,
    group_min,
    group_scan,
    group_scan_before,
    group_sum,
)
from ferryvm.python.value.kind import FLOAT, INT, Kind, Scalar

if TYPE_CHECKING:
    from ferryvm.python.codegen.code import Code

_EMITTED: dict[Callable[..., object], Callable[[Function], None]] = {
    group_sum: lambda f: f.group_reduce("add"),
    group_min: lambda f: f.group_reduce("min"),
    group_max: lambda f: f.group_reduce("max"),
    group_scan: lambda f: f.group_scan("add"),
    group_scan_before: lambda f: f.group_scan("add", exclusive=True),
    group_broadcast: lambda f: f.group_broadcast(),
}

_ELEMENTS: dict[Kind, Scalar] = {INT: Scalar("int64"), FLOAT: Scalar("float64")} | {
    Scalar(name): Scalar(name) for name in ("int32", "int64", "float32", "float64")
}
"""The elements of arrays that hold values of kinds."""


def prepare(b: Code, statement: GroupOperation) -> Scalar:
    """Compute the value that an item gives; the kind of what it gets. Raises NotCompilableError."""
    value, *others = statement.arguments
    element = _ELEMENTS.get(b.kind(value))
    name = statement.function.__name__
    if element is None:
        wanted = "an int, a float, or one of NumPy's int32, int64, float32, float64"
        raise NotCompilableError(value, f"{name} takes {wanted}; found {b.kind(value)}")
    b.push_as(value, element)
    b.f.local_set(b.locals("%value", element)[0])
    for other in others:
        b.push_as(other, INT)
        b.f.local_set(b.scratch("%from"))
    b.has_effect()
    return element


def perform(b: Code, statement: GroupOperation, element: Scalar) -> None:
    """Wait for the other items, and put what an item gets into its variable."""
    values = b.group_values(element.dtype)
    if values is None:  # the program is built again, with one
        b.zeros(element)
    else:
        b.f.local_get(b.locals("%value", element)[0])
        if statement.function is group_broadcast:
            b.f.local_get(b.scratch("%from"))
        b.push(statement.number)
        b.f.local_get(values)
        b.at(statement.node)
        _EMITTED[statement.function](b.f)
    b.f.local_set(b.locals(statement.name, element)[0])
