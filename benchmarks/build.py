# SPDX-License-Identifier: Apache-2.0
"""Compiled twins and peers, kept in benchmarks/.build under the hash of what made them."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from benchmarks.benchmark import ROOT, BenchmarkError

BUILD = ROOT / ".build"


def build(
    stem: str, command: Sequence[str], sources: Sequence[Path], headers: Sequence[Path] = ()
) -> Path:
    """The file that `command` makes of the sources; an older one if nothing has changed.

    Raises BenchmarkError with the compiler's message when it fails.
    """
    key = hashlib.sha256("\0".join(command).encode())
    for path in (*sources, *headers):
        key.update(path.read_bytes())
    output = BUILD / f"{stem}-{key.hexdigest()[:16]}"
    if output.exists():
        return output
    BUILD.mkdir(exist_ok=True)
    unfinished = output.with_name(f"{output.name}.{os.getpid()}")
    full = [*command, *map(str, sources), "-o", str(unfinished)]
    done = subprocess.run(full, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchmarkError(f"{' '.join(full)}\n{done.stderr}")
    unfinished.replace(output)
    return output


def written(name: str, content: bytes) -> Path:
    """A file of the build folder with this content."""
    BUILD.mkdir(exist_ok=True)
    path = BUILD / name
    if not path.exists() or path.read_bytes() != content:
        unfinished = path.with_name(f"{name}.{os.getpid()}")
        unfinished.write_bytes(content)
        unfinished.replace(path)
    return path
