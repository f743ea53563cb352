# SPDX-License-Identifier: Apache-2.0
"""Facts that are known when code is made: integers that are written out, and the types of
values."""

from __future__ import annotations

import ast
import operator
import types
from collections.abc import Callable

import numpy as np

from ferryvm.python.control_flow.graph import Known
from ferryvm.python.definition.source import InnerFunction
from ferryvm.python.value.kind import (
    Array,
    Character,
    Closure,
    Complex,
    Constant,
    Kind,
    List,
    Number,
    Range,
    Scalar,
    Text,
    Tuple,
    is_of_numpy,
)


def known_integer(node: ast.expr) -> int | None:
    """The value of an expression that is an integer constant; None for others."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = known_integer(node.operand)
        return None if inner is None else -inner
    value = node.value if isinstance(node, ast.Constant | Known) else None
    return value if type(value) is int else None


def class_of(kind: Kind) -> type | None:
    """The type of values of a kind; None if it may be several."""
    if isinstance(kind, Scalar | Complex):
        return np.dtype(kind.dtype).type if is_of_numpy(kind) else complex
    if isinstance(kind, Closure):
        return types.FunctionType
    if isinstance(kind, Constant):
        is_inner = isinstance(kind.value, InnerFunction)
        return types.FunctionType if is_inner else type(kind.value)
    if isinstance(kind, Character):
        return str
    return kind.type if isinstance(kind, Number | Text) else _CLASSES.get(type(kind))


_CLASSES: dict[type[Kind], type] = {Tuple: tuple, List: list, Array: np.ndarray, Range: range}


_COMPARED: dict[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def compared_length(node: ast.Compare, kind: Callable[[ast.expr], Kind]) -> bool | None:
    """The value of a comparison of the length of a tuple, as `len(x) == 2`; None for other
    expressions. `kind`: of an expression."""
    call, number = node.left, known_integer(node.comparators[0])
    if not isinstance(call, ast.Call) or getattr(call.func, "value", None) is not len:
        return None
    of, compare = kind(call.args[0]), _COMPARED.get(type(node.ops[0]))
    if number is None or compare is None or not isinstance(of, Tuple):
        return None
    return compare(len(of.items), number)


def is_instance(node: ast.expr, kind: Kind | None) -> bool | None:
    """The value of a call of `isinstance`, with a value of a kind; None for other expressions."""
    if not isinstance(node, ast.Call) or getattr(node.func, "value", None) is not isinstance:
        return None
    class_ = None if kind is None else class_of(kind)
    allowed = node.args[1].value  # type: ignore[attr-defined]  # `Known`
    return None if class_ is None else issubclass(class_, allowed)
