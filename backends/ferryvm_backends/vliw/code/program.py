# SPDX-License-Identifier: Apache-2.0
"""A program of the machine: bundles of slots."""

from __future__ import annotations

import dataclasses

from ferryvm.ir.graph import Static
from ferryvm_backends.vliw.code import tuning
from ferryvm_backends.vliw.code.operation import MemoryOperand, work_of
from ferryvm_backends.vliw.machine.model import Machine, Timing


@dataclasses.dataclass(frozen=True)
class Read:
    """A register of a file."""

    file: int
    """Its number in the machine."""
    number: int


@dataclasses.dataclass(frozen=True)
class Bypass:
    """The value in a unit's output register."""

    unit: int


@dataclasses.dataclass(frozen=True)
class Immediate:
    """A constant."""

    bits: int


Source = Read | Bypass | Immediate


@dataclasses.dataclass(frozen=True)
class Slot:
    """An operation in a bundle."""

    unit: int
    name: str
    static: tuple[Static, ...]
    sources: tuple[Source, ...]
    written: Read | None = None
    """The register to which the result is written back, if any."""
    has_result: bool = False
    is_predicate: bool = False
    """True if the result is a predicate."""
    place: MemoryOperand | None = None
    target: int | None = None
    """Number of the bundle at which control may continue."""
    again: int | None = None
    """Number of the bundle to which a `repeat` branches."""
    pc: int = -1
    predicate: tuple[Source, bool] | None = None
    """A predicate, and the value for which the operation has an effect."""

    @property
    def reads(self) -> tuple[Source, ...]:
        """Its operands: its sources, and its predicate."""
        return self.sources if self.predicate is None else (*self.sources, self.predicate[0])


Bundle = tuple[Slot, ...]

LIMIT = f"the loops of its region take more than {tuning.REGION_PLACEMENTS:,} placements"
"""The reason that a loop is not pipelined for which no schedule was found in its share of the
placements."""


@dataclasses.dataclass(frozen=True)
class LoopSummary:
    """A loop of one block, with its timing.

    A *pass* is one execution of the block: as many iterations of the program's loop as the unroll
    factor.
    """

    label: str
    """Of its block."""
    pc: int
    """Its first instruction."""
    iterations: int
    """Rounds of the program's loop in a pass."""
    start: int
    """The first bundle of the loop's kernel."""
    end: int
    """The bundle behind them."""
    copies: int
    """Passes that these bundles hold: more than one where values outlive a pass (modulo variable
    expansion, Lam 1988)."""
    stages: int
    """The number of overlapped passes (stages); 1 for a loop that is not pipelined, and for one in
    which a pass ends as the next one starts."""
    resource_bound: int
    """Cycles of a pass that the machine has units for, at least (Rau 1994, section 2.1)."""
    resource: str
    """The scarcest resource: units, slots, or ports of files, by name."""
    recurrence_bound: int
    """The recurrence bound of a pass in cycles (section 2.2)."""
    reason: str = ""
    """The reason that it is not pipelined; empty for one that is."""

    @property
    def interval(self) -> int:
        """Cycles from one pass to the next: the initiation interval."""
        return (self.end - self.start) // self.copies

    @property
    def is_limited(self) -> bool:
        """True if the search for a schedule was ended."""
        return self.reason == LIMIT

    @property
    def is_pipelined(self) -> bool:
        """True if it was scheduled as one whose passes may overlap."""
        return not self.reason


@dataclasses.dataclass(frozen=True)
class Program:
    """Bundles; the first one is entered."""

    name: str
    machine: Machine
    bundles: tuple[Bundle, ...]
    labels: dict[int, str]
    """Blocks by their first bundle."""
    returns: tuple[int, ...]
    """Bundles that a `jump_to` may go to."""
    guards: tuple[int, ...]
    spill_words: int
    call_bytes: int
    """Of the segment that calls are noted in."""
    spilled: int
    """The number of spilled registers."""
    loops: tuple[LoopSummary, ...] = ()
    """The loops of one block, in the order of their bundles."""
    records: tuple[int, ...] = ()
    """The first bundles of routines that write the record of a group that is left in the middle."""

    @property
    def limited(self) -> str:
        """The number of loops that are not pipelined for lack of placements, in words; empty if
        there is none."""
        count = sum(loop.is_limited for loop in self.loops)
        return f"{count} of {len(self.loops)} loops not pipelined: {LIMIT}" if count else ""

    def timing(self, slot: Slot) -> Timing:
        """The timing of an operation on its unit. The oracle of the simulators and the prover ask
        the machine themselves."""
        return self.machine.units[slot.unit].work[work_of(slot.name, slot.static)]
