# SPDX-License-Identifier: Apache-2.0
"""Asynchronous delivery of events to plugins.

    program, compilations ── put ──> bounded queue ──> a thread for each plugin ──> its hook

`put` never blocks. The end of a run waits for the delivery of all events, for at most LONGEST: a
plugin that has not handled its events by then gets no more. Events that do not fit in the queue are
dropped and counted. Both are reported in one line.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable
from typing import NamedTuple

from ferryvm.deadline import Deadline
from ferryvm.thread import Bell

LONGEST = 1.0
"""Seconds that the end of a run waits for a plugin."""

MOST = 10_000
"""Capacity of a plugin's queue, in events."""


class _QueuedEvent(NamedTuple):
    hook: str
    event: object


class Delivery:
    """The events for one plugin, and the thread that calls its hooks."""

    def __init__(
        self,
        name: str,
        notify: Callable[[str, object], None],
        complain: Callable[[str], None],
        longest: float = LONGEST,
        most: int = MOST,
    ) -> None:
        """`notify`: calls a hook with an event; `complain`: logs a fault; `longest`, `most`: see
        LONGEST and MOST."""
        self._name, self._notify, self._complain = name, notify, complain
        self._longest, self._most = longest, most
        self._queue: queue.SimpleQueue[_QueuedEvent] = queue.SimpleQueue()
        self._lock = threading.RLock()  # a finaliser may run a program in a block
        self._pending = 0
        """Events in the queue, and that of the hook which is running."""
        self._bells: list[Bell] = []
        """Rung when there are none."""
        self._lost = 0
        self._is_given_up = False
        self._thread: threading.Thread | None = None

    def put(self, hook: str, event: object) -> None:
        """Queue an event for delivery to the plugin."""
        with self._lock:
            if self._is_given_up:
                return
            if self._queue.qsize() >= self._most:
                self._lost += 1
                return
            if self._thread is None:
                name = f"ferryvm-events-{self._name}"
                self._thread = threading.Thread(target=self._deliver, name=name, daemon=True)
                try:
                    self._thread.start()
                except RuntimeError:  # the process ends, or has too many
                    self._lost += 1
                    self._give_up("cannot be told of events: no thread can be started")
                    return
            self._pending += 1
            self._queue.put(_QueuedEvent(hook, event))

    def settle(self) -> None:
        """Wait for the delivery of all events, or give the plugin up. Called at a run's end."""
        if threading.current_thread() is self._thread:
            return  # a hook that runs programs
        deadline = Deadline(self._longest)
        bell = Bell()
        with self._lock:
            if self._pending and not self._is_given_up:
                self._bells.append(bell)
            else:
                bell.ring()
        while not bell.wait(max(deadline.remaining, 0.0)):
            with self._lock:
                if self._pending and deadline.is_over and not self._is_given_up:
                    self._give_up(f"did not take its events within {self._longest:g} s")
        with self._lock:
            lost, self._lost = self._lost, 0
        if lost:
            self._complain(f"was too slow: {lost} events were not told to it")

    def _give_up(self, what: str) -> None:
        """Deliver no more events to the plugin; the lock is held."""
        self._is_given_up = True
        lost, self._lost = self._lost, 0
        with contextlib.suppress(queue.Empty):
            while True:
                self._queue.get_nowait()
                self._pending -= 1
                lost += 1
        self._ring()
        self._complain(f"{what}; {lost} more were not told to it, and it is told of none any more")

    def _ring(self) -> None:
        """Release all threads that wait for the events; the lock is held."""
        for bell in self._bells:
            bell.ring()
        self._bells.clear()

    def _deliver(self) -> None:
        while True:
            hook, event = self._queue.get()
            try:
                self._notify(hook, event)
            finally:
                with self._lock:
                    self._pending -= 1
                    if not self._pending:
                        self._ring()
