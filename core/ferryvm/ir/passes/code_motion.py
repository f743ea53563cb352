# SPDX-License-Identifier: Apache-2.0
"""Loop-invariant code motion: compute invariant values in the preheader.

Operations are moved speculatively, so only those are moved that have no effect for any operands: no
division, no conversion to an integer, no shift by a count that is not known to be small, no load,
no exit. Inner loops come first, so an operation leaves as many loops as it can. (Aho, Lam, Sethi,
Ullman: Compilers, 2nd edition, section 9.5.)

Requires no other pass; gives a loop that several edges enter a preheader. Preserves effects, exits
and back edges.
"""

from __future__ import annotations

from ferryvm.ir.graph import Body, Constant, Operation
from ferryvm.ir.loop.natural import Loop
from ferryvm.ir.loop.preheader import add_preheaders
from ferryvm.ir.operation import PURE
from ferryvm.isa.type import Type

_PARTIAL = frozenset({"div_s", "div_u", "rem_s", "rem_u", "to_int_s", "to_int_u"})
"""Operations that are undefined for some operands."""

_SHIFTS = frozenset({"shl", "shr_s", "shr_u"})
_FIXED = frozenset({"frame", "header_word", "heap_capacity", "object_end", "stack_limit"})
"""Reads that are possible anywhere. Reads of a header word are: every reference has one, and null
refers to the words at the start of the object space."""
_MOVABLE = (PURE | _FIXED) - _PARTIAL - _SHIFTS


def hoist_invariants(body: Body) -> None:
    """Move invariant operations out of loops."""
    for loop in add_preheaders(body):
        if loop.entry is not None:
            _hoist(loop)


def _hoist(loop: Loop) -> None:
    definitions = loop.graph.definitions
    preheader, place = loop.preheader.operations, loop.entries[0].source
    for block in loop.members:
        remaining = []
        for operation in block.operations:
            if (operation.name in _MOVABLE or _is_small_shift(operation)) and all(
                map(loop.is_invariant, operation.arguments)
            ):
                definitions[operation] = place
                preheader.append(operation)
            else:
                remaining.append(operation)
        if len(remaining) < len(block.operations):
            block.operations = remaining


def _is_small_shift(operation: Operation) -> bool:
    if operation.name not in _SHIFTS:
        return False
    t, count = operation.static[0], operation.arguments[1]
    assert isinstance(t, Type)
    if isinstance(count, Operation) and count.name == "bit_and":
        count = count.arguments[1]
    return isinstance(count, Constant) and count.bits < t.bits
