# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C while a program runs: a signal becomes the control block's interrupt flag.

Python runs its own signal handlers only between bytecodes of the main thread, which native code
does not reach. The interpreter's C-level handler however writes the signal's number to the wakeup
descriptor at once; a watcher thread reads it there and sets the flag, which backends poll.

There is one watcher for the process, started by the first run that needs it: starting a thread
takes longer than most short runs.

Other signals' handlers may raise anywhere in this module. What is set is set back by functions of
C, each in a `finally` of its own: Python handles signals before and after such a call, never within
it.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # the functions of C beneath `signal`
import contextlib
import ctypes
import functools
import os
import select
import signal
import threading
import weakref
from collections.abc import Callable
from types import FrameType
from typing import TypeVar

from ferryvm import process
from ferryvm.machine.control import ControlBlock, Status
from ferryvm.thread import start

_R = TypeVar("_R")

BY_SIGNAL = 2
"""The value of the interrupt flag in a block of `watch_until_freed` after a signal, for which
Python calls a handler, too: if that raises nothing, the program continues. Any other value stops
it."""

_stops: list[Callable[[], None]] = []


def when_stopped(stop: Callable[[], None]) -> None:
    """Call `stop`, which raises nothing, after each signal that stops programs, in any thread, once
    the flags are set."""
    _stops.append(stop)


_set_descriptor = functools.partial(signal.set_wakeup_fd, warn_on_full_buffer=False)


class _Watcher:
    """A pipe that signals are written to, and the thread that reads it."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)
        os.set_blocking(self.writer, False)
        self._lock = threading.RLock()  # a finaliser may run a program in a block
        self._watched: ControlBlock | None = None
        self._other = -1
        """Descriptor that receives other signals; -1 for none."""
        self._resident: weakref.WeakValueDictionary[int, ControlBlock] = (
            weakref.WeakValueDictionary()
        )
        """The blocks whose flags every signal sets, by address; see `watch_until_freed`."""
        self._look = self._new_poll()
        start(self._watch)

    def _new_poll(self) -> Callable[[int | None], list[tuple[int, int]]]:
        poll = select.poll()  # `select` takes no descriptor past 1023
        poll.register(self.reader, select.POLLIN)
        return poll.poll

    def _watch(self) -> None:
        wait = self._new_poll()
        while True:
            wait(None)
            with self._lock:
                self._read()

    def _read(self) -> None:
        """Handle the signals that have arrived; the lock is held."""
        if not self._look(0):  # takes a third of the time of a read that fails
            return
        try:
            numbers = os.read(self.reader, 64)
        except BlockingIOError:  # another process has read it: a child has the same pipe
            return
        stopping = process.owner.stopping
        # Only signals with handlers of Python are written: native code has to return for these.
        watched = [] if self._watched is None else [self._watched]
        for control in (*self._resident.values(), *watched):
            if not control.interrupt:
                control.interrupt = BY_SIGNAL
        if not stopping.isdisjoint(numbers):
            if self._watched is not None:
                self._watched.interrupt = 1
            for stop in _stops:
                stop()
        others = bytes(number for number in numbers if number not in stopping)
        if others and self._other >= 0:
            with contextlib.suppress(OSError):  # full or closed: ignored, as by the C handler
                os.write(self._other, others)

    def settle(self, control: ControlBlock) -> None:
        """Read the signals that have arrived, and clear the flag of `control`."""
        with self._lock:
            self._read()
            if control.interrupt == BY_SIGNAL:
                control.interrupt = 0

    def watch_until_freed(self, control: ControlBlock) -> None:
        """Set the flag of `control` at each signal with a handler of Python from now on, until the
        block is freed."""
        before: list[int] = []
        try:
            # One call of C, which stores its result, too.
            before.extend(map(_set_descriptor, (self.writer,)))
        finally:
            if before and before[0] != self.writer:
                self._other = before[0]
        with self._lock:
            self._resident[ctypes.addressof(control)] = control

    def watch(self, control: ControlBlock, run: Callable[[], _R]) -> _R:
        """The result of `run`, in which SIGINT sets the flag of `control`; calls may be nested."""
        outer, before = (self._watched, self._other), list[int]()
        try:
            before.extend(map(_set_descriptor, (self.writer,)))
            if before[0] != self.writer:
                self._other = before[0]
            self._watched = control
            return run()
        finally:
            try:
                if before:
                    _signal.set_wakeup_fd(before[0])
            finally:
                try:
                    with self._lock:
                        self._read()  # a signal for this run must not stop the next
                finally:
                    self._watched, self._other = outer


_watcher: _Watcher | None = None


def _forget() -> None:
    """Reset the watcher in a forked child, which has no watcher thread and must not read its
    parent's signals."""
    global _watcher
    if _watcher is not None:
        was_active = _watcher._watched is not None
        if not was_active and is_main():
            # Ours may be set though no block is left: its number is free for another file now.
            descriptor = signal.set_wakeup_fd(-1)
            if descriptor == _watcher.writer:
                descriptor = _watcher._other
            with contextlib.suppress(OSError, ValueError):  # closed, as by an event loop that ends
                signal.set_wakeup_fd(descriptor)
        os.close(_watcher.reader)
        os.close(_watcher.writer)
        old, _watcher = _watcher, None
        if was_active:  # forked by a host function, whose run continues in the child
            _watcher = _Watcher()
            _watcher._watched, _watcher._other = old._watched, old._other
            signal.set_wakeup_fd(_watcher.writer, warn_on_full_buffer=False)


