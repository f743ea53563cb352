# SPDX-License-Identifier: Apache-2.0
"""Compiling beside the program: one thread a process, which takes jobs in the order in which they
are due.

A program waits for a job only where its policy says so, and Ctrl-C ends the waiting. The thread is
started by the first job. At the end of the process the job under way is waited for (a compiler that
works while its library is taken down may crash), those behind it are dropped; Ctrl-C ends the
process without waiting. Who has nothing more to do in the process can `abandon` the job, too.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator

from ferryvm.float_environment import ours
from ferryvm.machine.control import ControlBlock
from ferryvm.machine.host_stack import start_with_headroom
from ferryvm.thread import ThreadError

_LOG = logging.getLogger(__name__)

_STEP = 0.01
"""Seconds between two looks at the interrupt flag while a program waits."""

_LOOK = 0.1
"""Seconds between two looks for a signal at the end of the process."""

_TURN = 0.00005
"""Seconds that compiling holds Python's interpreter lock when another thread wants it. A program
that ends meanwhile, or calls its host, waits that long; a change of threads takes a tenth of it."""


class Job:
    """Something to be done in the background."""

    def __init__(self, action: Callable[[], None], delay: float = 0.0) -> None:
        """`delay`: seconds before which it is not begun; those that are due go first."""
        self._action = action
        self.due = time.monotonic() + delay
        self._done = threading.Event()
        self._ended = threading.Event()

    def run(self) -> None:
        """Do it, in the thread for it."""
        try:
            with ours():  # a thread begins with the environment of the one that started it
                self._action()
        finally:
            self.end()

    def end(self) -> None:
        """Release all waiting threads: the job has ended."""
        self._done.set()
        self._ended.set()

    def let_go(self) -> None:
        """Release all waiting threads."""
        self._done.set()

    def wait(self, control: ControlBlock, to_the_end: bool = False) -> bool:
        """Wait until it is done, or lets go; False if the interrupt flag was set before.

        `to_the_end`: not only until it lets go.
        """
        event = self._ended if to_the_end else self._done
        while not event.wait(_STEP):
            if control.interrupt:
                return False
        return True


@contextlib.contextmanager
def _short_turns() -> Iterator[None]:
    """Let other threads have the interpreter lock soon while this one computes: a program that
    comes back to Python for a host call would wait for the usual 5 ms each time."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(min(usual, _TURN))
    try:
        yield
    finally:
        sys.setswitchinterval(usual)


class _Worker:
    def __init__(self) -> None:
        self._jobs: list[Job] = []
        self._changed = threading.Condition()
        self._running: threading.Lock | None = None
        """Held by the thread, if there is one."""
        self._is_closed = False
        self._is_busy = False

    def submit(self, job: Job) -> bool:
        """Queue a job; False if no thread can be started any more, or yet."""
        with self._changed:
            if self._is_closed:
                return False
            if self._running is None:
                running = threading.Lock()
                running.acquire()
                try:
                    start_with_headroom(self._work, running)
                except ThreadError:  # the process ends, has too many, or has no memory
                    return False
                self._running = running
            self._jobs.append(job)
            self._changed.notify()
            return True

    def _work(self, running: threading.Lock) -> None:
        try:
            is_open = True
            while is_open:
                try:
                    is_open = self._do_next()
                except MemoryError:
                    # If the thread ended here, later jobs would be waited for without end.
                    self._is_busy = False
                    _LOG.warning("out of memory: something in the background was given up")
        finally:
            running.release()

    def _do_next(self) -> bool:
        """Wait for a job and do it; False when there will be none any more."""
        with self._changed:
            job = self._take()
            if job is None:
                return False
            self._is_busy = True
        try:
            with _short_turns():
                job.run()
        finally:
            job.end()  # also where it could not begin
        with self._changed:
            self._is_busy = False
        return True

    def _take(self) -> Job | None:
        """The first job that is due, once there is one; None if the worker is closed before."""
        while not self._is_closed:
            remaining = None
            if self._jobs:
                job = min(self._jobs, key=lambda job: job.due)
                remaining = job.due - time.monotonic()
                if remaining <= 0:
                    self._jobs.remove(job)
                    return job
            self._changed.wait(remaining)
        return None

    def drop(self) -> bool:
        """Take no job and begin none any more; whether one is under way."""
        with self._changed:
            self._is_closed = True
            self._jobs.clear()
            self._changed.notify()
            return self._is_busy

    def close(self) -> None:
        """Drop what waits and let the job under way end."""
        self.drop()
        if self._running is not None:
            # In steps: a signal that comes just before the wait begins does not end it.
            while not self._running.acquire(timeout=_LOOK):
                pass


_worker = _Worker()


def _forget() -> None:
    """A forked child has no thread; it starts one of its own."""
    global _worker
    _worker = _Worker()


def abandon() -> bool:
    """Stop waiting for jobs at the end of the process; true if one is running. Then the process
    should be ended by `os._exit`: Python's own end could crash in it.
    """
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
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):  # it may be closed, or nobody reads it
                stream.flush()
        # As Python ends on Ctrl-C, but at once: what else it does at its end is what may crash.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)


def submit(job: Job) -> None:
    """Run a job in the background; at once and here if no thread can be started for it."""
    if not _worker.submit(job):
        job.run()
