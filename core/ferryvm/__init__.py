# SPDX-License-Identifier: Apache-2.0
"""ferryvm: a virtual machine that ferries a running program between execution engines.

>>> import ferryvm
>>> ferryvm.run(ferryvm.compile("(* 6 7)")).value
42

Names load what they need when they are first used, so that a command that needs little starts fast.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as typing's, which takes milliseconds to load: `ferry` has no handlers yet
if TYPE_CHECKING:
    from pathlib import Path

    from ferryvm.engine import Engine, Execution, ProgramInterrupted, RunResult, TrapError
    from ferryvm.errors import FerryError, SourceError
    from ferryvm.program import Program
    from ferryvm.verify import Verified, VerifyError

__version__ = "0.1.0"

SUFFIXES = (".skiff", ".fasm", ".fvm")
"""Suffixes of files that hold programs."""

_HOMES = {
    "Engine": "engine",
    "Execution": "engine",
    "FerryError": "errors",
    "Program": "program",
    "ProgramInterrupted": "engine",
    "RunResult": "engine",
    "SourceError": "errors",
    "TrapError": "engine",
    "Verified": "verify",
    "VerifyError": "verify",
}
"""Where each name that is not defined here comes from."""

__all__ = [
    "Engine",
    "Execution",
    "FerryError",
    "Program",
    "ProgramInterrupted",
    "RunResult",
    "SourceError",
    "TrapError",
    "Verified",
    "VerifyError",
    "assemble",
    "compile",
    "disassemble",
    "load",
    "read",
    "run",
    "save",
]


def __getattr__(name: str) -> object:
    """A public name, on its first use (PEP 562)."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'ferryvm' has no attribute {name!r}")
    import importlib

    value: object = getattr(importlib.import_module(f"ferryvm.{home}"), name)
    globals()[name] = value
    return value


def compile(text: str, file: str = "<string>", optimize: bool = True) -> Program:
    """The program of a Skiff text. Raises SourceError with every fault found."""
    from ferryvm import skiff

    return skiff.compile(text, file, optimize)


def assemble(text: str, file: str = "<string>", optimize: bool = False) -> Program:
    """The program of an assembly text. Raises SourceError with every fault found."""
    from ferryvm import asm

    return asm.assemble(text, file, optimize)


def disassemble(program: Program) -> str:
    """Assembly text that assembles to the same program."""
    from ferryvm import asm

    return asm.disassemble(program)


def load(path: str | Path) -> Program:
    """The program in an image file (.fvm), not verified yet. Raises ImageError."""
    from ferryvm import image

    return image.load(path)


def save(program: Program, path: str | Path) -> None:
    """Write the image of a program. Raises ImageError where the file cannot be written."""
    from ferryvm import image

    image.save(program, path)


def read(path: str | Path, optimize: bool | None = None) -> Program:
    """The program in a file, by its suffix: .skiff, .fasm or .fvm.

    `optimize`: run the peephole over what is read from text; left open, over Skiff only, since what
    was written in assembly should run as it stands. Raises FerryError where the file cannot be read
    or its text has faults.
    """
    from pathlib import Path

    from ferryvm.errors import FerryError
    from ferryvm.input_file import read_text

    path = Path(path)
    if path.suffix == ".fvm":
        return load(path)
    if path.suffix not in SUFFIXES:
        raise FerryError(f"{path}: suffix {path.suffix!r} is none of .skiff, .fasm, .fvm")
    text = read_text(path)
    if path.suffix == ".skiff":
        return compile(text, str(path), optimize is not False)
    return assemble(text, str(path), optimize is True)


def run(program: Program, backend: str | None = None, fuel: int | None = None) -> RunResult:
    """Run a program from its start until it halts or `fuel` instructions have completed.

    `backend`: one by name; else the default policy chooses.

    Raises VerifyError, TrapError, BackendError; ProgramInterrupted on Ctrl-C.
    """
    from ferryvm.engine import Engine

    return Engine(backend).start(program).run(fuel)
