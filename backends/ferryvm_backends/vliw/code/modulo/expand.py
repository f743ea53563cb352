# SPDX-License-Identifier: Apache-2.0
"""Bundles of a pipelined loop: what sets it up, the rounds that begin it, and the kernel.

    front      moves: what does not change into the files that it is read from, first values of what changes
    prologue   the first rounds, one begins every `interval` cycles
    kernel     `copies` rounds begin; the last branch goes back to its top

A value that outlives the interval has several registers, one for each of the rounds that need it at
a time, so the kernel holds as many rounds (modulo variable expansion, Lam: Software Pipelining, PLDI
1988). The register of a round r is number r modulo how many there are. An exit goes to a way of its
own, which brings values to where its target wants them.
"""

from __future__ import annotations

import dataclasses
from collections import Counter

from ferryvm_backends.vliw.code.modulo.graph import Kept, Made, Node, Source
from ferryvm_backends.vliw.code.modulo.schedule import RoundSchedule
from ferryvm_backends.vliw.code.modulo.table import FromFile, FromUnit, Operand, Spot
from ferryvm_backends.vliw.code.move import moves
from ferryvm_backends.vliw.code.operation import (
    Code,
    MachineBlock,
    MachineOperation,
    Register,
)
from ferryvm_backends.vliw.code.schedule import Scheduled
from ferryvm_backends.vliw.code.table import Placed, Table
from ferryvm_backends.vliw.machine.model import Machine

_PATIENCE = 64
"""Cycles that a move in front is tried in."""


@dataclasses.dataclass
class Pipelined:
    """A loop in cycles, with the blocks that its exits go to."""

    scheduled: Scheduled
    ways: list[MachineBlock]
    copies: int
    stages: int


class UnfitError(Exception):
    """The rounds cannot be begun so."""

    def __init__(self, operand: Operand | None = None) -> None:
        """`operand`: one that had better come from a file."""
        super().__init__()
        self.operand = operand


def expand(code: Code, found: RoundSchedule, machine: Machine) -> Pipelined:
    """The bundles of a loop, whose block gets new operations. Raises UnfitError."""
    return _Expansion(code, found, machine).run()


