# SPDX-License-Identifier: Apache-2.0
"""The partial schedule of a loop: operations that are placed, and the paths of their operands.

A modulo reservation table (`reservation`) records the used resources. Besides units, slots and
constants there are paths for values. An operand is read from its unit's output register if that
still holds it, otherwise from a file; the schedule selects the file, by the ports that are left. A
result that is read only from its unit takes neither port nor register, but blocks the unit's next
result for as long: beyond a unit's *share*, the cycles that it has for each of its results, files
are preferred. A loop-invariant register can be read from any file: it gets a copy there.

Each decision about two operations is undone when one of them is unscheduled.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from typing import NamedTuple

from ferryvm_backends.vliw.code.modulo.dependence_graph import (
    DependenceNode,
    Invariant,
    Iteration,
    NodeResult,
)
from ferryvm_backends.vliw.code.operation import MachineBlock, Register
from ferryvm_backends.vliw.code.reservation import Demand, ReservationTable
from ferryvm_backends.vliw.machine.model import FileKind, Machine

Operand = tuple[int, int]
"""Number of an operation, and of one of its operands."""


class IssueSlot(NamedTuple):
    """The cycle and the unit of an operation of the iteration."""

    cycle: int
    unit: int
    latency: int
    write_back: int
    """The first cycle that sees the result."""


class FromUnit(NamedTuple):
    """An operand in a unit's output register."""

    unit: int


class FromFile(NamedTuple):
    """An operand is read from a file."""

    file: str


class _Held(NamedTuple):
    """Resources of an operand's bypass from its unit's output register."""

    unit: int
    write_back: int
    read: int


class _Ports(NamedTuple):
    """Resources of an operand's path through a register file."""

    file: str
    cycle: int
    value: object
    maker: int | None
    """The operation whose result is written for it."""


class OperandUse(NamedTuple):
    """A result that an operand is, of so many iterations before."""

    operand: Operand
    maker: int
    distance: int
    is_base: bool
    """True if it is an access's base that another iteration's base may replace."""


class LoopDemand:
    """Demands of a loop's operations, and readers of their results; of all its schedules."""

    def __init__(self, loop: Iteration, machine: Machine) -> None:
        self.machine = machine
        self.issue: list[Demand] = []
        self.invariants: list[list[tuple[Operand, Register]]] = []
        """For each operation the registers that it reads and that do not change."""
        self.sources: list[list[OperandUse | tuple[Operand, Register]]] = []
        """These and the results that it reads, in the order of its operands."""
        self.readers: list[list[OperandUse]] = [[] for _ in loop.nodes]
        """Other readers of each result."""
        self.needed: set[int] = set()
        """Operations whose results exits need, so that they must be in registers."""
        for node in loop.nodes:
            self.issue.append(Demand.of(node.operation, _constants(node), machine))
            self.sources.append([*self._sources(node)])
            for use in self.sources[-1]:
                if isinstance(use, OperandUse) and use.maker != node.number:
                    self.readers[use.maker].append(use)
            for source in node.needed.values():
                if isinstance(source, NodeResult):
                    self.needed.add(source.node)
        self.makers = [
            {use.maker for use in uses if isinstance(use, OperandUse)} for uses in self.sources
        ]
        self.own_distance = [
            max(
                (use.distance for use in uses if isinstance(use, OperandUse) and use.maker == n),
                default=0,
            )
            for n, uses in enumerate(self.sources)
        ]
        """The iterations after which each operation reads its own result, at most; 0: it does
        not."""
        self.results = [node.operation.result for node in loop.nodes]
        self.files = {
            kind: [file.name for file in machine.files if file.kind is kind] for kind in FileKind
        }
        written = {
            kind: [[name for name in names if name in unit.writes] for unit in machine.units]
            for kind, names in self.files.items()
        }
        self.written = [None if r is None else written[r.kind] for r in self.results]
        """For each result, and each unit that makes it, the files that it may be in."""
        self.load = self._load()
        self.alike = machine.alike

    def _sources(self, node: DependenceNode) -> Iterator[OperandUse | tuple[Operand, Register]]:
        for index, source in enumerate(node.sources):
            operand = node.number, index
            if isinstance(source, Invariant):
                yield operand, source.register
            elif isinstance(source, NodeResult):
                is_base = index == 0 and node.step is not None
                yield OperandUse(operand, source.node, source.distance, is_base)

    def _load(self) -> list[float]:
        """For each unit the results that it makes in an iteration, if like units share them."""
        found = [0.0] * len(self.machine.units)
        for issue in self.issue:
            if issue.has_result:
                for unit in issue.units:
                    found[unit] += 1 / len(issue.units)
        return found


