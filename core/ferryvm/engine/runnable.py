# SPDX-License-Identifier: Apache-2.0
"""Interpreters for whole programs, by the name of a backend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ferryvm.backend import Backend, BackendError, Compiler, Interpreter
from ferryvm.registry import Registry

if TYPE_CHECKING:
    from ferryvm.engine.journal import Listener
    from ferryvm.engine.mixed import Mixed
    from ferryvm.policy import Policy


def runnable(registry: Registry, name: str, device: str = "") -> Interpreter:
    """The backend of that name, ready to run whole programs.

    A compiler gets an interpreter beside it, for code that it leaves or that cannot be entered; it
    compiles the whole program at once, and a refusal is an error. `device`: its target. Raises as
    `Registry.get` and `check_device`.
    """
    backend = registry.get(name)
    if device:
        check_device(backend, device)
    if isinstance(backend, Interpreter):
        return backend
    if not isinstance(backend, Compiler):
        raise BackendError(f"backend {name!r} is neither an interpreter nor a compiler")
    from ferryvm.policy import Policy

    made = mixed(registry, Policy.for_compiler(name, device=device), name)
    made.version = backend.version
    return made


def check_device(backend: Backend, device: str) -> None:
    """Raise FerryError with all faults if a backend cannot compile for a device."""
    if not isinstance(backend, Compiler) or not backend.capabilities.devices:
        raise BackendError(f"backend {backend.name!r} has no devices, and so no {device!r}")
    backend.check_device(device)


MIXED = "mixed"
"""The name of a policy's backends as one."""


def mixed(
    registry: Registry,
    policy: Policy,
    name: str = MIXED,
    observe: bool = False,
    listeners: tuple[Listener, ...] = (),
) -> Mixed:
    """The interpreter and the compilers of a policy. Raises as `Registry.get`."""
    from ferryvm.engine.hook import extra_facts, placement_listener
    from ferryvm.engine.mixed import Mixed

    interpreter = registry.get(policy.interpreter)
    if not isinstance(interpreter, Interpreter):
        raise BackendError(f"the policy's interpreter {interpreter.name!r} is none")
    listener = placement_listener(registry.plugins)
    if listener is not None:
        listeners = (*listeners, listener)
    extra = extra_facts(registry.plugins)
    strict = registry.strict
    return Mixed(name, policy, interpreter, registry.get, observe, listeners, extra, strict)
