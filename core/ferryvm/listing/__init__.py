# SPDX-License-Identifier: Apache-2.0
"""Code with names instead of numbers: what front ends write and the peephole rewrites.

    Skiff, assembly ──> Listing ──peephole──> Listing ──encode──> Program
    disassembly     <── Listing <───────────── decode ─────────── Program

Labels belong to their function. Only the conditions of encoding are checked here (names exist,
literals fit); `ferryvm.verify` decides whether the program can run.

A function's code is a list of items, an object for each instruction. Producers of much code write
arrays (`FunctionCode`) instead; their items are made at the first access.
"""

from __future__ import annotations

from ferryvm import record
from ferryvm.errors import Position
from ferryvm.isa import INSTRUCTIONS, Immediate, Instruction
from ferryvm.isa.declared_type import DeclaredType
from ferryvm.isa.frame import number_of, return_counts
from ferryvm.isa.type import ValueType
from ferryvm.listing.code import FunctionCode
from ferryvm.program import Data, HostImport, Signature, Static, Tag

__all__ = [
    "ClauseListing",
    "FunctionCode",
    "FunctionListing",
    "Item",
    "Label",
    "Line",
    "Listing",
    "Operand",
]


@record.dataclass(frozen=True)
class Label:
    """A target of jumps, before the next instruction."""

    name: str


Operand = int | str | Signature | tuple[str, ...] | None
"""By the kind of the immediate: the bit pattern of a literal; a number (local, static, offset,
number of results, type; of a field the immediate); a name (label, function, host import); labels; a
signature; None."""


@record.dataclass(frozen=True)
class Line:
    """One instruction. Statics, locals, types and fields are identified by number, everything else
    by name."""

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
    signature: Signature = record.field(default_factory=Signature)
    locals: tuple[ValueType, ...] = ()
    items: list[Item] = record.field(default_factory=list)
    clauses: list[ClauseListing] = record.field(default_factory=list)
    """Inner ones first."""
    parameters: tuple[str, ...] = ()
    """Names of the parameters, as `ferryvm.program.Function` has them."""

    @classmethod
    def of(
        cls, name: str, signature: Signature, locals_: tuple[ValueType, ...], code: FunctionCode
    ) -> FunctionListing:
        """A function whose code is arrays, which the function owns from then on."""
        function = cls(name, signature, locals_)
        del function.items
        function.__dict__["_code"] = code
        return function

    @property
    def code(self) -> FunctionCode | None:
        """The code as arrays; None if it is items."""
        return self.__dict__.get("_code")

    def __getattr__(self, name: str) -> list[Item]:
        """The items of code that is arrays. They may be changed, so they replace the arrays."""
        code = self.__dict__.pop("_code", None) if name == "items" else None
        if code is None:
            raise AttributeError(f"FunctionListing has no attribute {name!r}")
        self.items = _items(code, len(self.signature.parameters))
        return self.items


def _items(code: FunctionCode, parameters: int) -> list[Item]:
    """The code of a function with this number of parameters as items."""
    items: list[Item] = []
    relocated = dict(code.relocations)
    labels: dict[int, list[str]] = {}
    for name, pc in code.labels.items():
        labels.setdefault(pc, []).append(name)
    pc, end = 0, len(code.opcodes)
    while pc < end:
        items += map(Label, labels.get(pc, ()))
        position = code.positions.at(pc)
        row, immediate = INSTRUCTIONS[code.opcodes[pc]], code.immediates[pc]
        operand: Operand = relocated.get(pc, immediate)
        past = pc + 1
        if row.immediate is Immediate.LABELS:
            past += immediate + 1
            operand = tuple(str(relocated[jump]) for jump in range(pc + 1, past))
        elif row.immediate is Immediate.NONE:
            operand = None
        elif row.immediate is Immediate.LOCAL:
            operand = number_of(immediate, parameters)
        elif row.immediate is Immediate.RESULTS:
            operand = return_counts(immediate)[1]
        items.append(Line(row, operand, position))
        pc = past
    return [*items, *map(Label, labels.get(end, ()))]


@record.dataclass
class Listing:
    """A whole program; the first function is where execution starts."""

    functions: list[FunctionListing] = record.field(default_factory=list)
    statics: list[Static] = record.field(default_factory=list)
    data: list[Data] = record.field(default_factory=list)
    table: list[str] = record.field(default_factory=list)
    hosts: list[HostImport] = record.field(default_factory=list)
    exports: dict[str, str] = record.field(default_factory=dict)
    """Names of the functions by the names under which they are called from outside."""
    tags: list[Tag] = record.field(default_factory=list)
    types: list[DeclaredType] = record.field(default_factory=list)
    extra_signatures: tuple[Signature, ...] = ()
    """Signatures to number first, in this order; decoding sets them so that numbers are
    preserved."""
