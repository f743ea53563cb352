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
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ferryvm.engine import ProgramInterrupted, TrapError, array_map
from ferryvm.engine.marshal import CallError
from ferryvm.errors import FerryError
from ferryvm.failure import shown
from ferryvm.python.continuation import resume
from ferryvm.python.element import Observed, dtype_of, no_elements, promoted
from ferryvm.python.function import PythonFunction
from ferryvm.python.interruption import MapInterrupted, left_by
from ferryvm.python.kind import (
    INT,
    PAIRS,
    Array,
    Complex,
    Kind,
    MisfitError,
    Number,
    Scalar,
    Tuple,
    kind_of,
)
from ferryvm.python.pause import PausedFrame
from ferryvm.python.progress import shown_progress
from ferryvm.python.raised import site_of
from ferryvm.python.result import flatten
from ferryvm.python.site import Site
from ferryvm.python.taken import Taken, data_of, is_taken

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
    values, count = _bound(of, arrays, arguments), len(arrays)
    key = _keys(values, count)
    plan = of.maps.get(key)
    if plan is None or not plan.version.is_current():
        if any(is_taken(value) for value in values[:count]):
            return _looked_at(of, count, values, out)
        plan = of.maps[key] = _Plan(of, count, values)
    return plan.run(values, out)


def _looked_at(of: PythonFunction[..., Any], count: int, values: Sequence[Any], out: Any) -> Any:
    """The map with arguments that have to be looked at."""
    try:
        taken = Taken(of.parameters, values, count)
    except MisfitError as misfit:
        raise _fault(of, str(misfit)) from None
    key = _keys(taken.values, count)
    plan = of.maps.get(key)
    if plan is None or not plan.version.is_current():
        plan = of.maps[key] = _Plan(of, count, taken.values)
    return taken.masked(plan.run(taken.arrays, data_of(out), taken.mask), out)


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
            values = [*of.bound(arrays, arguments)]
        except TypeError as error:
            raise _fault(of, str(error)) from None
    return values


def _keys(values: Sequence[Any], count: int) -> tuple[object, ...]:
    """The parts of arguments that a plan depends on; `count`: those whose elements are taken."""
    keys = [_key(value) for value in values]
    for number in range(count, len(values)):
        if type(values[number]) is range:
            keys[number] = _kind_key(values[number])
    return (count, *keys)


