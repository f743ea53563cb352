# SPDX-License-Identifier: Apache-2.0
"""The item functions of reductions and scans, recognised in a program.

    name ─> kind, operation, type ─> generated again ─> the same code? ─> Pattern

A compiler may run such items by code of its own, which follows the order in another way: as groups
of work-items do, which cannot be had from the code of one item. A name alone proves nothing.
"""

from __future__ import annotations

import enum
import re

from ferryvm.isa import INSTRUCTIONS, Immediate
from ferryvm.isa.element import Element
from ferryvm.isa.type import Type
from ferryvm.listing import FunctionListing, Listing
from ferryvm.listing.encode import encode
from ferryvm.named_tuple import NamedTuple
from ferryvm.program import Program
from ferryvm.skeleton.array_type import ArrayType
from ferryvm.skeleton.operation import FLOATS, INTEGERS, Operation
from ferryvm.skeleton.reduction import reduction
from ferryvm.skeleton.scan import scan


class PatternKind(enum.Enum):
    """An item function of a skeleton; the parameters follow the item."""

    REDUCED_BLOCK = "reduce: block"
    """( source to ): a block of `BLOCK` elements becomes one."""
    SCANNED_BLOCKS = "scan: blocks"
    """( source to last ): each of `ITEM_BLOCKS` blocks is scanned."""
    COMBINED_BLOCKS = "scan: combinations"
    """( scanned to ): elements of `ITEM_BLOCKS` blocks are combined with what is before them."""


class Pattern(NamedTuple):
    """An item function that is recognised; its operation is one of the table."""

    kind: PatternKind
    operation: Operation
    array: ArrayType
    """The type of the source; of combinations that of all arrays."""

    @property
    def value(self) -> Type:
        """The type of the values that are combined."""
        assert isinstance(self.array.value, Type)
        return self.array.value


_NAME = re.compile(r"(reduce|scan) (\w+) (\w+)\[\]: (block|blocks|combinations)")
_ELEMENTS = {str(element): element for element in Element}


def pattern_of(program: Program, number: int) -> Pattern | None:
    """The pattern of a function of a program, if it is an item function of a skeleton with an
    operation of the table."""
    function = program.functions[number]
    found = _NAME.fullmatch(function.name)
    if found is None or found[2] not in FLOATS.keys() | INTEGERS.keys():
        return None
    element, kind = _ELEMENTS.get(found[3]), f"{found[1]}: {found[4]}"
    if element is None or kind not in [each.value for each in PatternKind]:
        return None
    operation, array = Operation(found[2]), ArrayType.of(element)
    if not operation.is_defined(array.value):
        return None
    make = reduction if found[1] == "reduce" else scan
    for listing in make(operation, array):
        if listing.name == function.name and _is_same(program, number, listing):
            return Pattern(PatternKind(kind), operation, array)
    return None


def _is_same(program: Program, number: int, listing: FunctionListing) -> bool:
    """True if a function of a program has the code of a listing, with or without the peephole."""
    function = program.functions[number]
    if program.signature(number) != listing.signature or function.locals != listing.locals:
        return False
    ends = [other.entry for other in program.functions if other.entry > function.entry]
    pcs = range(function.entry, min(ends, default=len(program.code)))
    code = [(program.code.opcodes[pc], program.code.immediates[pc]) for pc in pcs]
    return any(
        code == _code(encode(Listing(functions=[listing]), is_optimized), function.entry)
        for is_optimized in (True, False)
    )


def _code(alone: Program, entry: int) -> list[tuple[int, int]]:
    """The instructions of a program of one function, as they are at an entry."""
    return [
        (opcode, immediate + entry * (INSTRUCTIONS[opcode].immediate is Immediate.TARGET))
        for opcode, immediate in zip(alone.code.opcodes, alone.code.immediates, strict=True)
    ]
