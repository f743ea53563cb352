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
from ferryvm.python.continuation import resume
from ferryvm.python.element import dtype_of, promoted
from ferryvm.python.function import PythonFunction
from ferryvm.python.kind import Array, Kind, MisfitError, Number, Scalar, Tuple, kind_of
from ferryvm.python.pause import PausedFrame
from ferryvm.python.raised import site_of
from ferryvm.python.result import flatten
from ferryvm.python.site import Site

if TYPE_CHECKING:
    import numpy.typing as npt

    from ferryvm.python.explanation import FunctionExplanation

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
    return _mapped(python_function("map", function), arrays, arguments, out)


def _mapped(
    of: PythonFunction[..., Any], arrays: Sequence[Any], arguments: Mapping[str, Any], out: Any
) -> Any:
    values = _bound(of, arrays, arguments)
    key = (len(arrays), *(_key(value) for value in values))
    plan = of.maps.get(key)
    if plan is None or not plan.version.is_current():
        plan = of.maps[key] = _Plan(of, len(arrays), values)
    return plan.run(values, out)


def map_into(
    function: Callable[..., Any],
    out: npt.NDArray[Any] | Sequence[npt.NDArray[Any]],
    /,
    *arrays: Any,
    **arguments: Any,
) -> Any:
    """The array for the results, or a tuple of them, with the values of a function for the elements of
    arrays at each index: as `map` with `out`, also where the function has a parameter of that name.
    """
    if hasattr(function, "__ferryvm__"):
        return array_map.map(function, *arrays, out=out, **arguments)
    return _mapped(python_function("map", function), arrays, arguments, out)


def explain(function: Callable[..., Any]) -> FunctionExplanation:
    """The history of a Python function that was called by `ferryvm.function` or mapped: the versions
    by the types of arguments, what the engine compiled of each, where and how long it ran, and the
    calls that CPython ran or that were refused, with the reasons.

    It prints as text, and a notebook shows it as HTML. Raises TypeError for anything else than a
    Python function, and for one that was neither called nor mapped by ferryvm.
    """
    if isinstance(function, PythonFunction):
        return function.explain()
    found = _functions.get(function) if isinstance(function, types.FunctionType) else None
    if found is None:
        wanted = "a function of ferryvm.function, or one that was mapped"
        raise TypeError(f"explain takes {wanted}; found {shown(function)}")
    return found.explain()


def python_function(form: str, function: Any) -> PythonFunction[..., Any]:
    """The compiled function of a Python function, for an operation. Raises TypeError."""
    if isinstance(function, PythonFunction):
        return function
    if not isinstance(function, types.FunctionType):
        wanted = "a Python function, or a function of an instance, such as instance.f"
        raise TypeError(f"{form} takes {wanted}; found {shown(function)}")
    found = _functions.get(function)
    if found is None:
        found = _functions[function] = PythonFunction(function, None, None, True)
    return found


def _fault(of: PythonFunction[..., Any], message: str) -> CallError:
    return CallError(f"map of {of.__name__}: {message}")


def _bound(
    of: PythonFunction[..., Any], arrays: Sequence[Any], arguments: Mapping[str, Any]
) -> list[Any]:
    """The argument of each parameter."""
    names = of.parameters
    if len(arrays) == len(names) and not arguments:
        values = [*arrays]
    else:
        try:
            bound = of.__signature__.bind(*arrays, **arguments)
        except TypeError as error:
            raise _fault(of, str(error)) from None
        bound.apply_defaults()
        values = [*bound.arguments.values()]
    for number in range(len(arrays)):
        if isinstance(values[number], range):
            each = values[number]
            values[number] = np.arange(each.start, each.stop, each.step, dtype=np.int64)
    return values


def _key(value: Any) -> object:
    """The part of an argument that a plan depends on."""
    if type(value) is np.ndarray:
        return value.dtype, value.ndim
    return type(value) if type(value) in (int, float, bool) else _kind_key(value)


def _kind_key(value: Any) -> object:
    try:
        return kind_of(value)
    except MisfitError:
        return None


