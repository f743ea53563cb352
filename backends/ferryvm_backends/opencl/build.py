# SPDX-License-Identifier: Apache-2.0
"""From a kernel's text to a program of a device, by way of a process that may die of it.

    source ─┬─ known to build ──────────────────────────────┬─> program
            └─ else: child process builds and tries it ─────┘
                     └─ crash, hang, error: one line that says so, and which source line it was

What a driver keeps on disk itself is not kept a second time: ours then only says that a text has
been built before, so that no child is needed. What it does not keep is in our cache.

    FERRYVM_OPENCL_TIMEOUT     seconds that a build may take
"""

from __future__ import annotations

import atexit
import base64
import contextlib
import dataclasses
import functools
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from typing import Any

import pyopencl as cl

from ferryvm import cache
from ferryvm.backend import BackendError, RefusalError
from ferryvm.failure import one_line
from ferryvm.float_environment import in_ours
from ferryvm_backends.opencl.device import POCL_DEVICES, Device

TIMEOUT = "FERRYVM_OPENCL_TIMEOUT"
_SECONDS = 120.0
_LONGEST = 300
"""Characters of what a driver says that a message repeats."""
_KEPT_ELSEWHERE = b"built"
"""What our cache has of a text whose code the driver keeps."""


@dataclasses.dataclass(frozen=True)
class Session:
    """What this process has of a device."""

    device: Device
    context: Any
    queue: Any

    def check_size(self, size: int) -> None:
        """Raise BackendError for a buffer that is larger than the device's may be."""
        if size > self.device.largest_buffer:
            raise BackendError(
                f"opencl: the program's memory has a part of {size} bytes, and {self.device} no "
                f"buffers of more than {self.device.largest_buffer}"
            )


@functools.cache
@in_ours  # as for `devices`
def session(device: Device) -> Session:
    """The one session of a device. Raises BackendError."""
    try:
        context = cl.Context([device.handle])
        return Session(device, context, cl.CommandQueue(context))
    except cl.Error as error:
        raise BackendError(f"opencl: {device} cannot be opened: {one_line(str(error))}") from None


def options(device: Device) -> list[str]:
    """Options of a build."""
    exact = ["-cl-fp32-correctly-rounded-divide-sqrt"] if device.has_exact_f32 else []
    return ["-cl-std=CL1.2", *exact]


def build(device: Device, source: str, is_kept: bool) -> tuple[Any, bool]:
    """A program, and whether it was not built but found. Raises BackendError.

    `is_kept`: our cache may be read and written.
    """
    entry = cache.Entry("kernel", cache.key(_facts(device, source)), "opencl")
    payload = entry.find() if is_kept else None
    if payload is not None:
        return _loaded(device, source, payload), True
    payload = _child().build(device, source) or _KEPT_ELSEWHERE
    program = _loaded(device, source, payload)
    if is_kept:
        entry.keep(payload)
    return program, False


def _facts(device: Device, source: str) -> list[str]:
    chosen = os.environ.get(POCL_DEVICES, "")
    platform, place, name = device.identity
    versions = [device.platform_version, device.version, device.driver]
    return [platform, str(place), name, *versions, chosen, *options(device), source]


def _loaded(device: Device, source: str, payload: bytes) -> Any:
    context = session(device).context
    if payload == _KEPT_ELSEWHERE:
        program = cl.Program(context, source)
    else:
        program = cl.Program(context, [device.handle], [payload])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cl.CompilerWarning)  # a driver's remarks on good code
            return program.build(options(device))
    except cl.Error as error:
        raise BackendError(_failed(device, source, str(error))) from None


# --- the process that builds ----------------------------------------------------------------


