# SPDX-License-Identifier: Apache-2.0
"""The footprint of an access to the heap: alias information that loop versioning records.

A footprint is valid where its own runtime checks passed. It refers to its nest and its reference
for comparisons only, so footprints of different nests are distinct.
"""

from __future__ import annotations

from typing import NamedTuple


class Footprint(NamedTuple):
    """The bytes of an access in a versioned nest, in which no object that is stored into overlaps
    another one, in any iteration."""

    nest: object
    """The header of the original nest; accesses in different nests may overlap."""
    reference: object
    """The value that refers to the object; two references of one nest are two objects."""
    offset: int
    stride: int | None
    """The varying part of the offset is a multiple of it; 0: the offset is constant; None:
    unknown."""
    bytes: int

    def is_apart(self, other: Footprint) -> bool:
        """True if two accesses, one of which stores, overlap in no pair of iterations."""
        return self.nest is other.nest and self.reference is not other.reference

    def is_in_step(self, other: Footprint) -> bool:
        """True if two accesses to one object are to the same bytes or do not overlap."""
        if self.nest is not other.nest or self.reference is not other.reference:
            return False
        if self.stride is None or other.stride is None:
            return False
        distances = self.offset - other.offset, self.stride, other.stride
        return self.bytes == other.bytes and not any(d % self.bytes for d in distances)
