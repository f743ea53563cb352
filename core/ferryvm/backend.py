# SPDX-License-Identifier: Apache-2.0
"""The contract of a backend: what an engine asks of it and may rely on.

    probe() ── usable? ──> accepts(program) ── willing? ──> prepare(program) ──> Artifact
                                                                                   │
    Machine (control block, memory) at any reachable pc ──── enter(machine) ───────┘──> Status

One rule makes everything else possible: whenever `enter` returns, control block and memory are
exactly what the reference backend has at that point.
"""

from __future__ import annotations

import abc
import dataclasses
import enum

from ferryvm.errors import FerryError
from ferryvm.machine.control import Status
from ferryvm.machine.state import Machine
from ferryvm.verify import Verified

PROTOCOL_VERSION = 1
"""Version of this contract and of the control block; a backend states the one it was made for."""


class BackendError(FerryError):
    """A backend cannot be used here, or broke; the message names it and says why."""


class RefusalError(BackendError):
    """A backend does not take a program, or the way in which it is to run; nothing has run."""


class PreparationError(BackendError):
    """A backend raised what is no BackendError before the program began: a fault of its own."""

    def __init__(self, backend: str, what: str) -> None:
        """`what`: it raised, and where."""
        super().__init__(f"backend {backend!r} failed in prepare: {what}")
        self.what = what


class Forcing(enum.Enum):
    """What tests can make a compiler do everywhere that it would do rarely by itself."""

    HOT = "hot"
    """Everything is hot at once: every threshold is 1."""
    DEOPT = "deopt"
    """Every guard fails, at every safepoint."""


@dataclasses.dataclass(frozen=True)
class Capabilities:
    """What a backend can do, as data."""

    fuel: bool = True
    """Counts instructions exactly and stops when fuel runs out."""
    forcing: frozenset[Forcing] = frozenset()
    """What it can be forced to; one without thresholds or guards has nothing to force."""
    heap: int | None = None
    """Bytes of heap that it can address; None: as many as the limits allow. A program that needs
    more traps there with HEAP_EXHAUSTED, and one that already has more is refused."""


class Artifact(abc.ABC):
    """A program as a backend prepared it. Several machines may use one, one after another.

    docs/writing-a-backend.md has the whole contract of `enter`.
    """

    @abc.abstractmethod
    def enter(self, machine: Machine, counting: bool) -> Status:
        """Run from `machine.control.pc` until control has to be given back; the status says why.

        The status also stands in `control.status`, with `trap`, `exit_id` or `wanted` where it
        is TRAP, HOST or GROW. `counting`: pay one unit of `control.fuel` an instruction that
        completes, and leave with FUEL before the first one that cannot be paid; what leaves with
        HALT, HOST, TRAP or GROW has not completed.
        """


class Backend(abc.ABC):
    """An execution engine."""

    name: str
    """What users call it by; the same as its `BackendEntry`'s."""
    version: str
    """Of the backend, for `ferry backends`."""
    protocol: int = PROTOCOL_VERSION
    """The version of this contract that it was made for; another one is refused."""
    capabilities: Capabilities = Capabilities()

    def probe(self) -> str | None:
        """None if it is usable on this machine, else the reason why not."""
        return None

    def accepts(self, program: Verified) -> str | None:
        """None if it can run this program, else the reason why not."""
        return None

    @abc.abstractmethod
    def prepare(self, program: Verified) -> Artifact:
        """The program in the backend's own form. Raises BackendError where that fails."""

    def prepare_forced(self, program: Verified, forcing: frozenset[Forcing]) -> Artifact:
        """As `prepare`, for tests; `forcing` is within what `capabilities.forcing` says."""
        raise BackendError(f"backend {self.name!r} declares what it does not implement: forcing")
