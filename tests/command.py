# SPDX-License-Identifier: Apache-2.0
"""The `ferry` command in a process of its own, forked from one that has everything imported.

    ferry("run", path)        (exit code, standard output, standard error)

That saves the half of a second that imports take. What a process does while it starts is tested
with processes that start: tests/cli/test_signal.py, test_end.py, test_cli.py.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from .warm import Forked


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    """Negative: the number of the signal that ended it."""
    out: str
    err: str


def ferry(
    *arguments: object,
    cwd: Path | None = None,
    given: str = "",
    environment: Mapping[str, str] | None = None,
    timeout: float = 120.0,
    merged: bool = False,
) -> Ended:
    """Run a command; `given` is its standard input, `environment` all of its environment. `merged`:
    standard error goes where standard output does. Raises TimeoutError, and ends the command."""
    with ExitStack() as stack:
        files = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(3)]
        files[0].write(given.encode())
        files[0].seek(0)
        numbers = [file.fileno() for file in files]
        if merged:
            numbers[2] = numbers[1]
        words = list(map(str, arguments))
        process = Forked("ferryvm.cli", words, numbers, cwd=cwd, environment=environment)
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise TimeoutError(f"a command did not end in {timeout:g} s: {words}") from None
        for file in files:
            file.seek(0)
        return Ended(code, files[1].read().decode(), files[2].read().decode())
