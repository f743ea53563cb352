# SPDX-License-Identifier: Apache-2.0
"""Running items in a process of their own, so that whatever a backend does fails one item only.

run_apart ──label──> worker.py ──verdict──> run_apart
                         └── ends, or stays: that item has failed, another process goes on
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Generator, Sequence
from typing import Any

from ferryvm.errors import FerryError
from ferryvm.testing.conformance.exception import is_foreign
from ferryvm.testing.conformance.suite import Item, ItemOutcome, ItemVerdict
from ferryvm.testing.watchdog import PATIENCE

_TICK = 0.2
"""Seconds between two looks at a process that says nothing."""

_GRACE = 2.0
"""Seconds that a process has to say where it is when it is stopped."""

_FATAL = "Fatal Python error:"
"""What Python writes when it ends by a signal, before it says where it is."""

_MOST_FRAMES = 4
_MOST_WRITTEN = 20_000
"""Characters of what a backend wrote that are passed on at most, the last ones."""


def run_apart(
    items: Sequence[Item], backend: str, patience: float
) -> Generator[ItemOutcome, None, None]:
    """What becomes of each item on the backend of that name, in their order.

    Raises FerryError for a backend that cannot be used.
    """
    worker: _Worker | None = None
    try:
        for item in items:
            if worker is None:
                worker = _Worker(backend, patience)
            outcome, is_over = worker.run(item)
            if is_over:
                worker.close()
                worker = None
            yield outcome
    finally:
        if worker is not None:
            worker.close()


class _Worker:
    def __init__(self, backend: str, patience: float) -> None:
        self.patience = patience
        self._written = tempfile.TemporaryFile()  # noqa: SIM115 - `close` does
        # It finds what this process would: the same modules, and so the same plugins.
        start = f"from {__package__} import worker; worker.main()"
        text = f"import sys; sys.path[:] = {sys.path!r}; {start}"
        self._process = subprocess.Popen(
            # -u: what a backend prints is not lost when the process ends at once.
            [sys.executable, "-P", "-u", "-c", text],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._written,
            process_group=0,  # a terminal's Ctrl-C is for the parent
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout
        os.set_blocking(self._output.fileno(), False)
        self._rest = b""
        try:
            answer = self._ask(json.dumps([backend, patience]), max(patience, PATIENCE))
            if "ready" not in answer:
                how = "it does not come back"
                if "end" in answer:
                    how = f"the process ended with {answer['end']}"
                raise FerryError(answer.get("error", f"backend {backend!r} does not load: {how}"))
        except BaseException:
            self.close()
            raise

    def run(self, item: Item) -> tuple[ItemOutcome, bool]:
        """What becomes of an item, and whether the process is of no more use."""
        answer = self._ask(item.label, self.patience)
        if "error" in answer:
            raise FerryError(answer["error"])
        if "verdict" in answer:
            return ItemOutcome(ItemVerdict(answer["verdict"]), answer["text"]), False
        if "end" in answer:
            what = f"the process ended with {answer['end']}"
        else:
            what = f"did not come back within {self.patience:g} s"
            self._process.send_signal(signal.SIGABRT)  # it then says where it was
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_GRACE)
        return ItemOutcome(ItemVerdict.FAILED, "\n".join((what, *self._places()))), True

    def _ask(self, line: str, seconds: float) -> dict[str, Any]:
        """The answer; `end` if there is none because the process has ended, {} if it is late."""
        with contextlib.suppress(BrokenPipeError):
            self._input.write(line.encode() + b"\n")
            self._input.flush()
        deadline = time.monotonic() + seconds
        while True:
            has_ended = self._process.poll() is not None  # before the last look at its answers
            is_late = time.monotonic() > deadline
            answer = self._read(0 if has_ended or is_late else _TICK)
            if answer is not None:
                return answer
            if has_ended:
                return {"end": _end(self._process.returncode)}
            if is_late:
                return {}

    def _read(self, seconds: float) -> dict[str, Any] | None:
        """A line of its output, if there is one in time."""
        if select.select([self._output], [], [], seconds)[0]:
            with contextlib.suppress(BlockingIOError):
                content = os.read(self._output.fileno(), 1 << 16)
                self._rest += content
                if not content:  # it is about to end
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        self._process.wait(_TICK)
        line, end, rest = self._rest.partition(b"\n")
        if not end:
            return None
        self._rest = rest
        found: dict[str, Any] = json.loads(line)
        return found

    def _text(self) -> str:
        size = self._written.seek(0, os.SEEK_END)
        self._written.seek(max(0, size - _MOST_WRITTEN))
        return self._written.read().decode(errors="replace")

    def _places(self) -> list[str]:
        """Where it was when it ended, outside ferryvm and Python's own library."""
        own = (sysconfig.get_path("stdlib"), "<")
        _, _, tail = self._text().rpartition(_FATAL)
        frames = re.findall(r'^  File "([^"]+)", line (\d+) in (.+)$', tail, re.MULTILINE)
        return [
            f"  at {file}:{line}, {name}"
            for file, line, name in frames
            if is_foreign(file) and ("site-packages" in file or not file.startswith(own))
        ][:_MOST_FRAMES]

    def close(self) -> None:
        """End the process, and pass on what the backend wrote."""
        self._process.kill()
        self._process.wait()
        written = self._text().partition(_FATAL)[0]
        if written:
            sys.stderr.write(written)
            sys.stderr.flush()
        with contextlib.suppress(BrokenPipeError):
            self._input.close()
        self._output.close()
        self._written.close()


def _end(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
