# SPDX-License-Identifier: Apache-2.0
"""A plugin of interpreters that go wrong on some programs, for campaigns to find."""

from __future__ import annotations

import functools
import os
import signal
import time
import zlib
from collections.abc import Callable

from ferryvm.backend import Artifact
from ferryvm.hooks import BackendEntry, hookimpl
from ferryvm.machine.control import Status
from ferryvm.machine.state import Machine
from ferryvm.verify import Verified

from .interpreter import Enter, EnteredArtifact, Wrong

Harm = Callable[[Machine], object]

ONE_IN = 4
"""Programs, of which one is hit."""


def is_hit(program: Verified, turn: int = 0) -> bool:
    """True if a backend goes wrong on a program: on a few, here and there, and others each turn."""
    return zlib.crc32(program.program.code.tobytes()) % ONE_IN == turn


def _die(_: Machine) -> None:
    signal.raise_signal(signal.SIGSEGV)  # in this thread, so that it gets no further


def _exit(_: Machine) -> None:
    os._exit(3)


def _hang(_: Machine) -> None:
    time.sleep(1000)


def _spin(machine: Machine) -> None:
    while not machine.control.interrupt:
        time.sleep(0.01)
    machine.control.status = Status.INTERRUPTED


def _linger(machine: Machine) -> None:
    """Lies at the end, and does not come back from the middle."""
    if machine.control.status == Status.FUEL:
        _spin(machine)
    _lie(machine)


def _lie(machine: Machine) -> None:
    if machine.control.status == Status.HALT:
        machine.memory.stack[2] ^= 1  # the first local of main


def _raise(_: Machine) -> None:
    raise ZeroDivisionError("of all\nthings")


def _shout(_: Machine) -> None:
    raise ZeroDivisionError("!" * 200_000)  # more than a pipe holds


HARMS: dict[str, Harm] = {
    "dying": _die,
    "exiting": _exit,
    "hanging": _hang,
    "lingering": _linger,
    "lying": _lie,
    "raising": _raise,
    "shouting": _shout,
    "spinning": _spin,
}


def _harmed(harm: Harm) -> Enter:
    def enter(real: Artifact, machine: Machine, counting: bool) -> Status:
        status = real.enter(machine, counting)
        harm(machine)
        return Status(machine.control.status) if harm in (_spin, _linger) else status

    return enter


class BadBackend(Wrong):
    """The switch interpreter, which does harm on the programs that are hit."""

    has_built = False

    def __init__(self, name: str) -> None:
        super().__init__(name=name, of="switch")

    def accepts(self, program: Verified) -> str | None:
        return "it is none I like" if self.name == "refusing" else None

    def prepare(self, program: Verified) -> Artifact:
        if self.name == "unprepared" and is_hit(program):
            raise ValueError("too many registers")
        if self.name == "building" and not self.has_built:
            time.sleep(1.5)
            self.has_built = True
        inner = self.real.prepare(program)
        if self.name == "noisy":
            print("noise")
        if self.name in HARMS and is_hit(program):
            return EnteredArtifact(inner, _harmed(HARMS[self.name]))
        return inner


@hookimpl
def ferryvm_backends() -> list[BackendEntry]:
    names = (*HARMS, "building", "noisy", "refusing", "unprepared")
    return [BackendEntry(name, functools.partial(BadBackend, name)) for name in names]
