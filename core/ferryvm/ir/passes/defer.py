# SPDX-License-Identifier: Apache-2.0
"""One look for NaNs behind several stores of floats, instead of one in front of each.

    heap_store 8 %a, canonical %x          heap_store 8 %a, %x
    heap_store 8 %b, canonical %y    ─>    heap_store 8 %b, %y
    heap_store 8 %c, canonical %z          heap_store 8 %c, %z
                                           canonicalise f64 %a, %x, %b, %y, %c, %z

A comparison and a selection in front of a store lengthen the way that a value takes through memory
from one round of a loop to the next; `canonicalise` stands beside it. Nothing between the stores
can tell that they were raw. What could: what leaves, and a load, but for one that touches no bytes
of the stores in front of it, or just those of some, and yields an operand of float arithmetic. (One
that takes a part of a NaN takes it for a number.) There a group of stores ends.

Needs `relax`, which says what is raw, and `version` for loads of other addresses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeGuard

from ferryvm.ir.graph import Block, Body, Operation, Value
from ferryvm.ir.operation import FIXED, PURE
from ferryvm.ir.passes.address import split
from ferryvm.ir.passes.canonical import BLIND
from ferryvm.ir.passes.prune import prune
from ferryvm.ir.passes.strength import users_of
from ferryvm.ir.touch import Place
from ferryvm.isa.type import F32, F64, I32, I64, Type

FEWEST = 3
"""Stores of a group, at least. Loops with fewer may be vectorised, and a look would prevent it."""

_BESIDE = PURE | FIXED | {"word", "static", "static_at", "set_static", "set_static_at"}
"""Operations that neither touch the heap nor leave."""

_STORED = {8: F64, 4: F32}
"""Floats by the bytes that they take in memory."""


def defer(body: Body, places: Mapping[Operation, Place] | None = None) -> None:
    """Let floats that are stored close to each other be made canonical together.

    `places`: what `version_nests` knows of accesses.
    """
    users: dict[Value, list[Operation | None]] = {}
    has_changed = False
    for block in body.blocks:
        if sum(_raw(operation) is not None for operation in block.operations) >= FEWEST:
            users = users or users_of(body)
            has_changed |= _Groups(block, users, places or {}).run()
    if has_changed:
        prune(body)


def _raw(store: Operation) -> Value | None:
    """The raw value that is made canonical to be stored, if the operation does that."""
    if store.name != "heap_store":
        return None
    t = _STORED.get(store.fact(0, int))
    bits = store.arguments[1]
    if t is F32 and isinstance(bits, Operation) and bits.name == "extend_u":
        bits = bits.arguments[0]
    if not isinstance(bits, Operation) or bits.name != "reinterpret":
        return None
    value = bits.arguments[0]
    if not isinstance(value, Operation) or value.name != "canonical" or value.type is not t:
        return None
    return value.arguments[0]


def _has_stride(place: Place | None) -> TypeGuard[Place]:
    """Whether it is known where an access goes, and in which steps; others end a group."""
    return place is not None and place.stride is not None


def _is_in_step(load: Operation, store: Operation) -> bool:
    """Whether the addresses show that two accesses touch the same bytes or none in common."""
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
        places: Mapping[Operation, Place],
    ) -> None:
        self.block, self.users, self.places = block, users, places
        self.operations: list[Operation] = []
        self.group: dict[Operation, Value] = {}
        """Stores of one type since something could tell, each with what it would store raw."""
        self.raw: dict[Operation, Value] = {}
        """Stores that will be raw."""
        self.bits: dict[Value, Operation] = {}
        """Raw values as they are stored."""

    def run(self) -> bool:
        """Change the block; tell whether there was a group."""
        for operation in self.block.operations:
            value = _raw(operation)
            if value is not None:
                if any(other.type is not value.type for other in self.group.values()):
                    self._end_group()
                self.group[operation] = value
            elif not self._is_blind(operation):
                self._end_group()
            self.operations.append(operation)
        self._end_group()
        self.block.operations = [o for each in self.operations for o in self._with_bits(each)]
        return bool(self.raw)

    def _is_blind(self, operation: Operation) -> bool:
        """Whether an operation cannot tell which bits the NaNs of the group have."""
        if operation.name == "heap_load":
            return all(self._cannot_tell(operation, store) for store in self.group)
        return operation.name in _BESIDE

    def _cannot_tell(self, load: Operation, store: Operation) -> bool:
        """Whether what is loaded does not depend on which bits a stored NaN has."""
        here, there = self.places.get(load), self.places.get(store)
        is_in_step = _is_in_step(load, store)
        if _has_stride(here) and _has_stride(there):
            if here.is_apart(there):
                return True
            is_in_step = is_in_step or here.is_in_step(there)
        return is_in_step and self._is_operand(load)

    def _is_operand(self, load: Operation) -> bool:
        """Whether all of what is loaded is used only as an operand of float arithmetic."""
        values: list[Value] = [load]
        for name in ("reinterpret",) if load.fact(0, int) == 8 else ("wrap", "reinterpret"):
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
        pairs = [each for store, value in group.items() for each in (store.arguments[0], value)]
        t = next(iter(group.values())).type
        self.operations.append(Operation("canonicalise", None, (t,), tuple(pairs)))

    def _with_bits(self, operation: Operation) -> list[Operation]:
        """An operation of the block, behind what makes bits of the value that it stores raw."""
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
        operation.arguments = (operation.arguments[0], self.bits[value])
        return [*made, operation]