def _key(value: Any) -> object:
    """The part of an argument with elements that a plan depends on."""
    if type(value) is np.ndarray:
        return value.dtype, value.ndim
    if type(value) is Observed:
        return value.kind, value.array.ndim
    if type(value) is tuple:
        return tuple([_key(each) for each in value])
    return type(value) if type(value) in (int, float, bool, range) else _kind_key(value)


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
        self._tuples = {
            number
            for number in range(count)
            if type(values[number]) is tuple and any(_has_elements(each) for each in values[number])
        }
        self._names, self._elementwise = self._places(count, values)
        if not self._elementwise:
            raise _fault(of, f"no argument is an array of elements; call {of.__name__} itself")
        self._kinds = self._kinds_of(self._apart(values))
        kinds = self._joined(values)
        self.version = of.of_kinds(kinds)
        self._target = self._result_kind()
        if list(self.version.results) != [self._target]:
            self.version = of.of_kinds(kinds, self._target)
        items = self._target.items if isinstance(self._target, Tuple) else (self._target,)
        self._dtypes = [dtype_of(kind) for kind in items]
        self._is_plain = all(
            isinstance(kind, Scalar | Number) and dtype_of(kind) != bool for kind in self._kinds
        )
        self._is_direct = (
            self._is_plain
            and not self._tuples
            and all(isinstance(values[number], np.ndarray) for number in self._elementwise)
        )
        self._direct: Callable[..., object] | None = None
        """The map in the instance of the version, for arguments of these dtypes."""

    # --- the kinds --------------------------------------------------------------------------

    def _places(self, count: int, values: Sequence[Any]) -> tuple[list[str], list[int]]:
        """The names of all arguments where tuples of arrays are taken apart, and the numbers of
        those that have elements."""
        names: list[str] = []
        elementwise: list[int] = []
        for number, (name, value) in enumerate(zip(self._of.parameters, values, strict=True)):
            is_apart = number in self._tuples
            for place, each in enumerate(value if is_apart else (value,)):
                if number < count and _has_elements(each):
                    elementwise.append(len(names))
                names.append(f"{name}[{place}]" if is_apart else name)
        return names, elementwise

    def _apart(self, values: Sequence[Any]) -> Sequence[Any]:
        """The arguments with the items of tuples of arrays one by one."""
        if not self._tuples:
            return values
        found: list[Any] = []
        for number, value in enumerate(values):
            found += value if number in self._tuples else (value,)
        return found

    def _kinds_of(self, apart: Sequence[Any]) -> list[Kind]:
        """The kinds of what an item gets."""
        kinds: list[Kind] = []
        for number, (name, value) in enumerate(zip(self._names, apart, strict=True)):
            if number in self._elementwise and isinstance(value, Observed | range):
                kinds.append(INT if isinstance(value, range) else value.kind)
                continue
            try:
                kind = kind_of(value)
            except MisfitError as misfit:
                what = f"argument {name}: {misfit}"
                raise self._of.refused(what) from None
            if number in self._elementwise:
                assert isinstance(kind, Array)
                if kind.dtype in PAIRS:
                    what = f"argument {name}: {no_elements(kind)}"
                    raise self._of.refused(what)
                kind = Scalar(kind.dtype)
            kinds.append(kind)
        return kinds

    def _joined(self, values: Sequence[Any]) -> tuple[Kind, ...]:
        """The kinds of the function's parameters."""
        apart, kinds = iter(self._kinds), list[Kind]()
        for number, value in enumerate(values):
            if number in self._tuples:
                kinds.append(Tuple(tuple(next(apart) for _ in value)))
            else:
                kinds.append(next(apart))
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
                part = "; return z.real, z.imag" if isinstance(kind, Complex) else ""
                raise _fault(self._of, f"the results must be numbers, found {kind}{part}")
        return promoted(kinds)

    # --- running ----------------------------------------------------------------------------

    def run(self, values: Sequence[Any], out: Any, mask: Any = None) -> Any:
        """The results, in these arrays if there are some. `mask`: True for items that are left out."""
        if self._tuples:
            values = self._apart(values)
        first, *others = self._elementwise
        shape = _shape(values[first])
        for number in others:
            if _shape(values[number]) != shape:
                raise self._unequal(values)
        results = self._results(shape, out, mask)
        if mask is not None and mask.shape != shape:
            raise _fault(self._of, f"a mask has the shape {mask.shape}, the arrays have {shape}")
        items = _Items(values, results, None if mask is None else mask.view(np.uint8))
        shown = shown_progress.get()
        try:
            if shown is None:
                error = self._launch(items, 0)
                if error is not None:
                    self._go_on(error, items, 0, results[0].size, shape)
            else:
                flat = self._part(items, 0, results[0].size)
                for first, end in shown.parts(self._of.__name__, results[0].size):
                    error = self._launch(self._part(flat, first, end), first)
                    if error is not None:
                        self._go_on(error, flat, first, end, shape)
        except _StoppedError as stopped:
            size, left = results[0].size, stopped.left
            if left and left[-1][1] == stopped.end < size:
                left[-1] = left[-1][0], size
            elif stopped.end < size:
                left.append((stopped.end, size))
            found = tuple(results) if isinstance(self._target, Tuple) else results[0]
            raise MapInterrupted(self._of.__name__, found, size, left) from None
        return tuple(results) if isinstance(self._target, Tuple) else results[0]

    def _part(self, items: _Items, first: int, end: int) -> _Items:
        """Some of the items, in row-major order."""
        values = [
            value if number not in self._elementwise else _flat_part(value, first, end)
            for number, value in enumerate(items.values)
        ]
        mask = None if items.mask is None else _flat_part(items.mask, first, end)
        return _Items(values, [_flat_part(each, first, end) for each in items.results], mask)

    def _launch(self, items: _Items, base: int) -> TrapError | None:
        """Compute the items, the first of which has the number `base`; the trap of the first one that
        traps."""
        values, results, mask = items
        passed = [each.view(np.uint8) if each.dtype == bool else each for each in results]
        given = values if self._is_plain else self._flat(values)

        def start(function: Callable[..., Any]) -> None:
            try:
                if mask is None:
                    self._map(function, given, passed)
                else:
                    array_map.map_unmasked(function, given, mask, passed)
            except ProgramInterrupted as error:
                size = results[0].size
                left = left_by(error, size)
                there = [(base + first, base + end) for first, end in left]
                raise _StoppedError(there, base + size) from None

        try:
            self.version.use(start)
        except TrapError as error:
            return error
        except FerryError as error:
            raised = error
        else:
            return None
        raise raised.with_traceback(None)

    def _map(self, function: Callable[..., Any], given: Sequence[Any], out: Sequence[Any]) -> None:
        """A map in an instance; without checks of dtypes after the first one in that of the version."""
        shape = _shape(given[self._elementwise[0]]) if self._is_direct else ()
        is_fit = all(to.shape == shape and to.flags.writeable for to in out)
        if not self._is_direct or function is not self.version.function or not is_fit:
            array_map.map(function, *given, out=out)
            return
        if self._direct is None:
            self._direct = array_map.prepared(function, given, out)
        self._direct(*given, *out)

    def _go_on(
        self, error: TrapError, items: _Items, start: int, end: int, shape: tuple[int, ...]
    ) -> None:
        """Let CPython finish the item that trapped, and launch those after it, again and again, up to
        `end`. `start`: the number of the first item that was launched."""
        results = [_flat_part(each, 0, each.size) for each in items.results]
        found: TrapError | None = error
        while found is not None:
            site = site_of(found, self.version.sites)
            if site is None or found.item is None or not isinstance(found.state, list):
                raise found.with_traceback(None)
            start += found.item
            try:
                self._finish(found.state, site, start, results, shape)
            except KeyboardInterrupt:
                raise _StoppedError([(start, end)], end) from None
            start += 1
            found = None
            if start < end:
                found = self._launch(self._part(items, start, end), start)

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
            if type(found) is not tuple or len(found) != len(results):
                raise _fault(self._of, f"results have different forms, {shown(found)} is another")
            for result, each in zip(results, found, strict=True):
                if not _fits(each, result.dtype):  # of a statement that was not compiled
                    what = f"a result is {shown(each)}, where those before are {result.dtype}"
                    raise _fault(self._of, f"{what}; convert all to one type")
                result[item] = each
        except Exception as error:
            error.add_note(where)
            raise

    def _unequal(self, values: Sequence[Any]) -> CallError:
        """The error for arrays of different shapes."""
        names = self._names
        first, *others = self._elementwise
        shape = _shape(values[first])
        other = next(number for number in others if _shape(values[number]) != shape)
        found = f"{names[first]} and {names[other]} have different shapes"
        shapes = f"{shape} and {_shape(values[other])}"
        return _fault(self._of, f"{found}, {shapes}; all arrays need the same")

    def _flat(self, values: Sequence[Any]) -> list[Any]:
        """The arguments of the compiled function, with arrays for those of elements."""
        found: list[Any] = []
        for number, (kind, value) in enumerate(zip(self._kinds, values, strict=True)):
            if number in self._elementwise:
                is_bool = not isinstance(value, range) and value.dtype == bool
                found.append(value.view(np.uint8) if is_bool else value)
            else:
                flatten(kind, value, found)
        return found

    def _results(self, shape: tuple[int, ...], out: Any, mask: Any) -> list[Any]:
        """The arrays for the results: those of the caller, or fresh ones."""
        if out is None:
            if mask is not None:
                return [np.zeros(shape, dtype) for dtype in self._dtypes]
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
            if result.shape != shape:
                found = f"out has the shape {result.shape}, the arrays have {shape}"
                raise _fault(self._of, found)
            if not result.flags.c_contiguous:
                raise _fault(self._of, "out is not contiguous; pass numpy.ascontiguousarray(out)")
        return given


