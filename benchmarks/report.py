# SPDX-License-Identifier: Apache-2.0
"""What a run found, what follows from it, and its JSON form."""

from __future__ import annotations

import dataclasses
import datetime
import json
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

from benchmarks.benchmark import ROOT
from benchmarks.measure import geometric_mean, median

SCHEMA = 1
BASELINES = ("gcc", "wasm3")


@dataclasses.dataclass
class Cell:
    """One peer on one program: seconds of each round and the result, or why there are none."""

    seconds: list[float] = dataclasses.field(default_factory=list)
    result: int | float | None = None
    missing: str | None = None
    failure: str | None = None
    """What went wrong; then its seconds do not count."""

    @property
    def median(self) -> float | None:
        """Seconds, None where it took no part."""
        return median(self.seconds) if self.seconds and self.failure is None else None


@dataclasses.dataclass(frozen=True)
class Target:
    """A goal on the figures of one run."""

    name: str
    found: float | None
    """None where a peer that it needs took no part."""
    at_least: float

    @property
    def is_met(self) -> bool | None:
        """Whether it is met, None where that is not known."""
        return None if self.found is None else self.found >= self.at_least


@dataclasses.dataclass
class Report:
    """All cells of a run of `interpreters`."""

    rounds: int
    is_full: bool
    labels: dict[str, str]
    """Label of each peer by name, in the order of the table."""
    versions: dict[str, str] = dataclasses.field(default_factory=dict)
    missing: dict[str, str] = dataclasses.field(default_factory=dict)
    """Peers that took no part at all, with the reason."""
    cells: dict[str, dict[str, Cell]] = dataclasses.field(default_factory=dict)
    """By program, then by peer."""
    load_before: float = dataclasses.field(default_factory=lambda: os.getloadavg()[0])
    """Processes that wanted to run in the minute before; well above 0 blurs the figures."""

    def seconds(self, program: str, peer: str) -> float | None:
        """Median seconds of a peer on a program, None where it took no part."""
        cell = self.cells.get(program, {}).get(peer)
        return cell.median if cell else None

    def ratio(self, program: str, peer: str, baseline: str) -> float | None:
        """How many times as long as the baseline the peer takes."""
        mine, theirs = self.seconds(program, peer), self.seconds(program, baseline)
        return mine / theirs if mine and theirs else None

    def mean(self, peer: str, baseline: str) -> tuple[float | None, int]:
        """Geometric mean of the ratios, and the number of programs that both ran."""
        ratios = [self.ratio(program, peer, baseline) for program in self.cells]
        known = [ratio for ratio in ratios if ratio is not None]
        return geometric_mean(known), len(known)

    def faults(self) -> list[str]:
        """Failures, and programs on which peers disagree, a line each."""
        lines = []
        for program, cells in self.cells.items():
            for peer, cell in cells.items():
                if cell.failure is not None:
                    lines.append(f"{program}: {peer} failed: {cell.failure}")
            results = {p: c.result for p, c in cells.items() if c.result is not None}
            if len(set(results.values())) > 1:
                said = ", ".join(f"{peer} {result!r}" for peer, result in results.items())
                lines.append(f"{program}: the peers' results differ: {said}")
        return lines

    def targets(self) -> list[Target]:
        """The goals for the interpreters; small sizes say nothing about them."""
        if not self.is_full:
            return []
        every = self.mean("threaded", "wasm3")
        wasm = 1 / every[0] if every[0] and every[1] == len(self.cells) else None
        return [
            Target("switch over C++ switch, loop", self.ratio("loop", "cpp-switch", "switch"), 1.0),
            Target(
                "threaded over C++ computed goto, loop",
                self.ratio("loop", "cpp-goto", "threaded"),
                2.5,
            ),
            Target("threaded over wasm3, geometric mean", wasm, 1.0),
        ]

    def as_json(self) -> dict[str, Any]:
        """The report as JSON, with the machine and the commit."""
        return {
            "schema": SCHEMA,
            "kind": "interpreters",
            **circumstances(),
            "rounds": self.rounds,
            "full_size": self.is_full,
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
                peer: {f"over_{base}": _mean(*self.mean(peer, base)) for base in BASELINES}
                for peer in self.labels
                if peer not in self.missing
            },
            "targets": [
                dataclasses.asdict(target) | {"is_met": target.is_met} for target in self.targets()
            ],
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
            "result": cell.result,
            **{f"over_{base}": self.ratio(program, peer, base) for base in BASELINES},
        }


def _mean(mean: float | None, programs: int) -> dict[str, Any]:
    return {"ratio": mean, "programs": programs}


def circumstances() -> dict[str, Any]:
    """When, at which commit and on what machine."""
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "machine": {
            "processor": _processor(),
            "cores": os.cpu_count(),
            "system": f"{platform.system()} {platform.machine()}",
            "python": platform.python_version(),
        },
    }


def write(path: str, report: dict[str, Any]) -> None:
    """Write a JSON report to a file, or to stdout for `-`."""
    text = json.dumps(report, indent=2)
    if path == "-":
        print(text)
    else:
        Path(path).write_text(text + "\n", encoding="utf-8")


def _commit() -> str | None:
    """The commit of the working tree, with `+` where files have changed since."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty=+", "--abbrev=12"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return done.stdout.strip() or None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    wide = any("avx512f" in line for line in lines if line.startswith("flags"))
    return (names or ["unknown"])[0] + (" with AVX-512" if wide else "")
