# SPDX-License-Identifier: Apache-2.0
"""The system's C compiler: its command, its version, and its execution.

    CC                     its command; without it the first of cc, gcc, clang that is there
    FERRYVM_CC_TIMEOUT     seconds that it may take for a region

It runs in a process group of its own, so that its child processes are ended with it.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import platform
import re
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

from ferryvm import child
from ferryvm.backend import BackendError
from ferryvm.deadline import seconds_from

COMMAND = "CC"
TIMEOUT = "FERRYVM_CC_TIMEOUT"
_SECONDS = 120.0
_NAMES = ("cc", "gcc", "clang")
_LONGEST = 300
"""The largest number of characters of a compiler's output in a message."""

_NATIVE = {"x86_64": "-march=native", "amd64": "-march=native"}.get(
    platform.machine().lower(), "-mcpu=native"
)

ANOTHER = f"set {COMMAND} to a C compiler for this machine"
"""Remedy for a compiler whose output is unusable."""

FLAGS = (
    "-std=gnu11",
    "-w",
    _NATIVE,
    "-fPIC",
    "-fvisibility=hidden",
    "-ffp-contract=off",  # a fused multiplication and addition rounds once
    "-fno-fast-math",
    "-fno-math-errno",
    "-fno-trapping-math",  # the exception flags are not read
    "-fno-strict-aliasing",
    "-fwrapv",
    "-fno-stack-clash-protection",  # it makes large frames in a loop, and their size hard to find
)


@dataclasses.dataclass(frozen=True)
class CCompiler:
    """A C compiler that answers."""

    command: tuple[str, ...]
    identity: str
    """Its predefined macros: its version, the processor's features. Code of another identity is
    other code."""

    def compile(self, source: Path, target: Path, level: int) -> None:
        """Make a shared object. Raises BackendError."""
        self._run(level, "-shared", "-o", str(target), str(source), "-lm")
        if not target.is_file():
            raise BackendError(
                f"cc: {self.command[0]!r} says that it succeeded but wrote nothing; "
                f"set {COMMAND} to a C compiler"
            )

    def assemble(self, source: Path, level: int) -> str:
        """The assembly of a source. Raises BackendError."""
        return self._run(level, "-S", "-o", "-", str(source))

    def _run(self, level: int, *arguments: str) -> str:
        return run((*self.command, f"-O{level}", *FLAGS, *arguments))


_LABEL = re.compile(r"\.?L[\w$.]+")
_COMPUTED = re.compile(r"\b(jmp\s+\*|br\s+x\d)")


def has_loop(assembly: str) -> bool:
    """True if code may have a cycle: it refers to an earlier label, or jumps to a computed
    address."""
    seen: set[str] = set()
    for line in assembly.splitlines():
        text = line.strip()
        if text.endswith(":"):
            seen.add(text[:-1])
        elif not text.startswith(".") and (
            _COMPUTED.search(text) or seen.intersection(_LABEL.findall(text))
        ):
            return True
    return False


def find() -> CCompiler:
    """The C compiler to use. Raises BackendError with the reason where there is none."""
    command = _command()
    path = shutil.which(command[0])
    assert path is not None
    return CCompiler(command, _identity(command, os.path.realpath(path), os.stat(path).st_mtime_ns))


def _command() -> tuple[str, ...]:
    named = os.environ.get(COMMAND, "").strip()
    if not named:
        for name in _NAMES:
            if shutil.which(name):
                return (name,)
        looked = ", ".join(_NAMES)
        raise BackendError(
            f"cc: no C compiler here (looked for {looked}); install one, or set {COMMAND} to it"
        )
    try:
        command = tuple(shlex.split(named))
    except ValueError as error:
        raise BackendError(f"cc: {COMMAND}={named} cannot be read as a command: {error}") from None
    if not shutil.which(command[0]):
        raise BackendError(
            f"cc: {COMMAND} names {command[0]!r}, which is not there or cannot be run; "
            "set it to a C compiler, or unset it"
        )
    return command


@functools.cache
def _identity(command: tuple[str, ...], path: str, changed: int) -> str:
    """The macros that a compiler predefines with our flags. `path` and `changed` say which file it
    is."""
    defined = run((*command, *FLAGS, "-dM", "-E", "-x", "c", os.devnull))
    if "__VERSION__" not in defined:
        raise BackendError(
            f"cc: {command[0]!r} is no compiler that this backend knows (gcc, clang); "
            f"set {COMMAND} to one of them"
        )
    return defined


def run(command: Sequence[str]) -> str:
    """The output of a command. Raises BackendError that names it and the remedy."""
    seconds = seconds_from(TIMEOUT, _SECONDS, lambda text: BackendError(f"cc: {text}"))
    remedy = f"set {COMMAND} to a C compiler that works"
    try:
        done = child.run(command, seconds, {**os.environ, "LC_ALL": "C"})
    except TimeoutError:
        raise BackendError(
            f"cc: {command[0]!r} did not finish in {seconds:g} s; {remedy}, or {TIMEOUT} to more "
            f"seconds (command: {shlex.join(command)})"
        ) from None
    except OSError as error:
        raise BackendError(f"cc: cannot start {command[0]!r}: {error.strerror}; {remedy}") from None
    if done.code:
        ending = child.ending(done.code)
        line = _first_error(done.errors) or (
            f"it was ended by {ending}" if done.code < 0 else ending
        )
        raise BackendError(
            f"cc: {command[0]!r} failed: {line}; {remedy} (command: {shlex.join(command)})"
        )
    return done.output.decode(errors="replace")


def _first_error(text: str) -> str:
    """The most informative line of a compiler's output."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    found = next((line for line in lines if "error" in line.lower()), lines[0] if lines else "")
    return "".join(c if c.isprintable() else "?" for c in found)[:_LONGEST]
