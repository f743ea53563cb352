# SPDX-License-Identifier: Apache-2.0
"""Findings of `ferry doctor` about OpenCL: pyopencl and its loader, drivers, devices, folders.

Nothing is built or run. What is looked for and does not exist here is injected by tests: devices
and the places of drivers are arguments.
"""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ferryvm import cache
from ferryvm.atomic_file import why_not_writable
from ferryvm.backend import BackendError, Finding
from ferryvm_backends.opencl.device import (
    ENVIRONMENT,
    POCL,
    POCL_DEVICES,
    Device,
    choose,
    devices,
)
from ferryvm_backends.opencl.driver import driver_findings, setting_findings
from ferryvm_backends.opencl.loader import FILENAMES, VENDOR_PATH, VENDORS, Places


def examine() -> list[Finding]:
    """The findings about OpenCL on this machine."""
    try:
        import pyopencl as cl
    except ImportError as error:
        missing = Finding(
            "pyopencl",
            problem=f"it cannot be imported: {error}",
            remedy="pip install pyopencl pocl-binary-distribution",
        )
        return [missing, *folder_findings()]
    bundled = Path(cl.__file__).parent / ".libs"
    places = Places(bundled=bundled if bundled.is_dir() else None)
    found: Sequence[Device] = ()
    trouble = ""
    try:
        found = devices()
    except BackendError as error:
        trouble = str(error).removeprefix("opencl: ")
    return list(report(found, platform_names(cl), places, cl.VERSION_TEXT, trouble))


def platform_names(cl: Any) -> list[str]:
    """The names of all platforms, in their order."""
    try:
        return [platform.name.strip() for platform in cl.get_platforms()]
    except cl.Error:  # there is none
        return []


def report(
    found: Sequence[Device],
    platforms: Sequence[str],
    places: Places,
    version: str,
    trouble: str = "",
) -> Iterator[Finding]:
    """All findings where pyopencl can be imported; `version` is its, `trouble` says why devices
    cannot be listed."""
    settings = (VENDORS, VENDOR_PATH, FILENAMES, POCL_DEVICES, ENVIRONMENT)
    facts: dict[str, str | int | float | bool] = {
        "version": version,
        "platforms": len(platforms),
        "devices": len(found),
        **{name: os.environ[name] for name in settings if os.environ.get(name)},
    }
    causes = list(setting_findings(places))
    if sys.platform == "linux":
        causes += driver_findings(places, platforms)
    if platforms:
        yield Finding("pyopencl", facts, trouble)
    else:
        remedy = "" if causes else "pip install pocl-binary-distribution, or install a driver"
        yield Finding("pyopencl", facts, "it finds no platform", remedy)
    yield from causes
    yield from empty_platform_findings(found, platforms)
    yield from device_findings(found)
    yield from choice_findings(found)
    yield from folder_findings()


# --- devices --------------------------------------------------------------------------------


def device_findings(found: Sequence[Device]) -> Iterator[Finding]:
    """Every device: its capabilities, the names that select it, and the missing ones."""
    wanted = os.environ.get(ENVIRONMENT, "")
    chosen = choose(found, wanted)
    for device in found:
        yield Finding(
            str(device),
            {
                "kind": device.kind,
                "version": device.version,
                "driver": device.driver,
                **({"compiles for": device.target} if device.target else {}),
                "f64": device.has_f64,
                "exact f32": device.has_exact_f32,
                "64-bit atomics": device.has_atomics_64,
                "unified memory": device.shares_memory,
                "memory is": "wrapped" if device.is_wrapped else "copied",
                "memory bytes": device.memory,
                "largest buffer bytes": device.largest_buffer,
                "driver keeps builds": device.caches_builds,
                "chosen by": ", ".join(names(found, device)) or "no name",
                "chosen now": _chosen_now(wanted) if device is chosen else False,
            },
        )
        for problem, remedy in _lacks(found, device):
            yield Finding(str(device), problem=problem, remedy=remedy)
    pocl = [d for d in found if d.platform == POCL and d.is_cpu]
    if POCL_DEVICES in os.environ and pocl and not any(d.is_serial for d in pocl):
        yield Finding(
            str(pocl[0]),
            problem=f"{POCL_DEVICES} leaves out PoCL's device `basic`: a kernel is entered in 10 to "
            "47 us instead of 1.2 us",
            remedy=f"unset {POCL_DEVICES}",
        )


