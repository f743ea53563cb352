# SPDX-License-Identifier: Apache-2.0
"""Code with names instead of numbers: what front ends write and the peephole rewrites.

    Skiff, assembly ──> Listing ──peephole──> Listing ──encode──> Program
    disassembly     <── Listing <───────────── decode ─────────── Program

Labels belong to their function. Nothing here is checked beyond what encoding needs (names that
exist, literals that fit): whether the program can run is `ferryvm.verify`'s to say.
"""

from __future__ import annotations

import dataclasses

from ferryvm import record
from ferryvm.errors import Position
from ferryvm.isa import Instruction, Type
from ferryvm.program import Data, HostImport, Signature, Static, Tag

__all__ = ["ClauseListing", "FunctionListing", "Item", "Label", "Line", "Listing", "Operand"]


@record.dataclass(frozen=True)
class Label:
    """A target of jumps, in front of the next instruction."""

    name: str


Operand = int | str | Signature | tuple[str, ...] | None
"""By the kind of the immediate: the bit pattern of a literal; a number (local, static, offset,
number of results); a name (label, function, host import); labels; a signature; None."""


@record.dataclass(frozen=True)
class Line:
    """One instruction. Statics and locals go by number, everything else by name."""

    row: Instruction
    operand: Operand = None
    position: Position | None = None


Item = Label | Line
"""An element of a function's code."""


@record.dataclass(frozen=True)
class ClauseListing:
    """A clause of a function, by its labels; see `ferryvm.program.Clause`."""

    start: str
    end: str
    handler: str
    depth: int = 0
    tag: str | None = None
    record: bool = False


@record.dataclass
class FunctionListing:
    """A function with its code."""

    name: str
    signature: Signature = dataclasses.field(default_factory=Signature)
    locals: tuple[Type, ...] = ()
    items: list[Item] = dataclasses.field(default_factory=list)
    clauses: list[ClauseListing] = dataclasses.field(default_factory=list)
    """Inner ones first."""


@record.dataclass
class Listing:
    """A whole program; the first function is where execution starts."""

    functions: list[FunctionListing] = dataclasses.field(default_factory=list)
    statics: list[Static] = dataclasses.field(default_factory=list)
    data: list[Data] = dataclasses.field(default_factory=list)
    table: list[str] = dataclasses.field(default_factory=list)
    hosts: list[HostImport] = dataclasses.field(default_factory=list)
    exports: dict[str, str] = dataclasses.field(default_factory=dict)
    """Names of functions by the names that they are called by from outside."""
    tags: list[Tag] = dataclasses.field(default_factory=list)
    extra_signatures: tuple[Signature, ...] = ()
    """Signatures to number first, in this order; decoding sets them so that numbers stay."""
