# SPDX-License-Identifier: Apache-2.0
"""New NumPy arrays: `numpy.zeros`, `empty`, `ones`, `full`, and those like another array."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

import numpy as np

from ferryvm.isa.type import I64
from ferryvm.python.codegen.operation import convert
from ferryvm.python.control_flow.array_call import CREATING, creates
from ferryvm.python.fault import NotCompilableError
from ferryvm.python.value.kind import (
    DTYPES,
    INT,
    INTEGERS,
    PAIRS,
    Array,
    Complex,
    Constant,
    Number,
    Scalar,
    Tuple,
)

if TYPE_CHECKING:
    from ferryvm.build import Local
    from ferryvm.python.codegen.code import Code


def created_kind(b: Code, node: ast.Call, function: object) -> Array:
    """The kind of the array that a call makes. Raises NotCompilableError."""
    first = b.kind(node.args[0])
    if CREATING[function] == ("a",):
        if not isinstance(first, Array):
            raise NotCompilableError(node, f"an array is needed, found {first}")
        return _filled(node, function, Array(first.dtype, first.dimensions))
    shape = first.items if isinstance(first, Tuple) else (first,)
    if not shape or any(kind not in INTEGERS for kind in shape):
        raise NotCompilableError(node, f"a shape must be an int, or a tuple of some, found {first}")
    name = _dtype(b, node, function)
    if name not in DTYPES and name not in PAIRS:
        raise NotCompilableError(node, f"an array of {name} is not supported")
    return _filled(node, function, Array(name, len(shape)))


def _filled(node: ast.Call, function: object, kind: Array) -> Array:
    """The kind of a new array. Raises NotCompilableError where its elements cannot be filled."""
    if kind.dtype in PAIRS and function in (np.ones, np.full, np.ones_like):
        message = f"cannot fill an array of {kind.dtype}; write numpy.zeros, and store in a loop"
        raise NotCompilableError(node, message)
    return kind


def _dtype(b: Code, node: ast.Call, function: object) -> str:
    kind = b.kind(node.args[-1]) if isinstance(node.args[-1], ast.Name | ast.Attribute) else None
    given: Any = getattr(node.args[-1], "value", None)
    if isinstance(kind, Constant):
        given = kind.value
    if given is None and function is np.full:
        fill = b.kind(node.args[1])
        if isinstance(fill, Scalar | Complex):
            return fill.dtype or "complex128"
        return {"int": "int64", "float": "float64", "bool": "bool"}.get(str(fill), str(fill))
    try:
        return str(np.dtype(given).name)  # None is float64
    except TypeError:
        raise NotCompilableError(node, "the dtype must be written out, as numpy.int64") from None


def push_created(b: Code, node: ast.Call, function: object) -> Array:
    """Push the slots of a new array."""
    kind = created_kind(b, node, function)
    f, element = b.f, kind.element
    lengths = _lengths(b, node, kind)
    for axis, size in enumerate(lengths):
        f.local_get(size)
        f.i64_const(0)
        f.i64_lt_s()
        b.throw_if(node, ValueError, "negative dimensions are not allowed")
        del axis
    fill = _fill(b, node, function, kind)
    for axis, size in enumerate(lengths):
        f.local_get(size)
        if axis:
            f.i64_mul_checked()
    if kind.dtype in PAIRS:
        f.i64_const(2)
        f.i64_mul_checked()
    b.at(node)
    getattr(f, f"array_new_{element}" if fill else f"array_new_default_{element}")()
    for size in lengths:
        f.local_get(size)
    return kind


def _lengths(b: Code, node: ast.Call, kind: Array) -> list[Local]:
    """Locals with the lengths of the new array."""
    f = b.f
    name = f"%shape {node.lineno} {node.col_offset}"
    found = [b.locals(f"{name} {axis}", INT)[0] for axis in range(kind.dimensions)]
    of = b.kind(node.args[0])
    slots = b.slots(node.args[0])
    if isinstance(of, Array):
        slots = slots[2 if of.is_view else 1 :]
    for local, slot in zip(found, slots, strict=False):
        f.local_get(slot)
        if slot.type is not I64:
            f.i64_extend_i32_s()
        f.local_set(local)
    return found


def _fill(b: Code, node: ast.Call, function: object, kind: Array) -> bool:
    """Push the value of all elements, unless that is zero."""
    if kind.dtype in PAIRS:
        return False
    element = Scalar(kind.dtype)
    if function is np.full:
        found = b.kind(node.args[1])
        if isinstance(found, Scalar) and found != element:
            raise NotCompilableError(node, f"cannot fill an array of {kind.dtype} with {found}")
        if found == Number(bool) and kind.dtype == "bool":
            b.push(node.args[1])
        elif isinstance(found, Number):
            b.push_as(node.args[1], element)
        else:
            convert(b, node, b.push(node.args[1]), element)
        return True
    if function in (np.ones, np.ones_like):
        word = element.word
        getattr(b.f, f"{word}_const")(1.0 if word.is_float else 1)
        return True
    return False


def is_creating(node: ast.expr) -> bool:
    """True for a call that makes an array."""
    return isinstance(node, ast.Call) and creates(getattr(node.func, "value", None))