def _chosen_now(wanted: str) -> str:
    return f"by {ENVIRONMENT}={wanted}" if wanted else "by default"


def names(found: Sequence[Device], device: Device) -> list[str]:
    """The values of FERRYVM_OPENCL_DEVICE that mean this device, as kind and as full name."""
    return [name for name in (device.kind, str(device)) if choose(found, name) is device]


def _lacks(found: Sequence[Device], device: Device) -> Iterator[tuple[str, str]]:
    """The capabilities that a device lacks, and the remedy."""
    if device.problem:
        remedy = _other(found, device, lambda d: True)
        if device.target is None:
            remedy = remedy or "pip install intel-opencl-rt, or install a newer PoCL"
        yield f"nothing runs on it: {device.problem}", remedy
        return
    elsewhere = "have a policy name another backend, such as llvm, after opencl"
    if not device.has_f64:
        remedy = _other(found, device, lambda d: d.has_f64)
        yield "it has no f64: regions with f64 are refused", remedy or elsewhere
    if not device.has_exact_f32:
        remedy = _other(found, device, lambda d: d.has_exact_f32)
        yield (
            "it does not compute f32 as IEEE 754 says: regions with f32 are refused",
            remedy or elsewhere,
        )


def _other(found: Sequence[Device], device: Device, suits: Callable[[Device], bool]) -> str:
    """The remedy of choosing another device; empty if none is suitable."""
    for other in found:
        if other is not device and other.problem is None and suits(other):
            for name in names(found, other):
                return f"export {ENVIRONMENT}={shlex.quote(name)}"
    return ""


def choice_findings(found: Sequence[Device]) -> Iterator[Finding]:
    """Findings about FERRYVM_OPENCL_DEVICE."""
    wanted = os.environ.get(ENVIRONMENT, "")
    if not wanted or not found or choose(found, wanted) is not None:
        return
    known = list(dict.fromkeys(name for device in found for name in names(found, device)))
    yield Finding(
        ENVIRONMENT,
        problem=f"no device here is called {wanted!r}",
        remedy=f"unset {ENVIRONMENT}, or choose one of: {', '.join(map(shlex.quote, known))}",
    )


def empty_platform_findings(found: Sequence[Device], platforms: Sequence[str]) -> Iterator[Finding]:
    """Platforms that offer no device."""
    for name in dict.fromkeys(platforms):
        if any(device.platform == name for device in found):
            continue
        problem = "the platform has no device"
        remedy = "see whether the device is there, and whether this user may open it in /dev"
        if name == POCL:
            folder = _pocl_cache()
            reason = why_not_writable(folder)
            if reason:
                problem += f": its cache {folder} cannot be written: {reason}"
                remedy = "export POCL_CACHE_DIR=DIR, a folder that can be written"
            elif POCL_DEVICES in os.environ:
                problem += f": {POCL_DEVICES} is {os.environ[POCL_DEVICES]!r}"
                remedy = f"unset {POCL_DEVICES}"
        yield Finding(name, problem=problem, remedy=remedy)


def _pocl_cache() -> Path:
    """The folder of PoCL's cache of builds; without it PoCL offers no devices."""
    if named := os.environ.get("POCL_CACHE_DIR"):
        return Path(named)
    if shared := os.environ.get("XDG_CACHE_HOME"):
        return Path(shared) / "pocl" / "kcache"
    if home := os.environ.get("HOME"):
        return Path(home) / ".cache" / "pocl" / "kcache"
    return Path("/tmp/pocl/kcache")


# --- folders --------------------------------------------------------------------------------


def folder_findings(temporary: Callable[[], str] = tempfile.gettempdir) -> Iterator[Finding]:
    """Folders that builds need and that cannot be written."""
    reason = cache.why_not_usable()
    if reason:
        problem, _, remedy = reason.partition("; ")
        yield Finding(
            "cache", problem=f"{problem}; each process builds its kernels again", remedy=remedy
        )
    try:
        folder = temporary()
        reason = why_not_writable(Path(folder))
        reason = reason and f"{folder} cannot be written: {reason}"
    except OSError as error:
        reason = error.strerror or str(error)
    if reason:
        yield Finding(
            "temporary directory",
            problem=f"{reason}; no kernel can be built",
            remedy="export TMPDIR=DIR, a folder that can be written",
        )
