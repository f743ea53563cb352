# SPDX-License-Identifier: Apache-2.0
"""The instruction table, arranged for generation: the instructions that yield a type, and their
operands.

Instructions that compute are not named here; the module derives them from the declarations, so new
instructions are generated, too. Whether one can trap follows from its meaning.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
from collections.abc import Mapping

from ferryvm.isa import BY_MNEMONIC, INSTRUCTIONS, Flow, Immediate, Instruction
from ferryvm.isa.effect import summary
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import Type
from ferryvm.testing.generate.chance import Weighted
from ferryvm.testing.generate.literal import GROUPS, I32, NUMBER, bounds, fits, halfway

OPCODE: Mapping[str, int] = {row.mnemonic: row.opcode for row in INSTRUCTIONS}


class Guard(enum.Enum):
    """The condition that prevents an instruction from trapping."""

    NONE = "it cannot trap"
    DIVISOR = "a divisor that is not 0, and not -1 where the quotient overflows"
    RANGE = "a float that is not NaN and fits"
    OVERFLOW = "operands of half the bits at most, not negative"
    UNKNOWN = "nothing that is known here: it is used only where traps are welcome"


@dataclasses.dataclass(frozen=True, eq=False)
class Operator:
    """An instruction that computes one value from others."""

    opcode: int
    pops: tuple[int, ...]
    result: int
    guard: Guard
    is_shift: bool
    """True if the second operand is a shift count."""
    overflows: bool
    """True if a divisor of -1 can trap too."""
    edges: tuple[int, ...] = ()
    """Literals at which a conversion or rounding changes its behaviour."""
    fitting: tuple[int, ...] = ()
    """For Guard.RANGE: those that do not trap."""
    bounds: tuple[int, ...] = ()
    """For Guard.RANGE: those around the ends of the result's type."""


@dataclasses.dataclass(frozen=True)
class Access:
    """A load or a store."""

    opcode: int
    type: int
    bytes: int


def _guard(row: Instruction) -> Guard:
    if not summary(row).traps:
        return Guard.NONE
    if len(row.pops) == 2 and row.pops[0] is row.pops[1] is row.pushes[0]:
        divides = Trap.INTEGER_DIVIDE_BY_ZERO in summary(row).traps
        return Guard.DIVISOR if divides else Guard.OVERFLOW
    (operand,) = row.pops
    result = row.pushes[0]
    if isinstance(operand, Type) and isinstance(result, Type):
        return Guard.RANGE if operand.is_float and not result.is_float else Guard.UNKNOWN
    return Guard.UNKNOWN


def _operator(row: Instruction) -> Operator:
    operands = [t for t in row.pops if isinstance(t, Type)]
    (result,) = (t for t in row.pushes if isinstance(t, Type))
    guard = _guard(row)
    is_signed = row.mnemonic.endswith("_s")
    edges = _edges(operands[0], result, is_signed) if len(operands) == 1 else ()
    is_range = guard is Guard.RANGE
    return Operator(
        opcode=row.opcode,
        pops=tuple(NUMBER[t] for t in operands),
        result=NUMBER[result],
        guard=guard,
        is_shift=any(part in row.mnemonic for part in (".sh", ".rot")),
        overflows=guard is Guard.DIVISOR and len(summary(row).traps) > 1,
        edges=edges,
        fitting=tuple(b for b in edges if is_range and fits(result, is_signed, operands[0], b)),
        bounds=bounds(result, is_signed, operands[0]) if is_range else (),
    )


def _edges(t: Type, result: Type, is_signed: bool) -> tuple[int, ...]:
    """Literals of type `t` at which an instruction that makes a `result` of them may change."""
    zeros, nans, infinities, subnormals, halves, *_ = GROUPS[NUMBER[t]]
    if not t.is_float:
        return tuple(halfway(t.bits, 24 if result is Type.F32 else 53)) if result.is_float else ()
    if result.is_float:
        return (*zeros, *nans, *infinities, *subnormals, *halves)
    return (*bounds(result, is_signed, t), *zeros, *nans, *infinities, *halves)


