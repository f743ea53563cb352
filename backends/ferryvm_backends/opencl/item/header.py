# SPDX-License-Identifier: Apache-2.0
"""Header words of the arrays that items share, passed with the launch instead of loaded by each
item.

    array ──> header, length, place on the device ──> arguments of the kernel

Each work-item would load them one after another, and search the place of elements outside of the
object space; that takes longer than what many items do. Nothing changes a header while items run:
an item that would make an object leaves.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from ferryvm.ir.graph import Body, Constant, Module, Operation, Parameter, Value
from ferryvm.ir.operation import PLACE, SHAPES, UPDATES, Role, element_bytes
from ferryvm.ir.passes.entry_exit import always_run
from ferryvm.ir.use import callees, substitute
from ferryvm.isa.element import Element
from ferryvm.isa.type import I64

HeaderWord = tuple[int, int]
"""The number of an argument that items share, and of a word of its header."""


@dataclasses.dataclass(frozen=True)
class StoredArray:
    """An array that items store into, and do not always mark its chunks."""

    argument: int
    """The number of the argument that items share."""
    bytes: int
    """Of an element."""
    is_own: bool
    """True if an item stores into the element with its own number alone: then chunks are never
    marked, since all that a range of items may have stored into is known."""


def passed_headers(module: Module, function: int, most: int) -> tuple[HeaderWord, ...]:
    """Give the function of the items parameters for header words of its arguments, `most` at most,
    behind all others; which ones they are."""
    body = module.functions[function]
    operations = [o for each in module.functions.values() for o in each.operations]
    if any(function in callees(o) for o in operations):
        return ()
    entry = body.blocks[0]
    shared = {parameter: n for n, parameter in enumerate(entry.parameters[1:])}
    made: dict[HeaderWord, Parameter] = {}
    new: dict[Value, Value] = {}
    for block in body.blocks:
        remaining = []
        for operation in block.operations:
            number = None
            if operation.name == "header_word":
                number = shared.get(operation.arguments[0])  # type: ignore[call-overload]  # any value may be a key
            if number is None:
                remaining.append(operation)
                continue
            key = number, operation.fact(0, int)
            if key not in made and len(made) == most:
                remaining.append(operation)
                continue
            new[operation] = made.setdefault(key, Parameter(I64))
        block.operations = remaining
    entry.parameters += made.values()
    substitute(body.blocks, new)
    return tuple(made)


def stored_arrays(
    module: Module, function: int, headers: Sequence[HeaderWord]
) -> dict[Operation, StoredArray]:
    """The stores of items into arrays that all items share."""
    item = module.functions[function].blocks[0].parameters[0]
    places = _places(module.functions[function], headers)
    found: dict[Operation, StoredArray] = {}
    for operation in module.functions[function].operations:
        if operation.name == "element_store" and operation.arguments[0] in places:
            elements = operation.static[0]
            assert isinstance(elements, Element | int)
            bytes_, argument = element_bytes(elements), places[operation.arguments[0]]
            is_own = _multiple(operation.arguments[1], item) == bytes_
            found[operation] = StoredArray(argument, bytes_, is_own)
    return found


def changed_arrays(
    body: Body, changes: Sequence[Operation], headers: Sequence[HeaderWord]
) -> tuple[tuple[int, int], ...] | None:
    """The arrays that items change, by the numbers of arguments, with bytes of an element; None if
    they change anything else."""
    places = _places(body, headers)
    found: dict[int, int] = {}
    for operation in changes:
        if operation.name not in _OF_ELEMENTS:
            return None
        elements = operation.static[0]
        assert isinstance(elements, Element | int)
        for place in operation.arguments[:: 3 if operation.name == _CANONICALISE else 1 << 10]:
            if isinstance(place, Operation) and place.name == "group_array":
                continue
            if place not in places:
                return None
            found[places[place]] = element_bytes(elements)
    return tuple(sorted(found.items()))


_CANONICALISE = "canonicalise_elements"
_OF_ELEMENTS = UPDATES | {"element_store", _CANONICALISE}
"""Operations that change elements; the places are their first operands, or each third one."""


def _places(body: Body, headers: Sequence[HeaderWord]) -> dict[Value, int]:
    """The parameters for places of arrays, with the numbers of the arguments."""
    parameters = body.blocks[0].parameters
    passed = parameters[len(parameters) - len(headers) :]
    both = zip(passed, headers, strict=True)
    return {parameter: number for parameter, (number, word) in both if word == PLACE}


def overwritten(
    body: Body, stored: Mapping[Operation, StoredArray], headers: Sequence[HeaderWord]
) -> tuple[frozenset[int], frozenset[int]]:
    """The arrays, by the numbers of arguments, of which each item that does not leave stores its
    own element, and those whose elements items read; none of the first where they may access
    others."""
    parameters = body.blocks[0].parameters
    passed = parameters[len(parameters) - len(headers) :]
    places: dict[Value, int] = {p: n for p, (n, _) in zip(passed, headers, strict=True)}
    read = set()
    for operation in body.operations:
        role = SHAPES[operation.name].role
        is_known = operation in stored or operation.name in _APART
        if operation.name == "element_load" and operation.arguments[0] in places:
            read.add(places[operation.arguments[0]])
        elif role in (Role.READS, Role.CHANGES, Role.CALLS) and not is_known:
            return frozenset(), frozenset()
    written = {
        stored[operation].argument
        for block in always_run(body)
        for operation in block.operations
        if operation in stored and stored[operation].is_own
    }
    return frozenset(written - read), frozenset(read)


_APART = frozenset({"static", "static_at", "heap_load"})
"""Operations that read what is no element of an array."""


def _multiple(offset: Value, item: Value) -> int:
    """The number n if an offset is n times the item; 0 if it is not."""
    if offset is item:
        return 1
    if isinstance(offset, Operation) and offset.name == "shl" and offset.arguments[0] is item:
        shift = offset.arguments[1]
        return 1 << shift.bits if isinstance(shift, Constant) else 0
    return 0
