# SPDX-License-Identifier: Apache-2.0
"""Native code of the backends, built once for all workers of a run, while they collect tests.

With an empty cache each worker would compile the interpreters itself, which takes six seconds of a
processor. So a process that is started first builds them; a worker waits until it has ended. What
fails there is no error: the worker that runs the backend next sees it. Run as `python FILE`.

In a new folder Hypothesis finds out which characters UTF-8 has, which takes two seconds of a
processor. That is done there, too, and not by each worker.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile

LOCK = "FERRYVM_TESTS_BUILD"
"""The environment variable with the file that the process keeps locked."""


class NativeBuild:
    """The process, from `begin` to `end`."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def begin(self) -> None:
        """Start it."""
        descriptor, os.environ[LOCK] = tempfile.mkstemp(prefix="ferryvm-build-")
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[descriptor],  # which holds the lock until the process ends
        )
        os.close(descriptor)

    def end(self) -> None:
        """Wait for its end."""
        if self._process is not None:
            self._process.wait()
            self._process = None
            os.unlink(os.environ.pop(LOCK))


def await_build() -> None:
    """Wait until the process has ended, if there is one."""
    if LOCK in os.environ:
        with open(os.environ[LOCK], "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH)


def build() -> None:
    """Run all in-tree backends at once, which build what they need in processes of their own: a
    processor would be idle at the end if one came after another."""
    from concurrent.futures import ThreadPoolExecutor

    import ferryvm
    from ferryvm_backends import ferryvm_backends

    program = ferryvm.assemble(".function main\nhalt\n")
    names = [entry.name for entry in ferryvm_backends()]
    with ThreadPoolExecutor(len(names) + 1) as pool:
        pool.submit(_find_characters)
        list(pool.map(lambda name: ferryvm.run(program, name), names))


def _find_characters() -> None:
    """Have Hypothesis write them into its folder."""
    from hypothesis.internal import charmap

    charmap.charmap()
    charmap.intervals_from_codec("utf-8")


if __name__ == "__main__":
    build()
