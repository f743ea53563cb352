# SPDX-License-Identifier: Apache-2.0
"""Combine the NaN checks of several stores of floats into one after them.

    element_store f64 %a, %i, canonical %x          element_store f64 %a, %i, %x
    element_store f64 %b, %i, canonical %y    ─>    element_store f64 %b, %i, %y
    element_store f64 %c, %i, canonical %z          element_store f64 %c, %i, %z
                                                    canonicalise_elements f64 %a, %i, %x, %b, …

Stores to the heap are combined likewise, by `canonicalise f64 %address, %x, …`. A comparison and a
selection before a store lengthen the recurrence through memory from one iteration to the next;
`canonicalise` is off that path. Nothing between the stores may observe that they are raw. Observers
are exits, and loads other than those that overlap none of the stored bytes, or that read exactly
one stored value and yield an operand of float arithmetic. (A load of a part of a NaN yields a
number.) An observer ends a group of stores. Elements of one kind are the same or apart, and overlap
nothing else.

Requires `canonicalisation`, which decides what is raw, and `loop_versioning` for loads of other
addresses. (No published source is known to us; the pass uses the footprints of loop versioning as
alias information.)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeGuard

from ferryvm.ir.address import split
from ferryvm.ir.footprint import Footprint
from ferryvm.ir.graph import Block, Body, Operation, Value
from ferryvm.ir.operation import FIXED, PURE, element_bytes
from ferryvm.ir.passes.canonicalisation import BLIND
from ferryvm.ir.passes.dead_code import remove_dead_code
from ferryvm.ir.use import users_of
from ferryvm.isa.element import Element
from ferryvm.isa.type import F32, F64, I32, I64, Type

FEWEST = 3
"""The smallest number of stores of a group. Loops with fewer may be vectorised, which the check
would prevent."""

_BESIDE = (
    PURE
    | FIXED
    | {"word", "static", "static_at", "set_static", "set_static_at", "field_load", "field_store"}
)
"""Operations that access neither heap nor elements, and do not exit."""

_STORED = {8: F64, 4: F32}
"""Floats by the bytes that they take in memory."""


def combine_nan_checks(body: Body, footprints: Mapping[Operation, Footprint] | None = None) -> None:
    """Canonicalise floats that are stored close to each other together.

    `footprints`: the results of `version_loops` for accesses.
    """
    users: dict[Value, list[Operation | None]] = {}
    has_changed = False
    for block in body.blocks:
        if sum(_raw(operation) is not None for operation in block.operations) >= FEWEST:
            users = users or users_of(body)
            has_changed |= _Groups(block, users, footprints or {}).run()
    if has_changed:
        remove_dead_code(body)


def _raw(store: Operation) -> Value | None:
    """The raw operand if the operation stores a value that is canonicalised for it."""
    if store.name == "heap_store":
        t = _STORED.get(store.fact(0, int))
    elif store.name == "element_store" and store.static[0] in (Element.F32, Element.F64):
        t = store.fact(0, Element).type
    else:
        return None
    bits = store.arguments[-1]
    if t is F32 and isinstance(bits, Operation) and bits.name == "extend_u":
        bits = bits.arguments[0]
    if not isinstance(bits, Operation) or bits.name != "reinterpret":
        return None
    value = bits.arguments[0]
    if not isinstance(value, Operation) or value.name != "canonical" or value.type is not t:
        return None
    return value.arguments[0]


def _bytes(load: Operation) -> int:
    """Bytes that a load reads."""
    if load.name == "heap_load":
        return load.fact(0, int)
    elements = load.static[0]
    assert isinstance(elements, Element | int)
    return element_bytes(elements)


def _has_stride(place: Footprint | None) -> TypeGuard[Footprint]:
    """True if the address and stride of an access are known; other accesses end a group."""
    return place is not None and place.stride is not None


def _may_overlap(operation: Operation, store: Operation) -> bool:
    """True if a load or store may access bytes of a store: both the heap, or elements of one
    kind."""
    is_element = operation.name.startswith("element_")
    if is_element != (store.name == "element_store"):
        return False
    return not is_element or operation.static == store.static


def _is_in_step(load: Operation, store: Operation) -> bool:
    """True if the addresses show that two accesses are to the same bytes or do not overlap."""
    (base, offset), (other, from_) = split(load.arguments[0]), split(store.arguments[0])
    return (
        base is other and load.static == store.static and not (offset - from_) % load.fact(0, int)
    )


class _Groups:
    """The groups of stores in one block."""

    def __init__(
        self,
        block: Block,
        users: Mapping[Value, list[Operation | None]],
        footprints: Mapping[Operation, Footprint],
    ) -> None:
        self.block, self.users, self.footprints = block, users, footprints
        self.operations: list[Operation] = []
        self.group: dict[Operation, Value] = {}
        """Stores of one type since the last observer, each with its raw form."""
        self.raw: dict[Operation, Value] = {}
        """Stores that will store raw values."""
        self.bits: dict[Value, Operation] = {}
        """Raw values in their stored form."""

    def run(self) -> bool:
        """Change the block; True if there was a group."""
        for operation in self.block.operations:
            value = _raw(operation)
            if value is not None:
                if any(other.static != operation.static for other in self.group):
                    self._end_group()
                self.group[operation] = value
            elif not self._is_blind(operation):
                self._end_group()
            self.operations.append(operation)
        self._end_group()
        self.block.operations = [o for each in self.operations for o in self._with_bits(each)]
        return bool(self.raw)

    def _is_blind(self, operation: Operation) -> bool:
        """True if an operation does not depend on the bits of the NaNs of the group."""
        stores = [store for store in self.group if _may_overlap(operation, store)]
        if operation.name == "heap_load":
            return all(self._is_bit_independent(operation, store) for store in stores)
        if operation.name == "element_load":
            return not stores or self._is_operand(operation)
        if operation.name in ("heap_store", "element_store"):
            return not stores
        return operation.name in _BESIDE

    def _is_bit_independent(self, load: Operation, store: Operation) -> bool:
        """True if a loaded value does not depend on the bits of a stored NaN."""
        here, there = self.footprints.get(load), self.footprints.get(store)
        is_in_step = _is_in_step(load, store)
        if _has_stride(here) and _has_stride(there):
            if here.is_apart(there):
                return True
            is_in_step = is_in_step or here.is_in_step(there)
        return is_in_step and self._is_operand(load)

    def _is_operand(self, load: Operation) -> bool:
        """True if the whole loaded value is used only as an operand of float arithmetic."""
        values: list[Value] = [load]
        for name in ("reinterpret",) if _bytes(load) == 8 else ("wrap", "reinterpret"):
            users = [user for value in values for user in self.users.get(value, ())]
            values = [user for user in users if user is not None and user.name == name]
            if len(values) < len(users):
                return False
        users = [user for value in values for user in self.users.get(value, ())]
        return all(user is not None and user.name in BLIND for user in users)

    def _end_group(self) -> None:
        group, self.group = self.group, {}
        if len(group) < FEWEST:
            return
        self.raw |= group
        first, value = next(iter(group.items()))
        given = [each for s, raw in group.items() for each in (*s.arguments[:-1], raw)]
        made = Operation("canonicalise", None, (value.type,), tuple(given))
        if first.name == "element_store":
            made = Operation("canonicalise_elements", None, first.static, tuple(given))
        self.operations.append(made)

    def _with_bits(self, operation: Operation) -> list[Operation]:
        """An operation of the block, after one that converts the raw value that it stores to
        bits."""
        value = self.raw.get(operation)
        if value is None:
            return [operation]
        made: list[Operation] = []
        if value not in self.bits:
            t: Type = I64 if value.type is F64 else I32
            made.append(Operation("reinterpret", t, (t, value.type), (value,)))
            if t is I32:
                made.append(Operation("extend_u", I64, (), (made[0],)))
            self.bits[value] = made[-1]
        operation.arguments = (*operation.arguments[:-1], self.bits[value])
        return [*made, operation]
