# SPDX-License-Identifier: Apache-2.0
"""A map of one Python function over certain kinds of arguments: its version, and how it is
launched.

    kinds of elements ──> version ──> kind of results ──> launch ─┬─> results
                                                      ▲           └─> an item that traps
                                                      └─ the rest ── CPython finishes it

`ferryvm.python.map.mapping` finds the plan for the arguments of a call.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ferryvm.engine import ProgramInterrupted, TrapError, array_map
from ferryvm.engine.active_call import InUseError
from ferryvm.engine.array_argument import is_masked
from ferryvm.engine.marshal import CallError
from ferryvm.errors import FerryError
from ferryvm.failure import shown
from ferryvm.python.call.continuation import resume
from ferryvm.python.call.function import PythonFunction
from ferryvm.python.call.interruption import MapInterrupted, left_by, unless_it_goes_on
from ferryvm.python.compiled.pause import PausedFrame
from ferryvm.python.definition.raised import StatementError, add_place, site_of
from ferryvm.python.definition.refusal import without_numbers
from ferryvm.python.definition.site import Site
from ferryvm.python.map.direct_map import DirectMap
from ferryvm.python.map.progress import shown_progress
from ferryvm.python.value.element import Observed, dtype_of, promoted, store_result
from ferryvm.python.value.kind import (
    INT,
    NONE,
    Array,
    Complex,
    Kind,
    Number,
    Scalar,
    Tuple,
    element_kind,
    has_list,
)
from ferryvm.python.value.result import flatten, storage
from ferryvm.python.value.value_kind import MisfitError, kind_of

if TYPE_CHECKING:
    import numpy.typing as npt


def fault(of: PythonFunction[..., Any], message: str) -> CallError:
    """The error of a map."""
    return CallError(f"map of {of.__name__}: {message}")


def plan_key(values: Sequence[Any], count: int) -> tuple[object, ...]:
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


class MapPlan:
    """A map of one function over certain kinds of arguments."""

    def __init__(
        self,
        of: PythonFunction[..., Any],
        function: types.FunctionType,
        count: int,
        values: Sequence[Any],
    ) -> None:
        """`function`: the one that is mapped, of the code of `of`; `count`: the number of leading
        arguments whose elements are taken, if they are arrays."""
        self._of, self.name = of, of.__name__
        self._tuples = {
            number
            for number in range(count)
            if type(values[number]) is tuple and any(_has_elements(each) for each in values[number])
        }
        self._names, self.elementwise = self._places(count, values)
        if not self.elementwise:
            self._kinds_of(values)  # raises for what is no number
            raise fault(of, f"no argument is an array of elements; call {of.__name__} itself")
        self._kinds = self._kinds_of(self.apart(values))
        kinds = self._joined(values)
        self.version = of.of_kinds(kinds, function=function)
        self.result = self._result_kind()
        if list(self.version.results) != [self.result]:
            self.version = of.of_kinds(kinds, self.result, function)
        self._of_free = [_kind_key(value) for value in self.version.free.values(function)]
        self._kinds += self.version.kinds[len(kinds) :]
        self._names += self.version.free.names
        items = self.result.items if isinstance(self.result, Tuple) else (self.result,)
        self._dtypes = [dtype_of(kind) for kind in items]
        self._is_viewed = any(dtype in (bool, np.uint64) for dtype in self._dtypes)
        self._is_plain = all(
            isinstance(kind, Scalar | Number) and dtype_of(kind) not in (bool, np.uint64)
            for kind in self._kinds
        )
        self._is_direct = (
            self._is_plain
            and not self._tuples
            and not any(isinstance(kind, Complex) for kind in items)
            and all(isinstance(values[number], np.ndarray) for number in self.elementwise)
        )
        self._direct: DirectMap | None = None
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

    def apart(self, values: Sequence[Any]) -> Sequence[Any]:
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
            if number in self.elementwise and isinstance(value, Observed | range):
                kinds.append(INT if isinstance(value, range) else value.kind)
                continue
            try:
                kind = kind_of(value)
            except MisfitError as misfit:
                what = f"argument {name}: {misfit}"
                raise self._of.refused(what) from None
            if has_list(kind):
                raise self._of.refused(f"argument {name}: a list in a map; pass numpy.array(a)")
            if number in self.elementwise:
                assert isinstance(kind, Array)
                kind = element_kind(kind.dtype)
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
            what = "the function raises an exception, or leaves 64 bits, for all items"
            raise fault(self._of, f"{what}; call {self.name} itself for one to see it")
        tuples = [kind for kind in results if isinstance(kind, Tuple)]
        if not tuples:
            return self._promoted(results)
        counts = {len(kind.items) for kind in tuples}
        if len(tuples) < len(results) or len(counts) > 1:
            found = " and ".join(sorted({str(kind) for kind in results}))
            raise fault(self._of, f"results have different forms, {found}")
        columns = zip(*(kind.items for kind in tuples), strict=True)
        return Tuple(tuple(self._promoted(column) for column in columns))

    def _promoted(self, kinds: Sequence[Kind]) -> Kind:
        """The kind of elements that hold values of several kinds, as in `numpy.array`."""
        for kind in kinds:
            if not isinstance(kind, Scalar | Number | Complex):
                advice = "; return a number, or write a kernel (ferryvm.launch)" * (kind == NONE)
                raise fault(self._of, f"the results must be numbers, found {kind}{advice}")
        return promoted(kinds)

    # --- running ----------------------------------------------------------------------------

    def free(self, function: types.FunctionType) -> tuple[Any, ...] | None:
        """The values of the free names that are arguments of the code; None if it is not for them,
        or anything else has changed."""
        version = self.version
        if version.code is not function.__code__:
            return None
        if version.has_names and not version.is_current(function):
            return None
        if not version.free.names:
            return ()
        try:
            found = version.free.values(function)
        except (KeyError, ValueError):
            return None
        return found if [_kind_key(value) for value in found] == self._of_free else None

    def run(self, values: Sequence[Any], out: Any, mask: Any = None) -> Any:
        """The results, in these arrays if there are some. `mask`: True for items that are left
        out."""
        direct, raised = self._direct, None
        if direct is not None and mask is None and shown_progress.get() is None:
            fitting = self._fitting(values, out)
            if fitting is not None:
                try:
                    passed = self.passed(fitting.results)
                    direct.run(values, passed, is_fresh=fitting.is_fresh)
                except InUseError:  # by another thread, or by what a signal has interrupted
                    pass
                except BaseException as error:  # noqa: BLE001  # as in any launch
                    raised = error
                else:
                    return self.gathered(fitting.results)
                return self._run(fitting, fitting.results[0].shape, raised)
        values, shape = self.checked(values)
        results = self.results(shape, out, mask)
        if mask is not None and mask.shape != shape:
            raise fault(self._of, f"a mask has the shape {mask.shape}, the arrays have {shape}")
        of_mask = None if mask is None else mask.view(np.uint8)
        return self._run(_Items(values, results, of_mask, out is None), shape)

    def _fitting(self, values: Sequence[Any], out: Any) -> _Items | None:
        """The items of a map of arrays alone, which have one shape; None if they do not, or if
        some for results are read-only."""
        first, *others = self.elementwise
        shape = values[first].shape
        for number in others:
            if values[number].shape != shape:
                return None
        results = self.results(shape, out, None)
        if out is not None:
            for each in results:
                if not each.flags.writeable:
                    return None
        return _Items(values, results, None, out is None)

    def _run(
        self, items: _Items, shape: tuple[int, ...], raised: BaseException | None = None
    ) -> Any:
        """The results of the items. `raised`: the exception by which their launch has ended."""
        results, shown, reached = items.results, shown_progress.get(), 0
        try:
            if shown is None:
                error = self._launch(items, 0, raised)
                if error is not None:
                    self._go_on(error, items, 0, results[0].size, shape)
            else:
                flat = self._part(items, 0, results[0].size)
                for first, end in shown.parts(self.name, results[0].size):
                    reached = first
                    error = self._launch(self._part(flat, first, end), first)
                    if error is not None:
                        self._go_on(error, flat, first, end, shape)
        except _StoppedError as stopped:
            size, left = results[0].size, stopped.left
            if left and left[-1][1] == stopped.end < size:
                left[-1] = left[-1][0], size
            elif stopped.end < size:
                left.append((stopped.end, size))
            raise MapInterrupted(self.name, self.gathered(results), size, left) from None
        except KeyboardInterrupt:  # it came between two launches
            left = [(reached, results[0].size)]
            found = self.gathered(results)
            raise MapInterrupted(self.name, found, results[0].size, left) from None
        return self.gathered(results)

    def gathered(self, results: Sequence[Any]) -> Any:
        """The results as they are returned."""
        return tuple(results) if isinstance(self.result, Tuple) else results[0]

    def checked(self, values: Sequence[Any]) -> tuple[Sequence[Any], tuple[int, ...]]:
        """The arguments with tuples of arrays taken apart, and the one shape of all. Raises
        CallError."""
        if self._tuples:
            values = self.apart(values)
        first, *others = self.elementwise
        shape = _shape(values[first])
        for number in others:
            if _shape(values[number]) != shape:
                raise self._unequal(values)
        return values, shape

    def _part(self, items: _Items, first: int, end: int) -> _Items:
        """Some of the items, in row-major order."""
        values = [
            value if number not in self.elementwise else _flat_part(value, first, end)
            for number, value in enumerate(items.values)
        ]
        mask = None if items.mask is None else _flat_part(items.mask, first, end)
        results = [_flat_part(each, first, end) for each in items.results]
        return _Items(values, results, mask, items.is_fresh)

    def _launch(
        self, items: _Items, base: int, ended_by: BaseException | None = None
    ) -> TrapError | None:
        """Compute the items, the first of which has the number `base`; the trap of the first one
        that traps. `ended_by`: the exception by which that has ended already."""
        results = items.results
        passed = self.passed(results)
        given = self.flat(items.values)

        def start(function: Callable[..., Any]) -> None:
            try:
                if ended_by is not None:
                    raise ended_by
                self._map(function, given, items, passed)
            except ProgramInterrupted as error:
                stopped = unless_it_goes_on(error)
                if stopped is None:
                    return
                size = results[0].size
                left = left_by(stopped.error, size)
                if not isinstance(stopped.raised, KeyboardInterrupt):
                    raise stopped.raised from None
                there = [(base + first, base + end) for first, end in left]
                raise _StoppedError(there, base + size) from None

        raised: BaseException
        try:
            self.version.use(start)
        except TrapError as error:
            return error
        except CallError as error:  # arrays that overlap, or are not aligned
            raised = fault(self._of, without_numbers(str(error)))
        except FerryError as error:
            raised = error
        except StatementError as error:
            raise error.error from None
        else:
            return None
        raise raised.with_traceback(None)

    def passed(self, results: Sequence[Any]) -> Sequence[Any]:
        """The arrays for results as compiled code takes them."""
        if not self._is_viewed:
            return results
        return [each if each.dtype.kind == "c" else storage(each) for each in results]

    def _map(
        self, function: Callable[..., Any], given: Sequence[Any], items: _Items, out: Sequence[Any]
    ) -> None:
        """A map in an instance; that of the version has a direct call for later ones."""
        if items.mask is not None:
            array_map.map_elements(function, given, out, items.mask)
            return
        array_map.map_elements(function, given, out)
        if items.is_fresh:
            array_map.release(function, out)
        if self._is_direct and self._direct is None and function is self.version.function:
            self._direct = DirectMap(function, given, out)

    def _go_on(
        self, error: TrapError, items: _Items, start: int, end: int, shape: tuple[int, ...]
    ) -> None:
        """Let CPython finish the item that trapped, and launch those after it, again and again, up
        to `end`. `start`: the number of the first item that was launched."""
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
            found = value if isinstance(self.result, Tuple) else (value,)
            if type(found) is not tuple or len(found) != len(results):
                raise fault(self._of, f"results have different forms, {shown(found)} is another")
            for result, each in zip(results, found, strict=True):
                store_result(f"map of {self.name}: a result", result, item, each)
        except Exception as error:
            add_place(error, where)
            raise

    def _unequal(self, values: Sequence[Any]) -> CallError:
        """The error for arrays of different shapes."""
        names = self._names
        first, *others = self.elementwise
        shape = _shape(values[first])
        other = next(number for number in others if _shape(values[number]) != shape)
        found = f"{names[first]} and {names[other]} have different shapes"
        shapes = f"{shape} and {_shape(values[other])}"
        return fault(
            self._of,
            f"{found}, {shapes}; all arrays need the same, as numpy.broadcast_to(a, shape).copy() has",
        )

    def flat(self, values: Sequence[Any]) -> Sequence[Any]:
        """The arguments of the compiled function, with arrays for those of elements."""
        if self._is_plain:
            return values
        found: list[Any] = []
        for number, (kind, value) in enumerate(zip(self._kinds, values, strict=True)):
            if number in self.elementwise:
                is_whole = isinstance(value, range) or isinstance(kind, Complex)
                found.append(value if is_whole else storage(value))
            else:
                flatten(kind, value, found)
        return found

    def results(self, shape: tuple[int, ...], out: Any, mask: Any) -> list[Any]:
        """The arrays for the results: those of the caller, or fresh ones."""
        if out is None:
            if mask is not None:
                return [np.zeros(shape, dtype) for dtype in self._dtypes]
            return [np.empty(shape, dtype) for dtype in self._dtypes]
        if type(out) is np.ndarray and len(self._dtypes) == 1:  # the common case, in short
            is_like = out.dtype == self._dtypes[0] and out.shape == shape
            if is_like and out.flags.c_contiguous:
                return [out]
        given = [*out] if isinstance(out, tuple | list) else [out]
        if len(given) != len(self._dtypes):
            wanted = "an array is" if len(self._dtypes) == 1 else f"{len(self._dtypes)} arrays are"
            raise fault(self._of, f"out has {len(given)} items; {wanted} needed")
        for result, dtype in zip(given, self._dtypes, strict=True):
            if not isinstance(result, np.ndarray) or result.dtype != dtype:
                what = result.dtype if isinstance(result, np.ndarray) else shown(result)
                made = f"numpy.empty({shape}, numpy.{dtype.name})"
                wanted = f"an array of {dtype.name} is needed, as {made}"
                raise fault(self._of, f"out is {what}; {wanted}")
            if is_masked(result):
                raise fault(self._of, "out is masked, and no argument is; pass its data, out.data")
            if result.shape != shape:
                found = f"out has the shape {result.shape}, the arrays have {shape}"
                raise fault(self._of, found)
            if not result.flags.c_contiguous:
                made = f"numpy.empty({shape}, numpy.{dtype.name})"
                raise fault(self._of, f"out is not contiguous; pass a new array, as {made}")
        for number, result in enumerate(given):
            for before, each in enumerate(given[:number]):
                if np.may_share_memory(result, each):
                    what = f"out[{number}] shares memory with out[{before}]"
                    made = f"numpy.empty({shape}, numpy.{result.dtype.name})"
                    raise fault(self._of, f"{what}; each result needs its own array, as {made}")
        return given


class _Items(NamedTuple):
    """The items of a launch."""

    values: Sequence[Any]
    """The arguments, with tuples of arrays taken apart."""
    results: Sequence[Any]
    mask: Any
    is_fresh: bool
    """True if the arrays for the results are not the caller's."""


class _StoppedError(Exception):
    """Ctrl-C stopped a launch of items up to `end`, of which `left` are not done."""

    def __init__(self, left: list[tuple[int, int]], end: int) -> None:
        self.left, self.end = left, end


def _has_elements(value: object) -> bool:
    """True for an argument whose elements an item gets."""
    return isinstance(value, range | Observed) or (isinstance(value, np.ndarray) and value.ndim > 0)


def _shape(value: npt.NDArray[Any] | range) -> tuple[int, ...]:
    """The shape of an argument with elements."""
    return array_map.range_shape(value) if isinstance(value, range) else value.shape


def _flat_part(value: Any, first: int, end: int) -> Any:
    """Some elements of an array in row-major order, or of a range."""
    return value[first:end] if isinstance(value, range) else value.reshape(-1)[first:end]
