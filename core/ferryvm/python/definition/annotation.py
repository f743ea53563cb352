# SPDX-License-Identifier: Apache-2.0
"""Annotations of parameters, compared with the kinds of arguments."""

from __future__ import annotations

import types
import typing

import numpy as np

from ferryvm.python.value.kind import (
    BOOL,
    COMPLEX,
    FLOAT,
    INT,
    Array,
    Kind,
    List,
    Scalar,
    Tuple,
)


def disagreement(function: types.FunctionType, name: str, kind: Kind) -> str | None:
    """The annotation of a parameter of which an argument of a kind is no value; None if it is one,
    or if the annotation says nothing of numbers. As in PEP 484 an int is a float, too."""
    annotation = function.__annotations__.get(name)
    if isinstance(annotation, str):
        try:
            annotation = typing.get_type_hints(function).get(name)
        except Exception:  # noqa: BLE001  # a name in it that is not there now
            return None
    if not isinstance(annotation, type) or _agrees(annotation, kind):
        return None
    return annotation.__qualname__


def _agrees(annotation: type, kind: Kind) -> bool:
    is_scalar = isinstance(kind, Scalar)
    is_integer = kind in (INT, BOOL) or (is_scalar and not kind.is_float)  # type: ignore[attr-defined]  # a scalar
    if annotation is bool:
        return kind in (BOOL, Scalar("bool"))
    if annotation is int:
        return is_integer
    if annotation is float:
        return kind == FLOAT or is_integer or is_scalar
    if annotation is complex:
        return kind in (FLOAT, COMPLEX) or not isinstance(kind, Array | List | Tuple)
    if annotation is np.ndarray:
        return isinstance(kind, Array)
    if annotation is list:
        return isinstance(kind, List)
    if annotation is tuple:
        return isinstance(kind, Tuple)
    return True
