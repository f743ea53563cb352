# SPDX-License-Identifier: Apache-2.0
"""ferryvm itself, with the Skiff twins: one backend by name, or its default policy."""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping

import ferryvm
from benchmarks.benchmark import Benchmark, BenchmarkError, Scale
from benchmarks.build import written
from benchmarks.peers.peer import Measurement, MissingError, Peer, Task, measured, twin
from ferryvm import policy
from ferryvm.engine import Engine
from ferryvm.errors import FerryError
from ferryvm.program import Program
from ferryvm.verify import verify

TOO_SLOW = ("reference",)
"""Backends that would take hours at sizes that are reported."""

MIXED = "mixed"
"""What the engine with its default policy is called here; it is no backend."""

CACHE = "FERRYVM_CACHE_DIR"
"""The variable that says where ferryvm keeps native code."""


def engine(name: str) -> Engine:
    """An engine on a backend, or with the default policy for MIXED; MissingError where there is
    none."""
    try:
        found = Engine(policy=policy.default()) if name == MIXED else Engine(name)
        reason = found.backend.probe()
    except FerryError as error:
        raise MissingError(str(error)) from None
    if reason is not None:
        raise MissingError(reason)
    return found


class FerryPeer(Peer):
    """One backend of ferryvm, in this process."""

    def __init__(self, name: str) -> None:
        self.name = self.backend = name
        self.label = f"ferryvm {name}"

    def version(self) -> str:
        if self.backend == MIXED:
            engine(self.backend)
            return f"ferryvm {ferryvm.__version__}, default policy"
        backend = engine(self.backend).backend
        return f"ferryvm backend {backend.name} {backend.version}"

    def prepare(self, benchmark: Benchmark, scale: Scale) -> Task:
        self._refuse_too_much(scale)
        ready = engine(self.backend)
        try:
            program = verify(self._program(benchmark, scale))
        except FerryError as error:
            raise BenchmarkError(str(error)) from error

        def run() -> Measurement:
            try:
                result = ready.start(program).run()
            except FerryError as error:
                raise BenchmarkError(str(error)) from error
            statistics = result.statistics
            if self.backend not in (MIXED, statistics.backend):
                raise BenchmarkError(f"asked for {self.backend}, ran on {statistics.backend}")
            if result.value is None:
                raise BenchmarkError(f"{benchmark.name}: the twin has no result")
            return Measurement(statistics.seconds.run, result.value, statistics.seconds.prepare)

        return run

    def _program(self, benchmark: Benchmark, scale: Scale) -> Program:
        return compiled(benchmark, scale)

    def _refuse_too_much(self, scale: Scale) -> None:
        if self.name in TOO_SLOW and scale not in (Scale.TINY, Scale.QUICK):
            raise MissingError("too slow at full size; takes part with --quick")


class ListingPeer(FerryPeer):
    """A backend on code that no optimiser has seen: the classic listing of a program."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = f"{name}-listing"
        self.label = f"ferryvm {name}, unoptimised"

    def _program(self, benchmark: Benchmark, scale: Scale) -> Program:
        return assembled(benchmark, scale)


class FerryProcess(FerryPeer):
    """The same in a process of its own for each run, with a cache of its own.

    The first run of a program compiles it, later ones find what was compiled in the cache.
    """

    def __init__(self, name: str, environment: Mapping[str, str]) -> None:
        """`environment`: variables for the process, above all where the cache is."""
        super().__init__(name)
        self.environment = dict(environment)
        self._has_cache = False

    def prepare(self, benchmark: Benchmark, scale: Scale) -> Task:
        self._refuse_too_much(scale)
        engine(self.name)
        self._fill_cache()
        text = benchmark.skiff(benchmark.at(scale))
        path = written(f"{benchmark.name}-{scale.value}.skiff", text.encode())
        return lambda: measured(benchmark, drive(self.name, str(path)), self.environment)

    def _fill_cache(self) -> None:
        """Have the backend's own parts built, which are no part of compiling a program."""
        if not self._has_cache:
            path = written("trivial-value.skiff", b"(* 6 7)\n")
            measured(Benchmark("trivial", "", ()), drive(self.name, str(path)), self.environment)
            self._has_cache = True


def drive(name: str, path: str, is_whole: bool = False) -> list[str]:
    """The command that runs a program's file once and prints seconds, result and preparation.

    `is_whole`: the seconds are those of the whole run.
    """
    option = ["--whole"] if is_whole else []
    return [sys.executable, "-m", "benchmarks.peers.drive_ferry", *option, name, path]


@functools.cache
def compiled(benchmark: Benchmark, scale: Scale) -> Program:
    """The Skiff twin's program."""
    text = benchmark.skiff(benchmark.at(scale))
    return ferryvm.compile(text, file=str(benchmark.path("skiff")))


@functools.cache
def assembled(benchmark: Benchmark, scale: Scale) -> Program:
    """The program of the classic listing, as it stands: no peephole."""
    path = twin(benchmark, "fasm")
    return ferryvm.assemble(benchmark.listing(benchmark.at(scale)), file=str(path))
