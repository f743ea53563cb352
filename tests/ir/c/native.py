# SPDX-License-Identifier: Apache-2.0
"""C text compiled and loaded, for tests of what is printed."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest

COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)]

needs_compiler = pytest.mark.skipif(not COMPILERS, reason="there is no gcc and no clang here")
each_compiler = pytest.mark.parametrize("compiler", COMPILERS)

FLAGS = "-std=gnu11 -w -ffp-contract=off -fno-strict-aliasing -fno-math-errno -fPIC -shared"


def load(text: str, folder: Path, compiler: str, level: int = 1) -> ctypes.CDLL:
    """The library that a compiler makes of a text."""
    source, target = folder / "text.c", folder / f"text-{compiler}.so"
    source.write_text(text)
    command = [compiler, f"-O{level}", *FLAGS.split(), "-o", target, source, "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(target))
