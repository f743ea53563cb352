# SPDX-License-Identifier: Apache-2.0
"""Metrics of a run on the simulated processor, as plain data: machine by machine, region by region.

Everything about operations is derived from the number of fetches of each bundle. Machines with
equal names are distinct. docs/vliw.md explains each metric.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ferryvm.traffic import array_metrics
from ferryvm_backends.vliw.code.operation import Segment
from ferryvm_backends.vliw.code.program import LoopSummary, Program
from ferryvm_backends.vliw.code.stall import Cause, stalls
from ferryvm_backends.vliw.machine.model import Machine
from ferryvm_backends.vliw.simulate.metric import Issue, Words
from ferryvm_backends.vliw.statistics import ProgramMetrics

Metrics = dict[str, Any]

_DIGITS = 6


class _Sum:
    """Metrics of one program, or of several on one machine."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.entries = self.cycles = self.transfer_cycles = self.to_device = self.to_host = 0
        self.stalls = dict.fromkeys(Cause, 0)
        self.spills = dict.fromkeys(("registers", "loads", "stores"), 0)
        self.operations = np.zeros(len(machine.units), np.int64)
        self.busy = np.zeros(len(machine.units), np.int64)

    def add(self, metrics: ProgramMetrics) -> None:
        program, totals = metrics.program, metrics.totals
        self.entries += totals.entries
        self.cycles += totals.cycles
        self.transfer_cycles += totals.transfer_cycles
        self.to_device += totals.to_device
        self.to_host += totals.to_host
        issue = Issue(program)
        self.operations += issue.operations(totals.bundles)
        self.busy += issue.busy(totals.bundles)
        for cause, times in zip(stalls(program), totals.bundles.tolist(), strict=True):
            if cause is not None:
                self.stalls[cause] += times
        self.spills["registers"] += program.spilled
        for name, times in _spill_accesses(program, totals.bundles):
            self.spills[f"{name}s"] += times

    def metrics(self) -> Metrics:
        operations = int(self.operations.sum())
        return {
            "entries": self.entries,
            "cycles": self.cycles,
            "milliseconds": self._milliseconds(self.cycles),
            "operations": operations,
            "operations_per_cycle": _ratio(operations, self.cycles),
            "stall_cycles": sum(self.stalls.values()),
            "stalls": {cause.value: times for cause, times in self.stalls.items()},
            "units": dict(self._groups()),
            "spills": self.spills,
            "transfers": {
                "cycles": self.transfer_cycles,
                "milliseconds": self._milliseconds(self.transfer_cycles),
                "bytes_to_device": self.to_device,
                "bytes_to_host": self.to_host,
            },
        }

    def _milliseconds(self, cycles: int) -> float:
        return cycles / (self.machine.clock * 1e3)

    def _groups(self) -> Iterator[tuple[str, Metrics]]:
        for group in dict.fromkeys(unit.group for unit in self.machine.units):
            numbers = [n for n, unit in enumerate(self.machine.units) if unit.group == group]
            each = {self.machine.units[n].name: self._use([n]) for n in numbers}
            yield group, {"count": len(numbers), **self._use(numbers), "each": each}

    def _use(self, units: list[int]) -> Metrics:
        operations, busy = int(self.operations[units].sum()), int(self.busy[units].sum())
        cycles = self.cycles * len(units)
        return {
            "operations": operations,
            "utilization": _ratio(operations, cycles),
            "occupancy": _ratio(busy, cycles),
        }


def report(all_metrics: Sequence[ProgramMetrics]) -> Metrics:
    """The metrics of a run: each machine with its total and its regions."""
    machines: list[tuple[tuple[str, Machine], list[ProgramMetrics]]] = []
    for metrics in all_metrics:
        key = metrics.device, metrics.program.machine
        for known, those in machines:
            if known == key:
                those.append(metrics)
                break
        else:
            machines.append((key, [metrics]))
    return {"machines": [_machine(*key, those) for key, those in machines]}


def _machine(device: str, machine: Machine, all_metrics: list[ProgramMetrics]) -> Metrics:
    total = _Sum(machine)
    for metrics in all_metrics:
        total.add(metrics)
    return {
        "machine": machine.name,
        "device": device,
        "clock_mhz": machine.clock,
        "slots": machine.slots,
        "total": total.metrics(),
        "regions": [_region(metrics) for metrics in all_metrics],
    }


def _region(metrics: ProgramMetrics) -> Metrics:
    total = _Sum(metrics.program.machine)
    total.add(metrics)
    return {
        "region": metrics.program.name,
        "pc": metrics.pc,
        "position": _position(metrics, metrics.pc),
        "bundles": len(metrics.program.bundles),
        **total.metrics(),
        "arrays": [array_metrics(each) for each in metrics.arrays],
        "loops": [_loop(metrics, loop) for loop in metrics.program.loops],
    }


def _loop(metrics: ProgramMetrics, loop: LoopSummary) -> Metrics:
    bundles = metrics.totals.bundles
    starts = range(loop.start, loop.end, loop.interval)
    return {
        "block": loop.label,
        "pc": loop.pc,
        "position": _position(metrics, loop.pc),
        "initiation_interval": loop.interval,
        "resource_mii": loop.resource_bound,
        "recurrence_mii": loop.recurrence_bound,
        "resource": loop.resource,
        "stages": loop.stages,
        "unrolled": loop.iterations,
        "expanded": loop.copies,
        "passes": int(bundles[starts].sum()),
        "cycles": int(bundles[loop.start : loop.end].sum()),
        "not_pipelined": loop.reason,
    }


def _spill_accesses(program: Program, bundles: Words) -> Iterator[tuple[str, int]]:
    """`load` or `store`, and how often it was issued, of each access to a spilled register."""
    for bundle, times in zip(program.bundles, bundles.tolist(), strict=True):
        for slot in bundle:
            if slot.place is not None and slot.place.segment is Segment.SPILL:
                yield slot.name, times


def _position(metrics: ProgramMetrics, pc: int) -> str | None:
    position = metrics.positions.get(pc)
    return str(position) if position is not None else None


def _ratio(part: int, whole: int) -> float:
    return round(part / whole, _DIGITS) if whole else 0.0
