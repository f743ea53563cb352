# SPDX-License-Identifier: Apache-2.0
"""A program of the machine: bundles, with what each slot of them says."""

from __future__ import annotations

import dataclasses

from ferryvm.ir.graph import Static
from ferryvm_backends.vliw.code.operation import Place
from ferryvm_backends.vliw.machine.model import Machine


@dataclasses.dataclass(frozen=True)
class Read:
    """A register of a file."""

    file: int
    """Its number in the machine."""
    number: int


@dataclasses.dataclass(frozen=True)
class Bypass:
    """What stands in a unit's output register."""

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
    """The register that the result goes to, if it goes to one."""
    has_result: bool = False
    is_truth: bool = False
    """Whether the result is one."""
    place: Place | None = None
    target: int | None = None
    """Number of the bundle that control may go on in."""
    pc: int = -1


Bundle = tuple[Slot, ...]


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
    """Registers that are in memory for want of others."""
