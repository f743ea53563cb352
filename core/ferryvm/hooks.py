# SPDX-License-Identifier: Apache-2.0
"""The hooks that plugins implement.

A plugin is a module (or object) named by an entry point of the group `ferryvm`; in-tree backends
come through the same door. Hooks run when names are resolved, never while a program runs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pluggy

from ferryvm.backend import Backend

hookspec = pluggy.HookspecMarker("ferryvm")
hookimpl = pluggy.HookimplMarker("ferryvm")


@dataclasses.dataclass(frozen=True)
class BackendEntry:
    """A backend by name, not loaded yet: what `ferry backends` can list without importing it."""

    name: str
    load: Callable[[], Backend]


@hookspec
def ferryvm_backends() -> list[BackendEntry]:
    """The backends that this plugin brings.

    `load` is called when the backend is first asked for; importing the libraries it needs belongs
    there, so that a library that is missing concerns only those who ask for this backend.
    """
    raise NotImplementedError  # a specification: plugins implement it
