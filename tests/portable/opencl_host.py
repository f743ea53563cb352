# SPDX-License-Identifier: Apache-2.0
"""Exported kernels on a device, from pyopencl and from C, where ferryvm cannot be imported."""

from __future__ import annotations

import ctypes.util
import functools
import os
import subprocess
import sys
from pathlib import Path

import pytest

VENDORS = Path("/etc/OpenCL/vendors")
"""The drivers that the loader finds by itself."""

NVIDIA = "libnvidia-opencl.so.1"


def in_python(folder: Path, device: str = "") -> subprocess.CompletedProcess[str]:
    """The check of a folder in Python, on a device with a name."""
    return _checked(folder, {}, sys.executable, "check.py", *([device] if device else []))


def from_c(folder: Path, device: str = "") -> subprocess.CompletedProcess[str]:
    """The check of a folder in C, on a device with a name. It skips the test without headers and
    loader of OpenCL."""
    if not Path("/usr/include/CL/cl.h").exists():
        pytest.skip("needs OpenCL's headers")
    loader = ctypes.util.find_library("OpenCL")
    if loader is None:
        pytest.skip("needs OpenCL's loader")
    words = [f"LDLIBS=-l:{loader}", "PYTHON=false", f"DEVICE={device}"]
    return _checked(folder, _drivers(folder.parent), "make", "-s", "check", *words)


def _drivers(folder: Path) -> dict[str, str]:
    """The environment in which the loader finds drivers: those of the system, else what is here."""
    if "OCL_ICD_VENDORS" in os.environ or any(VENDORS.glob("*.icd")):
        return {}
    found = _libraries()
    if not found:
        pytest.skip("needs a driver of OpenCL")
    here = folder / "vendors"
    here.mkdir(exist_ok=True)
    for number, library in enumerate(found):
        (here / f"{number}.icd").write_text(f"{library}\n")
    return {"OCL_ICD_VENDORS": str(here)}


@functools.cache
def _libraries() -> tuple[str, ...]:
    """Drivers: NVIDIA's, PoCL as pip installs it with pyopencl."""
    import pyopencl

    found = [*map(str, Path(pyopencl.__file__).with_name(".libs").glob("libpocl-*.so"))]
    try:
        ctypes.CDLL(NVIDIA)
    except OSError:
        return tuple(found)
    return (NVIDIA, *found)


def gpu() -> str:
    """The name of a GPU. It skips the test if there is none."""
    pyopencl = pytest.importorskip("pyopencl")
    for platform in pyopencl.get_platforms():
        for device in platform.get_devices():
            if device.type & pyopencl.device_type.GPU:
                return str(device.name)
    pytest.skip("there is no GPU with a driver of OpenCL")


def _checked(
    folder: Path, environment: dict[str, str], *words: str
) -> subprocess.CompletedProcess[str]:
    """A command in a folder. It fails if ferryvm is imported."""
    hidden = folder.parent / "nothing" / "ferryvm"
    hidden.mkdir(parents=True, exist_ok=True)
    (hidden / "__init__.py").write_text("raise ImportError('a harness imports ferryvm')")
    return subprocess.run(
        words,
        cwd=folder,
        env={**os.environ, **environment, "PYTHONPATH": str(hidden.parent)},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=60,
        check=False,
    )
