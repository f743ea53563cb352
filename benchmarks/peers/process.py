# SPDX-License-Identifier: Apache-2.0
"""A command in a process of its own, and the most memory that it had."""

from __future__ import annotations

import dataclasses
import functools
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence

from benchmarks.benchmark import ROOT
from benchmarks.build import build


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
    """Run a command from the root of the repository; raises TimeoutExpired after `seconds`."""
    launcher = _launcher()
    with subprocess.Popen(
        [*launcher, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT.parent,
        env={**os.environ, **environment},
        start_new_session=True,  # so that the launcher's child can be ended with it
    ) as started:
        try:
            output, errors = started.communicate(timeout=seconds)
        except BaseException:
            os.killpg(started.pid, signal.SIGKILL)
            raise
    peak = None
    if launcher:
        output, _, said = output.rpartition("peak ")
        peak = int(said) if said.strip().isdigit() else None
    return Done(started.returncode, output, errors, peak)
