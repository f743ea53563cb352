# SPDX-License-Identifier: Apache-2.0
"""The in-tree backends: every folder here without a leading underscore is one.

A backend's package exports `BACKEND`, a `ferryvm.backend.Backend`. It is imported when it is first
asked for, so that what it needs is not loaded for the sake of another.
"""

from __future__ import annotations

import importlib
import pkgutil

from ferryvm.backend import Backend
from ferryvm.hooks import BackendEntry, hookimpl


def _load(name: str) -> Backend:
    backend: Backend = importlib.import_module(f"{__name__}.{name}").BACKEND
    return backend


@hookimpl
def ferryvm_backends() -> list[BackendEntry]:
    """One entry a folder."""
    return [
        BackendEntry(module.name, lambda name=module.name: _load(name))  # type: ignore[misc]
        for module in pkgutil.iter_modules(__path__)
        if module.ispkg and not module.name.startswith("_")
    ]
