# SPDX-License-Identifier: Apache-2.0
"""Maps, reductions and scans of Python functions, compared with CPython item by item.

f(item 0), f(item 1), …  ──>  ferryvm.map: the same values, or the exception of the first that
                              raises; what the items print, in their order

A map runs three times: into fresh arrays, into fresh arrays once more, and into arrays that are
given.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import io
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import ferryvm
from ferryvm.engine.array_argument import is_masked
from ferryvm.errors import FerryError
from ferryvm.testing.python_check import CheckedFunction, Outcome, PythonDifference, is_same

_LONGEST_TEXT = 400
"""Characters of an outcome in a message."""

_PLACE = re.compile(r"(?:^'?|, )in item ([0-9, ]+) of a map'?$")


@dataclasses.dataclass(frozen=True)
class Each:
    """An argument of a map whose elements the items get."""

    value: Any


@dataclasses.dataclass(frozen=True)
class Folded:
    """A reduction or a scan: "reduce", "scan", or "scan into" an array."""

    form: str
    value: Any
    initial: Any = None


@dataclasses.dataclass(frozen=True)
class ItemOutcomes:
    """CPython's outcome of a call."""

    values: Sequence[Any]
    """Of the items that are not masked, up to the first one that raises."""
    error: Exception | None
    mask: Sequence[bool] | None
    """The items that are masked; None if no argument is a masked array."""
    printed: str
    place: str = ""
    """The number of the item that raises, for each dimension."""


def item_outcomes(function: Callable[..., Any], call: Sequence[Any]) -> ItemOutcomes:
    """CPython's outcome of a call."""
    first = call[0] if call else None
    if isinstance(first, Folded):
        return _folded(function, first)
    columns = [each.value if isinstance(each, Each) else None for each in call]
    sizes = [_size(value) for value in columns if value is not None]
    size = max((each for each in sizes if each is not None), default=0)
    mask = _mask(columns, size)
    parts = [_items(each.value, size) if isinstance(each, Each) else [each] * size for each in call]
    values: list[Any] = []
    error, place = None, ""
    printed = io.StringIO()
    with np.errstate(all="ignore"), contextlib.redirect_stdout(printed):
        for number, arguments in enumerate(zip(*parts, strict=True)):
            if mask is not None and mask[number]:
                continue
            try:
                values.append(function(*arguments))
            except Exception as raised:  # noqa: BLE001  # whatever the function raises
                error = raised
                place = ", ".join(map(str, np.unravel_index(number, _shape(columns, size))))
                break
    return ItemOutcomes(values, error, mask, printed.getvalue(), place)


def _folded(function: Callable[..., Any], call: Folded) -> ItemOutcomes:
    items = _items(call.value, 0)
    try:
        with np.errstate(all="ignore"), contextlib.redirect_stdout(io.StringIO()):
            if call.form == "reduce":
                given = () if call.initial is None else (call.initial,)
                return ItemOutcomes([functools.reduce(function, items, *given)], None, None, "")
            return ItemOutcomes([*itertools.accumulate(items, function)], None, None, "")
    except Exception as error:  # noqa: BLE001  # whatever the function raises
        return ItemOutcomes([], error, None, "")


def _size(value: Any) -> int | None:
    """The number of elements; None for a number."""
    if isinstance(value, tuple):
        return next((n for n in map(_size, value) if n is not None), None)
    if isinstance(value, range | list):
        return len(value)
    return int(value.size) if isinstance(value, np.ndarray) and value.ndim else None


def _shape(columns: Sequence[Any], size: int) -> tuple[int, ...]:
    """The shape of the elements."""
    for value in columns:
        for each in value if isinstance(value, tuple) else (value,):
            if isinstance(each, np.ndarray) and each.ndim:
                return tuple(each.shape)
    return (size,)


def _items(value: Any, size: int) -> list[Any]:
    """The elements, of a number so many."""
    if isinstance(value, tuple):
        return [*zip(*(_items(each, size) for each in value), strict=True)]
    if is_masked(value):
        value = value.data
    if isinstance(value, np.ndarray) and value.ndim:
        flat = value.reshape(-1)
        return [flat[number] for number in range(flat.size)]
    return [*value] if isinstance(value, range | list) else [value] * size


def _mask(columns: Sequence[Any], size: int) -> list[bool] | None:
    found = None
    for value in columns:
        for each in value if isinstance(value, tuple) else (value,):
            if is_masked(each):
                one = np.ma.getmaskarray(each).reshape(-1)
                found = one if found is None else found | one
    return None if found is None else [bool(each) for each in found[:size]]


def differences(
    checked: CheckedFunction, wanted: ItemOutcomes, call: Sequence[Any]
) -> Iterator[PythonDifference]:
    """The differences between CPython's outcome of a call and those of its runs. Raises
    UnsupportedError and CallError for what is refused, and what the machine raises."""
    first = call[0] if call else None
    if isinstance(first, Folded):
        found, _ = _run(lambda: _fold(checked, copy.deepcopy(first)))
        yield from _of_fold(first, wanted, found)
        return
    out = None
    for _ in range(3):
        given = copy.deepcopy(call)
        arrays = [each.value for each in given if isinstance(each, Each)]
        named = {
            name: each
            for name, each in zip(checked.parameters, given, strict=True)
            if not isinstance(each, Each)
        }
        into = None if out is None else tuple(map(_to_be_filled, out))
        found, printed = _run(functools.partial(ferryvm.map, checked, *arrays, out=into, **named))
        yield from _of_map(wanted, found, printed)
        if found.error is None:
            value = found.value
            out = value if isinstance(value, tuple) else (value,)


