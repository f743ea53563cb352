# SPDX-License-Identifier: Apache-2.0
"""Alias analysis of accesses on terms, and a normal form of sequences of stores.

Two stores that do not overlap commute. Of all equivalent orders the first in the order of numbers
is taken (the lexicographic normal form of Anisimov and Knuth: Inhomogeneous Sorting, 1979), so two
sequences with equal normal forms leave the same memory.
"""

from __future__ import annotations

from ferryvm.isa.element import Element
from ferryvm.isa.type import WORD_BYTES
from ferryvm_backends.vliw.code.operation import ContextPart, ElementPart, Segment, are_parts_apart
from ferryvm_backends.vliw.prove.term import (
    AccessNumber,
    StoreNumber,
    SymbolicAccess,
    Terms,
    Trace,
)


class MemoryAliasing:
    """Alias analysis of symbolic accesses."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self._apart: dict[tuple[AccessNumber, AccessNumber], bool] = {}

    def are_apart(self, one: AccessNumber, other: AccessNumber) -> bool:
        """True if two accesses have no byte in common, whatever registers hold."""
        key = (one, other) if one < other else (other, one)
        found = self._apart.get(key)
        if found is None:
            found = self._apart[key] = self._find(*key)
        return found

    def _find(self, one: AccessNumber, other: AccessNumber) -> bool:
        a, b = self.terms.accesses[one], self.terms.accesses[other]
        if a.segment is not b.segment:
            return True
        if _are_parts_apart(a, b):
            return True
        if a.item is not None and b.item is not None and a.item.is_other(b.item):
            return True  # as the program promises
        if a.object is not None and b.object is not None and a.object.is_apart(b.object):
            return True
        far = a.address.plus(b.address, -1)
        # What all factors are multiples of cannot be bridged; without factors nothing can.
        step = 1 << 64
        for _, factor in far.parts:
            step = min(step, factor & -factor)
        distance = far.constant % step
        return distance >= b.size and step - distance >= a.size

    def after(self, trace: Trace, store: StoreNumber) -> Trace:
        """A trace with one more store behind it."""
        access = self.terms.stores[store].access
        place = start = len(trace)
        while start and self._is_free(trace[start - 1], access):
            start -= 1
            if trace[start] > store:
                place = start
        return (*trace[:place], store, *trace[place:])

    def _is_free(self, store: StoreNumber, access: AccessNumber) -> bool:
        return self.are_apart(self.terms.stores[store].access, access)

    def seen(self, trace: Trace, access: AccessNumber) -> Trace:
        """The stores of a trace that a load may see."""
        found: Trace = ()
        for store in trace:
            if not self._is_free(store, access):
                found = self.after(found, store)
        return found


def _are_parts_apart(one: SymbolicAccess, other: SymbolicAccess) -> bool:
    """True if two accesses are to different parts of the object space: words of headers, fields of
    the types that declare them, elements of one type of arrays; or to two context arrays of a
    group. An access that is not as large as what its part consists of may be anywhere."""
    if one.part is None or other.part is None:
        return False
    are_in_them = _is_of_its_part(one) and _is_of_its_part(other)
    return are_in_them and are_parts_apart(one.part, other.part)


def _is_of_its_part(access: SymbolicAccess) -> bool:
    part, size = access.part, WORD_BYTES
    if isinstance(part, ContextPart):
        return access.segment is Segment.STACK
    if isinstance(part, ElementPart) and isinstance(part.elements, Element):
        size = part.elements.bytes
    return part is not None and access.segment is Segment.OBJECTS and access.size == size