class _Items(NamedTuple):
    """The items of a launch."""

    values: Sequence[Any]
    """The arguments, with tuples of arrays taken apart."""
    results: Sequence[Any]
    mask: Any


class _StoppedError(Exception):
    """Ctrl-C stopped a launch of items up to `end`, of which `left` are not done."""

    def __init__(self, left: list[tuple[int, int]], end: int) -> None:
        self.left, self.end = left, end


def _fits(value: object, dtype: np.dtype[Any]) -> bool:
    """True for a result that an array of a dtype holds without another type."""
    found = np.dtype(np.int64) if type(value) is int else np.asarray(value).dtype
    return found.kind != "O" and bool(np.result_type(found, dtype) == dtype)


def _has_elements(value: object) -> bool:
    """True for an argument whose elements an item gets."""
    return isinstance(value, range | Observed) or (isinstance(value, np.ndarray) and value.ndim > 0)


def _shape(value: npt.NDArray[Any] | range) -> tuple[int, ...]:
    """The shape of an argument with elements."""
    return array_map.range_shape(value) if isinstance(value, range) else value.shape


def _flat_part(value: Any, first: int, end: int) -> Any:
    """Some elements of an array in row-major order, or of a range."""
    return value[first:end] if isinstance(value, range) else value.reshape(-1)[first:end]
