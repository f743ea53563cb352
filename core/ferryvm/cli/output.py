# SPDX-License-Identifier: Apache-2.0
"""The output of a program that `ferry` runs.

    program ── piece ──> collected ──> file or pipe    when there is much, or it is time, or at once:
                             └───────> terminal        at each line
                    before input, an error, the end of the process: all

A program that calls functions of the user is not collected: these may write to the same file, by
whatever means, and the order must remain. Neither is one whose state may be saved: its output
ends at the instruction where the state is.
"""

from __future__ import annotations

import io
import os
import select
import sys
import time

from ferryvm.cli import termination
from ferryvm.engine import Execution
from ferryvm.machine.host import STANDARD, Output

_MOST = 1 << 16
"""Bytes that are collected, at most."""

_SECONDS = 0.02
"""Output is written at once if so much time has passed since the last time: who prints seldom is
seen at once."""

_PATIENCE_MS = 1000
"""Milliseconds to wait for a reader when a signal ends the process."""


class ProgramOutput:
    """Standard output, for a program."""

    def __init__(self) -> None:
        self._file: io.BufferedWriter | None = None
        self._lost: io.BufferedWriter | None = None
        """Output that could not be written; it must not be tried again when it is freed."""
        self._is_terminal = False
        self._written = 0.0

    def collect_for(self, execution: Execution) -> None:
        """Collect the output of an execution from now on if that may be."""
        offered, imports = execution.engine.hosts, execution.machine.program.hosts
        is_standard = all(offered.get(one.name) is STANDARD.get(one.name) for one in imports)
        if is_standard and self._file is None:
            # Its count of written bytes is exact also where a signal handler raises.
            self._file = io.BufferedWriter(io.FileIO(1, "wb", closefd=False), _MOST)
            self._is_terminal = os.isatty(1)
        elif not is_standard:
            self.flush()
            self._file = None

    def __call__(self, data: bytes) -> None:
        """Take a piece of output. Raises OSError if output cannot be written."""
        file = self._file
        if file is None:
            write(1, data)
            return
        try:
            file.write(data)
            if self._is_terminal:
                if b"\n" in data:
                    file.flush()
                return
            now = time.monotonic()
            if now - self._written > _SECONDS:
                file.flush()
                self._written = now
        except OSError:
            self._lost, self._file = file, None  # each later piece fails by itself
            raise

    def flush(self) -> None:
        """Write what is collected. Raises OSError. If a signal ends the process and nothing reads
        the output, the rest is dropped after a second, with a line."""
        try:
            self._flush()
        except KeyboardInterrupt:  # it came in the middle
            self._flush()
            raise

    def _flush(self) -> None:
        file = self._file
        if file is None:
            return
        if termination.came:
            ready = select.poll()
            ready.register(1, select.POLLOUT)
            if not ready.poll(_PATIENCE_MS):
                self._lost, self._file = file, None
                termination.say("the last output has no reader and is dropped")
                return
        try:
            file.flush()
        except OSError:
            self._lost, self._file = file, None
            raise


def waiting_output(descriptor: int) -> Output:
    """An output for a program whose state is saved on a signal: the signal takes effect even if
    nothing reads the output. A number and its line end are fewer than PIPE_BUF bytes, so they are
    written as a whole."""
    ready = select.poll()
    ready.register(descriptor, select.POLLOUT)

    def output(data: bytes) -> None:
        termination.wait_to_write(ready.poll)
        write(descriptor, data)

    return output


def write(descriptor: int, data: bytes) -> None:
    """Write output of a program.

    It bypasses Python's buffers, so the output is complete even if the process is killed next.
    Prints of host functions, which do not, are written first.
    """
    if sys.stdout is not None and not sys.stdout.closed:
        sys.stdout.flush()
    while data:
        data = data[os.write(descriptor, data) :]