class _Expansion:
    def __init__(self, code: Code, found: RoundSchedule, machine: Machine) -> None:
        self.code, self.machine, self.table = code, machine, found.table
        self.loop, self.interval = found.loop, found.interval
        self.spots: dict[int, Spot] = found.table.spots
        stages = 1 + max(spot.cycle for spot in self.spots.values()) // self.interval
        self.stages = stages
        self.rounds = max([stages - 1, *self._bypassed_from_before()])
        """That begin before the kernel."""
        needs = {number: self._registers_for(number) for number in self.table.files}
        least = -(-(machine.delay_slots + 1) // self.interval)
        self.copies = max([least, *needs.values()])
        self.registers = {n: self._copies(n, count) for n, count in needs.items()}
        self.kept: dict[tuple[Register, str], Register] = {}
        self.initial: dict[Operand, Register] = {}
        self.ways: dict[tuple[object, ...], MachineBlock] = {}
        self.front: list[tuple[Register, Register]] = []
        """Registers, and what is moved into them."""

    def run(self) -> Pipelined:
        """Make it."""
        self._set_up()
        front = self._place_front()
        begin = max((placed.landing for placed in front), default=0)
        length = self.copies * self.interval
        again = begin + self.rounds * self.interval
        made: list[tuple[int, int, Placed]] = []
        for node in self.loop.nodes:
            spot = self.spots[node.number]
            stage = spot.cycle // self.interval
            if node.number != self.loop.repeat:
                for number in range(self.rounds - stage):
                    cycle = begin + spot.cycle + number * self.interval
                    made.append((number, node.number, self._placed(node, number, cycle)))
            for copy in range(self.copies):
                number = self.rounds + copy - stage
                cycle = again + copy * self.interval + spot.cycle % self.interval
                is_last = cycle == again + length - self.machine.delay_slots - 1
                if is_last or node.number != self.loop.repeat:
                    made.append((number, node.number, self._placed(node, number, cycle)))
        made.sort(key=lambda each: each[:2])
        placed = [*front, *(each for _, _, each in made)]
        block = self.loop.block
        block.operations = [each.operation for each in placed]
        scheduled = Scheduled(block, placed, again + length, again=again)
        ways = [way for way in self.ways.values() if way not in self._targets()]
        return Pipelined(scheduled, ways, self.copies, self.stages)

    def _targets(self) -> set[MachineBlock]:
        return {n.operation.target for n in self.loop.nodes if n.operation.target is not None}

    # --- registers --------------------------------------------------------------------------

    def _bypassed_from_before(self) -> list[int]:
        """Rounds that have to begin in front of the kernel for what the first one reads to be told
        from what others take from units."""
        return [
            self.spots[number].cycle // self.interval + 1
            for (number, index), way in self.table.ways.items()
            if isinstance(way, FromUnit) and self._distance(number, index)
        ]

    def _distance(self, number: int, index: int) -> int:
        source = self.loop.nodes[number].sources[index]
        return source.distance if isinstance(source, Made) else 0

    def _registers_for(self, maker: int) -> int:
        """Rounds that need a result's register at the same time."""
        last = self.spots[maker].landing
        for (number, index), way in self.table.ways.items():
            source = self.loop.nodes[number].sources[index]
            if isinstance(source, Made) and source.node == maker and isinstance(way, FromFile):
                last = max(last, self.spots[number].cycle + self.interval * source.distance)
        for node in self.loop.nodes:
            for source in node.needed.values():
                if isinstance(source, Made) and source.node == maker:
                    left = self.spots[node.number].cycle + self.machine.delay_slots + 1
                    last = max(last, left + self._drain(left) + self.interval * source.distance)
        return (last - self.spots[maker].landing) // self.interval + 1

    def _drain(self, left: int) -> int:
        """Cycles that what has been issued when an exit takes effect needs to land after that."""
        late = 0
        for spot in self.spots.values():
            rounds = (left - 1 - spot.cycle) // self.interval
            late = max(late, spot.landing + rounds * self.interval - left)
        return late

    def _copies(self, maker: int, count: int) -> list[Register]:
        while self.copies % count:
            count += 1
        result = self.loop.nodes[maker].operation.result
        assert result is not None
        return [self._register(result, self.table.files[maker]) for _ in range(count)]

    def _register(self, like: Register, file: str) -> Register:
        register = self.code.register(like.kind, is_spill=True)
        register.file = file
        return register

    # --- in front ---------------------------------------------------------------------------

    def _set_up(self) -> None:
        """Decide what is moved in front of the rounds."""
        passed: set[int] = set()
        for node in self.loop.nodes:
            for source in (*node.sources, *node.needed.values()):
                if isinstance(source, Made) and source.distance:
                    passed.add(source.node)
        for number in sorted(passed & self.registers.keys()):
            initial = self.loop.nodes[number].initial
            assert initial is not None
            self.front.append((self.registers[number][-1], initial))
        reads: Counter[tuple[int, str]] = Counter()
        """Reads of a file in a cycle of the prologue, by what is not decided here."""
        for operand, way in self.table.ways.items():
            number, index = operand
            source = self.loop.nodes[number].sources[index]
            if isinstance(source, Kept):
                assert isinstance(way, FromFile)
                self._keep(source.register, way.file)
            cycle = self.spots[number].cycle
            if isinstance(way, FromFile):
                for each in range(cycle, self.rounds * self.interval, self.interval):
                    reads[each, way.file] += 1
        for operand, way in self.table.ways.items():
            if isinstance(way, FromUnit) and self._distance(*operand):
                self._begin(operand, reads)

    def _keep(self, register: Register, file: str) -> None:
        if (register, file) not in self.kept:
            self.kept[register, file] = register
            if register.file != file:
                copy = self.kept[register, file] = self._register(register, file)
                self.front.append((copy, register))

    def _begin(self, operand: Operand, reads: Counter[tuple[int, str]]) -> None:
        """Where the first round has what later ones take from a unit."""
        number, index = operand
        source = self.loop.nodes[number].sources[index]
        assert isinstance(source, Made)
        initial = self.loop.nodes[source.node].initial
        assert initial is not None
        spot = self.spots[number]
        unit = self.machine.units[spot.unit]
        files = [f for f in self.machine.files if f.kind is initial.kind and f.name in unit.reads]
        files.sort(key=lambda f: f.name != initial.file)
        for file in files:
            if reads[spot.cycle, file.name] < file.read_ports:
                reads[spot.cycle, file.name] += 1
                self.initial[operand] = initial
                if file.name != initial.file:
                    register = self.initial[operand] = self._register(initial, file.name)
                    self.front.append((register, initial))
                return
        raise UnfitError(operand)

    def _place_front(self) -> list[Placed]:
        table, found = Table(self.machine), []
        for to, value in self.front:
            operation = MachineOperation(
                "move", operands=(value,), result=to, pc=self.loop.nodes[0].operation.pc
            )
            units = [n for n, u in enumerate(self.machine.units) if operation.work in u.work]
            tries = ((cycle, unit) for cycle in range(_PATIENCE) for unit in units)
            placed = next(
                (p for c, u in tries if (p := table.place(operation, c, u, [None])) is not None),
                None,
            )
            if placed is None:
                raise UnfitError
            found.append(placed)
        return found

    # --- rounds -----------------------------------------------------------------------------

    def _placed(self, node: Node, number: int, cycle: int) -> Placed:
        """An operation of a round."""
        old, spot = node.operation, self.spots[node.number]
        operands, bypassed = [], []
        for index, source in enumerate(node.sources):
            operand, unit = self._operand((node.number, index), source, number)
            operands.append(operand)
            bypassed.append(unit)
        new = MachineOperation(old.name, old.static, tuple(operands), None, old.place, pc=old.pc)
        new.holds = old.holds
        if old.result is not None:
            new.result = self._result(node.number, number)
        if old.target is not None:
            new.target = self._way(node, number)
        return Placed(new, cycle, spot.unit, spot.latency, tuple(bypassed))

    def _operand(
        self, operand: Operand, source: Source, number: int
    ) -> tuple[Register | int, int | None]:
        if isinstance(source, int):
            return source, None
        way = self.table.ways[operand]
        if isinstance(source, Kept):
            assert isinstance(way, FromFile)
            return self.kept[source.register, way.file], None
        if isinstance(way, FromUnit):
            if number < source.distance:
                return self.initial[operand], None
            return self._result(source.node, number - source.distance), way.unit
        return self._result(source.node, number - source.distance), None

    def _result(self, maker: int, number: int) -> Register:
        """The register of an operation's result in a round."""
        registers = self.registers.get(maker)
        if registers is None:  # it stays in its unit
            result = self.loop.nodes[maker].operation.result
            assert result is not None
            registers = self.registers[maker] = [self._register(result, "")]
        return registers[number % len(registers)]

    def _way(self, node: Node, number: int) -> MachineBlock:
        """Where an exit of a round goes."""
        target = node.operation.target
        assert target is not None
        wanted: list[tuple[Register, Register | int]] = []
        for register, source in node.needed.items():
            value: Register | int
            if isinstance(source, Made):
                value = self._result(source.node, number - source.distance)
            else:
                value = source.register if isinstance(source, Kept) else source
            if value is not register:
                wanted.append((register, value))
        key = target, *wanted
        if key not in self.ways:
            found = list(moves(self.code, wanted))
            way = target
            if found:
                label = f"{target.label}.{self.code.registers}.{len(self.ways)}"
                way = MachineBlock(label, found, target.is_cold)
                jump = MachineOperation("jump", target=target, pc=node.operation.pc)
                way.operations.append(jump)
            self.ways[key] = way
        return self.ways[key]
