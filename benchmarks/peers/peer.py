# SPDX-License-Identifier: Apache-2.0
"""What a peer is: something that runs the twins and says how long the work took."""

from __future__ import annotations

import abc
import dataclasses
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.benchmark import Benchmark, BenchmarkError, Scale
from benchmarks.peers import process

SECONDS_A_RUN = 600.0
"""A run that takes longer is taken for a hang."""


class MissingError(Exception):
    """A peer, or one of its twins, takes no part; the message is the reason."""


@dataclasses.dataclass(frozen=True)
class Measurement:
    """One run: seconds of the work alone, as the peer itself measured them, and its result."""

    seconds: float
    result: int | float
    compile_seconds: float | None = None
    """Seconds that went into compiling before the work began, where a peer can tell them apart."""
    peak: int | None = None
    """The most bytes of memory that the peer's process had; None: it had none of its own."""


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
    def prepare(self, benchmark: Benchmark, scale: Scale) -> Task:
        """A task that runs the twin once; what is built ahead of time is built here."""


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


def sizes(benchmark: Benchmark, scale: Scale) -> list[str]:
    """The sizes as arguments of a driver."""
    return [str(size) for size in benchmark.at(scale)]


def warm_up(benchmark: Benchmark) -> str:
    """The small sizes that a peer which compiles as it runs is given first, as one argument."""
    return ",".join(sizes(benchmark, Scale.QUICK))


def first_line(command: Sequence[str]) -> str:
    """The first line that a command prints, for versions."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return ((done.stdout or done.stderr).splitlines() or ["unknown"])[0].strip()


def measured(
    benchmark: Benchmark, command: Sequence[str], environment: dict[str, str] | None = None
) -> Measurement:
    """What a driver process printed: seconds, result and, from some, seconds of compiling.

    `environment`: variables that are set for it.
    """
    try:
        done = process.run(command, SECONDS_A_RUN, environment or {})
    except TimeoutError:
        raise BenchmarkError(f"took more than {SECONDS_A_RUN:.0f} s") from None
    words = done.output.split()
    if done.exit_code != 0 or len(words) not in (2, 3):
        said = (done.errors or done.output).strip().splitlines() or ["nothing"]
        name = Path(command[0]).name
        raise BenchmarkError(f"{name} exited with {done.exit_code}: {said[-1]}")
    compile_seconds = float(words[2]) if len(words) == 3 else None
    return Measurement(float(words[0]), benchmark.read(words[1]), compile_seconds, done.peak)
