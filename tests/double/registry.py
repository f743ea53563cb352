# SPDX-License-Identifier: Apache-2.0
"""Registries with a plugin that was registered by hand, not installed (distribution.py does
that)."""

from __future__ import annotations

import types
from collections.abc import Callable

from ferryvm.backend import Backend
from ferryvm.hooks import BackendEntry, hookimpl
from ferryvm.registry import Registry


def registry(
    *backends: object, name: str = "test", discover: bool = True, **hooks: Callable[..., object]
) -> Registry:
    """What is installed (nothing unless `discover`), and a plugin of that name beside it."""
    made = Registry(discover=discover)
    made.register(plugin(*backends, **hooks), name)
    return made


def plugin(*backends: object, **hooks: Callable[..., object]) -> types.SimpleNamespace:
    """A plugin with these backends, or classes or entries of such, and these hooks. What is none
    of the three is an entry as it is, for tests of what a registry refuses."""
    if backends:
        entries = [_entry(each) for each in backends]
        hooks["ferryvm_backends"] = lambda: list(entries)
    return types.SimpleNamespace(**{hook: hookimpl(action) for hook, action in hooks.items()})


def _entry(backend: object) -> object:
    if isinstance(backend, type) and issubclass(backend, Backend):
        return BackendEntry(backend.name, backend)
    if isinstance(backend, Backend):
        return BackendEntry(backend.name, lambda: backend)
    return backend
