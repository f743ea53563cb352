# SPDX-License-Identifier: Apache-2.0
"""Launches of kernels whose arrays may be on a device alone, where they remain.

device arrays ──> all items on the device ──> the same, with the elements that the device has now
                      │ no code for that, an item left, the device failed
                      └──> nothing has happened: elements to the host ──> the launch as any other
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ferryvm.engine.array_argument import address_of
from ferryvm.engine.resident_call import call_resident
from ferryvm.python.group.kernel_version import KernelVersion
from ferryvm.python.value.device_array import DeviceArray
from ferryvm.residency import Repeated, Residency


def launched_on_device(
    version: KernelVersion,
    counts: Sequence[int],
    values: Sequence[Any],
    given: Sequence[DeviceArray],
) -> tuple[str, Repeated | None]:
    """Empty if a device has run all items of a launch with arrays that may be there, `given`, of
    which `values` has the arrays of the host; else the reason: then nothing has happened, but the
    host has the elements. With it the launch, if it may run again so. Raises CallError, BackendError, and the exceptions of signal handlers."""
    of = {address_of(each.storage): each for each in given if each.size}
    retained = {at: each for at, each in of.items() if not each.is_given_away}
    there = {at: each.elements for at, each in retained.items() if each.elements is not None}
    flat = version.flattened(values)
    arrays = [each for each in (*flat, *version.arrays) if isinstance(each, np.ndarray)]
    known = frozenset(map(address_of, arrays))
    residency = Residency(known, there, frozenset(), frozenset(retained))
    reason = "no element is in them, or in what is launched"
    if retained and 0 not in counts:
        reason = "arguments are on different devices"
        if len({each.memory for each in there.values()}) < 2:
            if _run(version, (*counts, *flat), residency, retained):
                return "", residency.call
            reason = residency.refusal
    for each in of.values():
        each.bring_home()
    return reason, None


def _run(
    version: KernelVersion,
    arguments: Sequence[Any],
    residency: Residency,
    retained: dict[int, DeviceArray],
) -> bool:
    """True if a device has run all items."""

    def run(function: Callable[..., Any]) -> bool:
        calls, target = function.__ferryvm__  # type: ignore[attr-defined]  # of an instance
        return call_resident(calls, target, arguments, residency)

    try:
        return version.use(run)
    finally:  # also where a signal handler has raised behind the launch
        for address, elements in residency.left.items():
            retained[address].give(elements)
