# SPDX-License-Identifier: Apache-2.0
"""Loop-invariant code motion: compute invariant values in the preheader.

Operations are moved speculatively, so only those are moved that have no effect for any operands: no
division but by a constant, where that is wanted, no conversion to an integer, no shift by a count
that is not known to be small, no load but that of a field where a compiler allows it, no exit.
Inner loops come first, so an operation leaves as many loops as it can. (Aho, Lam, Sethi, Ullman:
Compilers, 2nd edition, section 9.5.)

Requires no other pass; gives a loop that several edges enter a preheader. Preserves effects, exits
and back edges.
"""

from __future__ import annotations

from ferryvm.ir.graph import BOOLEAN, Body, Constant, Operation
from ferryvm.ir.loop.natural import Loop
from ferryvm.ir.loop.preheader import add_preheaders
from ferryvm.ir.operation import CALLS, DIVISIONS, FIELD_CHANGES, PURE
from ferryvm.isa.emitter import Condition
from ferryvm.isa.type import I64, Type

_PARTIAL = DIVISIONS | {"to_int_s", "to_int_u"}
"""Operations that are undefined for some operands."""

_SHIFTS = frozenset({"shl", "shr_s", "shr_u"})
_FIXED = frozenset({"frame", "header_word", "heap_capacity", "object_end", "stack_limit"})
"""Reads that are possible anywhere. Reads of a header word are: every reference has one, and null
refers to the words at the start of the object space."""
_MOVABLE = (PURE | _FIXED) - _PARTIAL - _SHIFTS


LARGEST_FIELD = 500
"""The largest number of a field that may be loaded of null: it is in the first page of the object
space."""


def hoist_invariants(body: Body, fields: bool = False, divisions: bool = False) -> None:
    """Move invariant operations out of loops. `fields`: also loads of fields that a loop does not
    change. Of a reference that is null, words at the start of the object space are read then, and
    not used. `divisions`: also divisions by constants."""
    guarded: set[Operation] = set()
    for loop in add_preheaders(body):
        if loop.entry is not None:
            if fields:
                _hoist_fields(body, loop, guarded)
            _hoist(loop, divisions)


def _hoist_fields(body: Body, loop: Loop, guarded: set[Operation]) -> None:
    """Move loads of fields that are not changed in a loop; of null they yield 0."""
    changes = [operation for operation in loop.operations if operation.name in FIELD_CHANGES]
    if any(operation.name in CALLS for operation in changes):
        return
    changed = {operation.static for operation in changes}
    definitions, place = loop.graph.definitions, loop.entries[0].source
    preheader = loop.preheader.operations
    zero = body.constant(I64, 0)
    for block in loop.members:
        for operation in [*block.operations]:
            if (
                operation.name != "field_load"
                or operation.static in changed
                or operation.fact(1, int) > LARGEST_FIELD
                or not all(map(loop.is_invariant, operation.arguments))
            ):
                continue
            block.operations.remove(operation)
            moved = operation
            if operation not in guarded:
                (reference,) = operation.arguments
                is_null = Operation("compare", BOOLEAN, (I64, Condition.EQ), (reference, zero))
                moved = Operation("field_load", I64, operation.static, (reference,))
                guarded.add(moved)
                operation.name, operation.static = "select", ()
                operation.arguments = is_null, zero, moved
                for each in (is_null, moved):
                    each.pc = operation.pc
                preheader.append(is_null)
                definitions[is_null] = place
            preheader.append(moved)
            definitions[moved] = place
            if moved is not operation:
                preheader.append(operation)
                definitions[operation] = place


def _hoist(loop: Loop, divisions: bool) -> None:
    definitions = loop.graph.definitions
    preheader, place = loop.preheader.operations, loop.entries[0].source
    for block in loop.members:
        remaining = []
        for operation in block.operations:
            is_harmless = is_movable(operation) or (divisions and _is_whole_division(operation))
            if is_harmless and all(map(loop.is_invariant, operation.arguments)):
                definitions[operation] = place
                preheader.append(operation)
            else:
                remaining.append(operation)
        if len(remaining) < len(block.operations):
            block.operations = remaining


def is_movable(operation: Operation) -> bool:
    """True if an operation can be computed wherever its operands are known."""
    return operation.name in _MOVABLE or _is_small_shift(operation)


def _is_small_shift(operation: Operation) -> bool:
    if operation.name not in _SHIFTS:
        return False
    t, count = operation.static[0], operation.arguments[1]
    assert isinstance(t, Type)
    if isinstance(count, Operation) and count.name == "bit_and":
        count = count.arguments[1]
    return isinstance(count, Constant) and count.bits < t.bits


def _is_whole_division(operation: Operation) -> bool:
    """True if an operation divides by a constant for which it is defined."""
    if operation.name not in DIVISIONS:
        return False
    t, divisor = operation.static[0], operation.arguments[1]
    assert isinstance(t, Type)
    return isinstance(divisor, Constant) and divisor.bits not in (0, t.mask)
