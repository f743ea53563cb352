# SPDX-License-Identifier: Apache-2.0
"""The kinds of values of Python."""

from __future__ import annotations

from typing import Any

import numpy as np

from ferryvm.engine.array_argument import is_masked
from ferryvm.python.value.kind import (
    BOOL,
    COMPLEX,
    DTYPES,
    FLOAT,
    INT,
    NONE,
    PAIRS,
    Array,
    Constant,
    Kind,
    List,
    Number,
    Range,
    Scalar,
    Text,
    Tuple,
    either,
    element_kind,
    is_item,
    is_mixed,
    united,
)


class MisfitError(Exception):
    """A value of Python that no kind stands for, and why."""


def kind_of(value: object) -> Kind:
    """The kind of an argument. Raises MisfitError."""
    found = _OF_TYPE.get(type(value))
    if found is not None:
        return found
    if isinstance(value, np.ndarray):
        return _array_kind(value)
    if isinstance(value, np.generic):
        if value.dtype.name in DTYPES or value.dtype.name in PAIRS:
            return element_kind(value.dtype.name)
        raise MisfitError(f"numpy.{value.dtype.name} is not supported{_instead(value.dtype)}")
    if isinstance(value, tuple) and type(value) is tuple:
        return Tuple(tuple(map(kind_of, value)))
    if isinstance(value, range):
        return Range(value.step)
    if type(value) is list:
        return _list_kind(value)
    raise MisfitError(f"{with_article(type(value))} is not supported{_instead_of(value)}")


def with_article(type_: type) -> str:
    """The name of a type in a sentence."""
    return f"{'an' if type_.__name__[0] in 'aeiou' else 'a'} {type_.__name__}"


def _merged(one: Kind, other: Kind) -> Kind | None:
    """The kind of items that are of two kinds; None if there is none."""
    if is_mixed(one) and is_mixed(other):
        return one if one == other else either(one, other)
    if isinstance(one, List) and isinstance(other, List) and one.item and other.item:
        item = _merged(one.item, other.item)
        return None if item is None else List(item)
    return united(one, other)


def _list_kind(value: list[Any]) -> List:
    """The kind of a list, all of whose items are looked at. Raises MisfitError."""
    types_ = set(map(type, value))
    if not types_:
        return List(None)
    if len(types_) == 1:
        found = _OF_TYPE.get(next(iter(types_)))
        if isinstance(found, Number | Scalar):
            return List(found)
    try:
        kinds = dict.fromkeys(map(kind_of, value))
    except RecursionError:
        raise MisfitError("a list that contains itself is not supported") from None
    item, *others = kinds
    for other in others:
        both = _merged(item, other)
        if both is None:
            number = next(n for n, each in enumerate(value) if kind_of(each) == other)
            raise MisfitError(
                f"item {number} of the list is {other} where those before are {item}; all must be of one type"
            )
        item = both
    if not is_item(item):
        raise MisfitError(
            f"a list of {item} is not supported; its items must be numbers, tuples or lists"
        )
    return List(item)


_OF_TYPE: dict[type, Kind] = {
    int: INT,
    float: FLOAT,
    bool: BOOL,
    complex: COMPLEX,
    type(None): NONE,
    str: Text(str),
    bytes: Text(bytes),
    np.float64: Scalar("float64"),
    np.float32: Scalar("float32"),
    np.int64: Scalar("int64"),
    np.int32: Scalar("int32"),
    np.bool_: Scalar("bool"),
}
_HINTS: dict[type, str] = {
    dict: "; pass the values by themselves",
    bytearray: "; pass bytes(a)",
}


def _instead_of(value: object) -> str:
    """The advice for a value of another type."""
    if hasattr(value, "__array__") and not isinstance(value, type):
        return "; pass numpy.asarray(a)"
    for base in (int, float, complex, tuple, list, range):
        if isinstance(value, base):
            return f"; pass {base.__name__}(a)"
    return _HINTS.get(type(value), "; pass the numbers and arrays in it")


def _array_kind(array: np.ndarray[Any, Any]) -> Array:
    if is_masked(array):
        raise MisfitError("a masked array is not supported; pass a.filled(...)")
    if type(array) not in (np.ndarray, np.memmap):  # its methods may have other meanings
        raise MisfitError(f"{with_article(type(array))} is not supported; pass numpy.asarray(a)")
    name = array.dtype.name
    if (name not in DTYPES and name not in PAIRS) or not array.dtype.isnative:
        raise MisfitError(f"an array of {array.dtype} is not supported{_instead(array.dtype)}")
    if array.ndim == 0:
        raise MisfitError("an array of no dimensions is not supported; pass a[()]")
    if not array.flags.c_contiguous or not array.flags.aligned:
        raise MisfitError(
            "an array whose elements are not contiguous is not supported; pass a.copy()"
        )
    return Array(name, array.ndim)


def _instead(dtype: np.dtype[Any]) -> str:
    if dtype.names:
        return f"; pass a field of it, as a[{dtype.names[0]!r}].copy()"
    call = {
        "f": "a.astype(numpy.float64)",
        "i": "a.astype(numpy.int64)",
        "u": "a.astype(numpy.int64)",
        "M": "a.view(numpy.int64)",
        "m": "a.view(numpy.int64)",
        "c": "a.astype(numpy.complex128)",
        "O": "a.astype(numpy.float64)",
        "U": "the numbers in it, a.astype(numpy.float64), or its characters, a.view(numpy.int32)",
        "S": "the numbers in it, a.astype(numpy.float64), or its bytes, a.view(numpy.uint8)",
    }.get(dtype.kind)
    return f"; pass {call}" if call else ""


def constant_kind(value: object) -> Kind:
    """The kind of a value that is known: that of numbers and arrays, else the value. Raises
    MisfitError for an array that is not supported."""
    if type(value) in (int, float, bool, complex) or isinstance(value, np.generic):
        return kind_of(value)
    if isinstance(value, np.ndarray):
        return _array_kind(value)
    if isinstance(value, tuple) and type(value) is tuple:
        return Tuple(tuple(map(constant_kind, value)))
    return Constant(value)
