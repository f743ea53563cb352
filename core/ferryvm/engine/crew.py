# SPDX-License-Identifier: Apache-2.0
"""The threads of this process that help with launches: they wait in native code, for all programs.

    crew ─ parked threads <── a launch gives some of them workers, by native code
         └ lookout        ── every 10 ms, while launches run: their interrupt flags; Ctrl-C at once

A parked thread comes back to Python only where an item leaves its code. A launch takes what is
parked when it begins, so two launches at once take no more threads than one, and none waits for
another. A forked child has a crew of its own.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import threading
import time
from typing import Protocol

from ferryvm.engine.interrupt import when_stopped
from ferryvm.float_environment import ours
from ferryvm.machine import host_stack
from ferryvm.machine.chunk import (
    ACQUIRE_ADDRESS,
    SERVE,
    ChunkLoop,
    Outcome,
    ParkedThread,
    RangeWorker,
    new_lock,
)
from ferryvm.thread import ThreadError, start

_MOST = 1024
"""Threads at most."""

LOOK = 0.01
"""Seconds between two looks at the interrupt flags."""

_LINGERS = 100
"""Looks after the last launch before the lookout sleeps: to wake it delays a launch."""


class Flying(Protocol):
    """A launch that runs."""

    def look(self) -> None:
        """Stop its threads if it is interrupted, and no handler has run meanwhile."""

    def stop_if_interrupted(self) -> None:
        """Stop its threads if it is interrupted."""

    def settle(self, number: int, outcome: Outcome, floor: int) -> None:
        """Do what a worker's outcome asks for, and go on until it has ended; `floor`: of the stack
        of this thread. It raises nothing."""


class Crew:
    """Parked threads, and the launches that run."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a finaliser may run a program in a block
        self._parked: list[ParkedThread] = []
        self._table = (ctypes.c_uint64 * _MOST)()
        self.table = ctypes.addressof(self._table)
        """Address of the addresses of the parked threads, in the order in which they were
        started."""
        self._is_full = False
        self.flying: dict[int, Flying] = {}
        """The launches that run, by the addresses of their ranges."""
        self._lookout: Lookout | None = None

    @property
    def size(self) -> int:
        """The number of parked threads."""
        return len(self._parked)

    def start(self, threads: int, loop: ChunkLoop) -> None:
        """Make sure that there are so many threads, or fewer if no more can be started, and a
        lookout. Raises ThreadError if there is no lookout."""
        if self._lookout is None:
            with self._lock:
                self._lookout = self._lookout or Lookout(self.flying)
        if len(self._parked) >= threads or self._is_full:
            return
        with self._lock:
            while len(self._parked) < min(threads, _MOST):
                parked = ParkedThread(state=1, lock=new_lock(), acquire=ACQUIRE_ADDRESS)
                try:
                    start(functools.partial(self._work, parked, loop))
                except ThreadError:
                    self._is_full = True
                    return
                self._table[len(self._parked)] = ctypes.addressof(parked)
                self._parked.append(parked)

    def begin(self, address: int, launch: Flying) -> None:
        """Note that a launch with its range at an address runs from now on."""
        self.flying[address] = launch
        if self._lookout is not None:
            self._lookout.wake()

    def _work(self, parked: ParkedThread, loop: ChunkLoop) -> None:
        with ours():
            floor = host_stack.floor()
            parked.floor = floor
            serve, address = SERVE(loop.serve), ctypes.addressof(parked)
            while True:
                outcome = Outcome(serve(address))
                worker = RangeWorker.from_address(parked.taken)
                self.flying[worker.range].settle(worker.number, outcome, floor)


class Lookout:
    """The thread that looks at the interrupt flags of launches: the thread that launches may run
    items itself."""

    def __init__(self, flying: dict[int, Flying]) -> None:
        """Raises ThreadError."""
        self._flying = flying
        self._is_awake = False
        self._sleep = threading.Lock()
        self._sleep.acquire()
        start(self._watch)

    def wake(self) -> None:
        """Look from now on."""
        if not self._is_awake:
            self._is_awake = True
            with contextlib.suppress(RuntimeError):  # another thread has woken it
                self._sleep.release()

    def _watch(self) -> None:
        while True:
            if not self._flying:
                self._sleep.acquire()
            looks = 0
            while looks < _LINGERS:
                time.sleep(LOOK)
                looks = 0 if self._flying else looks + 1
                for launch in [*self._flying.values()]:
                    launch.look()
            self._is_awake = False


_crew = Crew()


def crew() -> Crew:
    """The crew of this process."""
    return _crew


def _forget() -> None:
    """Make a forked child start threads of its own."""
    global _crew
    _crew = Crew()


def _stop() -> None:
    for launch in [*_crew.flying.values()]:
        launch.stop_if_interrupted()


when_stopped(_stop)
os.register_at_fork(after_in_child=_forget)
