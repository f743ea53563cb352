# SPDX-License-Identifier: Apache-2.0
"""Values of a compiled function as Python objects, by their kinds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ferryvm.engine.object_view import StructView
from ferryvm.isa.type import I64, ValueType
from ferryvm.python.fault import UnsupportedError
from ferryvm.python.value import text_value
from ferryvm.python.value.kind import (
    BOOL,
    FLOAT,
    INT,
    PAIRS,
    Array,
    Character,
    Closure,
    Complex,
    Constant,
    Kind,
    List,
    Number,
    Scalar,
    Text,
    Tuple,
)
from ferryvm.python.value.list_value import ViewReader


class BoundFunction(NamedTuple):
    """A closure of compiled code, in CPython."""

    function: Any
    """An `InnerFunction`."""
    captured: tuple[Any, ...]
    """Values of the variables that it uses."""


Reader = Callable[..., Any]
"""Turns what a call of an instance returns into the value of the Python function; a reader of lists
may be given, too."""


def reader(kinds: Sequence[Kind], name: str) -> Reader | None:
    """The reader for a function that returns values of these kinds; None: the value is it."""
    for kind in kinds:
        _check(kind, name)
    if len(kinds) == 1:
        (kind,) = kinds
        if kind in (INT, FLOAT) or kind == Constant(None):
            return None
        if kind == BOOL:
            return lambda value, _lists=None: bool(value)
        if isinstance(kind, Scalar):
            scalar = _scalar_type(kind)
            return lambda value, _lists=None: scalar(value)
        if len(kind.slots) == 1:
            return lambda value, lists=None: value_of(kind, [value], lists)
        return lambda values, lists=None: value_of(kind, values or (), lists)
    starts = [1]
    for kind in kinds:
        starts.append(starts[-1] + len(kind.slots))

    def read(values: Sequence[Any], lists: ViewReader | None = None) -> Any:
        number = values[0]
        return value_of(kinds[number], values[starts[number] : starts[number + 1]], lists)

    if starts[-1] == 1:  # kinds without slots: the number is the only value
        return lambda number, _lists=None: value_of(kinds[number], ())
    return read


def result_types(kinds: Sequence[Kind]) -> list[ValueType]:
    """The types of the results of a function that may return these kinds: the slots of the kind; if
    there are several, the number of the kind, then the slots of each."""
    if len(kinds) == 1:
        return list(kinds[0].slots)
    return [I64, *(slot for kind in kinds for slot in kind.slots)]


def _check(kind: Kind, name: str) -> None:
    items = kind.items if isinstance(kind, Tuple) else ()
    for item in items:
        _check(item, name)
    can_return = isinstance(
        kind, Tuple | Number | Scalar | Complex | Array | List | Text | Character
    )
    if not can_return and not (isinstance(kind, Constant) and is_returned(kind)):
        raise UnsupportedError(f"cannot return {kind}", None, name)


def is_returned(kind: Constant) -> bool:
    """True for a value that is known and that a function may return."""
    return kind.value is None or isinstance(kind.value, str | bytes)


def _scalar_type(kind: Scalar) -> Callable[[Any], Any]:
    type_ = np.dtype(kind.dtype).type
    if not kind.is_full:
        return type_
    mask = (1 << kind.bits) - 1
    return lambda value: type_(value & mask)


def value_of(kind: Kind, values: Sequence[Any], lists: ViewReader | None = None) -> Any:
    """The Python object of a kind with these slots. `lists`: reads lists, each of them once."""
    match kind:
        case Tuple() | Closure():
            found, start = [], 0
            lists = lists or ViewReader()
            for item in kind.items:
                end = start + len(item.slots)
                found.append(value_of(item, values[start:end], lists))
                start = end
            return (
                tuple(found) if isinstance(kind, Tuple) else BoundFunction(kind.function, (*found,))
            )
        case Array():
            array, *shape = values
            if kind.dtype in ("bool", "uint64") or kind.dtype in PAIRS:
                array = array.view(kind.dtype)
            if kind.is_view:
                return _view(array, shape, kind.dimensions)
            return array if array.shape == tuple(shape) else array.reshape(shape)
        case Complex():
            found_ = complex(*values)
            return np.dtype(kind.dtype).type(found_) if kind.dtype else found_
        case Scalar():
            return _scalar_type(kind)(values[0])
        case Text():
            return text_value.value_of(kind, *values)
        case Character():
            return chr(values[0])
        case List():
            if isinstance(values[0], StructView):
                return (lists or ViewReader()).read(values[0])
            return values[0]
        case Constant():
            return kind.value
    return bool(values[0]) if kind == BOOL else values[0]


def _view(array: Any, numbers: Sequence[int], dimensions: int) -> Any:
    """The view of an array: first element, lengths, strides."""
    first, lengths, strides = numbers[0], numbers[1 : 1 + dimensions], numbers[1 + dimensions :]
    if 0 in lengths:
        return array[:0].reshape(lengths)
    size = array.itemsize
    return np.ndarray(
        lengths, array.dtype, array, first * size, [stride * size for stride in strides]
    )


def arguments(kinds: Sequence[Kind]) -> Callable[[Sequence[Any]], list[Any]] | None:
    """The function from the arguments of a Python function to those of the compiled one; None if
    they are the same."""
    if all(
        len(kind.slots) == 1
        and not isinstance(kind, Array | Tuple | Text)
        and not _is_changed(kind)
        for kind in kinds
    ):
        return None

    def flat(values: Sequence[Any]) -> list[Any]:
        found: list[Any] = []
        for kind, value in zip(kinds, values, strict=True):
            flatten(kind, value, found)
        return found

    return flat


def _is_changed(kind: Kind) -> bool:
    """True for a scalar that a program has as another type of numbers."""
    return kind == Scalar("bool") or (isinstance(kind, Scalar) and kind.is_full)


def storage(array: Any) -> Any:
    """An array as a program has it: of a type that has elements, or of the parts of complex
    numbers."""
    if array.dtype == bool:
        return array.view(np.uint8)
    if array.dtype == np.uint64:
        return array.view(np.int64)
    pair = PAIRS.get(array.dtype.name)
    return array if pair is None else array.view(f"f{pair.bytes}")


def flatten(kind: Kind, value: Any, found: list[Any]) -> None:
    """Append the slots of an argument of a kind."""
    match kind:
        case Array():
            found.append(storage(value))
            found += value.shape
        case Tuple():
            for item, each in zip(kind.items, value, strict=True):
                flatten(item, each, found)
        case Text():
            found += (text_value.codes(value), 0, len(value), 1)
        case Constant():
            pass
        case Scalar(dtype="bool"):
            found.append(int(value))
        case Scalar(is_full=True):
            sign = 1 << (kind.bits - 1)
            found.append((int(value) ^ sign) - sign)
        case Complex():
            found += (value.real, value.imag)
        case _ if len(kind.slots) == 2:  # a range
            found += (value.start, value.stop)
        case _:
            found.append(value)
