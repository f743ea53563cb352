# SPDX-License-Identifier: Apache-2.0
"""Calibrations of the devices that the default policy places launches on."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.parallel.contender import LLVM, OPENCL
from ferryvm.backend import Compiler
from ferryvm.calibrator import calibrate
from ferryvm.engine.launch_place import calibration
from ferryvm.errors import FerryError
from ferryvm.registry import Registry


def calibrated_devices(progress: Callable[[str], None]) -> list[tuple[str, str]]:
    """Devices, each with `calibrated` or the reason why not; those that are not are calibrated."""
    registry, found = Registry(), []
    for name in (LLVM, OPENCL):
        try:
            compiler = registry.get(name)
            assert isinstance(compiler, Compiler)
            for device in compiler.device_names() or [""]:
                title = calibration.title(name, device)
                known = calibration.load(name).by_device.get(device)
                if known is None or calibration.staleness(known, compiler):
                    progress(f"calibrating {title}")
                    calibration.store(calibrate(compiler, device))
                found.append((title, "calibrated"))
        except FerryError as error:
            found.append((name, f"not calibrated: {error}"))
    return found
