# SPDX-License-Identifier: Apache-2.0
"""The parent's side of a worker: its process, its pipes, its notes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any

from ferryvm.testing.fuzz.notes import Notes
from ferryvm.testing.fuzz.plan import GRACE, CampaignPlan

_MODULE = f"{__package__}.worker"
_MOST_STDERR = 20_000
_LONGEST_LOOK = 0.5
"""Seconds that count at most between two looks: a machine that stood still is no hang."""


class Child:
    """One worker process."""

    def __init__(self, plan: CampaignPlan) -> None:
        # Neither file has a name, so nothing is left of them, however processes end.
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - `close` does
        with tempfile.TemporaryFile() as notes:
            self.notes = Notes(notes.fileno(), plan, is_new=True)
            # -P: what lies in the current directory must not stand in for a library.
            command = [sys.executable, "-P", "-m", _MODULE, str(notes.fileno())]
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                pass_fds=[notes.fileno()],
                process_group=0,  # a terminal's Ctrl-C is for the parent
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self.output = self._process.stdin, self._process.stdout
        os.set_blocking(self.output.fileno(), False)
        self._rest = b""
        self.is_ready = False
        """Whether it has said so."""
        self.has_closed = False
        """Whether its output has ended: it has, too, or soon will."""
        self.is_large = False
        """Whether it has said that it takes more memory than it should."""
        self.stretch: tuple[int, int] | None = None
        """The trials that it was dealt, until it says that they are done."""
        self._began = self._looked = time.monotonic()
        self._idle, self._progress = 0.0, self.notes.progress
        self._write(plan.to_json())

    @property
    def seconds(self) -> float:
        """Age."""
        return time.monotonic() - self._began

    def _write(self, line: str) -> None:
        with contextlib.suppress(BrokenPipeError):  # its death is noticed by its output
            self._input.write(line.encode() + b"\n")
            self._input.flush()

    def deal(self, first: int, end: int) -> None:
        """Let it try these."""
        self.stretch = first, end
        self._idle, self._looked = 0.0, time.monotonic()  # how long it took to start is over
        self._write(f"{first} {end}")

    def messages(self) -> list[dict[str, Any]]:
        """What it has said since; a last line that it did not finish is left out."""
        with contextlib.suppress(BlockingIOError):
            while content := os.read(self.output.fileno(), 1 << 16):
                self._rest += content
            self.has_closed = True
        *lines, self._rest = self._rest.split(b"\n")
        return [json.loads(line) for line in lines]

    def is_stuck(self, seconds: float) -> bool:
        """True if it has got no further for so long."""
        now = time.monotonic()
        self._idle += min(now - self._looked, _LONGEST_LOOK)
        self._looked = now
        if self.notes.progress != self._progress or (self.is_ready and not self.stretch):
            self._idle, self._progress = 0.0, self.notes.progress
        return self._idle > seconds

    def end(self, with_traceback: bool = False) -> str:
        """How it ended; it is ended if it has not."""
        if with_traceback:
            self._process.send_signal(signal.SIGABRT)  # it then says where it was
        try:
            code = self._process.wait(GRACE)
        except subprocess.TimeoutExpired:
            self.kill()
            code = self._process.returncode
        if code >= 0:
            return f"exit code {code}"
        try:
            return signal.Signals(-code).name
        except ValueError:
            return f"signal {-code}"

    def finish(self) -> None:
        """Let it end after the trial that it is at."""
        self._write("")

    def close_input(self) -> None:
        """Let it end soon."""
        with contextlib.suppress(BrokenPipeError):
            self._input.close()

    def wait(self, seconds: float) -> bool:
        """Wait until it has ended, for so long at most; whether it has."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        return self._process.poll() is not None

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()
        self._process.wait()

    @property
    def has_failed(self) -> bool:
        """True if it has ended as it should not."""
        return self._process.poll() not in (None, 0)

    @property
    def was_killed(self) -> bool:
        """True if a signal ended it."""
        return (self._process.poll() or 0) < 0

    def close(self) -> None:
        """Give up what it takes here, once it has ended."""
        self.close_input()
        self.output.close()
        self._stderr.close()

    @property
    def stderr(self) -> str:
        """What it wrote on standard error, or the last of it."""
        size = self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, size - _MOST_STDERR))
        return self._stderr.read().decode(errors="replace")

    @property
    def last_line(self) -> str:
        """The last line of it."""
        return (self.stderr.splitlines() or ["it wrote nothing"])[-1]