def _to_be_filled(result: Any) -> Any:
    """An array for results like these, all of which is to be overwritten; of a masked array, with
    another mask."""
    if is_masked(result):
        return np.ma.array(np.full_like(result.data, 1), mask=~np.ma.getmaskarray(result))
    return np.full_like(result, 1)


def _fold(checked: CheckedFunction, call: Folded) -> Any:
    if call.form == "reduce":
        return ferryvm.reduce(checked, call.value, call.initial)
    out = None
    if call.form == "scan into":
        value = call.value
        is_array = isinstance(value, np.ndarray) and value.dtype != object
        out = value if is_array else None  # in place
    return ferryvm.scan(checked, call.value, out=out)


def _run(action: Callable[[], Any]) -> tuple[Outcome, str]:
    printed = io.StringIO()
    with np.errstate(all="ignore"), contextlib.redirect_stdout(printed):
        try:
            return Outcome(action()), printed.getvalue()
        except FerryError:
            raise
        except Exception as error:  # noqa: BLE001  # whatever the function raises
            return Outcome(None, error), printed.getvalue()


def _of_fold(call: Folded, wanted: ItemOutcomes, found: Outcome) -> Iterator[PythonDifference]:
    both = f"{_text(found)}; CPython: {_text(wanted)}"
    if type(found.error) is not type(wanted.error):
        if not (isinstance(found.error, OverflowError) and _has_large(wanted.values)):
            yield PythonDifference(both, "exception")
    elif found.error is not None:
        if str(found.error) != str(wanted.error):
            yield PythonDifference(both, "message")
    elif call.form == "reduce":
        if not is_same(found.value, wanted.values[0]):
            yield PythonDifference(both, "result")
    elif not _is_column(found.value.reshape(-1), wanted.values):
        yield PythonDifference(both, "result")


def _of_map(wanted: ItemOutcomes, found: Outcome, printed: str) -> Iterator[PythonDifference]:
    both = f"{_text(found)}; CPython: {_text(wanted)}"
    if found.error is not None:
        yield from _of_error(wanted, found.error, both)
        return
    if wanted.error is not None:
        yield PythonDifference(both, f"result, not {type(wanted.error).__name__}")
        return
    if printed != wanted.printed:
        yield PythonDifference(f"printed {printed!r}; CPython: {wanted.printed!r}", "output")
    values = wanted.values
    if values and isinstance(values[0], tuple):
        columns: list[Sequence[Any]] = [*zip(*values, strict=True)]
    else:
        columns = [values] if values else []
    arrays = found.value if isinstance(found.value, tuple) else (found.value,)
    if columns and len(columns) != len(arrays):
        yield PythonDifference(both, "number of results")
        return
    for array, column in zip(arrays, columns or [()] * len(arrays), strict=True):
        if is_masked(array) != (wanted.mask is not None):
            yield PythonDifference(both, "masked array")
            continue
        flat = array.reshape(-1)
        if wanted.mask is not None:
            mask = np.ma.getmaskarray(flat)
            if mask.tolist() != list(wanted.mask):
                yield PythonDifference(both, "mask")
                continue
            flat = flat.data[~mask]
        if not _is_column(flat, column):
            yield PythonDifference(both, "result")


def _text(outcome: Outcome | ItemOutcomes) -> str:
    """An outcome in short."""
    try:
        found = str(outcome) if isinstance(outcome, Outcome) else repr(outcome)
    except ValueError:  # Python writes out no int of many thousand digits
        return "a large int"
    return found if len(found) < _LONGEST_TEXT else f"{found[:_LONGEST_TEXT]}..."


def _of_error(wanted: ItemOutcomes, error: Exception, both: str) -> Iterator[PythonDifference]:
    notes = [*getattr(error, "__notes__", ()), str(error)]
    places = [each for each in map(_PLACE.search, notes) if each]
    if not places:
        yield PythonDifference(both, "place of an exception")
        return
    if wanted.error is None:
        if not (isinstance(error, OverflowError) and _has_large(wanted.values)):
            yield PythonDifference(both, f"{type(error).__name__}, not result")
        return
    if type(error) is not type(wanted.error):
        if not (isinstance(error, OverflowError) and _has_large(wanted.values)):
            yield PythonDifference(both, "exception")
        return
    if isinstance(error, OverflowError) and _has_large(wanted.values):
        return
    if places[0][1] != wanted.place:
        yield PythonDifference(both, "item of an exception")
    if not isinstance(error, RecursionError) and _PLACE.sub("", str(error)) != str(wanted.error):
        yield PythonDifference(both, "message")


def _has_large(values: Sequence[Any]) -> bool:
    """True if a value is an int that no array can have."""
    flat = [each for value in values for each in (value if isinstance(value, tuple) else (value,))]
    return any(type(each) is int and not -(1 << 63) <= each < 1 << 63 for each in flat)


def _is_column(found: Any, values: Sequence[Any]) -> bool:
    """True if an array has these values, with a dtype that has their types."""
    if len(found) != len(values):
        return False
    for one, value in zip(found, values, strict=True):
        own = np.dtype(np.int64) if type(value) is int else np.asarray(value).dtype
        if (
            np.promote_types(own, found.dtype) != found.dtype
            and np.result_type(own, found.dtype) != found.dtype
        ):
            return False
        if not is_same(one, np.asarray(value).astype(found.dtype)[()]):
            return False
    return True
