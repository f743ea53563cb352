# SPDX-License-Identifier: Apache-2.0
"""Items run in a process of their own, so that a backend's crash fails one item only.

run_apart ──label──> worker.py ──verdict──> run_apart
                         └── ends, or hangs: that item has failed, another process continues
"""

from __future__ import annotations

import json
import re
import sys
import sysconfig
from collections.abc import Generator, Sequence
from typing import Any

from ferryvm.child import Child, ending
from ferryvm.deadline import Deadline
from ferryvm.errors import FerryError
from ferryvm.testing.conformance.exception import is_foreign
from ferryvm.testing.conformance.suite import Item, ItemOutcome, ItemVerdict
from ferryvm.testing.watchdog import PATIENCE

_GRACE = 2.0
"""Seconds within which a stopped process must report its position."""

_FATAL = "Fatal Python error:"
"""The line that Python writes before its stack trace when a signal ends it."""

_MOST_FRAMES = 4


def run_apart(
    items: Sequence[Item], backend: str, patience: float
) -> Generator[ItemOutcome, None, None]:
    """The outcome of each item on the backend of that name, in their order.

    Raises FerryError for an unusable backend.
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
        # It finds what this process would: the same modules, and so the same plugins.
        start = f"from {__package__} import worker; worker.main()"
        text = f"import sys; sys.path[:] = {sys.path!r}; {start}"
        # -u: output of a backend is not lost when the process ends at once.
        self._process = Child([sys.executable, "-P", "-u", "-c", text])
        self._lines: list[bytes] = []
        try:
            answer = self._request(json.dumps([backend, patience]), max(patience, PATIENCE))
            if "ready" not in answer:
                how = "it does not come back"
                if "end" in answer:
                    how = f"the process ended with {answer['end']}"
                raise FerryError(answer.get("error", f"backend {backend!r} does not load: {how}"))
        except BaseException:
            self.close()
            raise

    def run(self, item: Item) -> tuple[ItemOutcome, bool]:
        """The outcome of an item, and True if the process is unusable afterwards."""
        answer = self._request(item.label, self.patience)
        if "error" in answer:
            raise FerryError(answer["error"])
        if "verdict" in answer:
            return ItemOutcome(ItemVerdict(answer["verdict"]), answer["text"]), False
        if "end" in answer:
            what = f"the process ended with {answer['end']}"
        else:
            what = f"did not come back within {self.patience:g} s"
            self._process.abort()  # it then says where it was
            self._process.wait(_GRACE)
        return ItemOutcome(ItemVerdict.FAILED, "\n".join((what, *self._places()))), True

    def _request(self, line: str, seconds: float) -> dict[str, Any]:
        """The answer; `end` if there is none because the process has ended, {} if it is late."""
        process, deadline = self._process, Deadline(seconds)
        process.send(line.encode() + b"\n")
        while not self._lines:
            if process.has_closed:
                return {"end": ending(process.finish(_GRACE))}
            if not process.wait_for_output(deadline):
                return {}
            self._lines += process.lines()
        found: dict[str, Any] = json.loads(self._lines.pop(0))
        return found

    def _places(self) -> list[str]:
        """Its position when it ended, outside ferryvm and Python's own library."""
        own = (sysconfig.get_path("stdlib"), "<")
        _, _, tail = self._process.said.rpartition(_FATAL)
        frames = re.findall(r'^  File "([^"]+)", line (\d+) in (.+)$', tail, re.MULTILINE)
        return [
            f"  at {file}:{line}, {name}"
            for file, line, name in frames
            if is_foreign(file) and ("site-packages" in file or not file.startswith(own))
        ][:_MOST_FRAMES]

    def close(self) -> None:
        """End the process, and forward the output of the backend."""
        self._process.kill()
        written = self._process.said.partition(_FATAL)[0]
        if written:
            sys.stderr.write(written)
            sys.stderr.flush()
        self._process.close()
