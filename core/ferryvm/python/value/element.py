# SPDX-License-Identifier: Apache-2.0
"""Elements of arrays: the dtypes that hold values of kinds, and the arrays for Python's own
objects.

    [1.5, 2.5]  ── all of one type ──>  an array of float64, whose elements are Python's floats

`numpy.array` of lists would make NumPy's scalars of them, for which other rules hold: integers that
wrap, divisions by zero that raise nothing. So the kind is kept beside the array.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ferryvm.engine.marshal import CallError
from ferryvm.failure import shown
from ferryvm.python.value.kind import (
    BOOL,
    COMPLEX,
    DTYPES,
    FLOAT,
    INT,
    PAIRS,
    Complex,
    Kind,
    Number,
    Scalar,
    element_kind,
)
from ferryvm.python.value.value_kind import MisfitError, with_article

if TYPE_CHECKING:
    import numpy.typing as npt


def dtype_of(kind: Kind) -> np.dtype[Any]:
    """The dtype of an array of values of a kind of numbers."""
    if isinstance(kind, Scalar):
        return np.dtype(kind.dtype)
    if isinstance(kind, Complex):
        return np.dtype(kind.dtype or np.complex128)
    assert isinstance(kind, Number)
    return np.dtype({int: np.int64, float: np.float64, bool: np.bool_}[kind.type])


def promoted(kinds: Sequence[Kind]) -> Kind:
    """The kind of elements that hold values of several kinds of numbers."""
    first = kinds[0]
    if (isinstance(first, Number) or first == COMPLEX) and all(kind == first for kind in kinds):
        return first
    return element_kind(np.result_type(*[dtype_of(kind) for kind in kinds]).name)


class Observed(NamedTuple):
    """The array for a list or for an array of objects, which were looked at one by one."""

    array: Any
    kind: Number | Scalar | Complex
    """The kind of the objects."""


def is_of_objects(value: object) -> bool:
    """True for a list and for an array of objects."""
    return type(value) is list or (type(value) is np.ndarray and value.dtype == object)


def observed(value: Any) -> Observed:
    """The array for a list or an array of objects, all of one type: float, int, bool, complex, or
    one of NumPy's scalars. Raises MisfitError, which names the first item that differs."""
    objects = value if type(value) is list else value.reshape(-1).tolist()
    if not objects:
        return Observed(np.empty(np.shape(value)), FLOAT)
    type_ = type(objects[0])
    for number, each in enumerate(objects):
        if type(each) is not type_:
            raise MisfitError(
                f"item {_index(value, number)} is {with_article(type(each))} where those before are "
                f"{type_.__name__}; all must be of one type"
            )
    kind = _OF_TYPE.get(type_)
    if kind is None and issubclass(type_, np.generic):
        name = objects[0].dtype.name
        kind = element_kind(name) if name in DTYPES or name in PAIRS else None
    if kind is None:
        made = "; pass numpy.array(a)" if type_ in (list, np.ndarray) else ""
        raise MisfitError(
            f"item 0 is {with_article(type_)}; floats, ints or bools are needed{made}"
        )
    try:
        array = np.array(objects, dtype_of(kind)).reshape(np.shape(value))
    except OverflowError:
        number = next(n for n, each in enumerate(objects) if each.bit_length() > 63)
        where, what = _index(value, number), shown(objects[number])
        raise MisfitError(f"item {where} is {what}, which does not fit into 64 bits") from None
    return Observed(array, kind)


def store_result(name: str, results: npt.NDArray[Any], index: int, value: Any) -> None:
    """Store a value that CPython computed, in a statement that was not compiled, where compiled
    code has stored others. `name`: of the result, for messages. Raises CallError for a value of
    another type, and OverflowError."""
    what = f"{name} is {shown(value)}"
    found = np.dtype(np.int64) if type(value) is int else np.asarray(value).dtype
    if found.kind == "O" or np.result_type(found, results.dtype) != results.dtype:
        others = f"where those before are {results.dtype}"
        raise CallError(f"{what}, {others}; convert all to one type")
    try:
        results[index] = value
    except OverflowError:
        raise OverflowError(f"{what}, which does not fit into {results.dtype}") from None


_OF_TYPE: dict[type, Number | Scalar | Complex] = {
    float: FLOAT,
    int: INT,
    bool: BOOL,
    complex: COMPLEX,
}


def _index(value: Any, number: int) -> str:
    """The index of an item, as an error names it."""
    return ", ".join(str(int(n)) for n in np.unravel_index(number, np.shape(value)))
