# SPDX-License-Identifier: Apache-2.0
"""The `ferry` command in a process of its own, forked from one that has everything imported.

    ferry("run", path)        (exit code, standard output, standard error)

A test process has one server. The server reads a request, a line of JSON, forks, and answers with
the exit code; the child has the request's arguments, environment, folder and files, and ends as the
command does. That saves the half of a second that
imports take. What a process does while it starts is tested with processes that start:
tests/cli/test_signal.py, test_end.py, test_cli.py. Run as `python FILE`.
"""

from __future__ import annotations

import atexit
import functools
import gc
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

IMPORTED = (
    "numpy",
    "ferryvm.cli.command",
    "ferryvm.cli.outcome",
    "ferryvm.cli.run",
    "ferryvm.cli.program",
    "ferryvm.cli.policy",
    "ferryvm.cli.diff",
    "ferryvm.cli.explain",
    "ferryvm.cli.fuzz",
    "ferryvm.cli.reduce",
    "ferryvm.cli.replay",
    "ferryvm.cli.backends",
    "ferryvm.engine",
    "ferryvm.engine.explain",
    "ferryvm.engine.mixed",
    "ferryvm.engine.saved",
    "ferryvm.policy",
    "ferryvm.policy.writer",
    "ferryvm.testing.bisect",
    "ferryvm.testing.fuzz",
    "ferryvm.testing.reduction",
    "ferryvm.testing.report",
    "ferryvm.ir.lift",
    "ferryvm.ir.passes",
    "ferryvm.listing",
    "ferryvm.skiff",
    "ferryvm.asm",
    "ferryvm_backends.switch",
    "ferryvm_backends.threaded",
    "ferryvm_backends.llvm",
    "ferryvm_backends.llvm.build",
    "ferryvm_backends.llvm.target",
    "ferryvm_backends.vliw",
    "ferryvm_backends.vliw.machine.read",
    "ferryvm_backends.vliw.entry",
    "ferryvm_backends.vliw.target",
    "ferryvm_backends.opencl",
    "ferryvm_backends.opencl.target",
    "ferryvm_backends.reference",
    "llvmlite.binding",
    "importlib.metadata",
    "numpy.typing",
    "pydantic",
    "rich.console",
    "rich.progress",
    "rich.table",
)
"""What most commands import."""


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
    standard error goes where standard output does."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in ("in", "out", "err")]
        files[0].write_text(given)
        request = {
            "arguments": list(map(str, arguments)),
            "cwd": str(cwd or Path.cwd()),
            "environment": dict(os.environ if environment is None else environment),
            "files": list(map(str, files)),
        }
        if merged:
            request["files"] = [str(files[0]), str(files[1]), str(files[1])]
            files[2].touch()
        code = _server().request(request, timeout)
        return Ended(code, *(file.read_bytes().decode() for file in files[1:]))


class _Server:
    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the tests
        )
        atexit.register(self.end)

    def request(self, request: object, timeout: float) -> int:
        """The exit code of a command. Raises TimeoutError, and ends the command."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        if not select.select([self._process.stdout], [], [], timeout)[0]:
            self.end()
            raise TimeoutError(f"a command did not end in {timeout:g} s: {request}")
        return int(self._process.stdout.readline())

    def end(self) -> None:
        """End the server and what it runs."""
        _server.cache_clear()
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()


@functools.cache
def _server() -> _Server:
    return _Server()


# --- in the server --------------------------------------------------------------------------


def serve() -> list[str] | None:
    """Answer requests. In a child: its arguments; in the server: None, when there are no more."""
    answers = os.dup(1)
    os.dup2(2, 1)
    for line in iter(sys.stdin.buffer.readline, b""):
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            os.close(answers)
            _become(request)
            return list(request["arguments"])
        _, status = os.waitpid(child, 0)
        os.write(answers, b"%d\n" % os.waitstatus_to_exitcode(status))
    return None


def _become(request: dict[str, object]) -> None:
    """Have what a process has that was started with a request."""
    output = os.O_WRONLY | os.O_CREAT | os.O_APPEND  # both may be one file
    modes = (os.O_RDONLY, output, output)
    for descriptor, (path, mode) in enumerate(zip(request["files"], modes, strict=True)):  # type: ignore[call-overload] # as above
        opened = os.open(path, mode, 0o600)
        os.dup2(opened, descriptor)
        os.close(opened)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - the process's
    os.chdir(str(request["cwd"]))
    environment = dict(request["environment"])  # type: ignore[call-overload] # as above
    os.environ.clear()
    os.environ.update(environment)
    added = [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.path[:] = [os.getcwd(), *added, *(path for path in sys.path[1:] if path not in added)]
    importlib.invalidate_caches()


if __name__ == "__main__":
    for name in IMPORTED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # a child neither looks through what is imported nor copies it
    arguments = serve()
    if arguments is not None:
        from ferryvm.cli import main

        sys.argv = ["ferry", *arguments]
        main()
