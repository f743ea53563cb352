# SPDX-License-Identifier: Apache-2.0
"""Which device is measured, and with which caches."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.benchmark import BenchmarkError
from benchmarks.peers.ferry import CACHE
from ferryvm.backend import BackendError
from ferryvm_backends.opencl.device import ENVIRONMENT, Device, devices, find

CACHES = (CACHE, "XDG_CACHE_HOME", "POCL_CACHE_DIR", "CUDA_CACHE_PATH", "NEO_CACHE_DIR")
"""Variables that say where ferryvm, pyopencl and drivers keep what they have built."""


@contextlib.contextmanager
def variables(values: Mapping[str, str]) -> Iterator[None]:
    """Have these variables set, for this process and those that it starts."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


@contextlib.contextmanager
def empty_caches() -> Iterator[None]:
    """Have nothing built yet. Drivers look where to keep things when they are first used, so this
    has to come before."""
    with contextlib.ExitStack() as stack:
        nothing = tempfile.TemporaryDirectory(prefix="ferry-bench-", ignore_cleanup_errors=True)
        folder = stack.enter_context(nothing)
        stack.enter_context(variables({name: str(Path(folder, name.lower())) for name in CACHES}))
        yield


@contextlib.contextmanager
def chosen(name: str | None) -> Iterator[Device]:
    """The device of a name, or the default one: what opencl runs on meanwhile.

    Raises BenchmarkError where there is no such device, with those that there are.
    """
    with variables({} if name is None else {ENVIRONMENT: name}):
        try:
            device = find()
        except BackendError as error:
            raise BenchmarkError(str(error)) from None
        yield device


def as_json(device: Device) -> dict[str, Any]:
    """A device as JSON."""
    return {
        "name": str(device),
        "kind": device.kind,
        "version": device.version,
        "driver": device.driver,
        "platform_version": device.platform_version,
        "shares_memory": device.shares_memory,
        "f64": device.has_f64,
    }


def described(device: Device) -> str:
    """A device and its driver in a line."""
    memory = "the host's memory" if device.shares_memory else "memory of its own"
    return f"{device} ({device.kind}, {memory}), driver {device.driver}, {device.platform_version}"


def listed(measured: Device) -> list[str]:
    """The device that is measured, then the others that are there, a line each."""
    others = [device for device in devices() if device != measured]
    return [
        f"measured: {described(measured)}",
        *(f"not measured: {described(device)}" for device in others),
    ]
