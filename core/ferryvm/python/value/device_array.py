# SPDX-License-Identifier: Apache-2.0
"""Arrays that remain where they were computed until somebody looks at them.

    with ferryvm.resident():
        ys = ferryvm.map(f, xs)      a DeviceArray
    out = ferryvm.DeviceArray(np.zeros(n))
    ferryvm.launch(k, n, out, ys)    nothing is copied between the two
    np.asarray(out)                  now the host has the elements

On a device with memory of its own the elements are in a buffer there. Elsewhere, and where items
were not run by a device, they are in an ndarray from the start, and it makes no difference.
"""

from __future__ import annotations

import contextlib
import contextvars
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ferryvm.engine.array_argument import is_masked
from ferryvm.python.value.value_kind import MisfitError, kind_of
from ferryvm.residency import DeviceElements

if TYPE_CHECKING:
    import numpy.typing as npt

is_resident: contextvars.ContextVar[bool] = contextvars.ContextVar("is_resident", default=False)
"""True if maps have results of this kind in this context."""


@contextlib.contextmanager
def resident() -> Iterator[None]:
    """A context in which maps of Python functions return a `DeviceArray`, or a tuple of these, in
    place of NumPy arrays: results remain on a device with memory of its own until they are looked
    at."""
    token = is_resident.set(True)
    try:
        yield
    finally:
        is_resident.reset(token)


class DeviceArray:
    """An array that may be on a device alone: a copy of a NumPy array, or the results of a map.
    Nothing but `ferryvm.launch` changes it.

    `numpy.asarray` has its elements as a read-only array, which shows them as they were at the last
    look: they are copied from the device then. So do indices, loops, and NumPy's functions.
    `ferryvm.launch`, `map`, `reduce` and `scan` take it where they take an array. Looks raise
    BackendError if the device has failed by then, and ValueError behind `close`.
    """

    __slots__ = (
        "__weakref__",
        "_array",
        "_elements",
        "_is_closed",
        "_is_given_away",
        "_lock",
        "_shown",
    )

    def __init__(self, values: npt.ArrayLike) -> None:
        """`values`: an array of NumPy, or what makes one. Raises TypeError for elements that
        programs do not have."""
        if is_masked(values):
            raise TypeError("DeviceArray: a masked array is not supported; pass a.filled(...)")
        array = np.array(values, order="C")
        try:
            kind_of(array)
        except MisfitError as misfit:
            raise TypeError(f"DeviceArray: {misfit}") from None
        self._set(array, None)

    @classmethod
    def of(cls, array: np.ndarray[Any, Any], elements: DeviceElements | None) -> DeviceArray:
        """One with an array of the host that nobody else has, and the elements that a device has in
        its place, if one does."""
        found = cls.__new__(cls)
        found._set(array, elements)
        return found

    def _set(self, array: np.ndarray[Any, Any], elements: DeviceElements | None) -> None:
        self._array, self._shown = array, array.view()
        self._shown.flags.writeable = False
        self._lock, self._is_given_away, self._is_closed = threading.Lock(), False, False
        self.give(elements)

    def __getattr__(self, name: str) -> Any:
        if name in DeviceArray.__slots__:
            raise ValueError("the DeviceArray is closed")
        raise AttributeError(f"'DeviceArray' object has no attribute {name!r}", name=name, obj=self)

    def close(self) -> None:
        """Give its memory back, on the device and on the host."""
        self._is_closed = True
        for name in ("_elements", "_array", "_shown"):
            with contextlib.suppress(AttributeError):
                object.__delattr__(self, name)

    # --- facts ------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths in each dimension."""
        found: tuple[int, ...] = self._array.shape
        return found

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of elements."""
        found: np.dtype[Any] = self._array.dtype
        return found

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._array.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._array.size

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self._array.nbytes

    @property
    def where(self) -> str:
        """The place of the elements: a device, or `host` once it has them, too."""
        elements = self._elements
        return "host" if elements is None or elements.is_on_host else elements.where

    def __len__(self) -> int:
        return len(self._array)

    def __repr__(self) -> str:
        if self._is_closed:
            return "DeviceArray(closed)"
        return f"DeviceArray(shape={self.shape}, dtype={self.dtype}, where={self.where!r})"

    # --- elements ---------------------------------------------------------------------------

    @property
    def elements(self) -> DeviceElements | None:
        """The elements on a device; None if none has them. Raises BackendError if they are lost."""
        found = self._elements
        if found is None or found.is_there:
            return found
        found.fetch()
        return None

    @property
    def resident(self) -> DeviceElements | None:
        """The elements that a device had at the last launch, for another one there; None if it may
        not have them."""
        return None if self._is_given_away else self._elements

    @property
    def memory(self) -> np.ndarray[Any, Any]:
        """The array of the host, read-only, whether it has the elements or not."""
        return self._shown

    @property
    def storage(self) -> np.ndarray[Any, Any]:
        """The same, for code that stores into it."""
        return self._array

    @property
    def is_given_away(self) -> bool:
        """True if another library has the memory of the host, where elements must be from then
        on."""
        return self._is_given_away

    def give(self, elements: DeviceElements | None) -> None:
        """From now on a device has these elements in the place of others; None: the host has."""
        if elements is not None:
            elements.owner = self._array
        self._elements = elements

    def bring_home(self) -> None:
        """Let the host alone have the elements. Raises BackendError."""
        self.array()
        self._elements = None

    def array(self) -> np.ndarray[Any, Any]:
        """The array of the host with the elements, read-only. Raises BackendError."""
        elements = self._elements
        if elements is not None and not elements.is_on_host:
            with self._lock:
                elements.fetch()
        return self._shown

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        found = self.array()
        if dtype is not None and np.dtype(dtype) != found.dtype:
            if copy is False:
                raise ValueError(f"a copy is needed to convert {found.dtype} to {dtype}")
            return found.astype(dtype)
        return found.copy() if copy else found

    def __getitem__(self, index: Any) -> Any:
        return self.array()[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.array())

    def tolist(self) -> Any:
        """The elements as Python numbers, in nested lists."""
        return self.array().tolist()

    def __dlpack__(self, **options: Any) -> Any:
        """The elements for another library, which may change them: from then on the host's
        count."""
        self.bring_home()
        self._is_given_away = True
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[Any, Any]:
        return self._array.__dlpack_device__()


def device_arrays(value: Any) -> list[DeviceArray]:
    """The results on devices in an argument, which may be a tuple of them."""
    if type(value) is tuple:
        return [each for item in value for each in device_arrays(item)]
    return [value] if type(value) is DeviceArray else []


def memory_of(value: Any) -> Any:
    """A value with the arrays of the host in the place of those on devices, whose elements they may
    lack."""
    if type(value) is tuple:
        return tuple(map(memory_of, value))
    return value.memory if type(value) is DeviceArray else value


def storage_of(value: Any) -> Any:
    """The same, with arrays that can be stored into."""
    if type(value) is tuple:
        return tuple(map(storage_of, value))
    return value.storage if type(value) is DeviceArray else value


def on_host(value: Any) -> Any:
    """A value with arrays of NumPy in the place of results on devices. Raises BackendError."""
    if type(value) is DeviceArray:
        return value.array()
    if type(value) is tuple:
        return tuple(map(on_host, value))
    return value
