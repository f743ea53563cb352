# SPDX-License-Identifier: Apache-2.0
"""Compiled twins and peers, kept in benchmarks/.build under the hash of what made them."""

from __future__ import annotations

import hashlib
import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.benchmark import ROOT, BenchmarkError
from ferryvm.atomic_file import replace_file

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
    unfinished = output.with_name(f"{output.name}.{os.getpid()}")
    _compile(command, sources, unfinished)
    unfinished.replace(output)
    return output


def build_seconds(command: Sequence[str], sources: Sequence[Path]) -> float:
    """Seconds that the command takes for the sources, its result thrown away.

    Raises BenchmarkError with the compiler's message when it fails.
    """
    output = BUILD / f"timed.{os.getpid()}"
    try:
        began = time.perf_counter()
        _compile(command, sources, output)
        return time.perf_counter() - began
    finally:
        output.unlink(missing_ok=True)


def _compile(command: Sequence[str], sources: Sequence[Path], output: Path) -> None:
    BUILD.mkdir(exist_ok=True)
    full = [*command, *map(str, sources), "-o", str(output)]
    done = subprocess.run(full, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchmarkError(f"{' '.join(full)}\n{done.stderr}")


def written(name: str, content: bytes) -> Path:
    """A file of the build folder with this content."""
    BUILD.mkdir(exist_ok=True)
    path = BUILD / name
    if not path.exists() or path.read_bytes() != content:
        replace_file(path, content)
    return path
