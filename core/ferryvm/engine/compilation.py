# SPDX-License-Identifier: Apache-2.0
"""Compilation in the background: one thread in a process, which runs jobs in the order in which
they are due.

A program waits for a job only if its policy requires that, and Ctrl-C ends the wait. The first job
starts the thread. At the end of the process it waits for the running job, because a compiler may
crash if its library is unloaded while it works, and drops queued jobs; Ctrl-C ends the process
without that wait. A process that has nothing else to do can `abandon` the running job, too.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator

from ferryvm import process
from ferryvm.float_environment import ours
from ferryvm.machine.control import ControlBlock
from ferryvm.machine.host_stack import start_with_headroom
from ferryvm.notice import Log
from ferryvm.thread import Bell, ThreadError

_LOG = Log(__name__)

_STEP = 0.01
"""Seconds between two checks of the interrupt flag while a program waits."""

_LOOK = 0.1
"""Seconds between two checks for a signal at the end of the process."""

_TURN = 0.00005
"""Python's switch interval in seconds while a compiler runs: a program that ends or calls its host
meanwhile waits that long for the interpreter lock. A change of threads takes a tenth of it."""


class Job:
    """A piece of work for the background thread."""

    def __init__(self, action: Callable[[], None], delay: float = 0.0) -> None:
        """`delay`: seconds before which it does not start; jobs that are due run first."""
        self._action = action
        self.due = time.monotonic() + delay
        self._done, self._ended = Bell(), Bell()

    def run(self) -> None:
        """Run it, in the background thread."""
        try:
            with ours():  # a thread inherits the environment of the thread that started it
                self._action()
        finally:
            self.end()

    def end(self) -> None:
        """Release all waiting threads: the job has ended."""
        self._done.ring()
        self._ended.ring()

    def let_go(self) -> None:
        """Release all waiting threads, though the job continues."""
        self._done.ring()

    def wait(self, control: ControlBlock, to_the_end: bool = False) -> bool:
        """Wait until it ends or releases its waiters; False if the interrupt flag was set before.

        `to_the_end`: wait for the end in any case.
        """
        bell = self._ended if to_the_end else self._done
        while not bell.wait(_STEP):
            if control.interrupt:
                return False
        return True


@contextlib.contextmanager
def _short_turns() -> Iterator[None]:
    """Reduce the switch interval while this thread computes: a program that returns to Python for a
    host call would otherwise wait for the usual 5 ms each time."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(min(usual, _TURN))
    try:
        yield
    finally:
        sys.setswitchinterval(usual)


class _Worker:
    def __init__(self) -> None:
        self._jobs: list[Job] = []
        """Jobs that the thread has taken from the queue; only the thread uses the list."""
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._lock = threading.RLock()  # a finaliser may run a program in a block
        self._running: threading.Lock | None = None
        """Held by the thread, if there is one."""
        self._turn = threading.Lock()
        """Held by the thread that does jobs: where a signal handler raised as it was started there
        may be a second one."""
        self._is_closed = False
        self._is_busy = False

    def submit(self, job: Job) -> bool:
        """Queue a job; False if no thread can be started."""
        with self._lock:
            if self._is_closed:
                return False
            if self._running is None:
                running = threading.Lock()
                running.acquire()
                try:
                    start_with_headroom(self._work, running)
                except ThreadError:  # the process ends, has too many threads, or has no memory
                    return False
                self._running = running
            self._queue.put(job)
            return True

    def _work(self, running: threading.Lock) -> None:
        try:
            is_open = True
            with self._turn:
                while is_open:
                    try:
                        is_open = self._do_next()
                    except MemoryError:
                        # If the thread ended here, waits for later jobs would never end.
                        self._is_busy = False
                        _LOG.warning("out of memory: something in the background was given up")
        finally:
            running.release()

    def _do_next(self) -> bool:
        """Wait for a job and run it; False when there will be no more."""
        job = self._take()
        with self._lock:
            if job is None or self._is_closed:
                return False
            self._is_busy = True
        try:
            with _short_turns():
                job.run()
        finally:
            job.end()  # also if it could not start
        with self._lock:
            self._is_busy = False
        return True

    def _take(self) -> Job | None:
        """The first job that is due, as soon as there is one; None if the worker is closed
        before."""
        while not self._is_closed:
            while not self._queue.empty():
                self._receive(None)
            remaining = None
            if self._jobs:
                job = min(self._jobs, key=lambda job: job.due)
                remaining = job.due - time.monotonic()
                if remaining <= 0:
                    self._jobs.remove(job)
                    return job
            with contextlib.suppress(queue.Empty):
                self._receive(remaining)
        return None

    def _receive(self, seconds: float | None) -> None:
        """Take something from the queue. Raises queue.Empty."""
        found = self._queue.get(timeout=seconds)
        if found is not None:
            self._jobs.append(found)

    def drop(self) -> bool:
        """Start no more jobs; returns True if one is running."""
        with self._lock:
            self._is_closed = True
            self._queue.put(None)  # the thread looks
            return self._is_busy

    def close(self) -> None:
        """Drop queued jobs and wait for the running one."""
        self.drop()
        if self._running is not None:
            # In steps: a signal just before the start of a wait does not end the wait.
            while not self._running.acquire(timeout=_LOOK):
                pass


_worker = _Worker()


def _forget() -> None:
    """Reset the worker in a forked child, which has no thread and starts one of its own."""
    global _worker
    _worker = _Worker()


def abandon() -> bool:
    """Cancel the wait for jobs at the end of the process; True if one is running. Then the process
    should end by `os._exit`, because Python's regular exit could crash in the job."""
    is_busy = _worker.drop()
    if is_busy:
        atexit.unregister(_close)
    return is_busy


os.register_at_fork(after_in_child=_forget)


@atexit.register
def _close() -> None:
    try:
        _worker.close()
    except KeyboardInterrupt:
        process.end_by_ctrl_c()


def submit(job: Job) -> None:
    """Run a job in the background; at once and in this thread if no other can be started."""
    if not _worker.submit(job):
        job.run()
