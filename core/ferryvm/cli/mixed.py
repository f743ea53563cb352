# SPDX-License-Identifier: Apache-2.0
"""The option `--policy` of commands that compare backends: mixed execution as one of them,
`mixed`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from ferryvm.cli.path import FILE
from ferryvm.cli.show import chosen_backends

if TYPE_CHECKING:
    from ferryvm.testing.mixed import MixedRegistry

mixed_option = click.option(
    "--policy",
    type=FILE,
    metavar="FILE",
    help="Policy of the backend `mixed`, which is under test then.",
)


def mixed_registry(policy: Path | None) -> MixedRegistry:
    """All backends, with `mixed` if there is a policy for it. Raises PolicyError."""
    from ferryvm import policy as policies
    from ferryvm.registry import Registry
    from ferryvm.testing.mixed import MixedRegistry

    return MixedRegistry(None if policy is None else policies.load(policy, Registry().names))


def tested_backends(registry: MixedRegistry, text: str) -> tuple[str, ...]:
    """The backends that `--backends` names; without the option and with a policy, only `mixed`."""
    from ferryvm.engine.runnable import MIXED

    if registry.policy is None:
        return chosen_backends(registry, text)
    source = click.get_current_context().get_parameter_source("backends")
    chosen = () if source is ParameterSource.DEFAULT else chosen_backends(registry, text)
    return (*chosen, MIXED)
