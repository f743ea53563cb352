# SPDX-License-Identifier: Apache-2.0
"""The benchmark of the vliw backend, on machines by name: `python -m benchmarks vliw`.

    exact backend ── result ──┐
                              ▼
    machine ── kernel alone ──┼──> cycles of a call
            └─ whole program ─┴──> cycles, loops, cycles simulated in a second

Only runs with the right result, by code of the machine alone, have metrics. Cycles are exact, and
the same each time; seconds are medians of rounds, in which all programs take turns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import ferryvm
from benchmarks.benchmark import BenchmarkError, Scale
from benchmarks.measure import interleave
from benchmarks.vliw.program import FULL, PROGRAMS, Simulated
from benchmarks.vliw.report import Simulations
from benchmarks.vliw.simulation import Runs, Whole, fatal, kernel_of, machine_of, run_on
from ferryvm.verify import Verified, verify

__all__ = ["FULL", "MACHINES", "PROGRAMS", "Simulations", "measure"]

MACHINES = ("single", "multi16")
"""Those that are measured unless others are named."""

Progress = Callable[[str], None]
_Key = tuple[str, str]


def measure(
    programs: Sequence[Simulated],
    machines: Sequence[str],
    rounds: int,
    scale: Scale,
    progress: Progress,
) -> Simulations:
    """All programs on all machines. What fails is a fault, and the others go on.

    Raises BenchmarkError where there is no such machine.
    """
    for machine in machines:
        machine_of(machine)
    names = [program.name for program in programs]
    found = Simulations(names, list(machines), rounds, scale)
    tasks: dict[_Key, Callable[[], None]] = {}
    for program in programs:
        try:
            verified, expected = _expected(program, scale)
        except BenchmarkError as error:
            found.failures.append(f"{program.name}: {error}")
            continue
        for machine in machines:
            progress(f"{program.name} on {machine}: compiling")
            task = _task(found, program, verified, machine, expected)
            if task is not None:
                tasks[program.name, machine] = task
    for (program_name, machine), _ in interleave(tasks, rounds, {}):
        figure = found.metrics.get(program_name, {}).get(machine)
        if figure is not None:
            speed = figure.cycles / figure.seconds[-1] / 1e6
            progress(f"{program_name} on {machine}: {figure.cycles} cycles, {speed:.1f} million/s")
    return found


def _expected(program: Simulated, scale: Scale) -> tuple[Verified, int | float]:
    """A program and its result: by the reference interpreter, where that is no matter of minutes,
    else by an interpreter that is held to be its equal, bit for bit."""
    text = program.skiff(program.at(scale))
    with fatal():
        verified = verify(ferryvm.compile(text, file=program.path("skiff").name))
    return verified, run_on("threaded" if scale is FULL else "reference", program, verified)


def _task(
    found: Simulations, program: Simulated, verified: Verified, machine: str, expected: int | float
) -> Callable[[], None] | None:
    """A round of a program on a machine; None where it cannot be had."""

    def fail(error: BenchmarkError) -> None:
        found.metrics.get(program.name, {}).pop(machine, None)
        found.failures.append(f"{program.name} on {machine}: {error}")

    try:
        kernel = kernel_of(Runs(program, verified, machine, expected, False))
        whole = Whole(Runs(program, verified, machine, expected, True))
    except BenchmarkError as error:
        fail(error)
        return None
    has_failed = False

    def run() -> None:
        nonlocal has_failed
        if has_failed:
            return
        on = found.metrics.setdefault(program.name, {})
        try:
            on[machine] = whole.round(kernel, on.get(machine))
        except BenchmarkError as error:
            has_failed = True
            fail(error)

    return run
