# SPDX-License-Identifier: Apache-2.0
"""Maps of Python functions over arrays: `ferryvm.map`.

    map(f, xs, ys, k=3.0)  ──>  f is compiled for the kinds of the elements and of k,
                                then a launch over the arrays in an instance of it

Functions of an instance are mapped by `ferryvm.engine.array_map`, which this uses.
"""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ferryvm.engine import TrapError, array_map
from ferryvm.engine.marshal import CallError
from ferryvm.errors import FerryError
from ferryvm.failure import shown
from ferryvm.python.fault import UnsupportedError
from ferryvm.python.function import PythonFunction, Version
from ferryvm.python.kind import BOOL, FLOAT, INT, Array, Kind, MisfitError, Scalar, Tuple, kind_of
from ferryvm.python.raised import site_of
from ferryvm.python.result import flatten

if TYPE_CHECKING:
    import numpy.typing as npt

_functions: weakref.WeakKeyDictionary[types.FunctionType, PythonFunction[..., Any]] = (
    weakref.WeakKeyDictionary()
)
"""Python functions that are mapped as they are."""


def map(
    function: Callable[..., Any],
    /,
    *arrays: Any,
    out: npt.NDArray[Any] | Sequence[npt.NDArray[Any]] | None = None,
    **arguments: Any,
) -> Any:
    """The values of a function for the elements of arrays at each index, as an array of their shape; a
    tuple of arrays if it has several results.

    `function`: a Python function, also one of `ferryvm.function`, or a function of an instance.
    `arrays`: NumPy arrays of one shape, and ranges, for its parameters in order; a number stands
    for an array of it. `arguments`: those of the other parameters, by name, as they are: an array
    is the same for all items. `out`: the array for the results, or one for each; it may be one of
    those that are read. For a function of an instance, `arguments` may be arrays of elements, too.

    Raises CallError for arguments that do not fit, UnsupportedError for a function that cannot be
    compiled, and what the function raises for the first item that raises. docs/python.md has
    examples.
    """
    if hasattr(function, "__ferryvm__"):
        return array_map.map(function, *arrays, out=out, **arguments)
    return _Mapped(_python_function(function), arrays, arguments).run(out)


def _python_function(function: Any) -> PythonFunction[..., Any]:
    if isinstance(function, PythonFunction):
        return function
    if not isinstance(function, types.FunctionType):
        wanted = "a Python function, or a function of an instance, such as instance.f"
        raise TypeError(f"map takes {wanted}; found {shown(function)}")
    found = _functions.get(function)
    if found is None:
        found = _functions[function] = PythonFunction(function, None, None, True)
    return found


