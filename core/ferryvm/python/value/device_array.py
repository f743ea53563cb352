# SPDX-License-Identifier: Apache-2.0
"""Results of maps that remain where they were computed until somebody looks at them.

    with ferryvm.resident():
        ys = ferryvm.map(f, xs)      a DeviceArray
        zs = ferryvm.map(g, ys)      nothing is copied between the two
    np.asarray(zs)                   now the host has them

On a device with memory of its own the elements are in a buffer there. Elsewhere, and where items
were not run by a device, they are in an ndarray from the start, and it makes no difference.
"""

from __future__ import annotations

import contextlib
import contextvars
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

from ferryvm.residency import DeviceElements

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
    """The results of a map, which may be on a device alone. It cannot be changed.

    `numpy.asarray` has them as a read-only array, which is copied from the device at the first
    look; so do indices, loops, and NumPy's functions. `ferryvm.map`, `reduce` and `scan` take it
    where they take an array. Looks raise BackendError if the device has failed by then.
    """

    __slots__ = ("__weakref__", "_array", "_elements", "_lock")

    def __init__(self, array: np.ndarray[Any, Any], elements: DeviceElements | None) -> None:
        """`array`: of the host; `elements`: those that a device has in its place, if one does."""
        array.flags.writeable = False
        self._array, self._elements, self._lock = array, elements, threading.Lock()
        if elements is not None:
            elements.owner = array

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
        return f"DeviceArray(shape={self.shape}, dtype={self.dtype}, where={self.where!r})"

    # --- elements ---------------------------------------------------------------------------

    @property
    def elements(self) -> DeviceElements | None:
        """The elements on a device; None if none has them."""
        found = self._elements
        return found if found is not None and found.is_there else None

    @property
    def memory(self) -> np.ndarray[Any, Any]:
        """The array of the host, whether it has the elements or not."""
        return self._array

    def array(self) -> np.ndarray[Any, Any]:
        """The array of the host with the elements. Raises BackendError."""
        if self._elements is not None and not self._elements.is_on_host:
            with self._lock:
                self._elements.fetch()
        return self._array

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
        found = self.array()
        self._elements = None
        found.flags.writeable = True
        return found.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[Any, Any]:
        return self._array.__dlpack_device__()


def device_arrays(value: Any) -> list[DeviceArray]:
    """The results on devices in an argument, which may be a tuple of them."""
    if type(value) is tuple:
        return [each for item in value for each in device_arrays(item)]
    return [value] if type(value) is DeviceArray else []


def memory_of(value: Any) -> Any:
    """A value with the arrays of the host in the place of results on devices, whose elements they
    may lack."""
    if type(value) is tuple:
        return tuple(map(memory_of, value))
    return value.memory if type(value) is DeviceArray else value


def on_host(value: Any) -> Any:
    """A value with arrays of NumPy in the place of results on devices. Raises BackendError."""
    if type(value) is DeviceArray:
        return value.array()
    if type(value) is tuple:
        return tuple(map(on_host, value))
    return value
