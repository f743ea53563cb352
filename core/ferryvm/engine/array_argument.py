# SPDX-License-Identifier: Apache-2.0
"""Arrays of Python as arrays of a program: NumPy's memory where it lies, without a copy.

    ndarray, buffer, __array_interface__, DLPack ──> HostArray

An array that a program cannot use as it is, is an error that names the call that makes it usable.
Nothing is converted: a copy in secret would cost time, and stores into it would be lost. An array
of several dimensions is its elements in row-major order; the program has no shapes.
"""

from __future__ import annotations

import ctypes
import sys
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ferryvm.engine.marshal import CallError
from ferryvm.failure import shown
from ferryvm.isa.element import Element
from ferryvm.isa.type import Reference
from ferryvm.machine.host_array import HostArray, SharedBlock

if TYPE_CHECKING:
    import numpy.typing as npt


class NumberArray(NamedTuple):
    """A type of arrays of numbers, as NumPy describes its elements."""

    number: int
    """The type number."""
    bytes: int
    """Bytes of an element."""
    dtype: np.dtype[Any]
    typestr: str
    """As NumPy's array interface writes the dtype."""


def _number_array(element: Element) -> NumberArray:
    names = {"i": "int", "u": "uint", "f": "float"}
    dtype = np.dtype(f"{names[element.kind[0]]}{element.bits}")
    return NumberArray(element.array.number, element.bytes, dtype, dtype.str)


NUMBER_ARRAYS = {element.array.number: _number_array(element) for element in Element}
"""The types of arrays of numbers by type number."""
_OF_DTYPE = {one.dtype: one for one in NUMBER_ARRAYS.values()}
_ANY = ", ".join(dtype.name for dtype in _OF_DTYPE)


class FreshArray:
    """An ndarray for results that was just made, one-dimensional, to which nothing else refers: a
    call that gets it checks nothing."""

    __slots__ = ("array",)

    def __init__(self, array: npt.NDArray[Any]) -> None:
        self.array = array


class Place(NamedTuple):
    """The place of a value of Python, as errors name it."""

    name: str
    """Such as `scale: argument 1 (values)`."""
    given: str = "a"
    """The value in the call that mends it."""
    verb: str = "pass"
    """The act of the value's author, in the imperative."""


def _by_interface(array: npt.NDArray[Any]) -> int:
    found: int = array.__array_interface__["data"][0]
    return found


def _by_pointer(array: npt.NDArray[Any]) -> int:
    # NumPy's C API, `PyArrayObject`: `data` is the first field; the interface makes a dict and
    # tuples.
    return ctypes.c_size_t.from_address(id(array) + object.__basicsize__).value


_PROBES = (np.zeros(3), np.zeros(3)[1:], np.frombuffer(b"abc", np.uint8))
address_of = (
    _by_pointer if all(_by_pointer(a) == _by_interface(a) for a in _PROBES) else _by_interface
)
"""The address of the elements of an ndarray."""


def host_array(place: Place, t: Reference, argument: object) -> HostArray:
    """An object with memory as a host array of the type `t`: an array of numbers, or a supertype
    of these. Raises CallError, which names the call that makes it usable."""
    kind = NUMBER_ARRAYS.get(t.number)
    if type(argument) is np.ndarray and kind is not None and argument.dtype is kind.dtype:
        flags = argument.flags
        if flags.carray and flags.owndata and argument.ndim == 1:
            address, length = address_of(argument), len(argument)
            pins = (weakref.ref(argument),)
            return HostArray(address, kind.number, length, kind.bytes, False, argument, pins)
    view = argument
    if type(view) is not np.ndarray:
        view = viewed(argument)
    if view is None:
        dtype = "float64" if kind is None else kind.dtype.name
        made = f"numpy.array({place.given}, dtype=numpy.{dtype})"
        if is_masked(argument):
            made = f"{place.given}.filled()"
        elif isinstance(argument, str):  # a string of a program is its bytes in UTF-8
            made = f"{place.given}.encode()" if dtype == "uint8" else ""
        raise _misfit(place, t, kind, shown(argument), made)
    assert isinstance(view, np.ndarray)
    if kind is None:
        kind = _OF_DTYPE.get(view.dtype)
    flags = view.flags
    if (
        kind is None
        or view.dtype != kind.dtype
        or view.shape == ()
        or not flags.c_contiguous
        or not flags.aligned
        or not view.dtype.isnative
    ):
        raise _unfit(place, t, view)
    owners = () if flags.owndata and view is argument else (argument,)
    if len(view.shape) > 1:
        owners, view = (view,), view.reshape(-1)
    of, is_read_only = address_of(view), not flags.writeable
    owned = owners, _pins(view)
    return HostArray(of, kind.number, view.shape[0], kind.bytes, is_read_only, view, owned)


