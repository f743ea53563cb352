# SPDX-License-Identifier: Apache-2.0
"""Policies, which select the backend of each region, as rules in TOML; docs/policies.md is for
users.

    file ── check (keys, conditions; every fault at once) ──┐
                                                            ├─> Policy ── choose(facts) ──> Decision
    standard, the default ──────────────────────────────────┘

A run with the default policy needs no checker, and one without hot code makes no decision: each
part is imported at its first use.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ferryvm.policy.fault import PolicyError
from ferryvm.policy.machine import MachineFacts, here
from ferryvm.policy.model import (
    Action,
    Choice,
    LaunchPlacing,
    Options,
    Policy,
    Profile,
    Rule,
    Shadow,
    build_ours,
)
from ferryvm.policy.standard import DOCUMENT

if TYPE_CHECKING:
    from ferryvm.policy.fact import Value
    from ferryvm.policy.match import Decision
    from ferryvm.region.fact import Facts

__all__ = [
    "DEFAULT",
    "Action",
    "Choice",
    "LaunchPlacing",
    "MachineFacts",
    "Options",
    "Policy",
    "PolicyError",
    "Profile",
    "Rule",
    "Shadow",
    "choose",
    "default",
    "here",
    "load",
]

DEFAULT = Path(__file__).with_name("default.toml")
"""The file of the default policy, with the reasons of its numbers; `standard` has its content."""


@functools.cache
def default() -> Policy:
    """The policy that applies if none is named."""
    return build_ours(DOCUMENT)


def load(
    path: str | Path,
    backends: Collection[str],
    interpreters: Collection[str] = (),
    compilers: Collection[str] = (),
) -> Policy:
    """The policy in a file; `backends` are the names that it may use.

    `interpreters` and `compilers`: those of them whose kind is known; a name in a position for the
    other kind is then a fault, too.

    Legal keys without effect are logged as warnings. Raises PolicyError with every fault,
    FerryError if the file cannot be read.
    """
    from ferryvm.policy import check

    return check.load(Path(path), check.KnownBackends(backends, interpreters, compilers))


def choose(
    policy: Policy, facts: Facts, machine: MachineFacts, extra: Mapping[str, Value] | None = None
) -> Decision:
    """The first rule that matches a region with these facts, and why.

    `extra`: facts from plugins, by full name (`plugin.NAME.FACT`).
    """
    from ferryvm.policy import match

    return match.choose(policy, facts, machine, extra or {})