class _Plan:
    """A map of one function over certain kinds of arguments."""

    def __init__(self, of: PythonFunction[..., Any], count: int, values: Sequence[Any]) -> None:
        """`count`: the number of leading arguments whose elements are taken, if they are arrays."""
        self._of = of
        self._elementwise = [
            number
            for number in range(count)
            if isinstance(values[number], np.ndarray) and values[number].ndim
        ]
        if not self._elementwise:
            raise _fault(of, f"no argument is an array of elements; call {of.__name__} itself")
        kinds = self._kinds(values)
        self.version = of.of_kinds(kinds)
        self._target = self._result_kind()
        if list(self.version.results) != [self._target]:
            self.version = of.of_kinds(kinds, self._target)
        items = self._target.items if isinstance(self._target, Tuple) else (self._target,)
        self._dtypes = [dtype_of(kind) for kind in items]
        self._is_plain = all(
            isinstance(kind, Scalar | Number) and kind != Scalar("bool") for kind in kinds
        )

    # --- the kinds --------------------------------------------------------------------------

    def _kinds(self, values: Sequence[Any]) -> tuple[Kind, ...]:
        kinds: list[Kind] = []
        for number, (name, value) in enumerate(zip(self._of.parameters, values, strict=True)):
            try:
                kind = kind_of(value)
            except MisfitError as misfit:
                what = f"argument {name}: {misfit}"
                raise self._of.refused(what) from None
            if number in self._elementwise:
                assert isinstance(kind, Array)
                kind = Scalar(kind.dtype)
            kinds.append(kind)
        return tuple(kinds)

    def _result_kind(self) -> Kind:
        """The kind of results, one for all items."""
        results = self.version.results
        if not results:
            raise _fault(self._of, "the function always raises an exception")
        tuples = [kind for kind in results if isinstance(kind, Tuple)]
        if not tuples:
            return self._promoted(results)
        counts = {len(kind.items) for kind in tuples}
        if len(tuples) < len(results) or len(counts) > 1:
            found = " and ".join(sorted({str(kind) for kind in results}))
            raise _fault(self._of, f"results have different forms, {found}")
        columns = zip(*(kind.items for kind in tuples), strict=True)
        return Tuple(tuple(self._promoted(column) for column in columns))

    def _promoted(self, kinds: Sequence[Kind]) -> Kind:
        """The kind of elements that hold values of several kinds, as in `numpy.array`."""
        for kind in kinds:
            if not isinstance(kind, Scalar | Number):
                raise _fault(self._of, f"the results must be numbers, found {kind}")
        return promoted(kinds)

    # --- running ----------------------------------------------------------------------------

    def run(self, values: Sequence[Any], out: Any) -> Any:
        """The results, in these arrays if there are some."""
        shape = values[self._elementwise[0]].shape
        for number in self._elementwise:
            if values[number].shape != shape:
                raise self._unequal(values)
        results = self._results(shape, out)
        error = self._launch(values, results)
        if error is not None:
            self._go_on(error, values, results, shape)
        return tuple(results) if isinstance(self._target, Tuple) else results[0]

    def _launch(self, values: Sequence[Any], results: Sequence[Any]) -> TrapError | None:
        """Compute the items; the trap of the first one that traps."""
        passed = [each.view(np.uint8) if each.dtype == bool else each for each in results]
        given = values if self._is_plain else self._flat(values)
        try:
            self.version.use(lambda function: array_map.map(function, *given, out=passed))
        except TrapError as error:
            return error
        except FerryError as error:
            raised = error
        else:
            return None
        raise raised.with_traceback(None)

    def _go_on(
        self,
        error: TrapError,
        values: Sequence[Any],
        results: Sequence[Any],
        shape: tuple[int, ...],
    ) -> None:
        """Let CPython finish the item that trapped, and launch those after it, again and again."""
        flat = [result.reshape(-1) for result in results]
        start = 0
        found: TrapError | None = error
        while found is not None:
            site = site_of(found, self.version.sites)
            if site is None or found.item is None or not isinstance(found.state, list):
                raise found.with_traceback(None)
            start += found.item
            self._finish(found.state, site, start, flat, shape)
            start += 1
            rest = [
                value.reshape(-1)[start:] if number in self._elementwise else value
                for number, value in enumerate(values)
            ]
            found = None
            if start < len(flat[0]):
                found = self._launch(rest, [result[start:] for result in flat])

    def _finish(
        self,
        frames: Sequence[PausedFrame],
        site: Site,
        item: int,
        results: Sequence[Any],
        shape: tuple[int, ...],
    ) -> None:
        """Let CPython compute the results of an item from its frames."""
        where = f"in item {', '.join(str(int(n)) for n in np.unravel_index(item, shape))} of a map"
        self._of.count(f"{site.type.__name__} at line {site.position.line} in items of maps")
        try:
            value = resume(frames)
            found = value if isinstance(self._target, Tuple) else (value,)
            for result, each in zip(results, found, strict=True):
                result[item] = each
        except Exception as error:
            error.add_note(where)
            raise

    def _unequal(self, values: Sequence[Any]) -> CallError:
        """The error for arrays of different shapes."""
        names = self._of.parameters
        first, *others = self._elementwise
        shape = values[first].shape
        other = next(number for number in others if values[number].shape != shape)
        found = f"{names[first]} and {names[other]} have different shapes"
        shapes = f"{shape} and {values[other].shape}"
        return _fault(self._of, f"{found}, {shapes}; all arrays need the same")

    def _flat(self, values: Sequence[Any]) -> list[Any]:
        """The arguments of the compiled function, with arrays for those of elements."""
        found: list[Any] = []
        for number, (kind, value) in enumerate(zip(self.version.kinds, values, strict=True)):
            if number in self._elementwise:
                found.append(value.view(np.uint8) if value.dtype == bool else value)
            else:
                flatten(kind, value, found)
        return found

    def _results(self, shape: tuple[int, ...], out: Any) -> list[Any]:
        """The arrays for the results: those of the caller, or fresh ones."""
        if out is None:
            return [np.empty(shape, dtype) for dtype in self._dtypes]
        given = [*out] if isinstance(out, tuple | list) else [out]
        if len(given) != len(self._dtypes):
            counts = f"out has {len(given)} arrays, there are {len(self._dtypes)} results"
            raise _fault(self._of, counts)
        for result, dtype in zip(given, self._dtypes, strict=True):
            if not isinstance(result, np.ndarray) or result.dtype != dtype:
                what = result.dtype if isinstance(result, np.ndarray) else shown(result)
                made = f"numpy.empty({shape}, numpy.{dtype.name})"
                wanted = f"an array of {dtype.name} is needed, as {made}"
                raise _fault(self._of, f"out is {what}; {wanted}")
        return given
