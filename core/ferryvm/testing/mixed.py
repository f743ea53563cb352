# SPDX-License-Identifier: Apache-2.0
"""Mixed execution under a policy as one of the backends that are compared, under the name `mixed`.

A compiler's own name denotes a policy, too (the whole program, at once). This module compares other
policies, for example with speculation, several compilers or a shadow.
"""

from __future__ import annotations

from ferryvm.backend import Backend
from ferryvm.engine.runnable import MIXED, mixed
from ferryvm.errors import FerryError
from ferryvm.policy import Policy
from ferryvm.registry import Registry


class MixedRegistry(Registry):
    """A registry with a policy, whose compilers are under test."""

    strict = True

    def __init__(self, policy: Policy | None, discover: bool = True) -> None:
        """`policy`: None, and it is like any other registry; `discover`: as `Registry`."""
        super().__init__(discover)
        self.policy = policy
        self._mixed: Backend | None = None

    def get(self, name: str) -> Backend:
        """As a registry's; `mixed` is the policy with the others, which must all be usable: mixed
        execution would continue without an unusable one, and nothing would be compared."""
        if name != MIXED or self.policy is None:
            return super().get(name)
        if self._mixed is None:
            for one in named(self.policy):
                super().get(one)
            self._mixed = mixed(self, self.policy)
        return self._mixed


def policy_of(registry: Registry) -> Policy | None:
    """The policy of `mixed` in a registry, if it has one."""
    return registry.policy if isinstance(registry, MixedRegistry) else None


def named(policy: Policy) -> tuple[str, ...]:
    """The backends that a policy names, each once."""
    names = [policy.interpreter]
    names += [choice.backend for rule in policy.rules for choice in rule.backends]
    if policy.shadow is not None:
        names.append(policy.shadow.against)
    return tuple(dict.fromkeys(names))


def read(text: str, name: str, backends: tuple[str, ...]) -> Policy:
    """The policy in a text, called `name` in messages; `backends`: the names that it may use.

    Raises FerryError with its first fault.
    """
    from ferryvm.policy.check import KnownBackends, read_text  # hardly any file has a policy

    reading = read_text(text, name, KnownBackends(backends))
    if reading.policy is None:
        raise FerryError(str(next(it for it in reading.faults if not it.fault.is_warning)))
    return reading.policy
