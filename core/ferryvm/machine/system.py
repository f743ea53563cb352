# SPDX-License-Identifier: Apache-2.0
"""The surroundings of a program: its heap, output, input and arguments, as host functions see them.

Host functions get it in place of an instance: it needs no entry stubs, so the code of a program
does not depend on whether it reads input. Every access to the heap is checked against the bytes in
use.
"""

from __future__ import annotations

import os
import select
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ferryvm.errors import FerryError

if TYPE_CHECKING:
    from ferryvm.machine.state import Machine

Input = Callable[[int], bytes]
"""Reads at most so many bytes, and at least one unless the input is at its end."""

_CHUNK = 1 << 16
_STANDARD_INPUT = 0
_POLL_MS = 50
"""Milliseconds after which a blocked read checks for Ctrl-C."""


class HostError(FerryError):
    """A host function cannot be used: its declaration, its signature, or what it returned."""


class WaitInterrupted(BaseException):
    """Ctrl-C came while a host function waited; the program stops at the call. It is not an outcome
    of the call, and not an Exception, so programs cannot catch it."""


class Reader:
    """A source of bytes, read in chunks and returned by byte and line."""

    def __init__(self, source: Input | None) -> None:
        """`source`: None for the standard input of this process."""
        self._source = source
        self._rest = b""

    def read(self, most: int, wait: Callable[[], object], until: bytes = b"") -> bytes:
        """At most so many bytes, up to the end of the first `until` if it occurs; none at the end.
        `wait` is called before each read of standard input."""
        while True:
            end = self._rest.find(until) + 1 if until else 0
            end = min(end or len(self._rest), most)
            if end == most or (end and (not until or self._rest[end - 1 : end] == until)):
                break
            more = self._more(wait)
            if not more:
                break
            self._rest += more
        found, self._rest = self._rest[:end], self._rest[end:]
        return found

    def _more(self, wait: Callable[[], object]) -> bytes:
        if self._source is not None:
            return self._source(_CHUNK)
        try:
            wait()
            return os.read(_STANDARD_INPUT, _CHUNK)
        except OSError as error:
            raise HostError(f"standard input cannot be read: {error.strerror}") from error


STANDARD_READER = Reader(None)
"""The standard input of this process. All engines share it, because bytes are read ahead."""


class System:
    """The heap, output, input and arguments of one program."""

    def __init__(
        self,
        machine: Machine,
        output: Callable[[bytes], object],
        reader: Reader,
        arguments: Sequence[str],
    ) -> None:
        self._machine = machine
        self.output = output
        self._reader = reader
        self.arguments = tuple(os.fsencode(argument) for argument in arguments)

    def heap(self, address: int, size: int) -> memoryview[int]:
        """A view of heap bytes in use. Raises HostError for bytes outside of them."""
        used = self._machine.control.hp
        if size < 0:
            raise HostError(f"{self._caller}: a size of {size} bytes; 0 or more is allowed")
        if not 0 <= address <= used - size:
            raise HostError(
                f"{self._caller}: {size} bytes at {address} are outside of the heap, of which "
                f"{used} bytes are in use"
            )
        return self._machine.memory.heap[address : address + size]

    def read(self, most: int, until: bytes = b"") -> bytes:
        """Input, as `Reader.read`."""
        return self._reader.read(most, self._wait, until)

    @property
    def _caller(self) -> str:
        """The host function that is being called."""
        return self._machine.program.hosts[self._machine.control.exit_id].name

    def _wait(self) -> None:
        """Wait for standard input. Raises WaitInterrupted."""
        flush = getattr(self.output, "flush", None)
        if flush is not None:
            flush()  # a prompt, perhaps
        poll = select.poll()
        poll.register(_STANDARD_INPUT, select.POLLIN)
        while not poll.poll(_POLL_MS):
            if self._machine.control.interrupt:
                raise WaitInterrupted
