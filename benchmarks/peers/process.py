# SPDX-License-Identifier: Apache-2.0
"""A command in a process of its own, and the most memory that it had."""

from __future__ import annotations

import dataclasses
import functools
import os
import shutil
from collections.abc import Mapping, Sequence

from benchmarks.benchmark import ROOT
from benchmarks.build import build
from ferryvm import child


@dataclasses.dataclass(frozen=True)
class Done:
    """How a command ended."""

    exit_code: int
    output: str
    errors: str
    peak: int | None
    """Bytes of memory; None without a C compiler, since the launcher that asks is written in C."""


@functools.cache
def _launcher() -> tuple[str, ...]:
    """The start of a command line that adds the peak of the rest to what it prints."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        return ()
    return (str(build("peak", [compiler, "-O2"], [ROOT / "peers" / "peak.c"])),)


def run(command: Sequence[str], seconds: float, environment: Mapping[str, str]) -> Done:
    """Run a command from the root of the repository; raises TimeoutError after `seconds`."""
    launcher = _launcher()
    everything = {**os.environ, **environment}
    done = child.run([*launcher, *command], seconds, everything, ROOT.parent)
    output, peak = done.output.decode(errors="replace"), None
    if launcher:
        output, _, said = output.rpartition("peak ")
        peak = int(said) if said.strip().isdigit() else None
    return Done(done.code, output, done.errors, peak)
