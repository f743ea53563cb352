# SPDX-License-Identifier: Apache-2.0
"""Peers that take as long as they are told to."""

from __future__ import annotations

from benchmarks.benchmark import BY_NAME, Benchmark, Scale
from benchmarks.comparison import compare
from benchmarks.interpreter import SUITE
from benchmarks.peers.peer import Measurement, MissingError, Peer, Task
from benchmarks.report import Report, Suite

BOTH = [BY_NAME["loop"], BY_NAME["fib"]]


class FakePeer(Peer):
    """Takes a fixed time; refuses the programs that it is told to."""

    def __init__(
        self,
        name: str,
        seconds: float,
        result: int | float = 7,
        lacks: tuple[str, ...] = (),
        installed: bool = True,
    ) -> None:
        self.name, self.label = name, name.upper()
        self.seconds, self.result, self.lacks, self.installed = seconds, result, lacks, installed

    def version(self) -> str:
        if not self.installed:
            raise MissingError(f"{self.name} is not installed")
        return f"{self.name} 1.0"

    def prepare(self, benchmark: Benchmark, scale: Scale) -> Task:
        if benchmark.name in self.lacks:
            raise MissingError(f"lacks {benchmark.name}")
        return lambda: Measurement(self.seconds, self.result)


class CompilingPeer(FakePeer):
    """Takes so long to compile, in the first round and after it, and so much memory."""

    def __init__(self, name: str, seconds: float, compiling: list[float], peak: int) -> None:
        super().__init__(name, seconds)
        self.compiling, self.peak = compiling, peak

    def prepare(self, benchmark: Benchmark, scale: Scale) -> Task:
        left = iter(self.compiling)
        return lambda: Measurement(self.seconds, self.result, next(left), self.peak)


def compared(*peers: Peer, rounds: int = 3, suite: Suite = SUITE) -> Report:
    """A report on two programs."""
    return compare(suite, BOTH, {peer.name: peer for peer in peers}, rounds)
