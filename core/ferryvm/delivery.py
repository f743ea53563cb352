# SPDX-License-Identifier: Apache-2.0
"""Asynchronous delivery of events to plugins.

    program, compilations ── put ──> bounded queue ──> a thread for each plugin ──> its hook

`put` never blocks. The end of a run waits for the delivery of all events, for at most LONGEST: a
plugin that has not handled its events by then gets no more. Events that do not fit in the queue are
dropped and counted. Both are reported in one line.
"""

from __future__ import annotations

import collections
import threading
from collections.abc import Callable
from typing import NamedTuple

from ferryvm.deadline import Deadline

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
        self._queue: collections.deque[_QueuedEvent] = collections.deque()
        self._changed = threading.Condition()
        self._is_busy = False
        """True while a hook is running."""
        self._lost = 0
        self._is_given_up = False
        self._thread: threading.Thread | None = None

    def put(self, hook: str, event: object) -> None:
        """Queue an event for delivery to the plugin."""
        with self._changed:
            if self._is_given_up:
                return
            if len(self._queue) >= self._most:
                self._lost += 1
                return
            self._queue.append(_QueuedEvent(hook, event))
            if self._thread is None:
                name = f"ferryvm-events-{self._name}"
                self._thread = threading.Thread(target=self._deliver, name=name, daemon=True)
                try:
                    self._thread.start()
                except RuntimeError:  # the process ends, or has too many
                    self._give_up("cannot be told of events: no thread can be started")
                    return
            self._changed.notify_all()

    def settle(self) -> None:
        """Wait for the delivery of all events, or give the plugin up. Called at a run's end."""
        if threading.current_thread() is self._thread:
            return  # a hook that runs programs
        deadline = Deadline(self._longest)
        with self._changed:
            while (self._queue or self._is_busy) and not self._is_given_up:
                if deadline.is_over:
                    self._give_up(f"did not take its events within {self._longest:g} s")
                else:
                    self._changed.wait(deadline.remaining)
            lost, self._lost = self._lost, 0
        if lost:
            self._complain(f"was too slow: {lost} events were not told to it")

    def _give_up(self, what: str) -> None:
        """Deliver no more events to the plugin; the lock is held."""
        self._is_given_up = True
        lost, self._lost = len(self._queue) + self._lost, 0
        self._queue.clear()
        self._complain(f"{what}; {lost} more were not told to it, and it is told of none any more")

    def _deliver(self) -> None:
        while True:
            with self._changed:
                while not self._queue:
                    self._changed.wait()
                hook, event = self._queue.popleft()
                self._is_busy = True
            try:
                self._notify(hook, event)
            finally:
                with self._changed:
                    self._is_busy = False
                    self._changed.notify_all()
