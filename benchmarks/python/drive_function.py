# SPDX-License-Identifier: Apache-2.0
"""Runs a Python twin with `ferryvm.function`:
`python -m benchmarks.python.drive_function [--processor] TWIN SIZE...`.

Prints the seconds of a call when all code has been compiled (of the processor's time, if asked),
its result, and how much longer the first call of the process took.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import ferryvm
from benchmarks.python.item import loaded
from ferryvm.engine.transition import SiteState
from ferryvm.errors import FerryError
from ferryvm.python.call.function import PythonFunction

UNDER_WAY = {SiteState.QUEUED, SiteState.DECIDING, SiteState.COMPILING, SiteState.RECOMPILING}
MOST_CALLS = 12
MOST_SECONDS = 60.0
"""Limits: of calls, and of the time for which code is waited for in all."""


def main(arguments: list[str]) -> None:
    """Run the twin named first with the sizes that follow."""
    clock = time.perf_counter
    if arguments[0] == "--processor":
        clock, arguments = time.process_time, arguments[1:]
    work = ferryvm.function(loaded(Path(arguments[0])).work)
    sizes = [int(text) for text in arguments[1:]]
    times, result = list[float](), None
    states: list[tuple[int, str]] | None = None
    end = time.monotonic() + MOST_SECONDS
    while len(times) < MOST_CALLS:
        before, states = states, _states(work, end)
        if before == states:
            break  # the last call ran what had been compiled, and nothing else became hot
        began = clock()
        result = work(*sizes)
        times.append(clock() - began)
    if "CPython" in str(work.explain()):
        sys.exit(str(work.explain()))
    print(f"{times[-1]:.9f} {result!r} {max(times[0] - times[-1], 0.0):.9f}")


def _states(work: PythonFunction[..., object], end: float) -> list[tuple[int, str]]:
    """The parts of a function that ran long with their states, once none is being compiled."""
    while True:
        found = [
            (region.pc, str(region.state))
            for version in work.explain().versions
            for region in version.regions
        ]
        if UNDER_WAY.isdisjoint(state for _, state in found) or time.monotonic() > end:
            return found
        time.sleep(0.02)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except FerryError as error:
        sys.exit(str(error))
