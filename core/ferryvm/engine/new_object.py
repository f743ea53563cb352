# SPDX-License-Identifier: Apache-2.0
"""Structs and arrays of references that Python makes: the arguments of `Instance.new` as parts of
an object.

    new("pair", 1, weight=2.5)        fields in the order of the declaration, or by name
    new("node[]", [a, b, None])       the elements
    new("node[]", 3)                  a length: all null

Arrays of numbers are not made here: NumPy makes them, and they go in without a copy.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ferryvm.engine.array_argument import NUMBER_ARRAYS, Place
from ferryvm.engine.marshal import CallError
from ferryvm.engine.object_view import ArrayView, ObjectView, StructView, type_name
from ferryvm.engine.reference import Slot
from ferryvm.errors import UnknownNameError, suggestion
from ferryvm.failure import shown
from ferryvm.isa.declared_type import PREDEFINED, ArrayType, StructType
from ferryvm.isa.type import FIRST_DECLARED, with_article
from ferryvm.program import Program

if TYPE_CHECKING:
    from ferryvm.engine.call import Calls


def new_object(
    program: Program,
    calls: Calls,
    name: str,
    values: Sequence[object],
    fields: Mapping[str, object],
) -> StructView | ArrayView:
    """A view of a new object of the type of that name; see `Instance.new`."""
    numbers = {declared.name: n for n, declared in enumerate(program.types, FIRST_DECLARED)}
    number = numbers.get(name)
    if number is None:
        _check_predefined(name)
        raise UnknownNameError("type of structs or arrays of references", name, numbers)
    if calls.machine.objects is None:
        raise CallError(f"{name}: the program uses no references, so it has no objects")
    declared = program.types[number - FIRST_DECLARED]
    if isinstance(declared, StructType):
        known = calls.references.fields(number)
        return calls.references.make(number, 0, _of_struct(declared.name, known, values, fields))
    if len(values) != 1 or fields:
        found = ", ".join([f"{len(values)} values", *map(repr, fields)])
        raise CallError(
            f"{name}: a length, or the elements in a sequence, are expected; found {found}"
        )
    elements = _elements(declared, values[0])
    if isinstance(elements, int):
        return calls.references.make(number, elements, [])
    return calls.references.make(number, len(elements), [*_of_array(declared, elements)])


def _check_predefined(name: str) -> None:
    """Raise CallError for a type that every program has."""
    for reference in PREDEFINED:
        if reference.name != name:
            continue
        kind = NUMBER_ARRAYS.get(reference.number)
        if kind is None:
            raise CallError(f"{name}: no object has this type itself; a struct has, or an array")
        raise CallError(
            f"{name}: arrays of numbers are made by NumPy, and used where they lie: "
            f"numpy.zeros(length, numpy.{kind.dtype.name})"
        )


def _of_struct(
    name: str, known: Mapping[str, Slot], values: Sequence[object], fields: Mapping[str, object]
) -> list[tuple[Slot, object]]:
    """The fields that have a value."""
    if len(values) > len(known):
        raise CallError(
            f"{name}: {len(values)} values, {with_article(name)} has {len(known)} fields: "
            f"{_listed(known)}"
        )
    found = [*zip(known.values(), values, strict=False)]
    for field, value in fields.items():
        slot = known.get(field)
        if slot is None:
            near = suggestion(field, known)
            raise CallError(
                f"{with_article(name)} has no field {field!r}{near}; it has {_listed(known)}"
            )
        if slot.at < len(values):
            raise CallError(f"{name}.{field} is given twice, as value {slot.at + 1} too")
        found.append((slot, value))
    return found


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


def _elements(declared: ArrayType, value: object) -> int | list[object]:
    """The length of a new array, or its elements."""
    if not isinstance(value, ObjectView) and hasattr(value, "__index__"):
        try:
            length = operator.index(value)
        except TypeError:  # as an ndarray of several elements says
            pass
        else:
            if length < 0:
                raise CallError(f"{declared.name}: a length of {length}; 0 or more is allowed")
            return length
    found = with_article(type_name(value)) if isinstance(value, StructView) else shown(value)
    try:
        elements = iter(value)  # type: ignore[call-overload]  # it says so by TypeError
    except TypeError:
        raise CallError(
            f"{declared.name}: a length, or the elements in a sequence, are expected; found {found}"
        ) from None
    return [*elements]


def _of_array(declared: ArrayType, elements: Sequence[object]) -> Iterator[tuple[Slot, object]]:
    """The elements that are not null."""
    article = with_article(declared.name)
    for at, value in enumerate(elements):
        if value is not None:
            yield Slot(at, declared.element, Place(f"element {at} of {article}")), value
