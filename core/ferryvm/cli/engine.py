# SPDX-License-Identifier: Apache-2.0
"""The engine for the options `--backend`, `--policy` and `--hosts` of a command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ferryvm.cli.device import check_device_option
from ferryvm.engine import Engine
from ferryvm.machine.host import Output
from ferryvm.machine.memory import Limits
from ferryvm.registry import Registry

if TYPE_CHECKING:
    from ferryvm.policy import Policy


def make_engine(
    backend: str | None,
    policy: Path | None,
    device: str | None = None,
    *,
    limits: Limits | None = None,
    output: Output | None = None,
    hosts: tuple[str, ...] = (),
    arguments: tuple[str, ...] = (),
    default: Policy | None = None,
) -> Engine:
    """The engine for a backend or a policy, of which at most one may be given.

    `hosts`: as `--hosts` names them; `arguments`: the program's; `default`: used instead of the
    engine's own default if neither is given. Raises UsageError for both, or for a device without a
    backend, PolicyError, HostError, and as `Engine`.
    """
    check_device_option(backend, device)
    if backend is not None and policy is not None:
        import click  # loaded only to refuse: see `direct`

        raise click.UsageError("--backend and --policy: one of them is allowed")
    registry = Registry()
    add_hosts(registry, hosts)
    chosen = None
    if policy is not None:
        from ferryvm import policy as policies

        chosen = policies.load(policy, registry.names)
    elif backend is None:
        chosen = default
    return Engine(
        backend,
        policy=chosen,
        device=device or "",
        limits=limits,
        output=output,
        arguments=arguments,
        registry=registry,
    )


def add_hosts(registry: Registry, texts: tuple[str, ...]) -> None:
    """Offer the functions that `--hosts` names to the engines of a registry. Raises HostError."""
    if not texts:
        return
    from ferryvm.portable.imported import host  # few runs have host functions of their own

    host.add(registry.hosts, texts)