class PartialSchedule:
    """Operations of a loop whose iterations begin every `interval` cycles."""

    def __init__(
        self,
        loop: Iteration,
        demand: LoopDemand,
        interval: int,
        unbypassed: frozenset[Operand],
    ) -> None:
        """`unbypassed`: operands that must come from files."""
        self.loop, self.demand, self.interval = loop, demand, interval
        self.machine, self.unbypassed = demand.machine, unbypassed
        self.table = ReservationTable(self.machine, interval)
        self.slots: dict[int, IssueSlot] = {}
        self.paths: dict[Operand, FromUnit | FromFile] = {}
        self.bases: dict[int, int] = {}
        """Of accesses that may have another iteration's base: how many iterations before the one
        they have is."""
        self.files: dict[int, str] = {}
        """The file of each written result."""
        self._taken: dict[Operand, _Held | _Ports] = {}
        self._costs: dict[Operand, float] = {}
        """For each path: the ports that it uses, and cycles beyond its share for which it occupies
        a unit."""
        self._results: Counter[str] = Counter()
        """Number of results in each file."""
        self._copies: dict[Register, Counter[str]] = defaultdict(Counter)
        """Number of reads of each invariant register from each file."""
        self._busy: dict[tuple[int, int], int] = {}
        """The operation that prevents a unit from starting another one in a cycle."""
        self._write_backs: dict[tuple[int, int], int] = {}
        """The operation whose result gets to a unit's output register in a cycle."""
        self._shares = [interval / load - 1 if load else interval for load in demand.load]
        """For each unit the cycles that it has for a result beyond its write-back."""

    # --- placing ----------------------------------------------------------------------------

    def cost(self, number: int) -> float:
        """Scarce resources that the paths of an operation's operands and results take."""
        costs, total = self._costs, 0.0
        for use in self.demand.sources[number]:
            total += costs.get(use[0], 0)
        for use in self.demand.readers[number]:
            total += costs.get(use.operand, 0)
        return total

    def units(self, number: int, cycle: int) -> Iterator[int]:
        """The units that could take an operation in a cycle, but for those on which it would fare
        as on another one: a quick look before it is tried to place it."""
        demand, seen = self.demand, set()
        issue, interval = demand.issue[number], self.interval
        makers: set[int] | None = None
        for unit in self.table.free(issue, cycle):
            if makers is None:
                slots = self.slots
                makers = {slots[each].unit for each in demand.makers[number] if each in slots}
                until = self._last_read(number, cycle)
            write_back = cycle + issue.units[unit].latency
            # On units that are alike it can only matter which results get there while its own is
            # held, and whether they hold one that it reads.
            last = min(until, write_back + interval - 1)
            write_backs = self.table.write_backs(unit, write_back, last) if last > write_back else 0
            key = demand.alike[unit], write_backs, unit if unit in makers else -1
            if key not in seen:
                seen.add(key)
                yield unit

    def _last_read(self, number: int, cycle: int) -> int:
        """The last cycle in which any operation that is placed reads a result, or its base."""
        last = cycle + self.interval * self.demand.own_distance[number]
        for use in self.demand.readers[number]:
            if use.operand[0] in self.slots:
                last = max(last, self.slots[use.operand[0]].cycle + self.interval * use.distance)
        return last

    def place(self, number: int, cycle: int, unit: int) -> bool:
        """Issue an operation, if that can be."""
        issue = self.demand.issue[number]
        if not self.table.issue(issue, cycle, unit):
            return False
        timing, interval = issue.units[unit], self.interval
        latency = timing.latency
        self.slots[number] = IssueSlot(cycle, unit, latency, cycle + latency)
        for more in range(timing.interval):
            self._busy[unit, (cycle + more) % interval] = number
        if issue.has_result:
            self._write_backs[unit, (cycle + latency) % interval] = number
        if self._connect_all(number):
            return True
        self.evict(number)
        return False

    def evict(self, number: int) -> None:
        """Take an operation's place away."""
        for use in self.demand.readers[number]:
            if use.operand in self.paths:
                self._disconnect(use.operand)
        for source in self.demand.sources[number]:
            if source[0] in self.paths:
                self._disconnect(source[0])
        slot, issue, interval = self.slots[number], self.demand.issue[number], self.interval
        if number in self.files and number in self.demand.needed:
            self._unwrite(number)
        self.table.withdraw(issue, slot.cycle, slot.unit)
        for more in range(issue.units[slot.unit].interval):
            del self._busy[slot.unit, (slot.cycle + more) % interval]
        if issue.has_result:
            del self._write_backs[slot.unit, slot.write_back % interval]
        del self.slots[number]

    def read_from_files(self, operands: Collection[Operand]) -> bool:
        """Read operands from files that units' output registers have, in a schedule of all
        operations. False if there are no ports for that; the schedule is of no use then."""
        for operand in operands:
            (use,) = (
                use
                for use in self.demand.sources[operand[0]]
                if isinstance(use, OperandUse) and use.operand == operand
            )
            distance = use.distance if operand[1] else self.bases.get(operand[0], use.distance)
            self._disconnect(operand)
            if not self._by_file(operand, use.maker, distance):
                return False
            if distance != use.distance:
                self.bases[operand[0]] = distance
        return True

    def rival(self, number: int, cycle: int) -> int | None:
        """An operation that may conflict with another one: one that is issued on its units or
        written back there together with it, else one that is issued with it, else one that depends
        on it, else any."""
        return next((n for n in self._rivals(number, cycle) if n != number), None)

    def _rivals(self, number: int, cycle: int) -> Iterator[int]:
        interval, able = self.interval, self.demand.issue[number].units.values()
        for each in able:
            if (found := self._busy.get((each.unit, cycle % interval))) is not None:
                yield found
        for each in able:
            write_back = (cycle + each.latency) % interval
            if (found := self._write_backs.get((each.unit, write_back))) is not None:
                yield found
        for other, slot in self.slots.items():
            if slot.cycle % interval == cycle % interval:
                yield other
        for source in self.demand.sources[number]:
            if isinstance(source, OperandUse) and source.maker in self.slots:
                yield source.maker
        for use in self.demand.readers[number]:
            if use.operand[0] in self.slots:
                yield use.operand[0]
        yield from self.slots

    # --- paths of values --------------------------------------------------------------------

    def _connect_all(self, number: int) -> bool:
        """Choose the paths of an operation's operands, and of its result to others."""
        demand, slots = self.demand, self.slots
        if number in demand.needed and not self._write_somewhere(number):
            return False
        for source in demand.sources[number]:
            if not isinstance(source, OperandUse):
                if not self._read_invariant(*source):
                    return False
            elif source.maker in slots and not self._connect(source):
                return False
        return all(self._connect(use) for use in demand.readers[number] if use.operand[0] in slots)

    def _disconnect(self, operand: Operand) -> None:
        taken = self._taken.pop(operand)
        del self.paths[operand]
        if isinstance(taken, _Held):
            self.table.let_go(*taken)
        else:
            self.table.unread(taken.file, taken.cycle, taken.value)
            if taken.maker is not None:
                self._unwrite(taken.maker)
            else:
                assert isinstance(taken.value, Register)
                self._copies[taken.value][taken.file] -= 1
        self._costs.pop(operand, None)
        if not operand[1]:
            self.bases.pop(operand[0], None)

    def _connect(self, use: OperandUse) -> bool:
        """Choose the path of a value to its reader; both are scheduled."""
        operand, maker, distance, is_base = use
        if operand in self.paths:
            self._disconnect(operand)
        made = self.slots[maker]
        held = self.slots[operand[0]].cycle + self.interval * distance - made.write_back
        later = 0
        if is_base and held >= self.interval:
            # The last available one is used, and needs no hold.
            later, held = divmod(held, self.interval)
            distance -= later
        extra = held - self._shares[made.unit]
        if extra > 0:
            is_connected = self._by_file(operand, maker, distance)
            is_connected = is_connected or self._by_unit(operand, made, held, extra)
        else:
            is_connected = self._by_unit(operand, made, held, extra)
            is_connected = is_connected or self._by_file(operand, maker, distance)
        if is_connected and later:
            self.bases[operand[0]] = distance
        return is_connected

    def _by_unit(self, operand: Operand, made: IssueSlot, held: int, extra: float) -> bool:
        """Bypass an operand from the unit that has held it for some cycles."""
        if not 0 <= held < self.interval:
            return False
        if not self.machine.bypass or operand in self.unbypassed:
            return False
        taken = _Held(made.unit, made.write_back, made.write_back + held)
        if held:
            if self.table.write_backs(*taken):
                return False
            self.table.hold(*taken)
        self.paths[operand], self._taken[operand] = FromUnit(made.unit), taken
        if extra > 0:
            self._costs[operand] = extra
        return True

    def _by_file(self, operand: Operand, maker: int, distance: int) -> bool:
        """Read an operand from a register file."""
        table, cycle = self.table, self.slots[operand[0]].cycle
        value = maker, cycle // self.interval + distance
        connected = self.machine.units[self.slots[operand[0]].unit].reads
        for name in self._candidates(maker):
            if name not in connected:
                continue
            reads = table.read(name, cycle, value)
            if not reads:
                continue
            writes = self._write(maker, name)
            if not writes:
                table.unread(name, cycle, value)
                continue
            self.paths[operand] = FromFile(name)
            self._taken[operand] = _Ports(name, cycle, value, maker)
            ports = (reads == 1) + (writes == 1)
            if ports:
                self._costs[operand] = ports
            return True
        return False

    def _candidates(self, maker: int) -> list[str]:
        """Files that a result may be in, the emptiest first."""
        if maker in self.files:
            return [self.files[maker]]
        written = self.demand.written[maker]
        assert written is not None
        fitting = written[self.slots[maker].unit]
        return sorted(fitting, key=self._results.__getitem__) if len(fitting) > 1 else fitting

    def _write_somewhere(self, maker: int) -> bool:
        return any(self._write(maker, name) for name in self._candidates(maker))

    def _write(self, maker: int, name: str) -> int:
        """Write a result to a file: how many need that; 0 if there is no port."""
        count = self.table.write(name, self.slots[maker].write_back, maker)
        if count == 1:
            self.files[maker] = name
            self._results[name] += 1
        return count

    def _unwrite(self, maker: int) -> None:
        name = self.files[maker]
        if not self.table.unwrite(name, self.slots[maker].write_back, maker):
            del self.files[maker]
            self._results[name] -= 1

    def _read_invariant(self, operand: Operand, register: Register) -> bool:
        """Read a register that does not change in the loop."""
        user, table, there = self.slots[operand[0]], self.table, self._copies[register]
        connected = self.machine.units[user.unit].reads
        fitting = [name for name in self.demand.files[register.kind] if name in connected]
        fitting.sort(key=lambda n: (not table.is_read(n, user.cycle, register), not there[n]))
        for name in fitting:
            if table.read(name, user.cycle, register):
                self.paths[operand] = FromFile(name)
                self._taken[operand] = _Ports(name, user.cycle, register, None)
                there[name] += 1
                return True
        return False


def _constants(node: DependenceNode) -> tuple[int | MachineBlock, ...]:
    """The constants that a bundle must hold for an operation; a zero base is not one."""
    sources = node.sources
    if node.operation.place is not None and sources[0] == 0:
        sources = sources[1:]
    return tuple(dict.fromkeys(each for each in sources if isinstance(each, int)))
