# SPDX-License-Identifier: Apache-2.0
"""Counters of a program of the machine, from which `report` derives metrics."""

from __future__ import annotations

import dataclasses

from ferryvm.backend import ArrayActivity
from ferryvm.errors import Position
from ferryvm_backends.vliw.code.program import Program
from ferryvm_backends.vliw.simulate.metric import Words


@dataclasses.dataclass
class Totals:
    """Totals of all entries."""

    bundles: Words
    """The number of fetches of each bundle, from which the statistics of operations follow."""
    entries: int = 0
    cycles: int = 0
    """Of programs."""
    transfer_cycles: int = 0
    to_device: int = 0
    """Bytes."""
    to_host: int = 0
    """Bytes."""
    instructions: int = 0
    seconds: float = 0.0


@dataclasses.dataclass(frozen=True)
class ProgramMetrics:
    """The totals of one program, with their machine and region."""

    program: Program
    device: str
    """The device name that selected the machine; empty if it was given as a value."""
    pc: int
    """The region's entry."""
    positions: dict[int, Position]
    """Places in the source by pc: of the entry, and of loops."""
    totals: Totals
    arrays: tuple[ArrayActivity, ...] = ()
    """The copies of its objects, array by array."""
