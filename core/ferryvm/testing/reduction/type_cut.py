# SPDX-License-Identifier: Apache-2.0
"""Removal of declared types from a listing that nothing in it uses; the others are renumbered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ferryvm.isa import Immediate
from ferryvm.isa.declared_type import ArrayType, DeclaredType, Field, StructType
from ferryvm.isa.struct import field_immediate, field_of
from ferryvm.isa.type import FIRST_DECLARED, Reference, ValueType
from ferryvm.listing import FunctionListing, Line, Listing
from ferryvm.program import Signature, Static

_NUMBERED = (Immediate.TYPE, Immediate.FIELDS, Immediate.STRUCT, Immediate.ARRAY)


def without_types(listing: Listing, flags: Sequence[int]) -> None:
    """Remove declared types that are neither used nor flagged."""
    types = listing.types
    flagged = {number for number, flag in enumerate(flags, FIRST_DECLARED) if flag}
    used = _closed(types, _used(listing) | flagged)
    if len(used) == len(types):
        return
    numbers = {old: new for new, old in enumerate(sorted(used), FIRST_DECLARED)}
    listing.types = [_renamed(types[old - FIRST_DECLARED], numbers) for old in sorted(used)]
    listing.statics = [
        Static(static.name, _type(static.type, numbers), static.bits) for static in listing.statics
    ]
    for function in listing.functions:
        function.signature = _signature(function.signature, numbers)
        function.locals = tuple(_type(t, numbers) for t in function.locals)
        for at, item in enumerate(function.items):
            if isinstance(item, Line):
                function.items[at] = _line(item, numbers)


def _used(listing: Listing) -> set[int]:
    """The numbers of declared types that code and variables name."""
    found = {static.type for static in listing.statics}
    numbers: set[int] = set()
    for function in listing.functions:
        found.update(_types_of(function))
        for item in function.items:
            if not isinstance(item, Line):
                continue
            if item.row.immediate in _NUMBERED and isinstance(item.operand, int):
                numbers.add(item.operand)
            elif item.row.immediate is Immediate.FIELD and isinstance(item.operand, int):
                numbers.add(field_of(item.operand)[0])
            elif isinstance(item.operand, Signature):
                found.update((*item.operand.parameters, *item.operand.results))
    numbers.update(t.number for t in found if isinstance(t, Reference))
    return {number for number in numbers if number >= FIRST_DECLARED}


def _types_of(function: FunctionListing) -> Iterable[ValueType]:
    of = function.signature
    return (*of.parameters, *of.results, *function.locals)


def _closed(types: Sequence[DeclaredType], used: set[int]) -> set[int]:
    """Used types with their parents, and the types of their fields and elements."""
    found, worklist = set(used), list(used)
    while worklist:
        declared = types[worklist.pop() - FIRST_DECLARED]
        more = [declared.element.number] if isinstance(declared, ArrayType) else []
        if isinstance(declared, StructType):
            more = [f.type.number for f in declared.fields if isinstance(f.type, Reference)]
            more += [] if declared.parent is None else [declared.parent]
        for number in more:
            if number >= FIRST_DECLARED and number not in found:
                found.add(number)
                worklist.append(number)
    return found


def _type(t: ValueType, numbers: Mapping[int, int]) -> ValueType:
    return _reference(t, numbers) if isinstance(t, Reference) else t


def _reference(t: Reference, numbers: Mapping[int, int]) -> Reference:
    return Reference(numbers.get(t.number, t.number), t.name)


def _signature(signature: Signature, numbers: Mapping[int, int]) -> Signature:
    return Signature(
        tuple(_type(t, numbers) for t in signature.parameters),
        tuple(_type(t, numbers) for t in signature.results),
    )


def _renamed(declared: DeclaredType, numbers: Mapping[int, int]) -> DeclaredType:
    if isinstance(declared, ArrayType):
        return ArrayType(_reference(declared.element, numbers))
    parent = None if declared.parent is None else numbers[declared.parent]
    fields = tuple(Field(field.name, _type(field.type, numbers)) for field in declared.fields)
    return StructType(declared.name, parent, fields)


def _line(line: Line, numbers: Mapping[int, int]) -> Line:
    kind, operand = line.row.immediate, line.operand
    if isinstance(operand, Signature):
        return Line(line.row, _signature(operand, numbers))
    if kind in _NUMBERED and isinstance(operand, int):
        return Line(line.row, numbers.get(operand, operand))
    if kind is Immediate.FIELD and isinstance(operand, int):
        number, field = field_of(operand)
        return Line(line.row, field_immediate(numbers[number], field))
    return line
