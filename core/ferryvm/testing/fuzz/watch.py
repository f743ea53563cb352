# SPDX-License-Identifier: Apache-2.0
"""Backends that note when they are entered, so that one that ends the process can be named."""

from __future__ import annotations

from collections.abc import Callable

from ferryvm.backend import Artifact, Backend, Forcing, Interpreter
from ferryvm.machine.control import Status
from ferryvm.machine.state import Machine
from ferryvm.registry import Registry
from ferryvm.verify import Verified


class WatchedRegistry(Registry):
    """A registry whose backends are watched."""

    def __init__(self, names: tuple[str, ...], note: Callable[[int], None]) -> None:
        """`note` is called with a backend's place in `names` each time that it gets control."""
        super().__init__()
        self._names, self._note = names, note
        self._watched: dict[str, _WatchedBackend] = {}

    def get(self, name: str) -> Backend:
        """As a registry's, watched, and probed once: every program asks for it."""
        if name not in self._watched:
            backend = super().get(name)
            if name not in self._names:
                return backend
            if not isinstance(backend, Interpreter):
                return backend  # its code is entered through an interpreter, which is watched
            self._watched[name] = _WatchedBackend(self, backend)
        return self._watched[name]

    def enter(self, name: str) -> None:
        """Note that a backend gets control."""
        self._note(self._names.index(name))


class _WatchedBackend(Interpreter):
    def __init__(self, registry: WatchedRegistry, inner: Interpreter) -> None:
        self._registry, self._inner = registry, inner
        self.name, self.version, self.protocol = inner.name, inner.version, inner.protocol
        self.capabilities = inner.capabilities

    def accepts(self, program: Verified) -> str | None:
        self._registry.enter(self.name)
        return self._inner.accepts(program)

    def prepare(self, program: Verified) -> Artifact:
        return _WatchedArtifact(self._registry, self.name, self._inner.prepare(program))

    def prepare_forced(self, program: Verified, forcing: frozenset[Forcing]) -> Artifact:
        inner = self._inner.prepare_forced(program, forcing)
        return _WatchedArtifact(self._registry, self.name, inner)


class _WatchedArtifact(Artifact):
    def __init__(self, registry: WatchedRegistry, name: str, inner: Artifact) -> None:
        self._registry, self._name, self._inner = registry, name, inner

    def enter(self, machine: Machine, counting: bool) -> Status:
        self._registry.enter(self._name)
        return self._inner.enter(machine, counting)

    def count(self, pc: int, times: int, counting: bool) -> None:
        self._inner.count(pc, times, counting)

    def counted(self, pc: int, counting: bool) -> int:
        return self._inner.counted(pc, counting)

    def install(self, pc: int, address: int, counting: bool) -> None:
        self._inner.install(pc, address, counting)

    def remove(self, pc: int, counting: bool) -> None:
        self._inner.remove(pc, counting)
