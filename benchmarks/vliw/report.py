# SPDX-License-Identifier: Apache-2.0
"""What a run of the benchmark found, as tables and as JSON."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import record, table
from benchmarks.benchmark import Scale
from benchmarks.report import Target
from benchmarks.vliw.figure import NONE, Figure
from benchmarks.vliw.goal import MULTI, SINGLE, goals, ratio
from benchmarks.vliw.program import BY_NAME, FULL
from ferryvm_backends.vliw.code.program import LoopSummary


@dataclasses.dataclass
class Simulations:
    """Metrics of programs on machines."""

    programs: list[str]
    machines: list[str]
    rounds: int
    scale: Scale
    metrics: dict[str, dict[str, Figure]] = dataclasses.field(default_factory=dict)
    """By program, then by machine; only what was measured, and gave the right results."""
    failures: list[str] = dataclasses.field(default_factory=list)
    """What went wrong, a line each."""
    load_before: float = dataclasses.field(default_factory=lambda: os.getloadavg()[0])

    def targets(self) -> list[Target]:
        """The goals; small sizes say nothing about them."""
        is_full = self.scale is FULL
        return goals(self.metrics, self.programs, self.machines) if is_full else []

    def on(self, machine: str) -> dict[str, Figure]:
        """Metrics of one machine, by program."""
        return {p: on[machine] for p, on in self.metrics.items() if machine in on}

    def show(self, console: Console) -> None:
        """Print all of it."""
        for machine in self.machines:
            console.rule(f"machine {machine}")
            console.print(self.cycles(machine))
            console.print(self.building(machine))
            console.print(self.loops(machine))
        if {SINGLE, MULTI} <= set(self.machines):
            console.print(self.ratios())
        if self.scale is FULL:
            console.print("what a call is:", *self._calls(), sep="\n  ", markup=False)
        for target in self.targets():
            console.print(str(target), markup=False)
        if self.load_before > table.BUSY:
            console.print(
                f"note: the machine was busy before this run (load {self.load_before:.1f}):"
                " seconds are blurred, cycles are not"
            )
        for failure in self.failures:
            console.print(f"FAULT {failure}", markup=False)

    def _calls(self) -> list[str]:
        return [
            f"{name}: {BY_NAME[name].kernel}, {BY_NAME[name].counted}" for name in self.programs
        ]

    def cycles(self, machine: str) -> Table:
        """Cycles of the programs and their kernels, and how fast they were simulated."""
        shown = Table(title=f"cycles on {machine}; million cycles simulated in a second")
        for column in ("program", "kernel", "calls", "cycles of a call", "of the whole program"):
            shown.add_column(
                column, justify="right" if column not in ("program", "kernel") else "left"
            )
        for column in ("of copying", "operations a cycle", "million a second"):
            shown.add_column(column, justify="right")
        for name, figure in self.on(machine).items():
            kernel = figure.kernel
            shown.add_row(
                *(name, BY_NAME[name].kernel, f"{kernel.calls:,}", _count(kernel.each)),
                *(f"{figure.cycles:,}", f"{figure.transfer_cycles:,}"),
                *(f"{figure.operations / figure.cycles:.2f}", f"{figure.speed / 1e6:.1f}"),
            )
        return shown

    def building(self, machine: str) -> Table:
        """What compiling took, by program."""
        shown = Table(title=f"compiling whole programs for {machine}, in seconds")
        shown.add_column("program")
        for column in ("bundles", "compiling", "of that the simulator"):
            shown.add_column(column, justify="right")
        for name, figure in self.on(machine).items():
            built = figure.building
            shown.add_row(
                *(name, f"{built.bundles:,}"),
                *(f"{built.seconds:.2f}", f"{built.simulator_seconds:.2f}"),
            )
        return shown

    def loops(self, machine: str) -> Table:
        """The loops that are one block and were run, longest first."""
        shown = Table(
            title=f"loops of one block on {machine}: cycles of a pass against their bounds"
        )
        for column in ("program", "loop"):
            shown.add_column(column)
        for column in (
            "% of cycles",
            "iterations",
            "interval",
            "units allow",
            "recurrence",
            "ratio",
        ):
            shown.add_column(column, justify="right")
        shown.add_column("stages", justify="right")
        shown.add_column("not pipelined because")
        for name, figure in self.on(machine).items():
            for each in figure.loops:
                loop = each.loop
                shown.add_row(
                    *(name, f"{each.function}, {each.place}"),
                    *(f"{100 * each.cycles / figure.cycles:.1f}", str(loop.iterations)),
                    *(str(loop.interval), _resource(loop), str(loop.recurrence_bound)),
                    *(f"{each.ratio:.2f}", str(loop.stages), loop.reason),
                )
            if not figure.loops:
                shown.add_row(name, NONE)
        return shown

    def ratios(self) -> Table:
        """How many times as long the machine of one unit takes."""
        shown = Table(title=f"cycles on {SINGLE} over those on {MULTI}")
        for column in ("program", "a call of the kernel", "the whole program"):
            shown.add_column(column, justify="left" if column == "program" else "right")
        for name, on in self.metrics.items():
            kernel = ratio(self.metrics, name)
            if kernel is not None:
                whole = on[SINGLE].cycles / on[MULTI].cycles
                shown.add_row(name, f"{kernel:.2f}", f"{whole:.2f}")
        return shown

    def as_json(self) -> dict[str, Any]:
        """All of it, with the machine that simulated and the commit."""
        return {
            "schema": record.SCHEMA,
            "kind": "vliw",
            **record.circumstances(),
            "rounds": self.rounds,
            "scale": self.scale.value,
            "load_before": self.load_before,
            "machines": self.machines,
            "programs": {
                name: {machine: figure.as_json() for machine, figure in on.items()}
                for name, on in self.metrics.items()
            },
            "single_over_multi16": {name: ratio(self.metrics, name) for name in self.metrics},
            "targets": [target.as_json() for target in self.targets()],
            "faults": self.failures,
        }


def _resource(loop: LoopSummary) -> str:
    return f"{loop.resource_bound} ({loop.resource})" if loop.resource else str(loop.resource_bound)


def _count(cycles: float) -> str:
    return f"{cycles:,.0f}" if cycles == int(cycles) else f"{cycles:,.1f}"
