# SPDX-License-Identifier: Apache-2.0
"""The threads of this process that run launches: one pool, for all programs.

A thread is started when one more is wanted at once than there are, and waits for work from then on.
Work beyond the number of threads waits for its turn, so two launches at once take no more threads
than one. A forked child has a pool of its own.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Sequence

from ferryvm.thread import ThreadError, start

Action = Callable[[], None]


class ThreadPool:
    """Threads that run actions, which raise nothing."""

    def __init__(self) -> None:
        self._given: queue.SimpleQueue[Sequence[Action]] = queue.SimpleQueue()
        self._lock = threading.RLock()  # a finaliser may run a program in a block
        self.threads = 0
        """Threads that have been started."""
        self.submit: Callable[[Sequence[Action]], None] = self._given.put
        """Run each of some actions in a thread of the pool. It is a function of C: a signal handler
        finds it done or not done."""

    def start(self, threads: int) -> None:
        """Make sure that there are so many threads, or fewer if no more can be started. Raises
        ThreadError if there is none at all."""
        if self.threads >= threads:
            return
        with self._lock:
            try:
                while self.threads < threads:
                    start(self._work)
                    self.threads += 1
            except ThreadError:
                if not self.threads:
                    raise

    def _work(self) -> None:
        while True:
            first, *others = self._given.get()
            for one in others:
                self._given.put((one,))
            first()


_pool = ThreadPool()


def pool() -> ThreadPool:
    """The pool of this process."""
    return _pool


def _forget() -> None:
    """Make a forked child start threads of its own."""
    global _pool
    _pool = ThreadPool()


os.register_at_fork(after_in_child=_forget)
