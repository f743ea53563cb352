# SPDX-License-Identifier: Apache-2.0
"""Processes forked from one that has everything imported, which saves what their imports take.

    Forked("ferryvm.cli", ["run", path], files)      calls the `main` of a module in a new process

A test process has one server. It reads requests, lines of JSON with descriptors, and forks for each
of them; the new process has the request's arguments, environment, folder and files, and a process
group of its own. Run as `python FILE DESCRIPTOR`.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

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
    "ferryvm.testing.fuzz.worker",
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
"""What most of them import."""

_PIECE = 1 << 16
_MOST_FILES = 8


class Forked:
    """A process, with that part of the interface of `subprocess.Popen` which callers need."""

    def __init__(
        self,
        module: str,
        arguments: Sequence[str],
        files: Sequence[int],
        *,
        descriptors: Sequence[int] = (),
        cwd: Path | None = None,
        environment: Mapping[str, str] | None = None,
        is_safe: bool = False,
    ) -> None:
        """`files`: standard input, output and error; `descriptors`: others, by whose numbers
        arguments name them; `is_safe`: nothing is imported from its folder."""
        request = {
            "module": module,
            "arguments": list(arguments),
            "descriptors": list(map(str, descriptors)),
            "cwd": str(cwd or Path.cwd()),
            "environment": dict(os.environ if environment is None else environment),
            "is_safe": is_safe,
        }
        ours, theirs = socket.socketpair()
        with theirs:
            _server().send(request, [theirs.fileno(), *files, *descriptors])
        with ours:
            # Without a buffer no line is read that `select` would wait for.
            self._lines = ours.makefile("rb", buffering=0)
        self.pid = int(self._lines.readline())
        self.returncode: int | None = None
        self.stdin: IO[bytes] | None = None
        self.stdout: IO[bytes] | None = None

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, or the negative number of the signal that ended it. Raises
        TimeoutExpired."""
        if self.returncode is None:
            if not select.select([self._lines], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("a forked process", timeout or 0.0)
            with self._lines:
                # Without the server nobody knows how it ended.
                self.returncode = int(self._lines.readline() or -signal.SIGKILL)
        return self.returncode

    def poll(self) -> int | None:
        """As `wait`; None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0.0)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send it a signal."""
        if self.poll() is None:
            os.kill(self.pid, number)


class _Server:
    def __init__(self) -> None:
        self._requests, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C is for the tests
            )
        atexit.register(self.end)

    def send(self, request: object, files: Sequence[int]) -> None:
        """Have it fork."""
        line = json.dumps(request).encode() + b"\n"
        sent = socket.send_fds(self._requests, [line], files)
        self._requests.sendall(line[sent:])

    def end(self) -> None:
        """End the server and what it runs."""
        _server.cache_clear()
        self._requests.close()
        self._process.wait()


@functools.cache
def _server() -> _Server:
    return _Server()


def start_worker(
    command: Sequence[str],
    standard_input: int,
    errors: IO[bytes],
    environment: Mapping[str, str] | None,
    folder: Path | None = None,
    descriptors: Sequence[int] = (),
) -> Forked:
    """As `ferryvm.child` starts a process: the worker of a campaign."""
    assert command[1:3] == ["-P", "-m"]
    assert standard_input == subprocess.PIPE
    ends = [*os.pipe(), *os.pipe()]
    process = Forked(
        command[3],
        command[4:],
        [ends[0], ends[3], errors.fileno()],
        descriptors=descriptors,
        cwd=folder,
        environment=environment,
        is_safe=True,
    )
    for end in (ends[0], ends[3]):
        os.close(end)
    process.stdin, process.stdout = os.fdopen(ends[1], "wb"), os.fdopen(ends[2], "rb")
    return process


# --- in the server --------------------------------------------------------------------------


def serve(requests: socket.socket) -> dict[str, Any] | None:
    """Answer requests. In a child: the request that it is for; in the server: None, when there are
    no more."""
    waiting: dict[int, socket.socket] = {}
    """Where the end of each child is told."""
    woken, waking = socket.socketpair()
    waking.setblocking(False)
    signal.set_wakeup_fd(waking.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    try:
        while True:
            ready = select.select([requests, woken], [], [])[0]
            if woken in ready:
                woken.recv(_PIECE)
                for child in _ended(waiting):
                    with waiting.pop(child[0]) as status, contextlib.suppress(OSError):
                        status.sendall(b"%d\n" % child[1])
            if requests in ready:
                line, files, _, _ = socket.recv_fds(requests, _PIECE, _MOST_FILES)
                if not line:
                    break
                while not line.endswith(b"\n"):
                    line += requests.recv(_PIECE)
                number = os.fork()
                if number == 0:
                    signal.set_wakeup_fd(-1)
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    for each in (requests, woken, waking, *waiting.values()):
                        each.close()
                    request: dict[str, Any] = json.loads(line)
                    _become(request, files)
                    return request
                with contextlib.suppress(OSError):  # it has done so itself
                    os.setpgid(number, number)
                waiting[number] = socket.socket(fileno=files[0])
                waiting[number].sendall(b"%d\n" % number)
                for file in files[1:]:
                    os.close(file)
    except KeyboardInterrupt:
        pass
    for number in waiting:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(number, signal.SIGKILL)
    return None


def _ended(waiting: Mapping[int, object]) -> list[tuple[int, int]]:
    """Children that have ended, and how."""
    found = []
    for number in waiting:
        child, status = os.waitpid(number, os.WNOHANG)
        if child:
            found.append((child, os.waitstatus_to_exitcode(status)))
    return found


def _become(request: dict[str, Any], files: Sequence[int]) -> None:
    """Have what a process has that was started with a request."""
    os.setpgid(0, 0)
    os.close(files[0])
    for descriptor, file in enumerate(files[1:4]):
        os.dup2(file, descriptor)
        os.close(file)
    names = dict(zip(request["descriptors"], map(str, files[4:]), strict=True))
    sys.argv = [request["module"], *(names.get(each, each) for each in request["arguments"])]
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - the process's
    os.chdir(request["cwd"])
    environment = request["environment"]
    os.environ.clear()
    os.environ.update(environment)
    added = [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path]
    here = [] if request["is_safe"] else [os.getcwd()]
    sys.path[:] = [*here, *added, *(path for path in sys.path[1:] if path not in added)]
    importlib.invalidate_caches()


if __name__ == "__main__":
    for name in IMPORTED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # a child neither looks through what is imported nor copies it
    found = serve(socket.socket(fileno=int(sys.argv[1])))
    if found is not None:
        if found["module"] == "ferryvm.cli":
            sys.argv[0] = "ferry"
        importlib.import_module(found["module"]).main()
