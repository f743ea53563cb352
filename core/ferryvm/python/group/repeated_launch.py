# SPDX-License-Identifier: Apache-2.0
"""Launches of a kernel that are as earlier ones: the same numbers, and arrays on a device.

arguments ──> key ──> the launch that had them ── code and arrays as they were? ──> run again
               └─ none, or a NumPy array among them: the usual path
"""

from __future__ import annotations

import types
import weakref
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from ferryvm.engine.array_argument import address_of
from ferryvm.python.group.kernel_version import KernelVersion
from ferryvm.python.value.device_array import DeviceArray
from ferryvm.residency import Repeated

_MOST = 16
"""Launches of a kernel that are prepared at a time."""


def launch_key(counts: Sequence[int], arguments: Sequence[Any]) -> Hashable | None:
    """A key for launches of so many items with the same arguments; None if some are neither numbers
    nor arrays that may be on a device."""
    found: list[Hashable] = [*counts]
    for each in arguments:
        kind = type(each)
        if kind is DeviceArray:
            found.append(id(each))
        elif kind is int or kind is bool:
            found.append((kind, each))
        elif kind is float:
            found.append(each.hex())  # zeros and NaNs differ
        else:
            return None
    return tuple(found)


class RepeatedLaunch:
    """A launch that has run on a device, with what has to be as it was."""

    def __init__(
        self,
        version: KernelVersion,
        given: Sequence[DeviceArray],
        free: Hashable,
        repeated: Repeated,
    ) -> None:
        """`given`: the arrays among its arguments, of which it retains none; `free`: the key of the
        values of free names that are arguments of the code."""
        self._free = free
        of = {address_of(each.storage): each for each in given}
        self._version, self._repeated = version, repeated
        self._has_names = bool(version.free.names)
        self._arrays = [weakref.ref(of.pop(address)) for address in repeated.arrays]
        self._others = [weakref.ref(each) for each in of.values()]

    def run(self, function: types.FunctionType) -> bool:
        """True if a device has run all items again; False if nothing has happened. Raises
        BackendError, and the exceptions of signal handlers."""
        version, found = self._version, []
        if function.__code__ is not version.code or not version.is_current(function):
            return False
        if self._has_names and launch_key((), version.free.values(function)) != self._free:
            return False
        for array in self._arrays:
            each = array()
            if each is None:  # another array may have the id of one that is gone
                return False
            elements = each.resident
            if elements is None:
                return False
            found.append(elements)
        for other in self._others:
            if other() is None:
                return False
        return self._repeated.run(found)


class RepeatedLaunches:
    """Repeated launches of one form, the last one that was prepared at the end."""

    def __init__(self) -> None:
        self._launches: Mapping[Hashable, RepeatedLaunch] = {}

    def run(self, key: Hashable, function: types.FunctionType) -> bool:
        """As of the launch with this key; False if there is none."""
        found = self._launches.get(key)
        return found is not None and found.run(function)

    def add(self, key: Hashable, launch: RepeatedLaunch) -> None:
        """Let a launch run again from now on. Another thread may read meanwhile."""
        last = [*self._launches.items()][1 - _MOST :]
        self._launches = {**dict(last), key: launch}
