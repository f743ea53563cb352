# SPDX-License-Identifier: Apache-2.0
"""The execution of an instance, as its calls see it: a protocol, because the module of
executions imports the one of calls."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ferryvm.backend import DirectEntry
from ferryvm.engine.possession import Possession
from ferryvm.machine.control import Status
from ferryvm.machine.python_call import CallForm
from ferryvm.machine.state import Machine
from ferryvm.verify import Verified

if TYPE_CHECKING:
    from ferryvm.engine.launching import Launches


class Runner(Protocol):
    """The parts of `ferryvm.engine.execution.Execution` that calls use."""

    machine: Machine
    busy: Possession
    owner: int

    @property
    def collected(self) -> str:
        """The output of the program so far."""

    @property
    def entries(self) -> int:
        """Number of times that it has started to run."""

    def check_usable(self) -> None:
        """Raise BackendError if the machine is in no state of its program."""

    def go(self, fuel: int | None = None, backend: str | None = None) -> Status:
        """Continue until the program stops."""

    def go_on(self, direct: DirectEntry | None, left: int | None) -> Status:
        """Continue after `direct` left with a status."""

    @property
    def last_direct(self) -> DirectEntry | None:
        """The direct entry by which the program ended last, which serves on."""

    @property
    def launches(self) -> Launches | None:
        """The launches of the program, as its code leaves for them; None if it has none."""

    def go_nested(self) -> Status:
        """Continue inside a host call."""

    def direct(self) -> DirectEntry | None:
        """The direct entry of the engine's backend."""

    def python_caller(self, form: CallForm) -> tuple[int | None, str]:
        """The address of a caller for a form of calls; None with the reason that there is none."""

    def extend(self, verified: Verified) -> None:
        """Go on with a program that begins with this one."""

    def save_to(self, path: Path) -> None:
        """Write the state to a file."""

    def make_usable(self, end: int) -> bool:
        """Make bytes of the heap usable."""
