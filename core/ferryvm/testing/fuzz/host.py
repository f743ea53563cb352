# SPDX-License-Identifier: Apache-2.0
"""Host functions that the random programs of a campaign call."""

from __future__ import annotations

from collections.abc import Iterable

from ferryvm.machine.host import Determinism, HostError
from ferryvm.portable.imported import host
from ferryvm.program import HostImport
from ferryvm.registry import Registry


def load_hosts(registry: Registry, texts: Iterable[str]) -> tuple[HostImport, ...]:
    """The imports of host functions named as `--hosts` names them, which the registry offers then.

    Raises HostError if one cannot be loaded, or may have effects: random programs are run many
    times, so their results must be repeatable.
    """
    found = []
    for name, function in host.add(registry.hosts, texts).items():
        source = registry.hosts.source(name)
        if function.determinism is Determinism.PLAIN:
            raise HostError(
                f"{source}: random programs call host functions many times; declare {name} "
                "pure=True or replayable=True if it has no effects"
            )
        found.append(HostImport(name, function.signature))
    return tuple(found)
