# SPDX-License-Identifier: Apache-2.0
"""Calls of NumPy's functions that make arrays, and their arguments."""

from __future__ import annotations

import ast
from collections.abc import Callable

import numpy as np

from ferryvm.python.fault import NotCompilableError

CREATING: dict[object, tuple[str, ...]] = {
    np.zeros: ("shape", "dtype"),
    np.empty: ("shape", "dtype"),
    np.ones: ("shape", "dtype"),
    np.full: ("shape", "fill_value", "dtype"),
    np.zeros_like: ("a",),
    np.empty_like: ("a",),
    np.ones_like: ("a",),
}
"""The parameters of functions that make arrays."""


def normalised(node: ast.Call, function: object, nothing: Callable[[], ast.expr]) -> list[ast.expr]:
    """The arguments of a call in the order of the parameters; `nothing`: makes one that is not
    given. Raises NotCompilableError."""
    names = CREATING[function]
    given = dict(zip(names, node.args, strict=False))
    for keyword in node.keywords:
        given[str(keyword.arg)] = keyword.value
    name = getattr(function, "__name__", "")
    if len(node.args) > len(names) or not given.keys() <= {*names}:
        raise NotCompilableError(node, f"numpy.{name} takes {', '.join(names)} here")
    for needed in names[:2] if function is np.full else names[:1]:
        if needed not in given:
            raise NotCompilableError(node, f"numpy.{name} needs {needed}")
    return [given[each] if each in given else nothing() for each in names]


def creates(function: object) -> bool:
    """True for a function that makes an array."""
    try:
        return function in CREATING
    except TypeError:  # it cannot be hashed
        return False
