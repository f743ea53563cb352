# SPDX-License-Identifier: Apache-2.0
"""Services: requests that child processes answer, one child after another.

    ask ── message ──> child 1 ──> answer       until it ends, hangs, or has answered `most`
        ── message ──> child 2 ──> …

Invariants: there is one child at a time; it is killed, with its process group, when this process
ends or is interrupted while it waits; a forked process does not use its parent's child.
"""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections.abc import Callable

from ferryvm.child import Child, ending
from ferryvm.deadline import Deadline
from ferryvm.errors import FerryError

_GRACE = 5.0
"""Seconds from the end of a child's output to its own end."""


class EndedError(FerryError):
    """A child ended instead of answering; the message says how."""

    def __init__(self, code: int, said: str) -> None:
        """`code`: as of `Child.code`; `said`: its standard error."""
        super().__init__(ending(code))
        self.code, self.said = code, said


class ClosedError(FerryError):
    """A service was closed before or during a request."""


class Service:
    """A service with one child at a time, which is started on the first request, and again after
    it was killed or has answered `most` messages. It ends with this process."""

    def __init__(self, start: Callable[[], Child]) -> None:
        """`start`: starts a child; `request` passes its exceptions on."""
        self._start, self._lock = start, threading.Lock()
        self.child: Child | None = None
        self._requests = 0
        self.is_closed = False
        """True if it is closed: it starts no more children."""
        _services.add(self)

    def request(
        self, message: bytes, seconds: float | None = None, most: int | None = None
    ) -> bytes:
        """The answer to a message. Raises TimeoutError, EndedError, ClosedError.

        `most`: number of answers of one child, which bounds its leaks.
        """
        with self._lock:
            if self.is_closed:
                raise ClosedError("the process ends")
            if self.child is not None and (self.child.code is not None or self._requests == most):
                self.end()
            if self.child is None:
                self.child, self._requests = self._start(), 0
            child = self.child
            self._requests += 1
            try:
                answer = child.request(message, Deadline(seconds))
            except TimeoutError:
                self.end()
                raise
            except (OSError, ValueError):  # its pipes were closed meanwhile
                answer = None
            except BaseException:  # Ctrl-C: the answer will not be read
                self.end()
                raise
            if self.is_closed:
                raise ClosedError("the process ends")
            if answer is None:
                code, said = child.finish(_GRACE), child.said
                self.end()
                raise EndedError(code, said)
            return answer

    def end(self) -> None:
        """Kill the child."""
        child, self.child = self.child, None
        if child is not None:
            child.kill()
            child.close()

    def close(self) -> None:
        """Kill the child and start no other: a waiting `request` raises ClosedError at once."""
        self.is_closed = True
        self.end()

    def _forget(self) -> None:
        """Forget the parent's child in a forked process, which starts its own."""
        self._lock = threading.Lock()
        child, self.child = self.child, None
        if child is not None:
            child.forget()


_services: weakref.WeakSet[Service] = weakref.WeakSet()


def _close_all() -> None:
    for each in list(_services):
        each.close()


def _forget_all() -> None:
    for each in list(_services):
        each._forget()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_forget_all)
