# SPDX-License-Identifier: Apache-2.0
"""Metrics of a run from the number of fetches of each bundle, and the check of resources.

A bundle is fetched in a cycle of its own, so these numbers determine all: cycles, operations of
each unit, cycles without any. Both simulators end with the check, which needs neither of them.
"""

from __future__ import annotations

import dataclasses
from collections import Counter

import numpy as np
import numpy.typing as npt

from ferryvm.errors import FerryError
from ferryvm_backends.vliw.code.program import Program

Words = npt.NDArray[np.int64]


class HazardError(FerryError):
    """A schedule violates the machine's constraints."""


@dataclasses.dataclass(eq=False)
class RunMetrics:
    """Metrics of a run."""

    cycles: int
    bundles: Words
    """Times that each bundle was fetched."""
    issued: Counter[int]
    """Operations by unit."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RunMetrics):
            return NotImplemented
        same = np.array_equal(self.bundles, other.bundles)
        return same and (self.cycles, self.issued) == (other.cycles, other.issued)


class Issue:
    """The units that the bundles of a program occupy; computed once for many runs."""

    def __init__(self, program: Program) -> None:
        self.program = program
        found = [
            (number, slot.unit, program.timing(slot).interval)
            for number, bundle in enumerate(program.bundles)
            for slot in bundle
        ]
        table = np.array(found, np.int64).reshape(-1, 3)
        self._bundles, self._units, self._intervals = (
            np.ascontiguousarray(column) for column in table.T
        )
        self._longest = np.ones(len(program.machine.units), np.int64)
        np.maximum.at(self._longest, self._units, self._intervals)

    def operations(self, bundles: Words) -> Words:
        """Operations of each unit, where each bundle was fetched so many times."""
        return self._by_unit(bundles[self._bundles])

    def busy(self, bundles: Words) -> Words:
        """Cycles in which each unit takes no other operation, likewise."""
        return self._by_unit(bundles[self._bundles] * self._intervals)

    def _by_unit(self, weights: Words) -> Words:
        total = np.zeros(len(self.program.machine.units), np.int64)
        np.add.at(total, self._units, weights)
        return total

    def counts(self, cycles: int, bundles: Words) -> RunMetrics:
        """Metrics of a run from the first bundle on. Raises HazardError for conflicts."""
        issued = self.operations(bundles)
        self.check(cycles, bundles, issued)
        return RunMetrics(
            cycles, bundles, Counter({u: n for u, n in enumerate(issued.tolist()) if n})
        )

    def check(self, cycles: int, bundles: Words, issued: Words) -> None:
        """Raise HazardError where a machine would have needed more cycles than were counted."""
        machine, name = self.program.machine, self.program.name
        fetched = int(bundles.sum())
        if fetched != cycles:
            raise HazardError(f"{name}: {fetched} bundles were fetched in {cycles} cycles")
        total = int(issued.sum())
        if total > machine.slots * cycles:
            raise HazardError(
                f"{name}: {total} operations in {cycles} cycles of {machine.slots} slots"
            )
        # The last operation may occupy its unit past the end.
        over = self.busy(bundles) > cycles - 1 + self._longest
        for unit in np.flatnonzero(over | (issued > cycles)).tolist():
            raise HazardError(
                f"{name}: unit {machine.units[unit].name} issued {issued[unit]} operations in "
                f"{cycles} cycles, and each keeps it for {self._longest[unit]} at most"
            )