class Child:
    """A process that builds one text after another; it is started when it is first needed, and
    again after it had to be ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.process: subprocess.Popen[bytes] | None = None
        self._is_closed = False
        self._said: Any = None
        """The file with what it and its drivers print."""

    def build(self, device: Device, source: str) -> bytes:
        """The binary, or nothing where the driver keeps it. Raises BackendError."""
        request = {
            "device": list(device.identity),
            "source": source,
            "options": options(device),
            "binary": not device.keeps_builds,
        }
        with self._lock:
            answer = self._ask(device, json.dumps(request).encode() + b"\n")
        if "error" in answer:
            raise BackendError(_failed(device, source, answer["error"]))
        return base64.b64decode(answer.get("binary", ""))

    def _ask(self, device: Device, request: bytes) -> Any:
        seconds = _timeout()
        process = self._started()
        assert process.stdin is not None
        try:
            process.stdin.write(request)
            process.stdin.flush()
            line = self._line(process, seconds)
        except TimeoutError:
            self.end()
            raise BackendError(
                f"opencl: {device} did not build the kernel in {seconds:g} s; "
                f"set {TIMEOUT} to more seconds"
            ) from None
        except (OSError, ValueError):  # it is gone, or its pipes were closed meanwhile
            line = b""
        except BaseException:
            self.end()
            raise
        if self._is_closed:
            raise RefusalError("opencl: the process ends, and builds nothing any more")
        if not line.endswith(b"\n"):
            raise BackendError(self._died(process, device))
        return json.loads(line)

    def _started(self) -> subprocess.Popen[bytes]:
        if self.process is not None and self.process.poll() is None:
            return self.process
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        command = [sys.executable, "-m", "ferryvm_backends.opencl.child"]
        try:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._said,
                start_new_session=True,  # Ctrl-C is for the program
            )
        except OSError as error:
            raise BackendError(
                f"opencl: the process that builds cannot be started: {error.strerror}"
            ) from None
        return self.process

    def _line(self, process: subprocess.Popen[bytes], seconds: float) -> bytes:
        """A line of its output. Raises TimeoutError."""
        assert process.stdout is not None
        until = time.monotonic() + seconds
        read = b""
        while not read.endswith(b"\n"):
            left = until - time.monotonic()
            if left <= 0 or not select.select([process.stdout], [], [], left)[0]:
                raise TimeoutError
            piece = os.read(process.stdout.fileno(), 1 << 16)
            if not piece:
                break
            read += piece
        return read

    def _died(self, process: subprocess.Popen[bytes], device: Device) -> str:
        code = process.wait()
        self._said.seek(0)
        said = self._said.read().decode(errors="replace").strip().splitlines()
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
        last = f": {_printable(said[-1])}" if said else ""
        self.end()
        return f"opencl: the driver of {device} broke while it built the kernel: it {how}{last}"

    def close(self) -> None:
        """End the process and build nothing any more: who waits for a build is told at once."""
        self._is_closed = True
        self.end()

    def end(self) -> None:
        """End the process, whatever it is doing."""
        process, self.process = self.process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert process.stdin is not None
        assert process.stdout is not None
        for pipe in (process.stdin, process.stdout, self._said):
            with contextlib.suppress(OSError):  # what it has not read
                pipe.close()


@functools.cache
def _child() -> Child:
    child = Child()
    atexit.register(child.close)
    os.register_at_fork(after_in_child=_child.cache_clear)
    return child


def _timeout() -> float:
    text = os.environ.get(TIMEOUT, "")
    try:
        seconds = float(text) if text else _SECONDS
    except ValueError:
        seconds = -1.0
    if not seconds > 0:
        raise BackendError(f"opencl: {TIMEOUT}={text} is not a number of seconds above 0")
    return seconds


# --- what drivers say -----------------------------------------------------------------------

_ERROR = re.compile(
    r":(?P<line>\d+):\d+: (?:fatal )?error: (?P<said>.*)"  # clang's form, which most drivers have
    r"|error: \S*?:(?P<other>\d+):\d+(?: <[^>]*>)?: (?P<rest>.*)"  # PoCL's
)
_SOURCE = re.compile(r"/\* (\S+:\d+): ")


def _failed(device: Device, source: str, log: str) -> str:
    """A build's failure in one line, with the line of the program that it belongs to."""
    found = _ERROR.search(log)
    if found is None:
        lines = [line.strip() for line in log.splitlines() if line.strip()]
        said = next((line for line in lines if "error" in line.lower()), (lines or [""])[0])
        return f"opencl: {device} does not build the kernel: {_printable(said)}"
    number = int(found["line"] or found["other"])
    said = _printable(found["said"] or found["rest"])
    where = next(
        (m[1] for line in source.splitlines()[number - 1 :: -1] if (m := _SOURCE.search(line))),
        "the kernel's frame",
    )
    return f"opencl: {device} does not build the kernel: {said} (line {number}, of {where})"


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)[:_LONGEST]
