# SPDX-License-Identifier: Apache-2.0
"""Observation of mixed execution: placements, and all transfers on request.

    Execution ──> Mixed ──> journal ── events ──────────────────────────┐
                    └─────> Observed interpreter ── entries, counts ────┼──> Observer
                               └── observed code ── transfers ──────────┘

A transfer is observed by a Python function between an interpreter and compiled code. That takes a
microsecond or two, and the transfer itself nanoseconds, so it is done on request only.
"""

from __future__ import annotations

import collections
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from ferryvm.backend import Artifact, Interpreter
from ferryvm.engine.engine import Engine
from ferryvm.engine.hook import transfer_listener
from ferryvm.engine.journal import Attempt, Event, Placement
from ferryvm.engine.mixed import Mixed
from ferryvm.engine.site import NEVER
from ferryvm.failure import described
from ferryvm.hooks import TransferEvent
from ferryvm.machine.control import ControlBlock, Status
from ferryvm.machine.entry import ENTRY, PythonEntry
from ferryvm.machine.state import Machine
from ferryvm.notice import Log
from ferryvm.verify import Verified
from ferryvm.wrapper import ArtifactWrapper, InterpreterWrapper

__all__ = ["Cold", "Happening", "Observer"]

EVENT_LIMIT = 50_000
"""The default limit of recorded transfers, and of recorded entries of the interpreter."""

_LOG = Log(__name__)


class Happening(NamedTuple):
    """An event of a journal, with its time."""

    at: float
    """`time.perf_counter()`."""
    event: Event
    placement: Placement
    detail: object


class Cold(NamedTuple):
    """A site that did not get hot."""

    pc: int
    reached: int
    threshold: int


class Observer:
    """A recorder of the events of the engines that it watches."""

    def __init__(self, transfers: bool = False, limit: int = EVENT_LIMIT) -> None:
        """`transfers`: record each of them, and notify plugins; `limit`: the largest number
        recorded."""
        self.limit = limit
        self.began = time.perf_counter()
        self.happenings: list[Happening] = []
        self.transfers: list[TransferEvent] = []
        self.dropped: collections.Counter[str] = collections.Counter()
        """Transfers that were not recorded, by backend; entries of the interpreter by its name."""
        self.entries: list[TransferEvent] = []
        """Entries of the interpreter by the engine; their region is empty."""
        self.entry_seconds = 0.0
        """Time of all these entries, with the compiled code inside them."""
        self.program: Verified | None = None
        """The program that was prepared last."""
        self._sees_transfers = transfers
        self._attempts: dict[int, Attempt] = {}
        """By the address of their code."""
        self._counts: dict[tuple[int, bool], int] = {}
        """The total counts of sites."""
        self._artifacts: list[Artifact] = []
        self._notify: Callable[[TransferEvent], None] | None = None
        self._lock = threading.Lock()

    def watch(self, engine: Engine) -> None:
        """Record the events of programs that an engine starts from now on."""
        if self._sees_transfers:
            self._notify = transfer_listener(engine.registry.plugins)
        if isinstance(engine.backend, Mixed):
            engine.backend.watch(self._listen, self._around)
        else:
            engine.backend = self._around(engine.backend)

    def _around(self, interpreter: Interpreter) -> Interpreter:
        return _Observed(interpreter, self)

    # --- results ----------------------------------------------------------------------------

    @property
    def placements(self) -> list[Placement]:
        """The sites that got hot, in that order."""
        return [one.placement for one in self.happenings if one.event is Event.HOT]

    def cold(self) -> list[Cold]:
        """The sites that were counted and did not get hot."""
        hot = {(one.pc, one.counting) for one in self.placements}
        found = []
        for (pc, counting), threshold in sorted(self._counts.items()):
            if (pc, counting) not in hot:
                remaining = max(one.counted(pc, counting) for one in self._artifacts)
                found.append(Cold(pc, threshold - remaining, threshold))
        return found

    # --- events -----------------------------------------------------------------------------

    def _listen(self, event: Event, placement: Placement, detail: object) -> None:
        self.happenings.append(Happening(time.perf_counter(), event, placement, detail))
        if isinstance(detail, Attempt) and detail.code is not None:
            self._attempts[detail.code.address] = detail

    def prepared(self, program: Verified, artifact: Artifact) -> None:
        """A program was prepared."""
        self.program = program
        self._artifacts.append(artifact)

    def counted(self, pc: int, times: int, counting: bool) -> None:
        """A site is to be counted."""
        if times < NEVER:  # otherwise it is an observed branch, not a site that may get hot
            self._counts[pc, counting] = self._counts.get((pc, counting), 0) + times

    def entered(self, event: TransferEvent) -> None:
        """The engine entered an interpreter and control returned."""
        self.entry_seconds += event.seconds
        self._append(self.entries, event)

    def around_code(self, entry: int, address: int) -> tuple[int, object]:
        """The address to enter instead of a code's, and an object to keep alive for it."""
        attempt = self._attempts.get(address)
        if not self._sees_transfers or attempt is None:
            return address, None
        native = ENTRY(address)
        backend, region = attempt.backend, attempt.region

        def observed(block: int) -> int:
            control = ControlBlock.from_address(block)
            # An exception must not reach ctypes, which would return 0 for it. Until the code has
            # been entered, LEAVE is right: the interpreter continues at its pc.
            control.status, number = Status.LEAVE, None
            try:
                began = time.perf_counter()
                number = native(block)
                seconds = time.perf_counter() - began
                status = Status(number)
                event = TransferEvent(backend, region, entry, control.pc, status, began, seconds)
                self._append(self.transfers, event)
                if self._notify is not None:
                    self._notify(event)
            except BaseException as error:  # noqa: BLE001 - of a signal handler, for example
                _LOG.warning("while a transfer was observed: %s; interrupted", described(error))
                control.interrupt = 1
            return control.status if number is None else int(number)

        wrapped = PythonEntry(observed)
        return wrapped.address, (wrapped, attempt)

    def _append(self, events: list[TransferEvent], event: TransferEvent) -> None:
        if len(events) < self.limit:
            events.append(event)
        else:
            with self._lock:
                self.dropped[event.backend] += 1


class _Observed(InterpreterWrapper):
    """An observed interpreter."""

    def __init__(self, inner: Interpreter, observer: Observer) -> None:
        super().__init__(inner)
        self._observer = observer

    def wrapped(self, program: Verified, artifact: Artifact) -> Artifact:
        self._observer.prepared(program, artifact)
        return _ObservedArtifact(self.name, artifact, self._observer)


class _ObservedArtifact(ArtifactWrapper):
    def __init__(self, name: str, inner: Artifact, observer: Observer) -> None:
        super().__init__(inner)
        self._name, self._observer = name, observer
        self._held: list[object] = []
        """The functions behind installed addresses; a program may be in any of them until it
        ends."""

    def enter(self, machine: Machine, counting: bool) -> Status:
        entry, began = machine.control.pc, time.perf_counter()
        status = self.inner.enter(machine, counting)
        seconds = time.perf_counter() - began
        event = TransferEvent(self._name, "", entry, machine.control.pc, status, began, seconds)
        self._observer.entered(event)
        return status

    def count(self, pc: int, times: int, counting: bool) -> None:
        self._observer.counted(pc, times, counting)
        self.inner.count(pc, times, counting)

    def install(self, pc: int, address: int, counting: bool) -> None:
        wrapped, held = self._observer.around_code(pc, address)
        self._held.append(held)
        self.inner.install(pc, wrapped, counting)
