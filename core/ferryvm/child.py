# SPDX-License-Identifier: Apache-2.0
"""Child processes, for code that may crash, hang or leak; the parent reports their end in one line.

    run(command)        one command, its whole output
    Child(command)      a process with pipes, for lines or messages
    serve(answer)       the child's side of messages

A message is its length and its bytes. Invariants: a child has its own process group, so a
terminal's Ctrl-C reaches only the parent, which kills the whole group when it abandons the child;
standard error is an unnamed file, so it needs no cleanup and never blocks the child. A
`ferryvm.service` restarts children for requests.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import select
import signal
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from ferryvm.deadline import Deadline

__all__ = ["Child", "Finished", "ending", "environment", "run", "serve"]

_LENGTH = struct.Struct("<Q")
_PIECE = 1 << 16
_TICK = 0.2
"""Seconds between two polls of a process that writes nothing."""
_MOST_SAID = 20_000
"""The number of the last bytes of standard error that are retained."""


def environment() -> dict[str, str]:
    """Environment of a child that must import the same packages as this process."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def ending(code: int) -> str:
    """The end of a process in words: `exit code 3`, or the name of the signal that ended it."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


@dataclasses.dataclass(frozen=True)
class Finished:
    """A command that has run to its end."""

    code: int
    output: bytes
    errors: str


def run(
    command: Sequence[str],
    seconds: float | None = None,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Finished:
    """The result of a command that runs in a folder. Raises TimeoutError, or another OSError if
    it cannot be started.

    Its process group is killed at the time limit, or if the parent is interrupted.
    """
    process = _start(command, subprocess.DEVNULL, subprocess.PIPE, environment, folder)
    try:
        output, errors = process.communicate(timeout=seconds)
    except BaseException as error:
        _end_group(process)
        for pipe in (process.stdout, process.stderr):
            assert pipe is not None
            pipe.close()
        if isinstance(error, subprocess.TimeoutExpired):
            raise TimeoutError from None
        raise
    return Finished(process.returncode, output, errors.decode(errors="replace"))


def _start(
    command: Sequence[str],
    standard_input: int,
    errors: int | IO[bytes],
    environment: Mapping[str, str] | None,
    folder: Path | None = None,
    descriptors: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """A process in a group of its own, its output a pipe."""
    return subprocess.Popen(
        command,
        stdin=standard_input,
        stdout=subprocess.PIPE,
        stderr=errors,
        env=environment,
        cwd=folder,
        pass_fds=descriptors,
        process_group=0,
    )


def _end_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class Child:
    """A process that communicates through pipes."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str] | None = None,
        descriptors: Sequence[int] = (),
        clean_up: Callable[[], object] = lambda: None,
    ) -> None:
        """`descriptors`: those that it inherits; `clean_up`: called when it is closed. Raises
        OSError if it cannot be started."""
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - `close` does
        self._clean_up = clean_up
        try:
            self._process = _start(
                command, subprocess.PIPE, self._said, environment, descriptors=descriptors
            )
        except BaseException:
            self._said.close()
            clean_up()
            raise
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self.output = self._process.stdin, self._process.stdout
        os.set_blocking(self.output.fileno(), False)
        self._rest = bytearray()
        self.has_closed = False
        """True at the end of its output: then it has ended, or is about to."""

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def code(self) -> int | None:
        """Its exit code, or the negative number of the signal that ended it; None while it runs."""
        return self._process.poll()

    @property
    def said(self) -> str:
        """Its standard error, or the last part of it."""
        size = self._said.seek(0, os.SEEK_END)
        self._said.seek(max(0, size - _MOST_SAID))
        return self._said.read().decode(errors="replace")

    # --- talking ----------------------------------------------------------------------------

    def send(self, content: bytes) -> None:
        """Write to its standard input; a child that has ended is detected on its output, not
        here."""
        with contextlib.suppress(BrokenPipeError):
            self._input.write(content)
            self._input.flush()

    def _read(self) -> None:
        """Read its available output."""
        with contextlib.suppress(BlockingIOError):
            while content := os.read(self.output.fileno(), _PIECE):
                self._rest += content
            self.has_closed = True

    def wait_for_output(self, deadline: Deadline) -> bool:
        """Wait until it has written something or ended; False at the time limit."""
        while True:
            has_ended = self.code is not None  # before the last look at its output
            if select.select([self.output], [], [], max(min(deadline.remaining, _TICK), 0.0))[0]:
                return True
            if has_ended:  # its own children may hold its output open
                self.has_closed = True
                return True
            if deadline.is_over:
                return False

    def lines(self) -> list[bytes]:
        """The complete lines that it has written since the last call."""
        self._read()
        *lines, rest = bytes(self._rest).split(b"\n")
        self._rest = bytearray(rest)
        return lines

    def request(self, message: bytes, deadline: Deadline) -> bytes | None:
        """Its answer to a message; None if it ends before that. Raises TimeoutError."""
        self.send(_LENGTH.pack(len(message)) + message)
        while True:
            content = self._rest
            if len(content) >= _LENGTH.size:
                end = _LENGTH.size + _LENGTH.unpack_from(content)[0]
                if len(content) >= end:
                    self._rest = content[end:]
                    return bytes(content[_LENGTH.size : end])
            if self.has_closed:
                return None
            if not self.wait_for_output(deadline):
                raise TimeoutError
            self._read()

    # --- its end ----------------------------------------------------------------------------

    def wait(self, seconds: float) -> bool:
        """Wait for its end, with a time limit; True if it has ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        return self._process.poll() is not None

    def abort(self) -> None:
        """Make it print its stack trace on standard error and end, if it can."""
        self._process.send_signal(signal.SIGABRT)

    def kill(self) -> None:
        """Kill its process group."""
        _end_group(self._process)

    def finish(self, seconds: float) -> int:
        """Its `code`; it is killed if it does not exit within that many seconds."""
        if not self.wait(seconds):
            self.kill()
        return self._process.returncode

    def close_input(self) -> None:
        """Close its input, so that it ends soon."""
        with contextlib.suppress(OSError):  # data that was not sent yet
            self._input.close()

    def close(self) -> None:
        """Release its resources in this process, after its end."""
        self.close_input()
        self.output.close()
        self._said.close()
        self._clean_up()

    def forget(self) -> None:
        """Leave it to the process that this one was forked from."""
        for stream in (self._input, self.output, self._said):
            with contextlib.suppress(OSError):
                stream.close()
        self._process.returncode = 0  # nothing that this process has to wait for


def serve(answer: Callable[[bytes], bytes]) -> None:
    """Answer the messages of a parent until it closes the pipe. Other output to standard output
    is redirected to standard error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # reserved for the answers
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while len(header := requests.read(_LENGTH.size)) == _LENGTH.size:
        (length,) = _LENGTH.unpack(header)
        message = requests.read(length)
        if len(message) < length:
            return
        content = answer(message)
        answers.write(_LENGTH.pack(len(content)) + content)
        answers.flush()
