# SPDX-License-Identifier: Apache-2.0
"""Calibrations: what launches cost on a device of this machine, measured once and kept.

    CACHE/K/calibration-KEY.bin     one for each backend, for all its devices

An entry is authenticated as all entries of the cache are (`ferryvm.cache`), and says for which
versions it was measured. One that was not made by this user, is damaged, or is of other versions is
refused with the reason; the launches of that device are then placed by default numbers.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from typing import Any

from ferryvm import cache
from ferryvm.backend import Compiler
from ferryvm.errors import FerryError
from ferryvm.named_tuple import NamedTuple
from ferryvm.policy.machine import here

COMMAND = "ferry doctor --calibrate"
"""The command that calibrates."""

CLASSES = ("float", "integer", "memory", "control")
"""Classes of instructions that are calibrated apart: those of the facts of a region."""

_FORMAT = 2


@dataclasses.dataclass(frozen=True)
class Calibration:
    """Costs of launches on one device of one backend."""

    backend: str
    device: str
    """Its name; empty for a backend without a choice of devices."""
    versions: Mapping[str, str]
    """The versions of all that the numbers depend on, by name."""
    launch_seconds: float
    """Time of a launch of a few items, besides the items."""
    thread_seconds: float
    """Time until a new thread runs; 0 for devices."""
    to_device: float
    """Bytes that are copied to the device in a second; 0: its memory is the host's."""
    to_host: float
    """Bytes that are copied back in a second; 0 likewise."""
    compile_seconds: float
    """Time of compiling a small launch."""
    seconds: Mapping[str, float]
    """Time of an instruction of an item by its class, on the whole device."""
    in_order: Mapping[str, float]
    """Time of one where items run one after another; empty if the backend is not native."""
    alone: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """Time of one where a device has few items, each of which takes as long as it does; empty
    likewise for native code, where that is the time in order."""

    @property
    def title(self) -> str:
        """Backend and device, for people."""
        return title(self.backend, self.device)


class DeviceCalibrations(NamedTuple):
    """The calibrations of the devices of a backend, as far as they are of use."""

    by_device: Mapping[str, Calibration]
    why_not: str
    """The reason that there is none, with the command that makes one; empty if there is one."""


def title(backend: str, device: str) -> str:
    """A backend and its device, for people."""
    return f"{backend} on {device}" if device else backend


def versions(compiler: Compiler, device: str) -> dict[str, str]:
    """The versions of all that costs on a device depend on. Raises BackendError if there is no such
    device."""
    return {**_machine(), "backend": compiler.version, **compiler.versions(device)}


def _machine() -> dict[str, str]:
    machine = here()
    return {
        "processor": machine.cpu or machine.architecture,
        "processors": str(machine.cpus),
    }


def device_name(compiler: Compiler, device: str) -> str:
    """The full name of a device that `Options.device` means. Raises BackendError if there is
    none."""
    if not compiler.capabilities.devices:
        return ""
    return compiler.versions(device).get("device", device)


def load(backend: str) -> DeviceCalibrations:
    """The calibrations of a backend that are of this machine, without asking the backend; it never
    raises. See `staleness` for the versions of the backend."""
    try:
        content, refused = _entry(backend).inspect()
        if refused:
            return DeviceCalibrations(
                {}, f"the calibration of {backend} is refused: {refused}; run `{COMMAND}`"
            )
        if content is None:
            return DeviceCalibrations({}, f"{backend} is not calibrated; run `{COMMAND}`")
        found = _read(content)
    except (FerryError, ValueError, TypeError, KeyError) as error:
        return DeviceCalibrations(
            {}, f"the calibration of {backend} cannot be used: {error}; run `{COMMAND}`"
        )
    reason = ""
    for name, one in tuple(found.items()):
        changed = _changed(one.versions, _machine())
        if changed:
            reason = f"the calibration of {one.title} is stale: {changed}; run `{COMMAND}`"
            del found[name]
    return DeviceCalibrations(found, "" if found else reason)


def staleness(found: Calibration, compiler: Compiler) -> str:
    """The reason that a calibration does not hold any more; empty if it does."""
    try:
        changed = _changed(found.versions, versions(compiler, found.device), is_whole=True)
    except FerryError as error:
        changed = str(error)
    return changed and f"the calibration of {found.title} is stale: {changed}; run `{COMMAND}`"


def store(found: Calibration) -> None:
    """Keep a calibration, in place of an earlier one of the device. Raises BackendError if it
    cannot be written; then the earlier one remains."""
    devices = {**load(found.backend).by_device, found.device: found}
    document = {
        "format": _FORMAT,
        "devices": [dataclasses.asdict(one) for one in devices.values()],
    }
    _entry(found.backend).store(json.dumps(document).encode())


def _entry(backend: str) -> cache.Entry:
    return cache.Entry("calibration", cache.key(["calibration", backend]), backend)


def _read(content: bytes) -> dict[str, Calibration]:
    """Raises ValueError, TypeError or KeyError for anything that `store` does not write."""
    document: dict[str, Any] = json.loads(content)
    number = document.get("format")
    if number != _FORMAT:
        raise ValueError(f"it has format {number}, and {_FORMAT} is read here")
    found = [Calibration(**one) for one in document["devices"]]
    for one in found:
        numbers = [one.launch_seconds, one.thread_seconds, one.compile_seconds]
        numbers += [one.to_device, one.to_host, *(one.seconds[name] for name in CLASSES)]
        for some in (one.in_order, one.alone):
            numbers += [some[name] for name in CLASSES if some]
        if not all(isinstance(each, int | float) and 0 <= each < math.inf for each in numbers):
            raise ValueError("it has a number that is none")
    return {one.device: one for one in found}


def _changed(then: Mapping[str, str], now: Mapping[str, str], is_whole: bool = False) -> str:
    """The first version of `now` that was another one; empty if all are the same. `is_whole`: there
    are no others."""
    for name in {**then, **now} if is_whole else now:
        if then.get(name) != now.get(name):
            return f"{name} was {then.get(name, 'not there')}, is {now.get(name, 'not there')}"
    return ""
