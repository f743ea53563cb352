# SPDX-License-Identifier: Apache-2.0
"""The modulo reservation table: resources that operations take in each cycle modulo the interval.

Besides units, slots and constants it reserves paths for values. An operand is read from its unit's
output register if that still holds it, otherwise from a file; the table selects the file, by the
ports that are left. A result that is read only from its unit takes neither port nor register, but
blocks the unit's next result for as long: beyond a unit's *share*, the cycles that it has for each
of its results, files are preferred. A loop-invariant register can be read from any file: it gets a
copy there.

Each decision about two operations is undone when one of them is unscheduled.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from ferryvm_backends.vliw.code.modulo.dependence_graph import (
    DependenceNode,
    Invariant,
    Iteration,
    NodeResult,
)
from ferryvm_backends.vliw.code.operation import BRANCHES, Register
from ferryvm_backends.vliw.machine.model import FileKind, Machine, Work

_Key = tuple[Any, ...]

_MARKED = frozenset({"busy", "land", "hold"})

Operand = tuple[int, int]
"""Number of an operation, and of one of its operands."""


@dataclasses.dataclass(frozen=True)
class IssueSlot:
    """Where an operation of the iteration is."""

    cycle: int
    unit: int
    latency: int

    @property
    def landing(self) -> int:
        """The first cycle that sees the result."""
        return self.cycle + self.latency


@dataclasses.dataclass(frozen=True)
class FromUnit:
    """An operand stands in a unit's output register."""

    unit: int


@dataclasses.dataclass(frozen=True)
class FromFile:
    """An operand is read from a file."""

    file: str


