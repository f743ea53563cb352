# SPDX-License-Identifier: Apache-2.0
"""What simulated machines and their code are held to, at full sizes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from benchmarks.report import Target
from benchmarks.vliw.figure import NONE, Figure, LoopFigure
from benchmarks.vliw.program import BY_NAME, DCT, LAUNCH, LOOPTEST

SINGLE, MULTI = "single", "multi16"

MOST_OVER_BOUND = 1.2
AT_THE_BOUND = ("dot", "fir")
MOST_DCT_CYCLES = 1_020_000
LEAST_DCT_RATIO = 5.25
MOST_LAUNCH_CYCLES = 22_000
LEAST_SPEED = 10.0
"""Million cycles in a second."""

Metrics = Mapping[str, Mapping[str, Figure]]
"""By program, then by machine."""


@dataclasses.dataclass(frozen=True)
class Stated(Target):
    """A goal that is met or missed for a reason that no number says."""

    said: str = ""
    verdict: bool = False

    @property
    def is_met(self) -> bool | None:
        return self.verdict

    def __str__(self) -> str:
        return f"target: {self.name}: {self.said}: {'met' if self.verdict else 'NOT met'}"

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name, "found": self.said, "is_met": self.verdict}


class Cycles(Target):
    """A goal on a number of cycles, which is written out."""

    def __str__(self) -> str:
        verdict = {True: "met", False: "NOT met", None: "not known"}[self.is_met]
        found = "-" if self.found is None else f"{self.found:,.0f}"
        return f"target: {self.name}: at most {self.bound:,.0f} cycles, found {found}: {verdict}"


def goals(metrics: Metrics, programs: list[str], machines: list[str]) -> list[Target]:
    """The goals on these programs and machines."""
    return [
        *(
            _loops(metrics, name, machine)
            for machine in machines
            for name in programs
            if name != LAUNCH  # its loops read 64 and 81 registers, for which there are four ports
        ),
        *(_dct(metrics) if DCT in programs else ()),
        *([_launch(metrics)] if LAUNCH in programs else ()),
        *(_speed(metrics, programs) if MULTI in machines else ()),
        *(_finishes(metrics, machine) for machine in machines if LOOPTEST in programs),
    ]


def ratio(metrics: Metrics, program: str) -> float | None:
    """How many times as long `single` takes for a call of the kernel as `multi16`."""
    on = metrics.get(program, {})
    if SINGLE not in on or MULTI not in on:
        return None
    return on[SINGLE].kernel.each / on[MULTI].kernel.each


def _loops(metrics: Metrics, program: str, machine: str) -> Target:
    """The initiation intervals of a program's pipelined loops; of its kernel's alone, where they
    are to be at the bound. All loops of the kernel have to be pipelined."""
    is_exact = program in AT_THE_BOUND
    most = 1.0 if is_exact else MOST_OVER_BOUND
    name = f"{program} on {machine}, interval of loops over their bound"
    figure = metrics.get(program, {}).get(machine)
    if figure is None:
        return Target(name, None, most, True)
    kernel = figure.loops_of(BY_NAME[program].kernel)
    if not kernel:
        return Stated(name, None, most, True, said=NONE)
    left = [loop for loop in kernel if loop.loop.reason]
    if left:
        return Stated(name, None, most, True, said=_not_pipelined(left[0], len(left)))
    judged = kernel if is_exact else [loop for loop in figure.loops if not loop.loop.reason]
    return Target(name, max(loop.ratio for loop in judged), most, True)


def _not_pipelined(loop: LoopFigure, count: int) -> str:
    more = f", and {count - 1} more" if count > 1 else ""
    return f"{loop.place} is not pipelined ({loop.loop.reason}){more}"


def _dct(metrics: Metrics) -> list[Target]:
    figure = metrics.get(DCT, {}).get(MULTI)
    cycles = None if figure is None else figure.kernel.each
    return [
        Cycles(f"{DCT} on {MULTI}, a call", cycles, MOST_DCT_CYCLES, True),
        Target(f"{DCT}, {SINGLE} over {MULTI}", ratio(metrics, DCT), LEAST_DCT_RATIO),
    ]


def _launch(metrics: Metrics) -> Target:
    figure = metrics.get(LAUNCH, {}).get(MULTI)
    cycles = None if figure is None else figure.kernel.each
    return Cycles(f"{LAUNCH} on {MULTI}, a call", cycles, MOST_LAUNCH_CYCLES, True)


def _speed(metrics: Metrics, programs: list[str]) -> list[Target]:
    """The slowest simulation; not known while a program is missing."""
    speeds = [metrics[p][MULTI].speed / 1e6 for p in programs if MULTI in metrics.get(p, {})]
    slowest = min(speeds) if speeds and len(speeds) == len(programs) else None
    name = f"simulation of {MULTI}, the slowest program"
    return [Target(name, slowest, LEAST_SPEED, unit=" million cycles/s")]


def _finishes(metrics: Metrics, machine: str) -> Target:
    """Whether looptest ends, with the right result: others have no figure."""
    figure = metrics.get(LOOPTEST, {}).get(machine)
    said = "no figure" if figure is None else f"{figure.cycles:,} cycles"
    name = f"{LOOPTEST} on {machine}, to its end"
    return Stated(name, None, 0.0, said=said, verdict=figure is not None)
