# SPDX-License-Identifier: Apache-2.0
"""A statically scheduled processor: function units, register files, memory.

A cycle issues a *bundle*: at most one operation for each unit. The rules of timing:

- The result of an operation that is issued in cycle t with latency L is written back in cycle
  t + L. A read of the register before that yields the old value.
- From t + L on, the result is in its unit's output register, until the next result of the same
  unit. With `bypass` an operation can read it there without a port, and a result without later
  readers need not be written to a file.
- A taken branch that is issued in cycle t transfers control in cycle t + delay_slots + 1. The
  bundles in between (its delay slots) are executed. While a taken exit, which is a conditional
  branch, is in flight, later branches have no effect; behind an unconditional branch they do, in
  their order. A bundle has at most one branch.
- A load reads memory as it is before the stores of its own cycle.
- With `predication` a store can have a predicate: a register of a boolean file, or an output
  register, and the value for which the store is executed. For the other value the store has no
  effect, but has used its slot, unit, ports and constants. A predicate takes a read port of a file
  that the unit is connected to, as an operand does. Only stores have predicates: operations with
  results are always executed, so the content of output registers depends on the bundles only.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
from collections.abc import Mapping


class FileKind(enum.Enum):
    """The kind of values in a register file."""

    INTEGER = "integer"
    """Words of 64 bits: i32 and f32 in their low halves, zeros above."""
    BOOLEAN = "boolean"
    """Booleans: results of comparisons, and operands of exits, `select` and predicated stores."""


class Work(enum.Enum):
    """Operations that a unit supports all together; the value is their name in files."""

    MOVE = "move"
    """Copies a register, or sets one to a constant."""
    ADD = "add"
    LOGIC = "logic"
    SHIFT = "shift"
    COMPARE = "compare"
    EXTEND = "extend"
    """i32 to i64 and back."""
    SELECT = "select"
    BOOLEAN = "boolean"
    COUNT = "count"
    """Leading and trailing zeros, bits that are set."""
    MULTIPLY = "multiply"
    DIVIDE = "divide"
    FLOAT_ADD = "float_add"
    FLOAT_COMPARE = "float_compare"
    FLOAT_MULTIPLY = "float_multiply"
    FLOAT_DIVIDE = "float_divide"
    FLOAT_ROOT = "float_root"
    FLOAT_ROUND = "float_round"
    CONVERT = "convert"
    LOAD = "load"
    STORE = "store"
    BRANCH = "branch"


@dataclasses.dataclass(frozen=True)
class Timing:
    """Latency and issue interval of an operation on a unit, in cycles."""

    latency: int
    """From its issue to its result, 1 at least."""
    interval: int = 1
    """From its issue to the next operation that the unit takes, 1 at least."""


@dataclasses.dataclass(frozen=True)
class UnitTiming:
    """A unit that can do some work, and how long it takes."""

    unit: int
    """Its number in the machine."""
    latency: int
    interval: int
    busy: int
    """A bit for each cycle in which it takes nothing else, the lowest for the first one."""


@dataclasses.dataclass(frozen=True)
class RegisterFile:
    """Registers with their ports: how many reads and writes there may be in a cycle."""

    name: str
    kind: FileKind
    registers: int
    read_ports: int
    write_ports: int
    cost: float = 0.0


@dataclasses.dataclass(frozen=True)
class Unit:
    """A function unit."""

    name: str
    """Its own: `alu2` is the third of four that the description calls `alu`."""
    group: str
    """The name of its group in the description."""
    work: Mapping[Work, Timing]
    reads: frozenset[str]
    """Names of the files that its operands may come from."""
    writes: frozenset[str]
    """Names of the files that its results may go to."""
    cost: float = 0.0


@dataclasses.dataclass(frozen=True)
class Transfer:
    """The connection between the host's memory and the machine's own."""

    bytes_per_cycle: float
    setup: int
    """Cycles that each transfer takes before its first byte."""


@dataclasses.dataclass(frozen=True)
class Machine:
    """A processor."""

    name: str
    clock: float
    """MHz."""
    slots: int
    """Operations that can be issued in a cycle."""
    immediates: int
    """Constants that a bundle can hold."""
    delay_slots: int
    predication: bool
    """True if stores can be predicated on a register of a boolean file."""
    bypass: bool
    instructions: int
    """Bundles that the instruction memory holds."""
    memory: int
    """Bytes of local memory."""
    transfer: Transfer
    files: tuple[RegisterFile, ...]
    units: tuple[Unit, ...]

    def file(self, name: str) -> RegisterFile:
        """A register file by its name. Raises KeyError."""
        return self._files[name]

    @functools.cached_property
    def _files(self) -> Mapping[str, RegisterFile]:
        return {file.name: file for file in self.files}

    @property
    def cost(self) -> float:
        """The sum over all units and files, in the description's unit of cost."""
        return sum(file.cost for file in self.files) + sum(unit.cost for unit in self.units)

    def units_for(self, work: Work) -> tuple[Unit, ...]:
        """The units that can do something, in the order of the description."""
        return self._able[work]

    @functools.cached_property
    def _able(self) -> Mapping[Work, tuple[Unit, ...]]:
        return {work: tuple(unit for unit in self.units if work in unit.work) for work in Work}

    @functools.cached_property
    def alike(self) -> tuple[int, ...]:
        """For each unit the first one with equal connections and operations."""
        first: dict[object, int] = {}
        return tuple(
            first.setdefault((unit.reads, unit.writes, frozenset(unit.work.items())), number)
            for number, unit in enumerate(self.units)
        )

    @functools.cached_property
    def timings(self) -> Mapping[Work, Mapping[int, UnitTiming]]:
        """The units that can do each kind of work, by their numbers, in the order of the
        description."""
        return {
            work: {
                number: UnitTiming(number, each.latency, each.interval, (1 << each.interval) - 1)
                for number, unit in enumerate(self.units)
                if (each := unit.work.get(work)) is not None
            }
            for work in Work
        }
