# SPDX-License-Identifier: Apache-2.0
"""The opencl backend in both ways to give a device a machine's memory.

With FERRYVM_OPENCL_DEVICE naming another device (`gpu`) the same tests run there; a device with memory
of its own has only the one way.
"""

from __future__ import annotations

import pytest

from ferryvm.backend import BackendError
from ferryvm_backends.opencl import OpenClBackend
from ferryvm_backends.opencl.device import Device, find


@pytest.fixture(scope="session")
def device() -> Device:
    """The device that is tested."""
    try:
        return find()
    except BackendError as error:
        pytest.skip(f"there is no device: {error}")


@pytest.fixture(params=["wrapped", "copied"])
def backend(request: pytest.FixtureRequest, device: Device) -> OpenClBackend:
    """The backend, which wraps memory or copies it."""
    if request.param == "wrapped" and not device.shares_memory:
        pytest.skip(f"{device} has memory of its own")
    return OpenClBackend(wraps=request.param == "wrapped")