class ModuloReservationTable:
    """The reservations of a loop whose iterations begin every `interval` cycles."""

    def __init__(
        self, loop: Iteration, machine: Machine, interval: int, unbypassed: frozenset[Operand]
    ) -> None:
        """`unbypassed`: operands that have to come from files."""
        self.loop, self.machine, self.interval = loop, machine, interval
        self.unbypassed = unbypassed
        self.spots: dict[int, IssueSlot] = {}
        self.ways: dict[Operand, FromUnit | FromFile] = {}
        self.bases: dict[int, int] = {}
        """Of accesses that may have another iteration's base: how many iterations before the one
        they have is."""
        self.files: dict[int, str] = {}
        """The file that each written result goes to."""
        self._held: dict[_Key, dict[object, int]] = defaultdict(dict)
        self._marks: dict[tuple[str, int], int] = defaultdict(int)
        """Cycles in which a unit is at work, a result lands there, or none may: a bit for each."""
        self._own: dict[int, list[tuple[_Key, object]]] = {}
        self._links: dict[Operand, list[tuple[_Key, object]]] = {}
        self._costs: dict[Operand, float] = {}
        """Of links: ports that they take, and cycles past its share that they keep a unit."""
        self._load: Counter[str] = Counter()
        self._copies: dict[Register, Counter[str]] = defaultdict(Counter)
        """How often each register that does not change is read from each file."""
        self._units = {
            work: [n for n, unit in enumerate(machine.units) if work in unit.work] for work in Work
        }
        self._kinds = {file.name: file.kind for file in machine.files}
        self._uses: dict[int, list[tuple[Operand, int]]] = defaultdict(list)
        """Who reads the result of each operation, and how many iterations later."""
        self.needed: set[int] = set()
        """Operations whose results exits need, and so have to be in registers."""
        self._shares = self._unit_shares()
        for node in loop.nodes:
            for index, source in enumerate(node.sources):
                if isinstance(source, NodeResult):
                    self._uses[source.node].append(((node.number, index), source.distance))
            for source in node.needed.values():
                if isinstance(source, NodeResult):
                    self.needed.add(source.node)

    def _unit_shares(self) -> list[float]:
        """For each unit the cycles that it has for a result beyond the one in which that lands."""
        loads = [0.0] * len(self.machine.units)
        for node in self.loop.nodes:
            if node.operation.result is not None:
                able = self._units[node.operation.work]
                for unit in able:
                    loads[unit] += 1 / len(able)
        return [self.interval / load - 1 if load else self.interval for load in loads]

    # --- placing ----------------------------------------------------------------------------

    def cost(self, number: int) -> float:
        """What the ways of values to and from an operation take that is scarce."""
        mine = ((number, index) for index in range(len(self.loop.nodes[number].sources)))
        links = (*mine, *(operand for operand, _ in self._uses[number] if operand[0] != number))
        return sum(self._costs.get(each, 0) for each in links)

    def units(self, node: DependenceNode) -> list[int]:
        """The units that can do an operation."""
        return self._units[node.operation.work]

    def free(self, node: DependenceNode, cycle: int) -> Iterator[int]:
        """The units that could take an operation: a quick look before it is tried to place it."""
        work, interval = node.operation.work, self.interval
        if len(self._held[("slot", cycle % interval)]) >= self.machine.slots:
            return
        for unit in self._units[work]:
            timing = self.machine.units[unit].work[work]
            mask = ((1 << timing.interval) - 1) << cycle % interval
            mask |= mask >> interval
            if mask & self._marks["busy", unit]:
                continue
            if node.operation.result is not None:
                bit = 1 << (cycle + timing.latency) % interval
                if bit & (self._marks["land", unit] | self._marks["hold", unit]):
                    continue
            yield unit

    def place(self, node: DependenceNode, cycle: int, unit: int) -> bool:
        """Issue an operation, if that can be."""
        timing = self.machine.units[unit].work[node.operation.work]
        spot = IssueSlot(cycle, unit, timing.latency)
        taken: list[tuple[_Key, object]] = []
        if not self._take_own(node, spot, timing.interval, taken):
            self._release(taken)
            return False
        self._own[node.number], self.spots[node.number] = taken, spot
        if self._link(node):
            return True
        self.evict(node.number)
        return False

    def evict(self, number: int) -> None:
        """Take an operation's place away."""
        for operand, _ in self._uses[number]:
            self._unlink(operand)
        for index in range(len(self.loop.nodes[number].sources)):
            self._unlink((number, index))
        self._release(self._own.pop(number))
        del self.spots[number]

    def rivals(self, node: DependenceNode, cycle: int) -> list[int]:
        """Operations that may be in the way of one: those that are issued on its units or land
        there together with it, then those that are issued with it, then those that it has to do
        with."""
        units = self.units(node)
        found: dict[int, None] = {}
        for name in ("busy", "land"):
            for unit in units:
                timing = self.machine.units[unit].work[node.operation.work]
                at = cycle if name == "busy" else cycle + timing.latency
                holders = self._held.get((name, unit, at % self.interval), ())
                found.update((n, None) for n in holders if isinstance(n, int))
        same = cycle % self.interval
        found.update((n, None) for n, s in self.spots.items() if s.cycle % self.interval == same)
        found.update((s.node, None) for s in node.sources if isinstance(s, NodeResult))
        found.update((user, None) for (user, _), _ in self._uses[node.number])
        found.update(dict.fromkeys(self.spots))
        return [n for n in found if n in self.spots and n != node.number]

    def _take_own(
        self, node: DependenceNode, spot: IssueSlot, interval: int, taken: list[tuple[_Key, object]]
    ) -> bool:
        machine, operation = self.machine, node.operation
        now = spot.cycle % self.interval
        if interval > self.interval:
            return False
        wanted: list[tuple[_Key, object, int]] = [(("slot", now), node.number, machine.slots)]
        if operation.name in BRANCHES:
            wanted.append((("branch", now), node.number, 1))
        for more in range(interval):
            key = "busy", spot.unit, (spot.cycle + more) % self.interval
            wanted.append((key, node.number, 1))
        if operation.result is not None:
            landing = spot.landing % self.interval
            if self._held.get(("hold", spot.unit, landing)):
                return False
            wanted.append((("land", spot.unit, landing), node.number, 1))
        for index, source in enumerate(node.sources):
            is_base = operation.place is not None and index == 0 and source == 0
            if isinstance(source, int) and not is_base:
                wanted.append((("constant", now), source, machine.immediates))
        return all(self._take(key, holder, limit, taken) for key, holder, limit in wanted)

    def _take(
        self, key: _Key, holder: object, limit: int, taken: list[tuple[_Key, object]]
    ) -> bool:
        held = self._held[key]
        if holder not in held and len(held) >= limit:
            return False
        if not held and key[0] in _MARKED:
            self._marks[key[0], key[1]] |= 1 << key[2]
        held[holder] = held.get(holder, 0) + 1
        taken.append((key, holder))
        return True

    def _release(self, taken: list[tuple[_Key, object]]) -> None:
        for key, holder in taken:
            held = self._held[key]
            held[holder] -= 1
            if not held[holder]:
                del held[holder]
                if not held and key[0] in _MARKED:
                    self._marks[key[0], key[1]] &= ~(1 << key[2])
                if key[0] == "write":
                    assert isinstance(holder, int)
                    self._load[self.files.pop(holder)] -= 1

    # --- ways of values ---------------------------------------------------------------------

    def _link(self, node: DependenceNode) -> bool:
        """Decide how values come to an operation, and from it to others."""
        number = node.number
        if number in self.needed and not self._write(number, self._own[number]):
            return False
        for index, source in enumerate(node.sources):
            operand = number, index
            if isinstance(source, Invariant) and not self._keep(operand, source.register):
                return False
            if not isinstance(source, NodeResult) or source.node not in self.spots:
                continue
            if not self._connect(operand, source.node, source.distance):
                return False
        return all(
            self._connect(operand, number, distance)
            for operand, distance in self._uses[number]
            if operand[0] != number and operand[0] in self.spots
        )

    def _unlink(self, operand: Operand) -> None:
        if operand not in self.ways:
            return
        self._release(self._links.pop(operand))
        way = self.ways.pop(operand)
        self._costs.pop(operand, None)
        if not operand[1]:
            self.bases.pop(operand[0], None)
        source = self._source(operand)
        if isinstance(source, Invariant):
            assert isinstance(way, FromFile)
            self._copies[source.register][way.file] -= 1

    def _connect(self, operand: Operand, maker: int, distance: int) -> bool:
        """Decide how a value comes to its reader; both have places."""
        self._unlink(operand)
        spot = self.spots[maker]
        held = self.spots[operand[0]].cycle + self.interval * distance - spot.landing
        later = 0
        if held >= self.interval and self._is_base(operand):
            # The last one that is there serves, and need not be kept.
            later, held = divmod(held, self.interval)
            distance -= later
        extra = held - self._shares[spot.unit]
        taken: list[tuple[_Key, object]] = []
        ways = (self._bypass, self._file) if extra <= 0 else (self._file, self._bypass)
        for find in ways:
            way = find(operand, maker, distance, taken)
            if way is not None:
                if isinstance(way, FromFile):
                    extra = sum(self._held[key][holder] == 1 for key, holder in taken)
                self.ways[operand], self._links[operand] = way, taken
                self._costs[operand] = max(extra, 0)
                if later:
                    self.bases[operand[0]] = distance
                return True
            self._release(taken)
            taken.clear()
        return False

    def _is_base(self, operand: Operand) -> bool:
        """True if an operand is an access's base that another iteration's may stand for."""
        number, index = operand
        return index == 0 and self.loop.nodes[number].step is not None

    def _bypass(
        self, operand: Operand, maker: int, distance: int, taken: list[tuple[_Key, object]]
    ) -> FromUnit | None:
        spot, user = self.spots[maker], self.spots[operand[0]]
        read = user.cycle + self.interval * distance
        if not self.machine.bypass or operand in self.unbypassed:
            return None
        if not spot.landing <= read < spot.landing + self.interval:
            return None
        slots = [each % self.interval for each in range(spot.landing + 1, read + 1)]
        if any(self._held.get(("land", spot.unit, each)) for each in slots):
            return None
        for each in slots:
            self._take(("hold", spot.unit, each), operand, 1 << 30, taken)
        return FromUnit(spot.unit)

    def _file(
        self, operand: Operand, maker: int, distance: int, taken: list[tuple[_Key, object]]
    ) -> FromFile | None:
        user = self.spots[operand[0]]
        stage = user.cycle // self.interval + distance
        unit = self.machine.units[user.unit]
        for name in self._candidates(maker):
            mark = len(taken)
            if (
                name in unit.reads
                and self._read(name, user.cycle, (maker, stage), taken)
                and self._write_to(maker, name, taken)
            ):
                return FromFile(name)
            self._release(taken[mark:])
            del taken[mark:]
        return None

    def _candidates(self, maker: int) -> list[str]:
        """Files that a result may be in, the emptiest first."""
        if maker in self.files:
            return [self.files[maker]]
        unit = self.machine.units[self.spots[maker].unit]
        result = self.loop.nodes[maker].operation.result
        assert result is not None
        fitting = [f for f in self._of_kind(result.kind) if f in unit.writes]
        return sorted(fitting, key=lambda name: self._load[name])

    def _of_kind(self, kind: FileKind) -> list[str]:
        return [name for name, each in self._kinds.items() if each is kind]

    def _read(self, name: str, cycle: int, value: object, taken: list[tuple[_Key, object]]) -> bool:
        key = "read", name, cycle % self.interval
        return self._take(key, value, self.machine.file(name).read_ports, taken)

    def _write(self, maker: int, taken: list[tuple[_Key, object]]) -> bool:
        return any(self._write_to(maker, name, taken) for name in self._candidates(maker))

    def _write_to(self, maker: int, name: str, taken: list[tuple[_Key, object]]) -> bool:
        key = "write", name, self.spots[maker].landing % self.interval
        if not self._take(key, maker, self.machine.file(name).write_ports, taken):
            return False
        if maker not in self.files:
            self.files[maker] = name
            self._load[name] += 1
        return True

    def _keep(self, operand: Operand, register: Register) -> bool:
        """Read a register that does not change in the loop."""
        user = self.spots[operand[0]]
        unit = self.machine.units[user.unit]
        now = user.cycle % self.interval
        fitting = [name for name in self._of_kind(register.kind) if name in unit.reads]
        there = self._copies[register]
        taken: list[tuple[_Key, object]] = []
        order = sorted(
            fitting,
            key=lambda n: (register not in self._held.get(("read", n, now), ()), not there[n]),
        )
        for name in order:
            if self._read(name, user.cycle, register, taken):
                self.ways[operand], self._links[operand] = FromFile(name), taken
                there[name] += 1
                return True
        return False

    def _source(self, operand: Operand) -> object:
        return self.loop.nodes[operand[0]].sources[operand[1]]
