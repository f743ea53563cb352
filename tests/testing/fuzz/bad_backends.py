# SPDX-License-Identifier: Apache-2.0
"""A plugin of backends that go wrong on some programs, for campaigns to find."""

from __future__ import annotations

import functools
import os
import shutil
import signal
import time
import zlib
from collections.abc import Callable
from pathlib import Path

from ferryvm.backend import Artifact, Interpreter
from ferryvm.hooks import BackendEntry, hookimpl
from ferryvm.machine.control import Status
from ferryvm.machine.state import Machine
from ferryvm.registry import Registry
from ferryvm.verify import Verified

Harm = Callable[[Machine], object]

ONE_IN = 4
"""Programs, of which one is hit."""


def is_hit(program: Verified) -> bool:
    """Whether a backend goes wrong on a program: a few do, here and there."""
    return zlib.crc32(program.program.code.tobytes()) % ONE_IN == 0


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


class BadArtifact(Artifact):
    """Another backend's artifact that does harm when it is left."""

    def __init__(self, inner: Artifact, harm: Harm) -> None:
        self.inner, self.harm = inner, harm

    def enter(self, machine: Machine, counting: bool) -> Status:
        status = self.inner.enter(machine, counting)
        self.harm(machine)
        return Status(machine.control.status) if self.harm in (_spin, _linger) else status


class BadBackend(Interpreter):
    """The switch interpreter, which does harm on the programs that are hit."""

    version = "1"
    has_built = False

    def __init__(self, name: str) -> None:
        self.name = name
        self.inner = Registry().get("switch")

    def accepts(self, program: Verified) -> str | None:
        return "it is none I like" if self.name == "refusing" else None

    def prepare(self, program: Verified) -> Artifact:
        if self.name == "unprepared" and is_hit(program):
            raise ValueError("too many registers")
        if self.name == "building" and not self.has_built:
            time.sleep(1.5)
            self.has_built = True
        inner = self.inner.prepare(program)
        if self.name == "noisy":
            print("noise")
        if self.name in HARMS and is_hit(program):
            return BadArtifact(inner, HARMS[self.name])
        return inner


def install(folder: Path) -> str:
    """Install this file and its compilers in a folder; the PYTHONPATH that makes them seen."""
    for name in ("bad_backends.py", "bad_compilers.py"):
        shutil.copy(Path(__file__).with_name(name), folder / name)
    information = folder / "bad_backends-1.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: bad-backends\nVersion: 1\n")
    (information / "entry_points.txt").write_text(
        "[ferryvm]\nbad = bad_backends\nbad_compilers = bad_compilers\n"
    )
    earlier = os.environ.get("PYTHONPATH")
    return f"{folder}{os.pathsep}{earlier}" if earlier else str(folder)


@hookimpl
def ferryvm_backends() -> list[BackendEntry]:
    names = (*HARMS, "building", "noisy", "refusing", "unprepared")
    return [BackendEntry(name, functools.partial(BadBackend, name)) for name in names]