def _accesses(is_load: bool) -> tuple[Access, ...]:
    found = []
    for row in INSTRUCTIONS:
        if (
            row.chapter != "heap"
            or row.immediate is not Immediate.OFFSET
            or is_load != bool(row.pushes)
        ):
            continue
        t = row.pushes[0] if is_load else row.pops[1]
        assert isinstance(t, Type)
        suffix = row.mnemonic.partition("load" if is_load else "store")[2].partition("_")[0]
        found.append(Access(row.opcode, NUMBER[t], int(suffix or t.bits) // 8))
    return tuple(found)


def _of_type(accesses: tuple[Access, ...]) -> tuple[tuple[Access, ...], ...]:
    return tuple(tuple(a for a in accesses if a.type == number) for number in range(len(NUMBER)))


COMPUTING = tuple(
    row
    for row in INSTRUCTIONS
    if row.chapter in ("numeric", "checked", "mathematical", "conversion") and row.flow is Flow.NEXT
)
OPERATORS = {row.opcode: _operator(row) for row in COMPUTING}

LOADS, STORES = _of_type(_accesses(True)), _of_type(_accesses(False))
"""By the type that is loaded or stored."""

_COMPARISONS = frozenset(
    row.mnemonic.partition(".")[2]
    for row in COMPUTING
    if row.pushes == (Type.I32,) and len(row.pops) == 2 and row.pops[0] is not Type.I32
)

VECTOR_BYTES = (1, 2, 4, 8)
"""Bytes of an element of a vector on the heap."""
CONST = tuple(OPCODE[f"{t}.const"] for t in Type)


def _weight(row: Instruction) -> float:
    return {"mathematical": 0.15, "checked": 0.5}.get(row.chapter, 1.0)


class Catalogue:
    """Instructions to draw from, by type, with their weights."""

    def __init__(self, weights: Mapping[str, float]) -> None:
        """`weights`: by mnemonic; where there is none, 1, and less for each of the mathematical
        functions, of which there are many, and for checked arithmetic, whose operands are kept
        small. An instruction of weight 0 never occurs where another one could."""
        drawn = [
            (OPERATORS[row.opcode], weights.get(row.mnemonic, _weight(row)), row)
            for row in COMPUTING
        ]
        types = range(len(NUMBER))

        def table(pairs: list[tuple[Operator, float]]) -> Weighted[Operator]:
            return Weighted(pairs if any(w for _, w in pairs) else [(o, 1.0) for o, _ in pairs])

        self.producers = [table([(o, w) for o, w, _ in drawn if o.result == t]) for t in types]
        """Instructions that yield a type."""
        binary = [
            (o, w)
            for o, w, row in drawn
            if o.pops == (o.result,) * 2
            and o.guard is Guard.NONE
            and row.mnemonic.partition(".")[2] not in _COMPARISONS
        ]
        self.binary = [table([(o, w) for o, w in binary if o.result == t]) for t in types]
        """Instructions that combine two values of a type into one and cannot trap."""
        self.usual = [
            table(
                [(o, w) for o, w in binary if o.result == t and w > 1]
                or [(o, w) for o, w in binary if o.result == t]
            )
            for t in types
        ]
        """The binary instructions with more than the usual weight."""
        unary = [(o, w) for o, w, _ in drawn if len(o.pops) == 1]
        self.unary = [table([(o, w) for o, w in unary if o.result == t]) for t in types]
        """Instructions that yield a type from one operand."""
        self.divisions = table([(o, w) for o, w, _ in drawn if o.guard is Guard.DIVISOR]).items[:-1]
        """Instructions that trap for a divisor of 0, to be drawn all alike."""
        self.any_binary = [self.binary[t].items[:-1] for t in types]
        self.any_unary = [self.unary[t].items[:-1] for t in types]
        """The same, to be drawn all alike."""
        self.comparisons = [
            table(
                [
                    (o, w)
                    for o, w, row in drawn
                    if o.pops == (t, t)
                    and o.result == I32
                    and row.mnemonic.partition(".")[2] in _COMPARISONS
                ]
            )
            for t in types
        ]
        """Instructions that compare two values of a type."""
        self.by_operands: dict[tuple[int, ...], Weighted[Operator]] = {}
        """Instructions with operands of these types, deepest first."""
        for o, _, _ in drawn:
            if o.pops not in self.by_operands:
                same = [(other, w) for other, w, _ in drawn if other.pops == o.pops]
                self.by_operands[o.pops] = table(same)


@functools.cache
def eqz(t: int) -> int:
    """Opcode of the test for zero of an integer type."""
    return BY_MNEMONIC[f"{tuple(Type)[t]}.eqz"].opcode
