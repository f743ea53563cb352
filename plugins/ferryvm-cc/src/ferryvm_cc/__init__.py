# SPDX-License-Identifier: Apache-2.0
"""The cc backend of ferryvm: regions as C, compiled by the system's C compiler, loaded by dlopen.

    region ─ lift ─> IR ─ print ─> C ─ $CC ─> shared object ─ dlopen ─> address
                                   └──── key ────> cache ────┘

This module is the plugin: it names the backend and loads the rest at the first use.
"""

from __future__ import annotations

from ferryvm.backend import Backend
from ferryvm.hooks import BackendEntry, hookimpl

__version__ = "0.1.0"


def load() -> Backend:
    """The backend."""
    from ferryvm_cc.backend import CcBackend

    return CcBackend()


@hookimpl
def ferryvm_backends() -> list[BackendEntry]:
    """The one backend that this plugin brings."""
    return [BackendEntry("cc", load)]
