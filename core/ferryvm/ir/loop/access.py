# SPDX-License-Identifier: Apache-2.0
"""The bytes of the heap that a loop nest accesses, as objects with ranges.

An *object* is a reference with the bytes around it. Each access names a *range* of one, whose
offset is an affine expression over the induction variables of the nest.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

from ferryvm.ir.graph import Parameter, Value
from ferryvm.ir.loop.affine import Interval

LARGEST_OFFSET = 1 << 31
"""The largest offset of an address from its reference; a base further away is a reference
itself."""


class AccessRange(NamedTuple):
    """Bytes of an object: an affine offset from its reference, and a size."""

    offset: int
    terms: tuple[tuple[Parameter, Value], ...]
    bytes: int


@dataclasses.dataclass(eq=False)
class HeapObject:
    """The bytes that a nest accesses relative to one reference."""

    reference: Value
    pc: int
    """pc of the first access."""
    parts: dict[AccessRange, None] = dataclasses.field(default_factory=dict)
    stored: dict[AccessRange, None] = dataclasses.field(default_factory=dict)
    """The ranges that are stored into."""
    known_extent: Interval | None = None
    """Its extent, once all ranges are known."""

    @property
    def extent(self) -> Interval:
        """The offsets of the first byte and past the last one, once all ranges are known."""
        assert self.known_extent is not None
        return self.known_extent
