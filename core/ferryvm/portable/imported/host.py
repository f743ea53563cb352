# SPDX-License-Identifier: Apache-2.0
"""Host functions named on a command line: a folder with a kernel, or as
`ferryvm.engine.host_module` says."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ferryvm.engine import host_module
from ferryvm.host_registry import HostRegistry
from ferryvm.machine.host import HostFunction


def add(registry: HostRegistry, texts: Iterable[str]) -> dict[str, HostFunction]:
    """Offer the host functions that texts name; these functions by name. Raises HostError,
    ImportRefusedError."""
    added: dict[str, HostFunction] = {}
    for text in texts:
        if not Path(text).is_dir():
            added |= host_module.add(registry, [text])
            continue
        from ferryvm.portable.imported.kernel import import_kernel  # most name modules

        function = import_kernel(text).host
        registry.add({function.name: function}, f"--hosts {text}")
        added[function.name] = function
    return added