def _unfit(place: Place, t: Reference, view: npt.NDArray[Any]) -> CallError:
    """The error for an array of another type or layout."""
    given, dtype = place.given, view.dtype
    kind = NUMBER_ARRAYS.get(t.number) or _OF_DTYPE.get(dtype.newbyteorder("="))
    wanted = None if kind is None else kind.dtype
    if wanted is None or dtype != wanted or not dtype.isnative:
        order = "" if dtype.isnative else "byte-swapped "
        found = f"an array of {order}{dtype.name}"
        return _misfit(place, t, kind, found, _as_dtype(given, dtype, wanted))
    if not view.ndim:
        found, mend = "an array of no dimensions", f"{given}.reshape(-1)"
    elif not view.flags.c_contiguous:
        found = "an array whose elements are not contiguous"
        if view.flags.f_contiguous:
            found = "an array in the order of Fortran, of which C's is possible"
        mend = f"numpy.ascontiguousarray({given})"
    else:
        found, mend = "an array that is not aligned", f"{given}.copy()"
    if given.partition("[")[0] == "out":  # results in a copy would be lost
        mend = f"numpy.empty({view.shape}, numpy.{wanted.name})"
    return _misfit(place, t, kind, found, mend)


def _as_dtype(given: str, dtype: np.dtype[Any], wanted: np.dtype[Any] | None) -> str:
    """The call that gives an array another dtype, or a part of it that may have it; without a copy
    where the bits can stay."""
    if dtype.names:
        return f"numpy.ascontiguousarray({given}[{dtype.names[0]!r}])"
    if dtype.kind == "c":
        return f"{given}.real.copy()"
    if wanted is None:
        same = {1: "uint8", 2: "uint16", 4: "uint32", 8: "int64"}.get(dtype.itemsize)
        is_whole = dtype.kind in "iubmM" and dtype.isnative and same is not None
        return f"{given}.view(numpy.{same})" if is_whole else f"{given}.astype(numpy.float64)"
    is_other_sign = dtype.kind + wanted.kind in ("iu", "ui") and dtype.itemsize == wanted.itemsize
    call = "view" if is_other_sign and dtype.isnative else "astype"
    return f"{given}.{call}(numpy.{wanted.name})"


def _misfit(
    place: Place, t: Reference, kind: NumberArray | None, found: str, mend: str
) -> CallError:
    elements = _ANY if kind is None else kind.dtype.name
    how = f": {place.verb} {mend}" if mend else ""
    return CallError(
        f"{place.name} is {found}; a contiguous array of {elements} is expected for {t}{how}"
    )


def is_masked(value: object) -> bool:
    """True for a masked array."""
    masked = sys.modules.get("numpy.ma")  # no array is masked before it is imported
    return masked is not None and isinstance(value, masked.MaskedArray)


def viewed(argument: object) -> npt.NDArray[Any] | None:
    """An ndarray of the memory of an object; None if it offers none."""
    if is_masked(argument):
        return None
    if isinstance(argument, np.ndarray):
        return argument.view(np.ndarray)
    try:
        return np.asarray(memoryview(argument))  # type: ignore[arg-type]  # it says so by TypeError
    except (TypeError, ValueError, BufferError):
        pass
    try:
        if hasattr(argument, "__array_interface__"):
            return np.asarray(argument)
        if hasattr(argument, "__dlpack__"):
            return np.from_dlpack(argument)
    except (TypeError, ValueError, BufferError, RuntimeError):
        pass
    return None


def has_memory(value: object) -> bool:
    """True if a value has memory that could be an array's."""
    return viewed(value) is not None


def _pins(view: npt.NDArray[Any]) -> tuple[object, ...]:
    """Weak references to an ndarray and those that it is a view of. NumPy resizes no array that
    something refers to weakly, also with `refcheck=False`."""
    found: list[object] = []
    one: object = view
    while isinstance(one, np.ndarray):
        found.append(weakref.ref(one))
        one = one.base
    return tuple(found)


def ndarray(block: SharedBlock) -> npt.NDArray[Any]:
    """The memory of a block as an ndarray."""
    return np.asarray(block)
