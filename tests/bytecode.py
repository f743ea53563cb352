# SPDX-License-Identifier: Apache-2.0
"""Bytecode that all processes of a run share, where Python was told to write none.

With PYTHONDONTWRITEBYTECODE each command and each worker that tests start compiles all that it
imports, which doubles what a command takes. So a run has a folder for bytecode of its own, which is
gone with it: nothing is written beside the sources. Without that variable Python does it by itself.

Workers that collect the same tests at once would all compile them, and find the others' bytecode too
late. So each of them imports a part of the test modules before it collects all.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import pytest

FORBIDDEN = "PYTHONDONTWRITEBYTECODE"
FOLDER = "PYTHONPYCACHEPREFIX"


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

    def end(self) -> None:
        """Remove it."""
        if self._path is None:
            return
        os.environ[FORBIDDEN] = self._forbidden
        del os.environ[FOLDER]
        sys.dont_write_bytecode, sys.pycache_prefix = True, None
        shutil.rmtree(self._path, ignore_errors=True)
        self._path = None


def import_part(root: Path, folders: Iterable[Path], part: int, parts: int) -> None:
    """Import one of so many parts of the test modules in folders. Collection finds them imported."""
    files = sorted({file for folder in folders for file in folder.rglob("test_*.py")})
    for file in files[part::parts]:
        # What cannot be imported, or skips itself, is collection's to report.
        with contextlib.suppress(Exception, pytest.skip.Exception):
            importlib.import_module(".".join(file.relative_to(root).with_suffix("").parts))
