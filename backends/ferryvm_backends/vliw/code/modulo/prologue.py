# SPDX-License-Identifier: Apache-2.0
"""Operands of the first iterations that later iterations read from units' output registers.

Before the loop these values are in registers, so a read takes a port. Where no port is left, a unit
that is idle in the prologue moves the value to its own output register some cycles earlier: the
unit of the operation that computes it later, where that operation of the iteration before the first
one would be; or any other one. All operands that read the value share it as long as the unit has
it.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator

from ferryvm_backends.vliw.code import tuning
from ferryvm_backends.vliw.code.modulo.dependence_graph import Iteration, NodeResult, Source
from ferryvm_backends.vliw.code.modulo.partial_schedule import FromFile, Operand, PartialSchedule
from ferryvm_backends.vliw.code.operation import Register
from ferryvm_backends.vliw.machine.model import Machine, Work


@dataclasses.dataclass(frozen=True)
class ForwardedValue:
    """A move to a unit's output register; its cycle counts from the first iteration on."""

    cycle: int
    unit: int
    latency: int
    value: Register
    result: Register


class Prologue:
    """The prologue: reads, issues and held values in the cycles before the kernel."""

    def __init__(
        self,
        loop: Iteration,
        machine: Machine,
        partial: PartialSchedule,
        iterations: int,
        is_rotating: Callable[[int], bool],
        copy: Callable[[Register, str], Register],
        fresh: Callable[[Register], Register],
    ) -> None:
        """`iterations`: the number that starts before the kernel; `is_rotating`: True if an
        operation's initial value is in the register of its result; `copy`: a register's initial
        value in some file; `fresh`: a register like another one, without a file."""
        self.loop, self.machine, self.partial = loop, machine, partial
        self.is_rotating, self.copy, self.fresh = is_rotating, copy, fresh
        self.found: dict[tuple[Operand, int], tuple[Register, int | None]] = {}
        """The operand computed so many iterations before the first one; and the unit that has
        it."""
        self.moves: list[ForwardedValue] = []
        self.unfit: set[Operand] = set()
        """Operands that are not to be had."""
        self._reads: dict[tuple[int, str], set[object]] = defaultdict(set)
        self._issued: Counter[int] = Counter()
        self._busy: set[tuple[int, int]] = set()
        self._write_backs: set[tuple[int, int]] = set()
        self._held: set[tuple[int, int]] = set()
        self._brought: dict[tuple[int, int], list[tuple[ForwardedValue, int]]] = defaultdict(list)
        """Moves of the result of an operation so many iterations before the first one, each with
        the cycle from which on a unit has it."""
        for number in range(iterations):
            self._add_iteration(number)

    def find(self, operand: Operand, source: NodeResult) -> None:
        """Decide where the first iterations have an operand that later ones take from a unit."""
        slot = self.partial.slots[operand[0]]
        for distance in range(1, source.distance + 1):
            cycle = slot.cycle + (source.distance - distance) * self.partial.interval
            initial = self.loop.nodes[source.node].initial[distance]
            file = self._port(initial, slot.unit, cycle)
            if file is not None:
                self.found[operand, distance] = self.copy(initial, file), None
            elif not self._bring(operand, source.node, distance, cycle):
                self.unfit.add(operand)

    def _add_iteration(self, number: int) -> None:
        partial, start = self.partial, number * self.partial.interval
        for node in self.loop.nodes:
            slot = partial.slots[node.number]
            cycle = start + slot.cycle
            self._issued[cycle] += 1
            timing = self.machine.units[slot.unit].work[node.operation.work]
            self._busy |= {(slot.unit, cycle + more) for more in range(timing.interval)}
            if node.operation.result is not None:
                self._write_backs.add((slot.unit, start + slot.write_back))
            for index, source in enumerate(node.sources):
                path = partial.paths.get((node.number, index))
                if isinstance(path, FromFile):
                    self._reads[cycle, path.file].add(self._register(source, number))
                elif isinstance(source, NodeResult) and number >= source.distance:
                    maker = partial.slots[source.node]
                    write_back = maker.write_back + (number - source.distance) * partial.interval
                    self._held |= {(maker.unit, each) for each in range(write_back, cycle + 1)}

    def _register(self, source: Source, number: int) -> object:
        """The replacement of the register that an iteration reads a source from."""
        if not isinstance(source, NodeResult):
            return source
        made = number - source.distance
        if made < 0 and not self.is_rotating(source.node):
            return self.loop.nodes[source.node].initial[-made]
        return source.node, made

    def _port(self, initial: Register, unit: int, cycle: int) -> str | None:
        """A file from which a unit can read a register's initial value in a cycle."""
        fitting = [
            file.name
            for file in self.machine.files
            if file.kind is initial.kind
            and file.name in self.machine.units[unit].reads
            and len(self._reads[cycle, file.name] | {initial}) <= file.read_ports
        ]
        if not fitting:
            return None
        name = min(
            fitting,
            key=lambda each: (initial not in self._reads[cycle, each], each != initial.file),
        )
        self._reads[cycle, name].add(initial)
        return name

    def _bring(self, operand: Operand, maker: int, distance: int, cycle: int) -> bool:
        """Make a unit hold the initial value of a result until an operand is read."""
        for move, since in self._brought[maker, distance]:
            later = [(move.unit, each) for each in range(since + 1, cycle + 1)]
            if since <= cycle and self._write_backs.isdisjoint(later):
                self._held.update(later)
                self.found[operand, distance] = move.result, move.unit
                return True
        initial = self.loop.nodes[maker].initial[distance]
        for issue, unit, latency in self._places(maker, distance, cycle):
            write_back = issue + latency
            if write_back > cycle or not self._is_free(unit, issue, write_back, cycle):
                continue
            file = self._port(initial, unit, issue)
            if file is None:
                continue
            self._issued[issue] += 1
            self._busy.add((unit, issue))
            self._write_backs.add((unit, write_back))
            self._held |= {(unit, each) for each in range(write_back, cycle + 1)}
            result = self.fresh(initial)
            move = ForwardedValue(issue, unit, latency, self.copy(initial, file), result)
            self.moves.append(move)
            self._brought[maker, distance].append((move, write_back))
            self.found[operand, distance] = result, unit
            return True
        return False

    def _places(self, maker: int, distance: int, cycle: int) -> Iterator[tuple[int, int, int]]:
        """Cycles and units for a move that brings a result, with its latency."""
        slot, movers = self.partial.slots[maker], dict(self._movers())
        if slot.unit in movers:
            latency = movers[slot.unit]
            write_back = slot.write_back - distance * self.partial.interval
            yield write_back - latency, slot.unit, latency
        for earlier in range(1, tuning.FORWARDED_EARLIER):
            for unit, latency in movers.items():
                yield cycle - earlier, unit, latency

    def _is_free(self, unit: int, issue: int, write_back: int, until: int) -> bool:
        """True if a unit can take an operation, and gets no result, nor is one needed there, until
        a cycle is over."""
        return (
            self._issued[issue] < self.machine.slots
            and (unit, issue) not in self._busy
            and not any(
                (unit, each) in self._write_backs or (unit, each) in self._held
                for each in range(write_back, until + 1)
            )
        )

    def _movers(self) -> Iterator[tuple[int, int]]:
        for number, unit in enumerate(self.machine.units):
            timing = unit.work.get(Work.MOVE)
            if timing is not None and timing.interval == 1:
                yield number, timing.latency
