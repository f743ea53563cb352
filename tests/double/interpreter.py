# SPDX-License-Identifier: Apache-2.0
"""Interpreters that are right but for what a test does where they are entered.

Wrong(enter)        a real backend, of which `enter` gets each entry: it may call it, or not
after(harm)         an `enter` that does harm to the machine when the real one has left
where(status, harm)     the same, where it left with that status
"""

from __future__ import annotations

from collections.abc import Callable

from ferryvm.backend import Artifact, Capabilities, Interpreter
from ferryvm.machine.control import Status
from ferryvm.machine.state import Machine
from ferryvm.registry import Registry
from ferryvm.verify import Verified

Enter = Callable[[Artifact, Machine, bool], Status]
"""An entry: the real artifact, the machine, whether instructions are counted."""


def honest(real: Artifact, machine: Machine, counting: bool) -> Status:
    """Nothing else than the real one does."""
    return real.enter(machine, counting)


class Wrong(Interpreter):
    """A real backend, the reference unless told otherwise, entered through a function."""

    name = "wrong"
    version = "1"

    def __init__(
        self,
        enter: Enter = honest,
        capabilities: Capabilities | None = None,
        *,
        name: str | None = None,
        of: str = "reference",
    ) -> None:
        self.enter = enter
        real = Registry().get(of)
        assert isinstance(real, Interpreter)
        self.real = real
        if capabilities is not None:
            self.capabilities = capabilities
        if name is not None:
            self.name = name

    def prepare(self, program: Verified) -> Artifact:
        return EnteredArtifact(self.real.prepare(program), self.enter)


class EnteredArtifact(Artifact):
    """An artifact that is entered through a function."""

    def __init__(self, real: Artifact, enter: Enter) -> None:
        self.real, self._enter = real, enter

    def enter(self, machine: Machine, counting: bool) -> Status:
        return self._enter(self.real, machine, counting)


def after(harm: Callable[[Machine, bool, Status], object]) -> Enter:
    """Harm is done each time that the real one has left."""

    def enter(real: Artifact, machine: Machine, counting: bool) -> Status:
        status = real.enter(machine, counting)
        harm(machine, counting, status)
        return status

    return enter


def where(wanted: Status, harm: Callable[[Machine], object]) -> Enter:
    """Harm is done where the real one has left with that status."""

    def act(machine: Machine, _counting: bool, status: Status) -> None:
        if status is wanted:
            harm(machine)

    return after(act)


class Minimal(Interpreter):
    """What can be listed, and runs nothing."""

    name, version = "minimal", "1"

    def prepare(self, program: Verified) -> Artifact:
        raise NotImplementedError