class _Mapped:
    """A map of one function over certain arguments."""

    def __init__(
        self, of: PythonFunction[..., Any], arrays: Sequence[Any], arguments: Mapping[str, Any]
    ) -> None:
        self._of = of
        self._name = of.__name__
        self._values = self._bound(arrays, arguments)
        mapped = self._parameters[: len(arrays)]
        self._elementwise = {
            name
            for name in mapped
            if isinstance(self._values[name], np.ndarray) and self._values[name].ndim
        }
        self._shape = self._common_shape()

    def _fault(self, message: str) -> CallError:
        return CallError(f"map of {self._name}: {message}")

    def _bound(self, arrays: Sequence[Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
        signature = self._of.__signature__
        self._parameters = list(signature.parameters)
        try:
            bound = signature.bind(*arrays, **arguments)
        except TypeError as error:
            raise self._fault(str(error)) from None
        bound.apply_defaults()
        values = dict(bound.arguments)
        for name in self._parameters[: len(arrays)]:
            if isinstance(values[name], range):
                each = values[name]
                values[name] = np.arange(each.start, each.stop, each.step, dtype=np.int64)
        return values

    def _common_shape(self) -> tuple[int, ...]:
        shapes = {
            name: self._values[name].shape for name in self._parameters if name in self._elementwise
        }
        if not shapes:
            message = f"no argument is an array of elements; call {self._name} itself"
            raise self._fault(message)
        (first, shape), *others = shapes.items()
        for name, other in others:
            if other != shape:
                found = f"{first} and {name} have different shapes, {shape} and {other}"
                raise self._fault(f"{found}; all arrays need the same")
        return tuple(shape)

    def _kinds(self) -> tuple[Kind, ...]:
        kinds: list[Kind] = []
        for name in self._parameters:
            try:
                kind = kind_of(self._values[name])
            except MisfitError as misfit:
                raise UnsupportedError(f"argument {name}: {misfit}", None, self._name) from None
            if name in self._elementwise:
                assert isinstance(kind, Array)
                kind = Scalar(kind.dtype)
            kinds.append(kind)
        return tuple(kinds)

    def run(self, out: Any) -> Any:
        """The results, in these arrays if there are some."""
        kinds = self._kinds()
        version = self._of.of_kinds(kinds)
        target = self._result_kind(version)
        if list(version.results) != [target]:
            version = self._of.of_kinds(kinds, target)
        items = target.items if isinstance(target, Tuple) else (target,)
        results = self._results(items, out)
        values = self._flat(version)
        instance = version.instance()
        try:
            array_map.map(instance.function, *values, out=tuple(each for _, each in results))
        except FerryError as error:
            raised = error
        else:
            version.instances.append(instance)
            found = tuple(result for result, _ in results)
            return found[0] if not isinstance(target, Tuple) else found
        version.instances.append(instance)
        if isinstance(raised, TrapError):
            self._trapped(version, raised)
        raise raised.with_traceback(None)

    def _flat(self, version: Version) -> list[Any]:
        """The arguments of the compiled function, with arrays for those of elements."""
        found: list[Any] = []
        for name, kind in zip(self._parameters, version.kinds, strict=True):
            value = self._values[name]
            if name in self._elementwise:
                found.append(value.view(np.uint8) if value.dtype == bool else value)
            else:
                flatten(kind, value, found)
        return found

    def _result_kind(self, version: Version) -> Kind:
        """The kind of results, one for all items."""
        results = version.results
        if not results:
            raise self._fault("the function always raises an exception")
        tuples = [kind for kind in results if isinstance(kind, Tuple)]
        if not tuples:
            return self._promoted(results)
        counts = {len(kind.items) for kind in tuples}
        if len(tuples) < len(results) or len(counts) > 1:
            shown_ = " and ".join({str(kind) for kind in results})
            raise self._fault(f"results have different forms, {shown_}")
        columns = zip(*(kind.items for kind in tuples), strict=True)
        return Tuple(tuple(self._promoted(column) for column in columns))

    def _promoted(self, kinds: Sequence[Kind]) -> Kind:
        """The kind of elements that hold values of several kinds, as in `numpy.array`."""
        first = kinds[0]
        if all(kind == first for kind in kinds) and first in (INT, FLOAT, BOOL):
            return first
        for kind in kinds:
            if not isinstance(kind, Scalar) and kind not in (INT, FLOAT, BOOL):
                raise self._fault(f"the results must be numbers, found {kind}")
        return Scalar(np.result_type(*(_dtype(kind) for kind in kinds)).name)

    def _results(self, items: Sequence[Kind], out: Any) -> list[tuple[Any, Any]]:
        """For each result the array of the caller, and that of its memory that is passed."""
        given = () if out is None else tuple(out) if isinstance(out, tuple | list) else (out,)
        if given and len(given) != len(items):
            raise self._fault(f"out has {len(given)} arrays, there are {len(items)} results")
        found = []
        for number, kind in enumerate(items):
            dtype = _dtype(kind)
            result = given[number] if given else np.empty(self._shape, dtype)
            if not isinstance(result, np.ndarray) or result.dtype != dtype:
                what = result.dtype if isinstance(result, np.ndarray) else shown(result)
                made = f"numpy.empty({self._shape}, numpy.{dtype.name})"
                raise self._fault(f"out is {what}; an array of {dtype.name} is needed, as {made}")
            found.append((result, result.view(np.uint8) if dtype == bool else result))
        return found

    def _trapped(self, version: Version, error: TrapError) -> None:
        """Raise Python's exception for the item that trapped, if it is one of Python."""
        site = site_of(error, version.sites)
        if site is None or error.item is None:
            return
        place = np.unravel_index(error.item, self._shape)
        arguments = [
            self._values[name][place] if name in self._elementwise else self._values[name]
            for name in self._parameters
        ]
        where = f"in item {', '.join(str(int(number)) for number in place)}"
        try:
            self._of.python(arguments, f"{site.type.__name__} {where} of a map")
        except Exception as raised:
            raised.add_note(f"{where} of a map")
            raise
        message = f"{where} of a map: {site.message or 'a number does not fit into 64 bits'}"
        raise OverflowError(f"{message}, {site.position.file}:{site.position.line}")


def _dtype(kind: Kind) -> np.dtype[Any]:
    if isinstance(kind, Scalar):
        return np.dtype(kind.dtype)
    return np.dtype({INT: np.int64, FLOAT: np.float64, BOOL: np.bool_}[kind])  # type: ignore[index]  # a number
