# SPDX-License-Identifier: Apache-2.0
"""The opencl backend in each way to give a device a machine's memory, and on a GPU where there is
one.

`pytest -m gpu` runs what is for a GPU alone.
"""

from __future__ import annotations

import pytest

from ferryvm.backend import BackendError
from ferryvm_backends.opencl import OpenClBackend
from ferryvm_backends.opencl.device import Device, find


def _found(name: str) -> Device:
    try:
        return find(name)
    except BackendError as error:
        pytest.skip(f"there is no such device: {error}")


@pytest.fixture(scope="session")
def device() -> Device:
    """The host's processor."""
    return _found("cpu")


@pytest.fixture(params=["wrapped", "copied", pytest.param("gpu", marks=pytest.mark.gpu)])
def backend(request: pytest.FixtureRequest) -> OpenClBackend:
    """The backend, which wraps memory or copies it, or is for a GPU."""
    where = "gpu" if request.param == "gpu" else "cpu"
    _found(where)
    return OpenClBackend(wraps=request.param != "copied", device=where)
