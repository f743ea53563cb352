# SPDX-License-Identifier: Apache-2.0
"""The parent's side of a worker: its process, what it says, its notes."""

from __future__ import annotations

import json
import re
import sys
import tempfile
import time
from typing import Any

from ferryvm import child
from ferryvm.testing.fuzz.notes import Notes
from ferryvm.testing.fuzz.plan import GRACE, CampaignPlan

_MODULE = f"{__package__}.worker"
_LONGEST_LOOK = 0.5
"""The most seconds that count between two checks: a suspended machine is not a hang."""


class WorkerProcess:
    """One worker."""

    def __init__(self, plan: CampaignPlan) -> None:
        # The file has no name, so it disappears with the processes.
        with tempfile.TemporaryFile() as notes:
            self.notes = Notes(notes.fileno(), plan, is_new=True)
            # -P: files in the current directory must not replace libraries.
            command = [sys.executable, "-P", "-m", _MODULE, str(notes.fileno())]
            self.process = child.Child(command, descriptors=[notes.fileno()])
        self.is_ready = False
        """True once it has said so."""
        self.is_large = False
        """True if it has reported that it takes more memory than it should."""
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
        self.process.send(line.encode() + b"\n")

    def deal(self, first: int, end: int) -> None:
        """Give it these trials."""
        self.stretch = first, end
        self._idle, self._looked = 0.0, time.monotonic()  # the start-up has ended
        self._write(f"{first} {end}")

    def messages(self) -> list[dict[str, Any]]:
        """Its messages since the last call, without an unfinished last line."""
        return [json.loads(line) for line in self.process.lines()]

    def is_stuck(self, seconds: float) -> bool:
        """True if it has made no progress for that long."""
        now = time.monotonic()
        self._idle += min(now - self._looked, _LONGEST_LOOK)
        self._looked = now
        if self.notes.progress != self._progress or (self.is_ready and not self.stretch):
            self._idle, self._progress = 0.0, self.notes.progress
        return self._idle > seconds

    def end(self, with_traceback: bool = False) -> str:
        """The way it ended; a running process is killed."""
        if with_traceback:
            self.process.abort()  # it then prints its position
        return child.ending(self.process.finish(GRACE))

    def finish(self) -> None:
        """Let it end after its current trial."""
        self._write("")

    @property
    def has_failed(self) -> bool:
        """True if it ended abnormally."""
        return self.process.code not in (None, 0)

    @property
    def was_killed(self) -> bool:
        """True if a signal ended it."""
        return (self.process.code or 0) < 0

    @property
    def place(self) -> str:
        """The place that it said it was at when it was aborted."""
        found = re.search(r"File .*, line \d+ in \S+", self.process.said)
        return f"at {found[0]}" if found else "at no place that it said"

    @property
    def last_line(self) -> str:
        """The last line that it wrote on standard error."""
        return (self.process.said.splitlines() or ["it wrote nothing"])[-1]
