# SPDX-License-Identifier: Apache-2.0
"""Facts that are known when code is made: integers that are written out, and the types of values."""

from __future__ import annotations

import ast

import numpy as np

from ferryvm.python.graph import Known
from ferryvm.python.kind import (
    Array,
    Complex,
    Constant,
    Kind,
    List,
    Number,
    Range,
    Scalar,
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
    if isinstance(kind, Constant):
        return type(kind.value)
    return kind.type if isinstance(kind, Number) else _CLASSES.get(type(kind))


_CLASSES: dict[type[Kind], type] = {Tuple: tuple, List: list, Array: np.ndarray, Range: range}


def is_instance(node: ast.expr, kind: Kind | None) -> bool | None:
    """The value of a call of `isinstance`, with a value of a kind; None for other expressions."""
    if not isinstance(node, ast.Call) or getattr(node.func, "value", None) is not isinstance:
        return None
    class_ = None if kind is None else class_of(kind)
    types = node.args[1].value  # type: ignore[attr-defined]  # `Known`
    return None if class_ is None else issubclass(class_, types)
