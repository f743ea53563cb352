# SPDX-License-Identifier: Apache-2.0
"""ferryvm in this process: programs that were compiled before, and whole runs under a policy.

A backend that is asked for and does not compile, or whose code is not entered, is an error.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import ferryvm
from benchmarks.benchmark import Benchmark, BenchmarkError, Scale
from benchmarks.measure import median
from benchmarks.opencl.device import described
from benchmarks.opencl.part import Details
from benchmarks.opencl.watched import Spent, Watched, result_of
from benchmarks.peers.ferry import compiled
from benchmarks.peers.peer import Measurement, Peer, Task
from benchmarks.report import identity
from ferryvm.engine import Engine, Execution
from ferryvm.errors import FerryError
from ferryvm.policy import Policy
from ferryvm.program import Program
from ferryvm.registry import Registry
from ferryvm_backends.opencl.device import find

OPENCL = "opencl"

STEADY = 0.01
"""Seconds of runs that make one measurement."""
_MOST_RUNS = 20


@contextlib.contextmanager
def fatal() -> Iterator[None]:
    """Have what ferryvm raises be an error of the benchmark."""
    try:
        yield
    except FerryError as error:
        raise BenchmarkError(str(error)) from error


class WatchedPeer(Peer):
    """A compiler by name; what it builds, and what its code does, is noted."""

    def __init__(self, name: str, compiler: str, label: str) -> None:
        self.name, self.compiler, self.label = name, compiler, label
        self.details = Details(label)

    def version(self) -> str:
        with fatal():
            backend = Registry().get(self.compiler)
            reason = backend.probe()
            device = f" on {described(find())}" if self.compiler == OPENCL else ""
        if reason is not None:
            raise BenchmarkError(f"backend {self.compiler!r}: {reason}")
        return f"ferryvm backend {backend.name} {backend.version}{device}"

    def program(self, benchmark: Benchmark, scale: Scale) -> Program:
        """What is run."""
        return compiled(benchmark, scale)

    def engine(self, benchmark: Benchmark) -> Engine:
        """What runs it."""
        return Engine(self.compiler)


class CompiledPeer(WatchedPeer):
    """Runs of what has been compiled before, each with memory of its own.

    A measurement is the median of as many runs as take about 10 ms, so that what folds is not
    measured by one tenth of a millisecond.
    """

    def prepare(self, benchmark: Benchmark, scale: Scale) -> Task:
        with fatal():
            warm_up(self.compiler)
            watched = Watched(self.engine(benchmark), self.compiler)
            execution = watched.engine.start(self.program(benchmark, scale))
            execution.run()
            self.details.built[benchmark.name] = watched.built()
            execution = execution.again()
            execution.run()  # what the first run left to be compiled is there now, too
        runs = runs_for(execution.statistics.seconds.run)
        rounds = self.details.spent.setdefault(benchmark.name, [])

        def run() -> Measurement:
            nonlocal execution
            found, result = [], None
            for _ in range(runs):
                with fatal():
                    execution = execution.again()  # and the memory of the one before is free
                    spent, value = _run(watched, benchmark, execution)
                if result is not None and identity(value) != identity(result):
                    raise BenchmarkError(f"it gave {result!r}, then {value!r}")
                found.append(spent)
                result = value
            assert result is not None
            rounds.append(middle(found))
            self.details.built[benchmark.name] = watched.built()
            self.details.refusals[benchmark.name] = watched.refusals()
            return Measurement(median([spent.whole for spent in found]), result)

        return run


def _run(watched: Watched, benchmark: Benchmark, execution: Execution) -> tuple[Spent, int | float]:
    before = watched.activity()
    result = execution.run()
    backend, expected = result.statistics.backend, watched.engine.backend.name
    if backend != expected:
        raise BenchmarkError(f"asked for {expected}, ran on {backend}")
    spent = watched.spent(result.statistics.seconds.run, 0.0, before)
    return spent, result_of(benchmark, result)


def runs_for(seconds: float) -> int:
    """How many runs make a measurement, if one takes so long."""
    return min(max(round(STEADY / seconds) if seconds else _MOST_RUNS, 1), _MOST_RUNS)


def middle(found: list[Spent]) -> Spent:
    """The run in the middle, by its whole time."""
    return sorted(found, key=lambda spent: spent.whole)[len(found) // 2]


class MixedPeer(WatchedPeer):
    """Whole runs from the engine's start to the result, under a policy that gives code to one
    compiler."""

    def __init__(self, name: str, compiler: str, label: str, policy: Policy) -> None:
        super().__init__(name, compiler, label)
        self.policy = policy

    def prepare(self, benchmark: Benchmark, scale: Scale) -> Task:
        with fatal():
            warm_up(self.compiler)
            program = self.program(benchmark, scale)
        rounds = self.details.spent.setdefault(benchmark.name, [])

        def run() -> Measurement:
            with fatal():
                began = time.perf_counter()
                watched = Watched(Engine(policy=self.policy), self.compiler)
                nothing = watched.activity()
                result = watched.engine.start(program).run()
                whole = time.perf_counter() - began
            built = watched.built()
            self.details.built.setdefault(benchmark.name, built)
            self.details.refusals[benchmark.name] = watched.refusals()
            rounds.append(watched.spent(whole, built.seconds, nothing))
            return Measurement(whole, result_of(benchmark, result), built.seconds)

        return run


class AlonePeer(Peer):
    """The same runs by an interpreter alone."""

    def __init__(self, name: str) -> None:
        self.name, self.label = name, f"{name} alone"

    def version(self) -> str:
        with fatal():
            backend = Engine(self.name).backend
        return f"ferryvm backend {backend.name} {backend.version}"

    def prepare(self, benchmark: Benchmark, scale: Scale) -> Task:
        with fatal():
            program = compiled(benchmark, scale)

        def run() -> Measurement:
            with fatal():
                began = time.perf_counter()
                result = Engine(self.name).start(program).run()
                whole = time.perf_counter() - began
            if result.statistics.backend != self.name:
                raise BenchmarkError(f"asked for {self.name}, ran on {result.statistics.backend}")
            return Measurement(whole, result_of(benchmark, result))

        return run


def warm_up(compiler: str) -> None:
    """Have a compiler's own parts built and loaded, which is no part of building a program."""
    ferryvm.run(ferryvm.compile("(* 6 7)"), compiler)
