# SPDX-License-Identifier: Apache-2.0
"""What a peer is: something that runs the twins and says how long the work took."""

from __future__ import annotations

import abc
import dataclasses
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.benchmark import Benchmark, BenchmarkError

SECONDS_A_RUN = 600.0
"""A run that takes longer is taken for a hang."""


class MissingError(Exception):
    """A peer, or one of its twins, takes no part; the message is the reason."""


@dataclasses.dataclass(frozen=True)
class Measurement:
    """One run: seconds of the work alone, as the peer itself measured them, and its result."""

    seconds: float
    result: int | float


Task = Callable[[], Measurement]


class Peer(abc.ABC):
    """A participant. `version` and `prepare` raise MissingError to say why it takes no part."""

    name: str
    """As given to --peers."""
    label: str
    """As shown in the table."""
    rounds_at_most: int | None = None
    """A peer too slow for all rounds says how many it takes part in."""

    @abc.abstractmethod
    def version(self) -> str:
        """What exactly takes part."""

    @abc.abstractmethod
    def prepare(self, benchmark: Benchmark, sizes: tuple[int, ...], is_full: bool) -> Task:
        """A task that runs the twin once; building and compiling are done here."""


def tool(name: str, reason: str = "") -> str:
    """The path of an installed program; raises MissingError where there is none."""
    path = shutil.which(name)
    if path is None:
        raise MissingError(f"{name} is not installed{reason}")
    return path


def twin(benchmark: Benchmark, *suffixes: str) -> Path:
    """The first twin that exists; raises MissingError when none does."""
    for suffix in suffixes:
        if benchmark.path(suffix).exists():
            return benchmark.path(suffix)
    raise MissingError(f"no twin {benchmark.path(suffixes[-1]).name}")


def first_line(command: Sequence[str]) -> str:
    """The first line that a command prints, for versions."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return ((done.stdout or done.stderr).splitlines() or ["unknown"])[0].strip()


def measured(benchmark: Benchmark, command: Sequence[str]) -> Measurement:
    """What a driver process printed: seconds and result on one line."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS_A_RUN, check=False
        )
    except subprocess.TimeoutExpired:
        raise BenchmarkError(f"took more than {SECONDS_A_RUN:.0f} s") from None
    words = done.stdout.split()
    if done.returncode != 0 or len(words) != 2:
        said = (done.stderr or done.stdout).strip().splitlines() or ["nothing"]
        name = Path(command[0]).name
        raise BenchmarkError(f"{name} exited with {done.returncode}: {said[-1]}")
    return Measurement(float(words[0]), benchmark.read(words[1]))
