# SPDX-License-Identifier: Apache-2.0
"""What a comparison of peers found, what follows from it, and its JSON form."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from typing import Any

from benchmarks.benchmark import Scale
from benchmarks.measure import geometric_mean, median
from benchmarks.record import SCHEMA, circumstances


def identity(result: int | float | None) -> str:
    """Results with the same text are the same to the last bit: 0.0 and -0.0 are not."""
    return result.hex() if isinstance(result, float) else str(result)


@dataclasses.dataclass
class Cell:
    """One peer on one program: metrics of each round and the result, or why there are none."""

    seconds: list[float] = dataclasses.field(default_factory=list)
    compile_seconds: list[float] = dataclasses.field(default_factory=list)
    """Empty where the peer cannot tell compiling apart."""
    peaks: list[int] = dataclasses.field(default_factory=list)
    """Bytes of memory; empty where the peer has no process of its own."""
    result: int | float | None = None
    missing: str | None = None
    failure: str | None = None
    """What went wrong; then its seconds do not count."""

    @property
    def median(self) -> float | None:
        """Seconds, None where it took no part."""
        return median(self.seconds) if self.seconds and self.failure is None else None

    @property
    def peak(self) -> int | None:
        """Bytes, the most of all rounds, that which compiled included; None if not known."""
        return max(self.peaks) if self.peaks and self.failure is None else None

    @property
    def first_compile(self) -> float | None:
        """Seconds that compiling took in the first round, when no cache had anything."""
        return self.compile_seconds[0] if self.compile_seconds and self.failure is None else None

    @property
    def later_compile(self) -> float | None:
        """Seconds in later rounds, the median; None if there was one round only."""
        later = self.compile_seconds[1:]
        return median(later) if later and self.failure is None else None


@dataclasses.dataclass(frozen=True)
class Target:
    """A goal on the metrics of one run."""

    name: str
    found: float | None
    """None where a peer that it needs took no part."""
    bound: float
    is_upper: bool = False
    """Whether at most the bound is asked for, otherwise at least."""
    unit: str = "x"

    @property
    def is_met(self) -> bool | None:
        """Whether it is met, None where that is not known."""
        if self.found is None:
            return None
        return self.found <= self.bound if self.is_upper else self.found >= self.bound

    def __str__(self) -> str:
        verdict = {True: "met", False: "NOT met", None: "not known"}[self.is_met]
        found = "-" if self.found is None else f"{self.found:.2f}{self.unit}"
        side = "at most" if self.is_upper else "at least"
        return f"target: {self.name}: {side} {self.bound:g}{self.unit}, found {found}: {verdict}"

    def as_json(self) -> dict[str, Any]:
        """The goal as JSON."""
        bound = {"at_most" if self.is_upper else "at_least": self.bound}
        return {"name": self.name, "found": self.found, **bound, "is_met": self.is_met}


@dataclasses.dataclass(frozen=True)
class Suite:
    """What kind of comparison a report is of."""

    kind: str
    """The command."""
    scale: Scale
    """The sizes that goals hold for."""
    baselines: tuple[str, ...]
    """Peers that ratios are taken to."""
    goals: Callable[[Report], list[Target]]
    not_in_means: frozenset[str] = frozenset()
    """Programs whose ratios say nothing about the others."""


@dataclasses.dataclass
class Report:
    """All cells of a run of a suite."""

    suite: Suite
    rounds: int
    scale: Scale
    labels: dict[str, str]
    """Label of each peer by name, in the order of the table."""
    versions: dict[str, str] = dataclasses.field(default_factory=dict)
    missing: dict[str, str] = dataclasses.field(default_factory=dict)
    """Peers that took no part at all, with the reason."""
    cells: dict[str, dict[str, Cell]] = dataclasses.field(default_factory=dict)
    """By program, then by peer."""
    load_before: float = dataclasses.field(default_factory=lambda: os.getloadavg()[0])
    """Processes that wanted to run in the minute before; well above 0 blurs the metrics."""

    def cell(self, program: str, peer: str) -> Cell | None:
        """The cell, None where the peer or the program took no part at all."""
        return self.cells.get(program, {}).get(peer)

    def seconds(self, program: str, peer: str) -> float | None:
        """Median seconds of a peer on a program, None where it took no part."""
        cell = self.cell(program, peer)
        return cell.median if cell else None

    def ratio(self, program: str, peer: str, baseline: str) -> float | None:
        """How many times as long as the baseline the peer takes.

        The median over the rounds, each by itself: where a machine has two speeds, and goes from
        one to the other every few seconds, two medians may well be of different ones.
        """
        mine, theirs = self.cell(program, peer), self.cell(program, baseline)
        if mine is None or theirs is None or not (mine.median and theirs.median):
            return None
        rounds = zip(mine.seconds, theirs.seconds, strict=False)  # some peers take part in few
        ratios = [own / other for own, other in rounds if other]
        return median(ratios) if ratios else None

    def ratios(self, peer: str, baseline: str) -> dict[str, float]:
        """The ratios that go into a mean, by program."""
        found = {
            program: self.ratio(program, peer, baseline)
            for program in self.cells
            if program not in self.suite.not_in_means
        }
        return {program: ratio for program, ratio in found.items() if ratio is not None}

    def mean(self, peer: str, baseline: str) -> tuple[float | None, int]:
        """Geometric mean of the ratios, and the number of programs that both ran."""
        known = self.ratios(peer, baseline)
        return geometric_mean(known.values()), len(known)

    def whole_mean(self, peer: str, baseline: str) -> float | None:
        """The mean, None unless both ran every program that belongs to it."""
        mean, programs = self.mean(peer, baseline)
        return mean if programs == len(set(self.cells) - self.suite.not_in_means) else None

    def faults(self) -> list[str]:
        """Failures, and programs on which peers disagree, a line each."""
        lines = []
        for program, cells in self.cells.items():
            for peer, cell in cells.items():
                if cell.failure is not None:
                    lines.append(f"{program}: {peer} failed: {cell.failure}")
            results = {p: c.result for p, c in cells.items() if c.result is not None}
            if len({identity(result) for result in results.values()}) > 1:
                said = ", ".join(f"{peer} {result!r}" for peer, result in results.items())
                lines.append(f"{program}: the peers' results differ: {said}")
        return lines

    def targets(self) -> list[Target]:
        """The suite's goals; other sizes say nothing about them."""
        return self.suite.goals(self) if self.scale is self.suite.scale else []

    def as_json(self) -> dict[str, Any]:
        """The report as JSON, with the machine and the commit."""
        return {
            "schema": SCHEMA,
            "kind": self.suite.kind,
            **circumstances(),
            "rounds": self.rounds,
            "scale": self.scale.value,
            "load_before": self.load_before,
            "peers": {
                name: {"label": label, "version": self.versions.get(name)}
                | ({"missing": self.missing[name]} if name in self.missing else {})
                for name, label in self.labels.items()
            },
            "programs": {
                program: {peer: self._cell(program, peer) for peer in cells}
                for program, cells in self.cells.items()
            },
            "geometric_means": {
                peer: {f"over_{base}": self._mean(peer, base) for base in self.suite.baselines}
                for peer in self.labels
                if peer not in self.missing
            },
            "not_in_means": sorted(self.suite.not_in_means),
            "targets": [target.as_json() for target in self.targets()],
            "faults": self.faults(),
        }

    def _cell(self, program: str, peer: str) -> dict[str, Any]:
        cell = self.cells[program][peer]
        if cell.missing is not None:
            return {"missing": cell.missing}
        if cell.failure is not None:
            return {"failure": cell.failure}
        return {
            "seconds": cell.seconds,
            "median": cell.median,
            "compile_seconds": cell.compile_seconds,
            "peak_bytes": cell.peak,
            "result": cell.result,
            **{f"over_{base}": self.ratio(program, peer, base) for base in self.suite.baselines},
        }

    def _mean(self, peer: str, baseline: str) -> dict[str, Any]:
        ratio, programs = self.mean(peer, baseline)
        return {"ratio": ratio, "programs": programs}
