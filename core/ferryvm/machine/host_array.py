# SPDX-License-Identifier: Apache-2.0
"""Host arrays: arrays of a program whose elements are memory that Python owns or shares.

    Python   │ ndarray │ ──────────┐ memory ┌──── place ── │ header │ length │ place │   object space
             └ keeps it alive ─────┘        └── kept alive by `HostArrays` until a collection finds
                                                no object that has it

There are two kinds, and no difference between them: memory that Python passed, and a block of the
space that became shared because its array was returned (`SharedBlock`). Neither is moved, freed by
the space, or counted against its limit.

Invariant: two host arrays do not overlap unless both are read-only, and no two have one address.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator, Sequence

from ferryvm import record
from ferryvm.isa.object import padded

_BUDGET = 64 << 20
"""Bytes of memory that becomes known between two collections; past it one is due, since dead host
arrays keep their memory until then."""


class SharedBlock:
    """A block of memory that is given back when neither Python nor a program holds it."""

    def __init__(
        self,
        address: int,
        typestr: str,
        length: int,
        is_read_only: bool,
        free: Callable[[int], None],
    ) -> None:
        """`typestr`: the element type as NumPy's array interface writes it."""
        self._address, self._free = address, free
        self.__array_interface__ = {
            "version": 3,
            "typestr": typestr,
            "shape": (length,),
            "data": (address, is_read_only),
        }

    def __del__(self) -> None:
        self._free(self._address)


@record.dataclass(frozen=True)
class HostArray:
    """An array whose elements are outside of ferryvm's memory."""

    address: int
    type: int
    """The type number of the array."""
    length: int
    element_bytes: int
    is_read_only: bool
    view: object
    """The ndarray of these elements."""
    owners: tuple[object, ...]
    """Objects that must live as long, or must not be resized."""

    @property
    def size(self) -> int:
        """Bytes of the elements."""
        return self.length * self.element_bytes

    def is_same(self, other: HostArray) -> bool:
        """True if a program cannot tell one from the other."""
        return (
            self.address == other.address
            and self.type == other.type
            and self.length == other.length
            and self.is_read_only == other.is_read_only
        )

    def excludes(self, other: HostArray) -> bool:
        """True if a program cannot have both of these, which are not the same."""
        if self.address >= other.address + other.size or other.address >= self.address + self.size:
            return False
        return self.address == other.address or not (self.is_read_only and other.is_read_only)


class HostArrays:
    """The host arrays of an object space."""

    def __init__(self) -> None:
        self.known: dict[int, HostArray] = {}
        """By address; changed by methods alone."""
        self._starts: list[int] = []
        self._largest = 0
        self.references: dict[int, int] = {}
        """Offsets of the arrays in the object space, by address."""
        self._lent = self._shared = 0
        """Bytes that became known since the last collection: passed, and returned."""
        self._budget = _BUDGET
        self._vacant: dict[int, list[int]] = {}
        """Offsets of the objects of arrays that were released, by type."""

    def __len__(self) -> int:
        return len(self.known)

    def __iter__(self) -> Iterator[HostArray]:
        return iter(self.known.values())

    def get(self, address: int) -> HostArray | None:
        """The host array at an address."""
        return self.known.get(address)

    @property
    def is_full(self) -> bool:
        """True if so much was returned to Python that a collection should come first."""
        return self._shared > self._budget

    def references_of(self, arrays: Sequence[HostArray]) -> list[int] | None:
        """The references of arrays that the program has all; None if it lacks one, or a collection
        should come first. Those that it has do not overlap."""
        found = []
        for one in arrays:
            known = self.known.get(one.address)
            if known is None or not known.is_same(one) or not one.length:
                return None
            found.append(self.references[one.address])
        return None if self.is_full else found

    def is_due(self, arrays: Sequence[HostArray]) -> bool:
        """True if a collection should come before these are passed."""
        new = 0
        for one in arrays:
            if one.address not in self.known:
                new += one.length * one.element_bytes
        return self.is_full or (new > 0 and self._lent + new > self._budget)

    def add(self, one: HostArray, reference: int, *, is_shared: bool = False) -> None:
        """Note a host array, whose object is at an offset."""
        address, size = one.address, one.size
        self.known[address], self.references[address] = one, reference
        bisect.insort(self._starts, address)
        self._largest = max(self._largest, size)
        if is_shared:
            self._shared += size
        else:
            self._lent += size

    def release(self, address: int) -> int | None:
        """Forget an array, see `ObjectSpace.release`; the offset of its object, None if there is
        none."""
        one = self.known.pop(address, None)
        if one is None:
            return None
        del self._starts[bisect.bisect_left(self._starts, address)]
        self._lent -= one.size
        reference = self.references.pop(address)
        self._vacant.setdefault(one.type, []).append(reference)
        return reference

    def take(self, one: HostArray) -> int | None:
        """The object of a released array for one of its type, which is known then; None if there
        is none."""
        vacant = self._vacant.get(one.type)
        if not vacant or one.is_read_only or not one.length:
            return None
        reference = vacant.pop()
        self.add(one, reference)
        return reference

    def retain(self, references: dict[int, int]) -> None:
        """Forget all but those at these addresses, whose objects have these new offsets."""
        self._vacant.clear()
        self.known = {at: one for at, one in self.known.items() if at in references}
        self._starts = sorted(self.known)
        self._largest = max((one.size for one in self), default=0)
        self.references, self._lent, self._shared = references, 0, 0
        self._budget = max(_BUDGET, sum(one.size for one in self))

    def excluding(self, one: HostArray) -> HostArray | None:
        """A known host array that a program cannot have beside `one`; None if there is none,
        and if it has `one` already."""
        known = self.known.get(one.address)
        if known is not None and known.is_same(one):
            return None
        first = bisect.bisect_left(self._starts, one.address - self._largest)
        for start in self._starts[first : bisect.bisect_left(self._starts, one.address + one.size)]:
            if self.known[start].excludes(one):
                return self.known[start]
        return None

    def rows(self) -> dict[int, int]:
        """Bytes of the elements with padding, by address."""
        return {one.address: padded(one.size) for one in self}
