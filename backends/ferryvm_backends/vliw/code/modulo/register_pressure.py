# SPDX-License-Identifier: Apache-2.0
"""Register pressure of a modulo schedule: lifetimes of results, and the registers that they
need."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from ferryvm_backends.vliw.code.modulo.dependence_graph import Invariant, Iteration, NodeResult
from ferryvm_backends.vliw.code.modulo.partial_schedule import FromFile, PartialSchedule
from ferryvm_backends.vliw.machine.model import Machine


class Lifetimes:
    """Of the results that are in files, by the operations that make them."""

    def __init__(self, loop: Iteration, machine: Machine, partial: PartialSchedule) -> None:
        self.loop, self.machine, self.partial = loop, machine, partial
        self.interval, self.slots = partial.interval, partial.slots
        self.last = {maker: self.slots[maker].write_back for maker in partial.files}
        """The last cycle that needs each."""
        for maker, cycle in (*self._reads(), *self._leaves()):
            self.last[maker] = max(self.last[maker], cycle)

    def iterations(self, maker: int) -> int:
        """Iterations that need a result's register at the same time."""
        return (self.last[maker] - self.slots[maker].write_back) // self.interval + 1

    def highest(self) -> tuple[float, str]:
        """The part of a file's registers that is needed in some cycle, of the file that it is most
        of, and that file. More than 1 is too many."""
        parts = (
            (needed / self.machine.file(name).registers, name)
            for name, needed in self._needed().items()
        )
        return max(parts, default=(0.0, ""))

    def _needed(self) -> dict[str, int]:
        """The most registers of each file that are needed in a cycle."""
        invariants: dict[str, set[object]] = defaultdict(set)
        for (number, index), path in self.partial.paths.items():
            source = self.loop.nodes[number].sources[index]
            if isinstance(source, Invariant) and isinstance(path, FromFile):
                invariants[path.file].add(source.register)
        lifetimes: dict[str, Counter[int]] = defaultdict(Counter)
        for maker, last in self.last.items():
            there = lifetimes[self.partial.files[maker]]
            for cycle in range(self.slots[maker].write_back, last + 1):
                there[cycle % self.interval] += 1
        return {
            name: len(invariants[name]) + max(lifetimes[name].values(), default=0)
            for name in invariants.keys() | lifetimes.keys()
        }

    def _reads(self) -> Iterator[tuple[int, int]]:
        for (number, index), path in self.partial.paths.items():
            source = self.loop.nodes[number].sources[index]
            if isinstance(source, NodeResult) and isinstance(path, FromFile):
                yield source.node, self.slots[number].cycle + self.interval * source.distance

    def _leaves(self) -> Iterator[tuple[int, int]]:
        """Registers of exits are live until all operations in flight at the exit have ended."""
        for node in self.loop.nodes:
            if node.needed:
                exit_cycle = self.slots[node.number].cycle + self.machine.delay_slots + 1
                end = exit_cycle + self._drain(exit_cycle)
                for source in node.needed.values():
                    if isinstance(source, NodeResult):
                        yield source.node, end + self.interval * source.distance

    def _drain(self, exit_cycle: int) -> int:
        """Cycles until all results in flight when an exit takes effect are written back."""
        late = 0
        for slot in self.slots.values():
            iterations = (exit_cycle - 1 - slot.cycle) // self.interval
            late = max(late, slot.write_back + iterations * self.interval - exit_cycle)
        return late
