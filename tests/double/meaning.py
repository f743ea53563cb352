# SPDX-License-Identifier: Apache-2.0
"""Interpreters with wrong meanings: the reference backend, in which one thing is done otherwise.

A module that is also a plugin, so that the command line can be tried on them. In interpreter.py the
reference is right, and harm is done around an entry.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from ferryvm.backend import Artifact, Interpreter
from ferryvm.float_environment import callers
from ferryvm.hooks import BackendEntry, hookimpl
from ferryvm.isa import BY_MNEMONIC
from ferryvm.isa.frame import return_counts
from ferryvm.isa.type import I64
from ferryvm.machine.control import Status
from ferryvm.machine.state import Machine
from ferryvm.registry import Registry
from ferryvm.verify import Verified
from ferryvm_backends.reference import ReferenceArtifact

from .registry import registry

Meanings = dict[str, Callable[..., Any]]
"""What instructions do, by mnemonic."""


def with_meanings(program: Verified, meanings: Meanings) -> ReferenceArtifact:
    """The reference's artifact, in which some instructions do something else."""
    artifact = ReferenceArtifact(program)
    for pc, row in enumerate(artifact.rows):
        if row.mnemonic in meanings:
            artifact.rows[pc] = dataclasses.replace(row, meaning=meanings[row.mnemonic])
    return artifact


@dataclasses.dataclass
class Wrong(Interpreter):
    """The reference backend with meanings replaced, or with harm done around an entry."""

    name: str
    meanings: Meanings = dataclasses.field(default_factory=dict)
    counting: bool | None = None
    """Do it only in runs that count, or only in those that do not."""
    entered: Callable[[Machine], object] = lambda machine: None
    left: Callable[[Machine, int], object] = lambda machine, completed: None
    """Called with the instructions that the entry completed, where it counted."""
    version = "1"

    def prepare(self, program: Verified) -> Artifact:
        return _WrongArtifact(
            self, with_meanings(program, self.meanings), ReferenceArtifact(program)
        )


class _WrongArtifact(Artifact):
    def __init__(self, backend: Wrong, wrong: Artifact, right: Artifact) -> None:
        self.backend, self.wrong, self.right = backend, wrong, right

    def enter(self, machine: Machine, counting: bool) -> Status:
        if self.backend.counting not in (None, counting):
            return self.right.enter(machine, counting)
        fuel = machine.control.fuel
        self.backend.entered(machine)
        status = self.wrong.enter(machine, counting)
        self.backend.left(machine, fuel - machine.control.fuel)
        return status


def _shift(m: Any, a: int, b: int) -> int:
    return m.shl(I64, a, b & 31)  # type: ignore[no-any-return]  # should be 63


def _subtract(m: Any, a: int, b: int) -> int:
    return m.sub(I64, b, a)  # type: ignore[no-any-return]


def _return(m: Any, counts: int) -> None:
    BY_MNEMONIC["return"].meaning(m, counts)
    if return_counts(counts)[1]:
        m.stack[m.sp - 1] ^= 1


def _raise(m: Any, a: int, b: int) -> int:
    raise IndexError("list index\nout of range")


def _spin(m: Any, a: int, b: int) -> int:
    while not m.control.interrupt:
        pass
    return a


def _add_in_callers(m: Any, a: int, b: int) -> int:
    with callers():
        return BY_MNEMONIC["f64.add"].meaning(m, a, b)  # type: ignore[no-any-return]


def _stale_sp(machine: Machine, completed: int) -> None:
    if machine.control.status == Status.FUEL:
        machine.control.sp -= 1


def _loses_store_after_three(machine: Machine, completed: int) -> None:
    if machine.control.status == Status.FUEL and completed >= 3 and len(machine.memory.statics):
        machine.memory.statics[0] = 99


def _forgets_static(machine: Machine) -> None:
    """Enters as if static 0 had its value from the start."""
    if machine.control.pc != machine.program.functions[0].entry and len(machine.memory.statics):
        machine.memory.statics[0] = 0


WRONG = {
    backend.name: backend
    for backend in (
        Wrong("wrong-shift", {"i64.shl": _shift}),
        Wrong("wrong-operands", {"i64.sub": _subtract}),
        Wrong("wrong-uncounted", {"i64.sub": _subtract}, counting=False),
        Wrong("wrong-return", {"return": _return}),
        Wrong("wrong-sp", left=_stale_sp),
        Wrong("wrong-leaving", left=_loses_store_after_three),
        Wrong("wrong-entering", counting=False, entered=_forgets_static),
        Wrong("wrong-raise", {"i64.mul": _raise}),
        Wrong("wrong-environment", {"f64.add": _add_in_callers}),
        Wrong("wrong-spin", {"i64.mul": _spin}, counting=False),
    )
}


class _CountsEntries(_WrongArtifact):
    """Once a run has come to an end, counts in static 0 how often it is entered midway."""

    has_ended = False

    def enter(self, machine: Machine, counting: bool) -> Status:
        is_start = machine.control.pc == machine.program.functions[0].entry
        if self.has_ended and not is_start and len(machine.memory.statics):
            machine.memory.statics[0] += 1
        status = super().enter(machine, counting)
        self.has_ended = self.has_ended or status is Status.HALT
        return status


class _Once(_WrongArtifact):
    """Goes wrong the first time that it is entered, and never again."""

    has_run = False

    def enter(self, machine: Machine, counting: bool) -> Status:
        artifact = self.right if self.has_run else self.wrong
        self.has_run = True
        return artifact.enter(machine, counting)


@dataclasses.dataclass
class Keeping(Wrong):
    """A wrong backend whose artifact keeps something from run to run."""

    artifact: type[_WrongArtifact] = _WrongArtifact

    def prepare(self, program: Verified) -> Artifact:
        inner = super().prepare(program)
        assert isinstance(inner, _WrongArtifact)
        return self.artifact(self, inner.wrong, inner.right)


class Unprepared(Wrong):
    """Fails before the program begins."""

    def accepts(self, program: Verified) -> str | None:
        if self.name == "wrong-accepts":
            raise KeyError("no such\nthing")
        return None

    def prepare(self, program: Verified) -> Artifact:
        raise ValueError("too many registers")


WRONG |= {
    backend.name: backend
    for backend in (
        Keeping("wrong-keeping", artifact=_CountsEntries),
        Keeping("wrong-once", {"i64.sub": _subtract}, artifact=_Once),
        Unprepared("wrong-prepare"),
        Unprepared("wrong-accepts"),
    )
}


@hookimpl
def ferryvm_backends() -> list[BackendEntry]:
    """The hook of the plugin that this module is."""
    return [BackendEntry(backend.name, lambda it=backend: it) for backend in WRONG.values()]  # type: ignore[misc]


def with_wrong() -> Registry:
    """The installed backends and the wrong ones."""
    return registry(*WRONG.values(), name="wrong")