os.register_at_fork(after_in_child=_forget)


def is_main() -> bool:
    """True in the main thread, which alone takes signals."""
    return threading.current_thread() is threading.main_thread()


def settle(control: ControlBlock) -> None:
    """Clear `control.interrupt` before a run, if an earlier signal has set it.

    Python's handler has handled that signal already; but the watcher may not have read it yet, and
    would stop the run for it. Does nothing outside of the main thread.
    """
    if _watcher is not None and is_main():
        _watcher.settle(control)


def watch_until_freed(control: ControlBlock) -> None:
    """Let signals set `control.interrupt` until the block is freed, at no cost for a call.

    Python's own handler runs as well, when native code has returned: it raises KeyboardInterrupt,
    or does what the user's handler does. Does nothing outside of the main thread.
    """
    global _watcher
    if is_main():
        _watcher = _watcher or _Watcher()
        _watcher.watch_until_freed(control)


def interruptible(
    control: ControlBlock,
    run: Callable[[], _R],
    is_watched: bool = False,
    again: Callable[[], _R] | None = None,
) -> _R:
    """The result of `run`, in which SIGINT (and other signals that the process's owner selects)
    sets `control.interrupt` and does nothing else.

    Handlers of other signals run as soon as native code has seen the flag; `again`: goes on where
    `run` was interrupted for them.

    If the program has ended by itself, a pending signal is raised again, for the earlier handler:
    no Ctrl-C is lost.

    Only the main thread can take signals: elsewhere, and if SIGINT is ignored, this does nothing,
    and the owner of the thread sets the flag. `is_watched`: `watch_until_freed` has been called, so
    that the wakeup descriptor is not set again, which takes longer than a short run.
    """
    global _watcher
    has_come: list[int] = []

    def through() -> _R:
        found = run()
        while again is not None and not has_come and _is_by_signal(control):
            control.interrupt = 0
            if has_come:  # a handler's store may have come before that one
                control.interrupt = 1
            found = again()
        return found

    if not is_main():
        return through()
    on_signal = process.owner.on_signal
    previous = {number: _signal.getsignal(number) for number in process.owner.stopping}
    previous = {n: old for n, old in previous.items() if old not in (signal.SIG_IGN, None)}
    if signal.SIGINT not in previous and on_signal is None:
        return through()

    def handle(number: int, _frame: FrameType | None) -> None:
        has_come.append(number)
        control.interrupt = 1  # reached when Python code runs: the reference backend, host calls
        if on_signal is not None:
            on_signal(number)

    _watcher = _watcher or _Watcher()
    watch = _watcher.watch
    within = through if is_watched else lambda: watch(control, through)
    result = _handling(handle, list(previous.items()), within)
    if has_come and control.status in (Status.HALT, Status.TRAP):
        if on_signal is not None:
            raise KeyboardInterrupt  # the signal was handled
        signal.raise_signal(has_come[0])
    return result


def _is_by_signal(control: ControlBlock) -> bool:
    """True if a run has stopped for a signal whose handler has raised nothing."""
    return control.status == Status.INTERRUPTED and control.interrupt == BY_SIGNAL


def _handling(
    handle: Callable[[int, FrameType | None], object],
    previous: list[tuple[int, object]],
    run: Callable[[], _R],
) -> _R:
    """The result of `run`, in which `handle` handles signals in the place of earlier handlers."""
    if not previous:
        return run()
    (number, old), *rest = previous
    try:
        _signal.signal(number, handle)
        return _handling(handle, rest, run)
    finally:
        try:
            _signal.signal(number, old)
        except BaseException:  # it runs the handlers of signals that have come first
            _signal.signal(number, old)
            raise
