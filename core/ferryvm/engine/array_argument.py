# SPDX-License-Identifier: Apache-2.0
"""Arrays as arguments and results of calls: NumPy's memory where it lies, without a copy.

    ndarray, buffer, __array_interface__, DLPack ──> HostArray ──> reference
    reference ──> the ndarray that was passed, or one whose memory program and Python share

An array that a program cannot use as it is, is an error that names the call that makes it usable.
Nothing is converted: a copy in secret would cost time, and stores into it would be lost.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ferryvm.engine.interrupt import interruptible
from ferryvm.engine.marshal import CallError, Item
from ferryvm.failure import shown
from ferryvm.isa.element import Element
from ferryvm.isa.type import Reference, ValueType, as_number, to_python
from ferryvm.machine.control import ControlBlock, Status
from ferryvm.machine.host_array import HostArray, SharedBlock
from ferryvm.machine.memory import AddressSpaceError
from ferryvm.machine.object_memory import ObjectMemory, OverlapError

if TYPE_CHECKING:
    import numpy.typing as npt

_KINDS = {element.array: element for element in Element}
_NAMES = {"i": "int", "u": "uint", "f": "float"}
_DTYPES = {
    element.array: np.dtype(f"{_NAMES[element.kind[0]]}{element.bits}") for element in Element
}

# A signal during these steps is raised after them, as at the end of a program.
_protected = functools.partial(interruptible, ControlBlock(status=Status.HALT))


class Passing:
    """Passes the arguments of calls of one function and returns its results."""

    def __init__(
        self,
        name: str,
        names: Sequence[str],
        parameters: Sequence[ValueType],
        results: Sequence[ValueType],
    ) -> None:
        """`names`: those of the parameters, as far as they are known."""
        self._name, self._names, self._results = name, names, results
        self._arrays = [(n, t) for n, t in enumerate(parameters) if isinstance(t, Reference)]

    def words(self, objects: ObjectMemory, arguments: Sequence[object]) -> list[object]:
        """The arguments with references for arrays; they are valid until the next collection.

        Raises CallError for arrays that cannot be used, and for those that overlap.
        """
        numbers, arrays = [], []
        for number, t in self._arrays:
            argument = arguments[number]
            if argument is not None:
                numbers.append(number)
                arrays.append(self._host_array(number, t, argument))
        try:
            references = objects.lend(arrays, _protected)
        except OverlapError as error:
            raise self._overlap(numbers, *error.args) from None
        except AddressSpaceError as error:
            raise CallError(f"{self._name}: {error}") from None
        found = list(arguments)
        for number, _ in self._arrays:
            found[number] = 0
        for number, reference in zip(numbers, references, strict=True):
            found[number] = reference
        return found

    def values(self, objects: ObjectMemory, words: Sequence[int]) -> list[Item]:
        """The Python values of the results. Raises CallError if there is no memory for an array."""
        found: list[Item] = []
        for t, word in zip(self._results, words, strict=True):
            if not isinstance(t, Reference):
                found.append(to_python(as_number(t), word & t.mask))
            elif not word:
                found.append(None)
            else:
                try:
                    view = objects.share(word, _DTYPES[t].str, _ndarray, _protected)
                except AddressSpaceError as error:
                    raise CallError(f"{self._name}: {error}") from None
                assert isinstance(view, np.ndarray)
                found.append(view)
        return found

    def _described(self, number: int) -> str:
        known = self._names[number] if number < len(self._names) else ""
        return f"{number + 1} ({known})" if known else f"{number + 1}"

    def _overlap(self, numbers: Sequence[int], first: int, second: int | None) -> CallError:
        number = numbers[first]
        other = "an array that the program has"
        if second is not None:
            other = f"argument {self._described(numbers[second])}"
        return CallError(
            f"{self._name}: argument {self._described(number)} shares memory with {other}; arrays "
            f"may only if all are read-only and begin apart: pass {self._argument(number)}.copy()"
        )

    def _argument(self, number: int) -> str:
        known = self._names[number] if number < len(self._names) else ""
        return known if known.isidentifier() else "a"

    def _host_array(self, number: int, t: Reference, argument: object) -> HostArray:
        """An argument as a host array."""
        dtype = _DTYPES[t]
        view = argument
        if type(view) is not np.ndarray:
            view = _viewed(argument)
        if view is None:
            made = f"numpy.array({self._argument(number)}, dtype=numpy.{dtype.name})"
            raise self._misfit(number, t, shown(argument), made)
        assert isinstance(view, np.ndarray)
        flags = view.flags
        if (
            view.dtype != dtype
            or view.ndim != 1
            or not flags.c_contiguous
            or not flags.aligned
            or not view.dtype.isnative
        ):
            raise self._unfit(number, t, view)
        address, is_read_only = view.__array_interface__["data"]
        element = _KINDS[t]
        owners = () if flags.owndata and view is argument else (argument,)
        return HostArray(
            address,
            t.number,
            view.shape[0],
            element.bytes,
            is_read_only,
            view,
            (owners, _pins(view)),
        )

    def _unfit(self, number: int, t: Reference, view: npt.NDArray[Any]) -> CallError:
        """The error for an array of another type or layout."""
        dtype, given = _DTYPES[t], self._argument(number)
        if view.dtype != dtype:
            order = "" if view.dtype.isnative else "byte-swapped "
            found = f"an array of {order}{view.dtype.name}"
            return self._misfit(number, t, found, f"{given}.astype(numpy.{dtype.name})")
        if view.ndim != 1:
            found = f"an array of {view.ndim} dimensions, of which one is possible yet"
            return self._misfit(number, t, found, f"{given}.reshape(-1)")
        if not view.flags.c_contiguous:
            found = "an array whose elements are not contiguous"
            return self._misfit(number, t, found, f"numpy.ascontiguousarray({given})")
        return self._misfit(number, t, "an array that is not aligned", f"{given}.copy()")

    def _misfit(self, number: int, t: Reference, found: str, mend: str) -> CallError:
        return CallError(
            f"{self._name}: argument {self._described(number)} is {found}; a contiguous array of "
            f"{_DTYPES[t].name} is expected for {t}: pass {mend}"
        )


def _viewed(argument: object) -> npt.NDArray[Any] | None:
    """An ndarray of the memory of an object; None if it offers none."""
    if isinstance(argument, np.ma.MaskedArray):
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


def _pins(view: npt.NDArray[Any]) -> tuple[object, ...]:
    """Weak references to an ndarray and those that it is a view of. NumPy resizes no array that
    something refers to weakly, also with `refcheck=False`."""
    found: list[object] = []
    one: object = view
    while isinstance(one, np.ndarray):
        found.append(weakref.ref(one))
        one = one.base
    return tuple(found)


def _ndarray(block: SharedBlock) -> npt.NDArray[Any]:
    return np.asarray(block)
