# SPDX-License-Identifier: Apache-2.0
"""Child processes: what may crash, hang or leak happens in one, and the parent says what became of
it in a line.

    run(command)        one command, its whole output
    Child(command)      a process that is talked to, by lines or by messages
    serve(answer)       the child's side of messages

A message is its length and its bytes. Invariants: a child is in a process group of its own, so a
terminal's Ctrl-C is for the parent, which ends the whole group when it gives the child up; what it
writes on standard error is in a file without a name, so nothing is left of it and nobody waits for
it to be read. One child after another that answers is a `ferryvm.service`.
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
"""Seconds between two looks at a process that writes nothing."""
_MOST_SAID = 20_000
"""Bytes of standard error that are kept, the last ones."""


def environment() -> dict[str, str]:
    """Of a child that is to find the very packages that this process runs."""
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
    """The result of a command that runs in a folder. Raises TimeoutError, or another OSError where
    it cannot be started.

    It is ended, with all that it started, where its time is over or the parent is interrupted.
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
    """A process that is talked to through pipes."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str] | None = None,
        descriptors: Sequence[int] = (),
        clean_up: Callable[[], object] = lambda: None,
    ) -> None:
        """`descriptors`: those that it inherits; `clean_up`: called when it is closed. Raises
        OSError where it cannot be started."""
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
        """True if its output has ended: then it has ended too, or soon will."""

    @property
    def pid(self) -> int:
        """Its number."""
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
        """Write to it. That it has ended is seen by its output, not here."""
        with contextlib.suppress(BrokenPipeError):
            self._input.write(content)
            self._input.flush()

    def _read(self) -> None:
        """Take what it has written."""
        with contextlib.suppress(BlockingIOError):
            while content := os.read(self.output.fileno(), _PIECE):
                self._rest += content
            self.has_closed = True

    def wait_for_output(self, deadline: Deadline) -> bool:
        """Wait until it has written something or ended; False where that takes too long."""
        while True:
            has_ended = self.code is not None  # before the last look at its output
            if select.select([self.output], [], [], max(min(deadline.remaining, _TICK), 0.0))[0]:
                return True
            if has_ended:  # what it has started may keep its output open
                self.has_closed = True
                return True
            if deadline.is_over:
                return False

    def lines(self) -> list[bytes]:
        """Lines that it has written since; a last one that it did not finish is left out."""
        self._read()
        *lines, rest = bytes(self._rest).split(b"\n")
        self._rest = bytearray(rest)
        return lines

    def request(self, message: bytes, deadline: Deadline) -> bytes | None:
        """Its answer to a message; None if it ends before. Raises TimeoutError."""
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
        """Wait until it has ended, for so long at most; whether it has."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        return self._process.poll() is not None

    def abort(self) -> None:
        """Make it print its stack trace on standard error and end, if it can."""
        self._process.send_signal(signal.SIGABRT)

    def kill(self) -> None:
        """End it at once, with all that it started."""
        _end_group(self._process)

    def finish(self, seconds: float) -> int:
        """Its `code`; it is ended if it does not end by itself within so many seconds."""
        if not self.wait(seconds):
            self.kill()
        return self._process.returncode

    def close_input(self) -> None:
        """Close its input, so that it ends soon."""
        with contextlib.suppress(OSError):  # what was not sent yet
            self._input.close()

    def close(self) -> None:
        """Give up what it takes here, once it has ended."""
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
    """Answer the messages of a parent until there are none any more. What else is
    written on standard output gets to standard error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is for who asked
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
