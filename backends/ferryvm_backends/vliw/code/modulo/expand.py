# SPDX-License-Identifier: Apache-2.0
"""Expansion of a modulo schedule: preheader, prologue and kernel.

    preheader  moves: invariants into the files that they are read from, initial values
    prologue   the first iterations; one starts every `interval` cycles
    kernel     `copies` iterations start; the last branch goes back to its top

A value whose lifetime exceeds the interval gets several registers, one for each iteration that
needs it at the same time, so the kernel contains as many iterations (modulo variable expansion,
Lam: Software Pipelining, PLDI 1988). Iteration r uses register r modulo their number. Each exit has
a stub, which moves values to the registers that its target expects.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping

from ferryvm_backends.vliw.code import tuning
from ferryvm_backends.vliw.code.modulo.attempt import IterationSchedule
from ferryvm_backends.vliw.code.modulo.dependence_graph import (
    DependenceNode,
    Invariant,
    NodeResult,
    Source,
)
from ferryvm_backends.vliw.code.modulo.partial_schedule import (
    FromFile,
    FromUnit,
    IssueSlot,
    Operand,
)
from ferryvm_backends.vliw.code.modulo.prologue import Prologue
from ferryvm_backends.vliw.code.modulo.register_pressure import Lifetimes
from ferryvm_backends.vliw.code.operation import (
    EXITS,
    MachineBlock,
    MachineCode,
    MachineOperation,
    Register,
)
from ferryvm_backends.vliw.code.parallel_copy import sequential_moves
from ferryvm_backends.vliw.code.placement import place
from ferryvm_backends.vliw.code.reservation import Demand, ReservationTable
from ferryvm_backends.vliw.code.scheduled import Scheduled, ScheduledOperation
from ferryvm_backends.vliw.machine.model import Machine


@dataclasses.dataclass
class Pipelined:
    """A loop in cycles, with the blocks that its exits go to."""

    scheduled: Scheduled
    stubs: list[MachineBlock]
    copies: int
    stages: int


class PrologueError(Exception):
    """The iterations cannot be started so."""

    def __init__(self, operands: frozenset[Operand] = frozenset()) -> None:
        """`operands`: the operands that should be read from files."""
        super().__init__()
        self.operands = operands


def expand(code: MachineCode, found: IterationSchedule, machine: Machine) -> Pipelined:
    """The bundles of a loop, whose block gets new operations. Raises PrologueError."""
    return _Expansion(code, found, machine).run()


class _Expansion:
    def __init__(self, code: MachineCode, found: IterationSchedule, machine: Machine) -> None:
        self.code, self.machine, self.partial = code, machine, found.partial
        self.loop, self.interval = found.loop, found.interval
        self.slots: dict[int, IssueSlot] = found.partial.slots
        stages = 1 + max(slot.cycle for slot in self.slots.values()) // self.interval
        self.stages = stages
        lifetimes = Lifetimes(found.loop, machine, found.partial)
        needs = {number: lifetimes.iterations(number) for number in self.partial.files}
        self.farthest: Counter[int] = Counter()
        """By how many iterations a use of a result comes after it, at most."""
        for node in self.loop.nodes:
            for source in (*node.sources, *node.needed.values()):
                if isinstance(source, NodeResult):
                    far = max(self.farthest[source.node], source.distance)
                    self.farthest[source.node] = far
        self.iterations = max([stages - 1, *self._early(needs)])
        """The number of iterations that start before the kernel."""
        least = -(-(machine.delay_slots + 1) // self.interval)
        self.copies = max([least, *needs.values()])
        self.registers = {n: self._copies(n, count) for n, count in needs.items()}
        self.in_files: dict[tuple[Register, str], Register] = {}
        self.stubs: dict[tuple[object, ...], MachineBlock] = {}
        self.preheader: list[tuple[Register, Register]] = []
        """Registers, and the values that are moved into them."""
        self.prologue = Prologue(
            self.loop,
            machine,
            self.partial,
            self.iterations,
            self._is_rotating,
            self._in_file,
            lambda like: self._register(like, ""),
        )

    def run(self) -> Pipelined:
        """Make it."""
        self._set_up()
        preheader = self._place_preheader()
        first = min(slot.cycle for slot in self.slots.values())
        start = max((placed.write_back for placed in preheader), default=0)
        start = max(start - first, 0)
        start += max((-move.cycle for move in self.prologue.moves if move.cycle < 0), default=0)
        length = self.copies * self.interval
        again = start + self.iterations * self.interval
        made: list[tuple[int, int, ScheduledOperation]] = []
        for node in self.loop.nodes:
            slot = self.slots[node.number]
            stage = slot.cycle // self.interval
            if node.number != self.loop.repeat:
                for number in range(self.iterations - stage):
                    cycle = start + slot.cycle + number * self.interval
                    made.append((number, node.number, self._placed(node, number, cycle)))
            for copy in range(self.copies):
                number = self.iterations + copy - stage
                cycle = again + copy * self.interval + slot.cycle % self.interval
                is_last = cycle == again + length - self.machine.delay_slots - 1
                if is_last or node.number != self.loop.repeat:
                    made.append((number, node.number, self._placed(node, number, cycle)))
        made.sort(key=lambda each: (self._turn(each[2]), *each[:2]))
        placed = [*preheader, *self._brought(start), *(each for _, _, each in made)]
        block = self.loop.block
        block.operations = [each.operation for each in placed]
        scheduled = Scheduled(block, placed, again + length, again=again)
        stubs = [stub for stub in self.stubs.values() if stub not in self._targets()]
        return Pipelined(scheduled, stubs, self.copies, self.stages)

    def _turn(self, placed: ScheduledOperation) -> int:
        """The cycle that determines an operation's predecessors: the producers of its operands, or
        of the registers that the target of an exit needs when it takes effect. Otherwise
        loop-defined values would appear to be needed from before."""
        is_exit = placed.operation.name in EXITS
        return placed.cycle + (self.machine.delay_slots + 1 if is_exit else 0)

    def _brought(self, start: int) -> Iterator[ScheduledOperation]:
        """Values that moves bring to units for the first iterations."""
        pc = self.loop.nodes[0].operation.pc
        for each in self.prologue.moves:
            move = MachineOperation("move", (), (each.value,), each.result, pc=pc)
            yield ScheduledOperation(move, start + each.cycle, each.unit, each.latency, (None,))

    def _targets(self) -> set[MachineBlock]:
        return {n.operation.target for n in self.loop.nodes if n.operation.target is not None}

    # --- registers --------------------------------------------------------------------------

    def _early(self, needs: Mapping[int, int]) -> Iterator[int]:
        """The number of iterations that must start before the kernel, because they read initial
        values from other locations than later iterations do: from units, or from registers of which
        there are fewer than iterations.

        `needs`: the number of registers of each result.
        """
        for node in self.loop.nodes:
            stage = self.slots[node.number].cycle // self.interval
            for index, source in enumerate(node.sources):
                if isinstance(source, NodeResult) and source.distance:
                    path = self.partial.paths[node.number, index]
                    if (
                        isinstance(path, FromUnit)
                        or needs[source.node] < self.farthest[source.node]
                    ):
                        yield stage + source.distance
            for source in node.needed.values():
                if (
                    isinstance(source, NodeResult)
                    and needs[source.node] < self.farthest[source.node]
                ):
                    yield stage + source.distance

    def _is_rotating(self, maker: int) -> bool:
        """True if a result's initial value is in the register in which the result will be later."""
        return len(self.registers[maker]) >= self.farthest[maker]

    def _copies(self, maker: int, count: int) -> list[Register]:
        while self.copies % count:
            count += 1
        result = self.loop.nodes[maker].operation.result
        assert result is not None
        return [self._register(result, self.partial.files[maker]) for _ in range(count)]

    def _register(self, like: Register, file: str) -> Register:
        register = self.code.register(like.kind, is_spill=True)
        register.file = file
        return register

    # --- preheader --------------------------------------------------------------------------

    def _set_up(self) -> None:
        """Decide the moves of the preheader."""
        for number, registers in self.registers.items():
            if self._is_rotating(number):
                for distance, initial in self.loop.nodes[number].initial.items():
                    self.preheader.append((registers[-distance % len(registers)], initial))
        for operand, path in self.partial.paths.items():
            number, index = operand
            source = self.loop.nodes[number].sources[index]
            if isinstance(source, Invariant):
                assert isinstance(path, FromFile)
                self._in_file(source.register, path.file)
            if isinstance(source, NodeResult) and source.distance:
                if isinstance(path, FromUnit):
                    self.prologue.find(operand, source)
                elif not self._is_rotating(source.node):
                    before = self.loop.nodes[source.node].initial
                    for distance in range(1, source.distance + 1):
                        register = self._in_file(before[distance], path.file)
                        self.prologue.found[operand, distance] = register, None
        if self.prologue.unfit:
            raise PrologueError(frozenset(self.prologue.unfit))

    def _in_file(self, register: Register, file: str) -> Register:
        """A register of a file that has the initial value of another one."""
        if (register, file) not in self.in_files:
            self.in_files[register, file] = register
            if register.file != file:
                copy = self.in_files[register, file] = self._register(register, file)
                self.preheader.append((copy, register))
        return self.in_files[register, file]

    def _place_preheader(self) -> list[ScheduledOperation]:
        table, found = ReservationTable(self.machine), []
        for to, value in self.preheader:
            operation = MachineOperation(
                "move", operands=(value,), result=to, pc=self.loop.nodes[0].operation.pc
            )
            demand = Demand.of(operation, (), self.machine)
            tries = (
                (cycle, u)
                for cycle in range(tuning.PREHEADER_CYCLES)
                for u in table.free(demand, cycle)
            )
            placed = next(
                (p for c, u in tries if (p := place(table, operation, demand, c, u, (None,)))), None
            )
            if placed is None:
                raise PrologueError
            found.append(placed)
        return found

    # --- iterations -----------------------------------------------------------------------------

    def _placed(self, node: DependenceNode, number: int, cycle: int) -> ScheduledOperation:
        """An operation of an iteration."""
        old, slot = node.operation, self.slots[node.number]
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
            new.target = self._stub(node, number)
        return ScheduledOperation(new, cycle, slot.unit, slot.latency, tuple(bypassed))

    def _operand(
        self, operand: Operand, source: Source, number: int
    ) -> tuple[Register | int, int | None]:
        if isinstance(source, int):
            return source, None
        path = self.partial.paths[operand]
        if isinstance(source, Invariant):
            assert isinstance(path, FromFile)
            return self.in_files[source.register, path.file], None
        made = number - source.distance
        if (operand, -made) in self.prologue.found:
            return self.prologue.found[operand, -made]
        return self._result(source.node, made), path.unit if isinstance(path, FromUnit) else None

    def _result(self, maker: int, number: int) -> Register:
        """The register of an operation's result in an iteration."""
        registers = self.registers.get(maker)
        if registers is None:  # it is read from its unit
            result = self.loop.nodes[maker].operation.result
            assert result is not None
            registers = self.registers[maker] = [self._register(result, "")]
        return registers[number % len(registers)]

    def _stub(self, node: DependenceNode, number: int) -> MachineBlock:
        """The target of an exit of an iteration."""
        target = node.operation.target
        assert target is not None
        wanted: list[tuple[Register, Register | int]] = []
        for register, source in node.needed.items():
            value: Register | int
            if isinstance(source, NodeResult):
                made = number - source.distance
                if made < 0 and not self._is_rotating(source.node):
                    value = self.loop.nodes[source.node].initial[-made]
                else:
                    value = self._result(source.node, made)
            else:
                value = source.register if isinstance(source, Invariant) else source
            if value is not register:
                wanted.append((register, value))
        key = target, *wanted
        if key not in self.stubs:
            found = list(sequential_moves(self.code, wanted))
            stub = target
            if found:
                label = f"{target.label}.{self.code.registers}.{len(self.stubs)}"
                stub = MachineBlock(label, found, target.is_cold)
                jump = MachineOperation("jump", target=target, pc=node.operation.pc)
                stub.operations.append(jump)
            self.stubs[key] = stub
        return self.stubs[key]
