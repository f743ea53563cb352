# SPDX-License-Identifier: Apache-2.0
"""ferryvm's own backends, by name, in this process, with the Skiff twins."""

from __future__ import annotations

import functools

import ferryvm
from benchmarks.benchmark import Benchmark, BenchmarkError
from benchmarks.peers.peer import Measurement, MissingError, Peer, Task
from ferryvm.engine import Engine
from ferryvm.errors import FerryError
from ferryvm.program import Program
from ferryvm.verify import verify

FULL_SIZE_IS_TOO_MUCH = ("reference",)
"""Backends that would take hours at full size."""


class FerryPeer(Peer):
    """One backend of ferryvm."""

    def __init__(self, backend: str) -> None:
        self.name = backend
        self.label = f"ferryvm {backend}"

    def version(self) -> str:
        engine = self._engine()
        return f"ferryvm backend {engine.backend.name} {engine.backend.version}"

    def prepare(self, benchmark: Benchmark, sizes: tuple[int, ...], is_full: bool) -> Task:
        if is_full and self.name in FULL_SIZE_IS_TOO_MUCH:
            raise MissingError("too slow at full size; takes part with --quick")
        engine = self._engine()
        try:
            program = verify(compiled(benchmark, sizes))
        except FerryError as error:
            raise BenchmarkError(str(error)) from error

        def run() -> Measurement:
            try:
                result = engine.start(program).run()
            except FerryError as error:
                raise BenchmarkError(str(error)) from error
            statistics = result.statistics
            if statistics.backend != self.name:
                raise BenchmarkError(f"asked for {self.name}, ran on {statistics.backend}")
            if result.value is None:
                raise BenchmarkError(f"{benchmark.name}: the Skiff twin has no result")
            return Measurement(statistics.seconds.run, result.value)

        return run

    def _engine(self) -> Engine:
        try:
            engine = Engine(self.name)
            reason = engine.backend.probe()
        except FerryError as error:
            raise MissingError(str(error)) from None
        if reason is not None:
            raise MissingError(reason)
        return engine


@functools.cache
def compiled(benchmark: Benchmark, sizes: tuple[int, ...]) -> Program:
    """The Skiff twin's program."""
    return ferryvm.compile(benchmark.skiff(sizes), file=str(benchmark.path("skiff")))
