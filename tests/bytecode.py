# SPDX-License-Identifier: Apache-2.0
"""Bytecode that all processes of a run share, each module compiled once.

With PYTHONDONTWRITEBYTECODE each command and each worker that tests start compiles all that it
imports, which doubles what a command takes. So a run has a folder for bytecode of its own, which is
gone with it: nothing is written beside the sources. Without that variable Python does it by itself.

Workers that import the same modules at once would all compile them, and find the others' bytecode
too late. So what they share is compiled before they start, the sources of ferryvm by this process
and packages by one that imports them (`python FILE`); and each worker imports a part of the test
modules before it collects all.
"""

from __future__ import annotations

import compileall
import contextlib
import importlib
import importlib.abc
import importlib.machinery
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType

import pytest

FORBIDDEN = "PYTHONDONTWRITEBYTECODE"
FOLDER = "PYTHONPYCACHEPREFIX"

PACKAGES = (
    "asyncio",
    "click.testing",
    "hypothesis.strategies",
    "jsonschema",
    "llvmlite.binding",
    "mpmath",
    "numpy",
    "pydantic",
    "pyopencl",
    "pytest",
    "rich.console",
    "rich.table",
    "xdist.remote",
)
"""Modules outside of ferryvm that workers and commands import."""


class BytecodeFolder:
    """The folder, from `begin` to `end`; nothing where this process needs none."""

    def __init__(self) -> None:
        self._path: str | None = None
        self._forbidden = ""

    def begin(self) -> None:
        """Have this process, and those that it starts, keep bytecode there."""
        if not os.environ.get(FORBIDDEN) or FOLDER in os.environ:
            return
        self._path = tempfile.mkdtemp(prefix="ferryvm-bytecode-")
        self._forbidden = os.environ.pop(FORBIDDEN)
        os.environ[FOLDER] = self._path
        sys.dont_write_bytecode, sys.pycache_prefix = False, self._path

    def fill(self, folders: Iterable[Path]) -> None:
        """Compile all sources below folders, and packages that have no bytecode in this folder."""
        importing = subprocess.Popen([sys.executable, __file__]) if self._path is not None else None
        for folder in folders:
            compileall.compile_dir(folder, quiet=2)
        if importing is not None:
            importing.wait()

    def end(self) -> None:
        """Remove it."""
        if self._path is None:
            return
        os.environ[FORBIDDEN] = self._forbidden
        del os.environ[FOLDER]
        sys.dont_write_bytecode, sys.pycache_prefix = True, None
        shutil.rmtree(self._path, ignore_errors=True)
        self._path = None


class PlainFinder(importlib.abc.MetaPathFinder):
    """It stands in front of pytest's and finds modules that need not be compiled with asserts
    rewritten: pytest does that to all modules of a distribution that has a plugin of its own."""

    def __init__(self, packages: Iterable[str]) -> None:
        self._packages = frozenset(packages)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The module as Python finds it, if it belongs to one of the packages."""
        if fullname.partition(".")[0] not in self._packages:
            return None
        return importlib.machinery.PathFinder.find_spec(fullname, path, target)


def import_part(root: Path, folders: Iterable[Path], part: int, parts: int) -> None:
    """Import one of so many parts of the test modules in folders. Collection finds them
    imported."""
    files = sorted({file for folder in folders for file in folder.rglob("test_*.py")})
    for file in files[part::parts]:
        # What cannot be imported, or skips itself, is collection's to report.
        with contextlib.suppress(Exception, pytest.skip.Exception):
            importlib.import_module(".".join(file.relative_to(root).with_suffix("").parts))


if __name__ == "__main__":
    for name in PACKAGES:
        with contextlib.suppress(ImportError):  # who needs it says so
            importlib.import_module(name)
