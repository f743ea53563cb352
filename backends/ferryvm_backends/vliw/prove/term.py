# SPDX-License-Identifier: Apache-2.0
"""Symbolic values of registers: terms over the registers at the start of a block.

A term is a number, and equal terms have equal numbers (hash-consing), so comparing two registers is
one comparison. Accesses to memory and stores are numbered alike:

    term      a constant, a register at the start of the block, an operation of terms, a load
    access    segment, address, size
    store     access, value
    load      access, and the stores that it sees

Invariant: terms never change, so the meaning of a number is constant.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ferryvm.ir import footprint as heap
from ferryvm.ir.graph import Static
from ferryvm.isa.type import I64
from ferryvm_backends.vliw.code.operation import (
    AccessingItem,
    MemoryOperand,
    Part,
    Register,
    Segment,
)

Term = int
AccessNumber = int
StoreNumber = int
Trace = tuple[StoreNumber, ...]
"""Stores, one after another."""

POISON: Term = 0
"""A value that was never set, or is computed from one; no correct value is equal to it."""

_POISONED, _CONSTANT, _REGISTER, _LOAD, _CHOICE = -1, -2, -3, -4, -5
_MASK = (1 << 64) - 1
_MOST_PARTS = 8


@dataclasses.dataclass(frozen=True, slots=True)
class Linear:
    """A sum of multiples of terms, modulo 2^64."""

    constant: int
    parts: tuple[tuple[Term, int], ...] = ()
    """Terms with their factors, in the order of terms; no factor is 0."""

    def plus(self, other: Linear, factor: int) -> Linear:
        """The sum with a multiple of another one."""
        parts = dict(self.parts)
        for term, times in other.parts:
            parts[term] = (parts.get(term, 0) + factor * times) & _MASK
        terms = tuple(sorted((term, times) for term, times in parts.items() if times))
        return Linear((self.constant + factor * other.constant) & _MASK, terms)


@dataclasses.dataclass(frozen=True, slots=True)
class SymbolicAccess:
    """Bytes of memory."""

    segment: Segment
    address: Linear
    size: int
    object: heap.Footprint | None = None
    """The object that they belong to, if it is known."""
    part: Part | None = None
    """The part of the object space that they belong to, for those of that space."""
    item: AccessingItem | None = None
    """The item of a launch that accesses them, with its iteration from the start of the block
    on."""


@dataclasses.dataclass(frozen=True, slots=True)
class Guard:
    """The condition under which an operation has an effect: a predicate, and its required value."""

    predicate: Term
    holds: bool


@dataclasses.dataclass(frozen=True, slots=True)
class Store:
    """A change of memory."""

    access: AccessNumber
    value: Term
    guard: Guard | None = None


class Terms:
    """All terms of a proof."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, tuple[Static, ...]], int] = {}
        self._named: list[tuple[str, tuple[Static, ...]]] = []
        self._keys: list[tuple[int, ...]] = [(_POISONED,)]
        self._numbers: dict[tuple[int, ...], Term] = {(_POISONED,): POISON}
        self._linear: dict[Term, Linear] = {}
        self.registers: dict[int, Register] = {}
        self.accesses: list[SymbolicAccess] = []
        self._access_numbers: dict[SymbolicAccess, AccessNumber] = {}
        self.stores: list[Store] = []
        self._store_numbers: dict[Store, StoreNumber] = {}

    def name(self, name: str, static: tuple[Static, ...]) -> int:
        """The number of an operation with its attributes."""
        key = name, static
        if key not in self._names:
            self._names[key] = len(self._named)
            self._named.append(key)
        return self._names[key]

    def _term(self, key: tuple[int, ...]) -> Term:
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self._keys)
            self._keys.append(key)
        return found

    def constant(self, bits: int) -> Term:
        """A constant."""
        return self._term((_CONSTANT, bits))

    def register(self, register: Register) -> Term:
        """The value of a register at the start of a block."""
        self.registers[register.number] = register
        return self._term((_REGISTER, register.number))

    def apply(self, name: int, operands: Sequence[Term]) -> Term:
        """The term of an operation on terms; `name`: the number of the operation."""
        if POISON in operands:
            return POISON
        if self._named[name] in _STEPS:
            return self._stepped(name, *operands)
        return self._term((name, *operands))

    def _stepped(self, name: int, a: Term, b: Term) -> Term:
        """A sum or difference; sums with constants that have equal values are one term."""
        bits = self.bits(b)
        if bits is None:
            return self._term((name, a, b))
        add = self.name(*_ADD)
        total = bits if name == add else -bits
        key, before = self._keys[a], None
        if key[0] == add:
            before = self.bits(key[2])
        if before is not None:
            a, total = key[1], total + before
        return self._term((add, a, self.constant(total & _MASK))) if total & _MASK else a

    def load(self, access: AccessNumber, seen: Trace) -> Term:
        """The value of a load; `seen`: the stores before it that may matter."""
        if any(term == POISON for term, _ in self.accesses[access].address.parts):
            return POISON
        return self._term((_LOAD, access, *seen))

    def choice(self, guard: Guard, value: Term, other: Term) -> Term:
        """One term where a guard holds, else another one."""
        predicate = guard.predicate
        yes, no = (value, other) if guard.holds else (other, value)
        yes, no = self.under(Guard(predicate, True), yes), self.under(Guard(predicate, False), no)
        bits = self.bits(predicate)
        if yes == no or bits is not None:
            return no if bits == 0 else yes
        return POISON if predicate == POISON else self._term((_CHOICE, predicate, yes, no))

    def under(self, guard: Guard | None, term: Term) -> Term:
        """A term where a guard holds."""
        key = self._keys[term]
        if guard is not None and key[:2] == (_CHOICE, guard.predicate):
            return key[2] if guard.holds else key[3]
        return term

    def bits(self, term: Term) -> int | None:
        """The bits of a term that is a constant."""
        key = self._keys[term]
        return key[1] if key[0] == _CONSTANT else None

    def access(
        self, place: MemoryOperand, address: Term, guard: Guard | None = None, number: int = 0
    ) -> AccessNumber:
        """The bytes that an operation accesses in a pass of its loop, by the pass's number."""
        where = self.linear(self.under(guard, address)).plus(Linear(place.offset), 1)
        item = None if place.item is None else place.item.in_pass(number)
        access = SymbolicAccess(place.segment, where, place.size, place.object, place.part, item)
        found = self._access_numbers.get(access)
        if found is None:
            found = self._access_numbers[access] = len(self.accesses)
            self.accesses.append(access)
        return found

    def store(self, access: AccessNumber, value: Term, guard: Guard | None = None) -> StoreNumber:
        """A store."""
        store = Store(access, self.under(guard, value), guard)
        found = self._store_numbers.get(store)
        if found is None:
            found = self._store_numbers[store] = len(self.stores)
            self.stores.append(store)
        return found

    # --- looking into terms -----------------------------------------------------------------

    def loaded(self, term: Term) -> tuple[AccessNumber, Trace] | None:
        """The access of a load and the stores that it sees; None for other terms."""
        key = self._keys[term]
        return (key[1], key[2:]) if key[0] == _LOAD else None

    def register_of(self, term: Term) -> Register | None:
        """The register whose initial value a term is."""
        key = self._keys[term]
        return self.registers[key[1]] if key[0] == _REGISTER else None

    def operation(self, term: Term) -> tuple[str, tuple[Static, ...], tuple[Term, ...]] | None:
        """Name, attributes and operands of an operation; None for other terms."""
        key = self._keys[term]
        if key[0] == _CHOICE:
            return "choice", (), key[1:]
        return (*self._named[key[0]], key[1:]) if key[0] >= 0 else None

    def linear(self, term: Term) -> Linear:
        """A term as a sum, as far as it is one of words of 64 bits."""
        stack = [term]
        while stack:
            each = stack[-1]
            operation = self.operation(each)
            rest: list[Term] = []
            if operation is not None and operation[:2] in _SUMS:
                rest = [operand for operand in operation[2] if operand not in self._linear]
            if rest:
                stack += rest
                continue
            stack.pop()
            if each not in self._linear:
                self._linear[each] = self._sum(each) or Linear(0, ((each, 1),))
        return self._linear[term]

    def _sum(self, term: Term) -> Linear | None:
        bits, operation = self.bits(term), self.operation(term)
        if bits is not None:
            return Linear(bits & _MASK)
        if operation is None or operation[:2] not in _SUMS:
            return None
        a, b = (self._linear[operand] for operand in operation[2])
        found = None
        match operation[0]:
            case "add":
                found = a.plus(b, 1)
            case "sub":
                found = a.plus(b, -1)
            case "shl" if not b.parts:
                found = Linear(0).plus(a, 1 << b.constant % 64)
            case "mul" if not b.parts:
                found = Linear(0).plus(a, b.constant)
            case "mul" if not a.parts:
                found = Linear(0).plus(b, a.constant)
        return found if found is not None and len(found.parts) <= _MOST_PARTS else None


_ADD = ("add", (I64,))
_STEPS = frozenset({_ADD, ("sub", (I64,))})
_SUMS = frozenset((name, (I64,)) for name in ("add", "sub", "shl", "mul"))
