# SPDX-License-Identifier: Apache-2.0
"""Maps whose arrays may be on a device alone, and whose results may remain there.

device arrays ──> all items on the device ──> device arrays
                      │ no code for that, an item left, the device failed
                      └──> arguments to the host ──> the map as any other
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ferryvm.engine import array_map
from ferryvm.engine.array_argument import address_of
from ferryvm.python.call.interruption import MapInterrupted
from ferryvm.python.map.map_plan import MapPlan
from ferryvm.python.map.progress import shown_progress
from ferryvm.python.value.device_array import DeviceArray
from ferryvm.residency import Residency


def run_resident(
    plan: MapPlan, values: Sequence[Any], given: Sequence[DeviceArray], out: Any, *, remains: bool
) -> Any:
    """The results of a map of arguments of which the host may lack some, `given`. `remains`: as
    `DeviceArray`s."""
    found = _on_device(plan, values, given, remains) if out is None else None
    if found is None:
        for each in given:
            each.array()
        arrays = plan.run(values, out)
        if not remains or out is not None:
            return arrays
        listed = arrays if isinstance(arrays, tuple) else (arrays,)
        found = [DeviceArray.of(each, None) for each in listed]
    return plan.gathered(found)


def _on_device(
    plan: MapPlan, values: Sequence[Any], given: Sequence[DeviceArray], remains: bool
) -> list[Any] | None:
    """The results of all items, run by a device; None if nothing was run."""
    there = {address_of(each.memory): each.elements for each in given if each.elements is not None}
    if plan.version.has_effects or shown_progress.get() is not None:
        return None
    if not (there or remains) or len({each.memory for each in there.values()}) > 1:
        return None
    values, shape = plan.checked(values)
    results = plan.results(shape, None, None)
    if not results[0].size:
        return None
    arrays = [value for value in values if isinstance(value, np.ndarray)]
    wanted = frozenset(map(address_of, results)) if remains else frozenset[int]()
    known = frozenset(map(address_of, (*arrays, *results, *plan.version.arrays)))
    residency = Residency(known, there, wanted)
    flat, passed = plan.flat(values), plan.passed(results)
    try:
        if not plan.version.use(
            lambda function: array_map.map_resident(function, flat, passed, residency)
        ):
            return None
    except KeyboardInterrupt:
        size = results[0].size
        raise MapInterrupted(plan.name, plan.gathered(results), size, [(0, size)]) from None
    if not remains:
        return results
    return [DeviceArray.of(each, residency.left.get(address_of(each))) for each in results]
