# SPDX-License-Identifier: Apache-2.0
"""The engines of Python functions, and the policies of those that are given none.

Items of maps are ordinary Python: branches for errors and rare cases, numbers that are the same for
all. So the default policy has guesses in launches: what their first items do not do is left out of
the code (docs/mixed-execution.md).
"""

from __future__ import annotations

import functools

from ferryvm import record
from ferryvm.backend import Compiler
from ferryvm.engine import Engine
from ferryvm.policy import Policy, Rule, default
from ferryvm.policy.model import build_ours
from ferryvm.registry import Registry


@functools.lru_cache(maxsize=64)
def function_engine(backend: str | None, policy: Policy | None) -> Engine:
    """The engine of all functions with the same options. Raises FerryError."""
    if policy is not None or backend is None:
        return Engine(backend, policy=policy or python_policy())
    found = Registry().get(backend)
    if isinstance(found, Compiler) and found.capabilities.devices:
        return Engine(policy=device_policy(backend))
    return Engine(backend)


def python_policy() -> Policy:
    """The policy of Python functions that are given none."""
    found = default()
    return record.replace(found, rules=tuple(map(_guessing, found.rules)))


def _guessing(rule: Rule) -> Rule:
    if rule.name != "launches":
        return rule
    first, *others = rule.backends
    options = record.replace(first.options, speculate=True)
    return record.replace(rule, backends=(record.replace(first, options=options), *others))


_AROUND_LAUNCHES = {
    "name": "code around launches",
    "when": {"kind": ["scope", "loop", "nest", "function", "program"], "launches": ">= 1"},
    "action": "interpret",
}


def device_policy(backend: str) -> Policy:
    """The policy of functions on a backend with devices: a launch's items run on a device, and the
    code that launches them does not, since it would leave the device at once, for each map."""
    found = Policy.for_compiler(backend)
    (rule,) = build_ours({"rule": [_AROUND_LAUNCHES]}).rules
    return record.replace(found, rules=(rule, *found.rules))
