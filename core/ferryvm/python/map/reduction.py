# SPDX-License-Identifier: Apache-2.0
"""Reductions and scans by Python functions: `ferryvm.reduce` and `ferryvm.scan`.

    reduce(f, xs)  ──>  f is compiled for two elements, whose kind its values must have,
                        then blocks of xs are combined in launches

Functions of an instance are handled by `ferryvm.engine.array_map`, which this uses. Where f raises,
CPython computes the whole from the left, and raises by itself.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import types
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from ferryvm.engine import ProgramInterrupted, TrapError, array_map
from ferryvm.engine.array_argument import address_of, is_masked
from ferryvm.engine.marshal import CallError
from ferryvm.errors import FerryError
from ferryvm.failure import shown
from ferryvm.python.call.continuation import resume
from ferryvm.python.call.function import PythonFunction
from ferryvm.python.compiled.compiled_version import Version
from ferryvm.python.definition.raised import site_of
from ferryvm.python.definition.refusal import without_numbers
from ferryvm.python.map.mapped_function import python_function
from ferryvm.python.value.device_array import on_host
from ferryvm.python.value.element import (
    dtype_of,
    is_of_objects,
    observed,
    promoted,
    store_result,
)
from ferryvm.python.value.foreign_array import viewed_array
from ferryvm.python.value.kind import (
    BOOL,
    INT,
    Array,
    Complex,
    Kind,
    Number,
    Scalar,
    element_kind,
    is_of_numpy,
)
from ferryvm.python.value.result import flatten
from ferryvm.python.value.value_kind import MisfitError, kind_of

if TYPE_CHECKING:
    import numpy.typing as npt


def reduce(function: Callable[..., Any], array: Any, initial: Any = None) -> Any:
    """All elements of an array of numbers combined by a function of two values, which must be
    associative, with an initial value in front of them, if there is one: a scalar of the array's
    dtype, of a range or a list an item of it.

    `function`: a Python function, also one of `ferryvm.function`, or a function of an instance.
    `array`: a NumPy array of any shape, a range, or a list of Python's numbers. The order is
    that of docs/parallel.md, so sums of floats may differ from `functools.reduce` in their last
    digits.

    Raises CallError for an array without elements and no initial value (except for a function of an
    instance that is one operation with a neutral element), and for arguments that do not fit;
    UnsupportedError for a function that cannot be compiled; and what the function raises.
    """
    if hasattr(function, "__ferryvm__"):
        return array_map.reduce(function, array, initial)
    return _Combination("reduce", function, array).reduced(initial)


def scan(
    function: Callable[..., Any], array: Any, *, out: npt.NDArray[Any] | None = None
) -> npt.NDArray[Any]:
    """An array that has for each element of an array of numbers the combination of all up to it,
    itself included, by a function of two values, which must be associative.

    `function`, `array`: as for `reduce`. The result is `out`, which has the shape of the array and
    may be the same, or a fresh array; for a function of an instance that has one dimension. Raises
    as `reduce`, but an array without elements has a result without elements.
    """
    if hasattr(function, "__ferryvm__"):
        return array_map.scan(function, array, out=out)
    return _Combination("scan", function, array).scanned(out)


class _Combination:
    """A reduction or scan of an array by a Python function."""

    def __init__(self, form: str, function: Any, array: Any) -> None:
        """`form`: the name of the operation. Raises CallError, UnsupportedError."""
        self._of: PythonFunction[..., Any] = python_function(form, function, 2)
        is_plain = isinstance(function, types.FunctionType)
        self._function = function if is_plain else self._of.__ferryvm_function__
        try:
            self._form, self._array = form, viewed_array(on_host(array))
        except MisfitError as misfit:
            raise CallError(f"{form} of {self._of.__name__}: {misfit}") from None
        self._is_of_objects = is_of_objects(self._array)
        self._element = self._element_kind()
        self._dtype = dtype_of(self._element)
        self._version = self._found_version()

    def _fault(self, message: str) -> CallError:
        return CallError(f"{self._form} of {self._of.__name__}: {message}")

    # --- the kinds --------------------------------------------------------------------------

    def _element_kind(self) -> Number | Scalar | Complex:
        array = self._array
        if self._is_of_objects:
            try:
                self._array, kind_ = observed(array)
            except MisfitError as misfit:
                raise self._fault(str(misfit)) from None
            return kind_
        if isinstance(array, range):
            if not array_map.fits_i64(array):
                raise self._fault(f"{array} has numbers that do not fit into 64 bits")
            return INT
        if is_masked(array):
            raise self._fault("the array is masked; pass the values that are there, a.compressed()")
        try:
            kind = kind_of(array)
        except MisfitError as misfit:
            raise self._of.refused(f"{self._form}: {misfit}") from None
        if not isinstance(kind, Array):
            raise self._fault(f"found {shown(array)}; an array of numbers is needed, or a range")
        return element_kind(kind.dtype)

    def _found_version(self) -> Version:
        """The function for two elements, whose values are elements, too."""
        element, parameters = self._element, self._of.parameters
        if len(parameters) != 2:
            raise self._fault(f"a function of two parameters is needed, found {len(parameters)}")
        version = self._version_of(element)
        values = self._values(version)
        if dtype_of(values) != self._dtype:
            raise self._fault(
                f"its values are {values} where the elements are {element}; {self._advice(values)}"
            )
        if list(version.results) != [element]:
            version = self._version_of(element, element)
        return version

    def _version_of(self, kind: Kind, target: Kind | None = None) -> Version:
        """The function for two values of a kind. Free names are constants: an operation has two
        operands."""
        return self._of.of_kinds((kind, kind), target, self._function, is_closed=True)

    def _values(self, version: Version) -> Kind:
        """The kind of elements for the values of the function."""
        if not version.results:
            raise self._fault("the function always raises an exception")
        for kind in version.results:
            if not isinstance(kind, Number | Scalar | Complex):
                raise self._fault(f"the function must return a number, found {kind}")
        return promoted(version.results)

    def _advice(self, kind: Kind) -> str:
        """The elements to convert to: of a kind that the function keeps."""
        seen = [self._dtype]
        while dtype_of(kind) not in seen:
            seen.append(dtype_of(kind))
            kind = promoted([kind, self._values(self._version_of(kind))])
        name = dtype_of(kind).name
        if promoted([kind, self._values(self._version_of(kind))]) != kind:
            return "return values of the type of the parameters"
        if not is_of_numpy(self._element):
            return f"pass numpy.array(a, numpy.{name})"
        return f"pass a.astype(numpy.{name})"

    # --- running ----------------------------------------------------------------------------

    def reduced(self, initial: Any) -> Any:
        """The combination of all elements."""
        array = self._array
        is_empty = not array if isinstance(array, range) else not array.size
        if is_empty and initial is None:
            raise self._fault("the array has no elements; an initial value is needed")
        if is_empty and self._is_of_objects:
            return initial
        start = None if initial is None else self._converted(initial)
        if is_empty:
            return self._scalar(start)
        try:
            raw = self._raw(array)
            found = self._use(lambda f: array_map.reduce(f, raw, start))
        except FerryError as error:
            raised = error
        else:
            return self._scalar(found)
        elements = self._elements(raised)
        if initial is None:
            return self._scalar(functools.reduce(self._function, elements))
        return self._scalar(functools.reduce(self._function, elements, initial))

    def scanned(self, out: Any) -> npt.NDArray[Any]:
        """The combinations up to each element."""
        array = self._array
        shape = array_map.range_shape(array) if isinstance(array, range) else array.shape
        result = np.empty(shape, self._dtype) if out is None else self._fit(out, shape)
        raw = self._raw(array)
        is_apart = raw is not array or self._overwrites(result)
        to = np.empty(shape, raw.dtype) if is_apart else result
        try:
            self._use(lambda f: array_map.scan(f, raw, out=to))
        except FerryError as error:
            raised = error
        else:
            if is_apart:
                result[...] = to
            return result
        # CPython reads the elements while it stores results.
        is_shared = not isinstance(array, range) and np.may_share_memory(result, array)
        found = np.empty(shape, self._dtype) if is_shared else result
        flat = found.reshape(-1)
        values = itertools.accumulate(self._elements(raised), self._function)
        for number, value in enumerate(values):
            store_result(f"scan of {self._of.__name__}: result {number}", flat, number, value)
        if is_shared:
            result[...] = found
        return result

    def _overwrites(self, result: npt.NDArray[Any]) -> bool:
        """True if results take the place of elements that CPython may need after a trap."""
        array = self._array
        if isinstance(array, range) or not self._version.sites:
            return False
        return address_of(result) == address_of(array)

    def _use(self, action: Callable[[Callable[..., Any]], Any]) -> Any:
        """The result of an action with the compiled function. Ctrl-C leaves nothing of it."""
        try:
            return self._version.use(action)
        except ProgramInterrupted as error:
            if error.call is not None:
                error.call.abandon()
            stopped = KeyboardInterrupt(f"{self._form} of {self._of.__name__}: interrupted")
        raise stopped

    def _raw(self, array: Any) -> Any:
        """The array that compiled code takes, where narrow elements have 32 bits; a range as it
        is."""
        if isinstance(array, range):
            return array
        if array.dtype.kind == "u" and array.itemsize >= 4:
            return array.view(f"i{array.itemsize}")
        return array.astype(np.int32) if array.itemsize < 4 else array

    def _scalar(self, value: Any) -> Any:
        """The result in Python."""
        if not is_of_numpy(self._element):
            return bool(value) if self._element == BOOL else value
        if (
            isinstance(self._element, Scalar)
            and not isinstance(value, np.generic)
            and self._element.is_full
        ):
            value &= (1 << self._element.bits) - 1
        return self._dtype.type(value)

    def _converted(self, initial: Any) -> Any:
        """An initial value as an element."""
        element = self._element
        wanted: Any = self._dtype if is_of_numpy(element) else getattr(element, "type", complex)
        is_plain = type(initial) in (bool, int, float, complex)
        found = np.dtype(type(initial)) if is_plain else getattr(initial, "dtype", None)
        fits = found is not None and getattr(initial, "ndim", 0) == 0
        if fits and is_plain:
            fits = "biufc".index(found.kind) <= "biufc".index(self._dtype.kind)  # type: ignore[union-attr]  # `fits`
        elif fits:
            fits = found.kind in "biufc" and np.promote_types(found, self._dtype) == self._dtype  # type: ignore[union-attr,arg-type]  # `fits`
        if fits:
            with contextlib.suppress(OverflowError):
                if isinstance(element, Complex):
                    return complex(self._dtype.type(initial))
                found_: list[Any] = []
                flatten(element, self._dtype.type(initial), found_)
                return found_[0].item() if isinstance(found_[0], np.generic) else found_[0]
        name = getattr(wanted, "__name__", wanted)
        raise self._fault(f"initial is {shown(initial)}; a value for {name} is needed")

    def _fit(self, out: Any, shape: tuple[int, ...]) -> npt.NDArray[Any]:
        made = f"numpy.empty({shape}, numpy.{self._dtype.name})"
        if is_masked(out):
            raise self._fault("out is masked; pass its data, out.data")
        if not isinstance(out, np.ndarray) or out.dtype != self._dtype:
            found = out.dtype if isinstance(out, np.ndarray) else shown(out)
            raise self._fault(f"out is {found}; an array of {self._dtype} is needed, as {made}")
        if out.shape != shape:
            raise self._fault(f"out has the shape {out.shape}, the array has {shape}")
        if not out.flags.writeable or not out.flags.c_contiguous:
            raise self._fault(f"out is read-only or not contiguous; pass one as {made}")
        return out

    def _elements(self, error: FerryError) -> Iterable[Any]:
        """All elements, for CPython, which computes the whole after a trap. Raises the error if
        that cannot be done."""
        if isinstance(error, CallError):  # arrays that overlap, or are not aligned
            raise self._fault(without_numbers(str(error)))
        if not isinstance(error, TrapError):
            raise error.with_traceback(None)
        site = site_of(error, self._version.sites)
        if site is None:
            raise error.with_traceback(None)
        if self._version.has_effects:
            if isinstance(error.state, list):
                resume(error.state)  # raises what the function does
            where = f"{site.type.__name__} at line {site.position.line}"
            raise self._fault(f"{where}; Python cannot go on, since the function changes arrays")
        self._of.count(f"{site.type.__name__} at line {site.position.line} in a {self._form}")
        array = self._array
        if isinstance(array, range):
            return array
        flat: Iterable[Any] = array.reshape(-1)
        return flat if is_of_numpy(self._element) else array.reshape(-1).tolist()
