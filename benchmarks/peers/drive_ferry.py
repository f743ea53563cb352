# SPDX-License-Identifier: Apache-2.0
"""Runs a program on ferryvm in this process: `python -m benchmarks.peers.drive_ferry NAME FILE`.

Prints the seconds of the run, the result and the seconds of preparing and compiling. A compiler
alone compiles before the program's first instruction, which is no part of the run: the figure is
that of a second run, with code that is there and with memory of its own. With --whole the first
figure is the whole time from the engine's start to the result; then a trivial program has run
before, since what Python imports for the first engine is no part of it.
"""

from __future__ import annotations

import sys
import time

import ferryvm
from benchmarks.peers.ferry import MIXED, engine
from benchmarks.peers.peer import MissingError
from ferryvm.engine import Engine, RunResult
from ferryvm.engine.journal import Attempt, Event, Placement
from ferryvm.engine.mixed import Mixed
from ferryvm.errors import FerryError
from ferryvm.program import Program


def main(arguments: list[str]) -> None:
    """Run the program in the file on what is named."""
    is_whole = arguments[0] == "--whole"
    name, path = arguments[1:] if is_whole else arguments
    program = ferryvm.read(path)
    if is_whole:
        engine(name).start(ferryvm.compile("(* 6 7)")).run()
    seconds, compiling, result = (_whole if is_whole else _split)(name, program)
    backend = result.statistics.backend
    if name not in (MIXED, backend):
        raise FerryError(f"asked for {name}, ran on {backend}")
    print(f"{seconds:.9f} {result.value!r} {compiling:.9f}")


def _whole(name: str, program: Program) -> tuple[float, float, RunResult]:
    began = time.perf_counter()
    ready = engine(name)
    attempts = _listen(ready)
    result = ready.start(program).run()
    return time.perf_counter() - began, _compiling(attempts, result), result


def _split(name: str, program: Program) -> tuple[float, float, RunResult]:
    ready = engine(name)
    attempts = _listen(ready)
    execution = ready.start(program)
    result = execution.run()
    compiling = _compiling(attempts, result)
    if attempts and name != MIXED:
        execution = execution.again()  # and the first one's memory is free
        result = execution.run()
    return result.statistics.seconds.run, compiling, result


def _listen(ready: Engine) -> list[Attempt]:
    """Where the engine's attempts to compile will be noted."""
    attempts: list[Attempt] = []

    def note(event: Event, _placement: Placement, detail: object) -> None:
        if event is Event.ATTEMPT and isinstance(detail, Attempt):
            attempts.append(detail)

    if isinstance(ready.backend, Mixed):
        ready.backend.listeners = (*ready.backend.listeners, note)
    return attempts


def _compiling(attempts: list[Attempt], result: RunResult) -> float:
    return result.statistics.seconds.prepare + sum(attempt.seconds for attempt in attempts)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (FerryError, MissingError) as error:
        sys.exit(str(error))
