# SPDX-License-Identifier: Apache-2.0
"""The expected time of a range of items on a place, from calibrations.

    seconds = launch + copies + (seconds of an item in order) x max(items x ratio, alone)

The seconds of an item in order are measured on the launch itself. The ratio says how much longer an
item takes on the place, among many: the calibrated times of its instructions there over those in order,
weighted by the classes of its instructions. `alone` is the same for an item that runs beside few
others: a device with thousands of lanes takes as long for one item as for thousands.
"""

from __future__ import annotations

from collections.abc import Mapping

from ferryvm import record
from ferryvm.engine.launch_place.calibration import CLASSES, Calibration

CALIBRATED = "calibrated"
"""The source of figures that were measured."""

DEFAULT_LAUNCH = {True: 50e-6, False: 500e-6}
"""Seconds of a launch on threads, and on a device, where nothing was calibrated: calibrations have
found 40 to 60 us, and 80 us on PoCL to 450 us on a GPU."""

DEFAULT_COMPILE = 1.0
"""Seconds of a compilation likewise."""

DEFAULT_BANDWIDTH = 4e9
"""Bytes a second likewise, to and from a device."""


@record.dataclass(frozen=True)
class CostModel:
    """Costs of one launch on one place."""

    launch_seconds: float
    ratio: float
    """Time of an item, among many, over its time in order on one core."""
    copy_seconds: float
    """Copies of arrays, if none is on the device."""
    compile_seconds: float
    source: str
    """The origin of these figures: `calibrated`, or why they are defaults."""
    alone: float = 0.0
    """Time of one item among few over its time in order: no range takes less. 0: it is not
    known."""

    def work(self, items: int) -> float:
        """The time of so many items, without launch and copies, over that of one in order."""
        return max(items * self.ratio, self.alone)

    def expected(self, items: int, item_seconds: float, is_resident: bool = False) -> float:
        """Seconds of so many items; `item_seconds`: of one in order; `is_resident`: the arrays are
        on the device."""
        copies = 0.0 if is_resident else self.copy_seconds
        return self.launch_seconds + copies + item_seconds * self.work(items)


def weights(floats: float, integers: float, memory: float, control: float) -> dict[str, float]:
    """Shares of the classes of instructions, which add up to 1, from facts of a region."""
    found = dict(zip(CLASSES, (floats, integers, memory, control), strict=True))
    total = sum(found.values())
    return {name: one / total if total else 1 / len(CLASSES) for name, one in found.items()}


def calibrated(
    own: Calibration,
    base: Calibration,
    mix: Mapping[str, float],
    threads: int,
    has_lanes: bool,
    bytes_read: int,
    bytes_written: int,
) -> CostModel:
    """The model of a place with a calibration; `base`: the calibration of the backend whose code
    runs items in order; `threads`: of native code, 0 for a device; `has_lanes`: it runs items in
    lanes of vectors, as they were when it was calibrated."""
    if threads and not has_lanes:
        there = sum(share * own.in_order[name] for name, share in mix.items()) / threads
    else:
        there = sum(share * own.seconds[name] for name, share in mix.items())
        if threads:  # it was calibrated with all processors
            there *= max(int(own.versions.get("processors", threads)) / threads, 1.0)
    here = sum(share * base.in_order[name] for name, share in mix.items())
    alone = sum(share * own.alone[name] for name, share in mix.items()) if own.alone else 0.0
    copies = 0.0
    if own.to_device and own.to_host:
        # What items overwrite as a whole is not sent.
        copies = bytes_read / own.to_device + bytes_written / own.to_host
    ratio, alone = (there / here, alone / here) if here else (1.0, 0.0)
    return CostModel(own.launch_seconds, ratio, copies, own.compile_seconds, CALIBRATED, alone)


def assumed(why: str, threads: int, bytes_read: int, bytes_written: int) -> CostModel:
    """The model of a place without a calibration: threads divide the time, and a device computes as
    one core does; `why`: the reason, with a remedy."""
    copies = 0.0 if threads else (bytes_read + bytes_written) / DEFAULT_BANDWIDTH
    launch = DEFAULT_LAUNCH[bool(threads)]
    return CostModel(launch, 1.0 / max(threads, 1), copies, DEFAULT_COMPILE, f"defaults: {why}")
