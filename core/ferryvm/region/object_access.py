# SPDX-License-Identifier: Apache-2.0
"""The objects that a region may access, by type: what a device with memory of its own needs.

A reference's static type bounds what it refers to: elements of a kind are those of one array type,
a field belongs to the type that the instruction names and to its subtypes. So nothing has to be
known about values.
"""

from __future__ import annotations

from collections.abc import Iterable

from ferryvm import record
from ferryvm.isa import INSTRUCTIONS, Immediate
from ferryvm.isa.declared_type import TypeHierarchy
from ferryvm.isa.effect import Effect, effects
from ferryvm.isa.element import Element
from ferryvm.isa.struct import field_of
from ferryvm.region.region import Region

_ARRAYS = {element.kind: element.array.number for element in Element}
_ON_OBJECTS = (Effect.READS_OBJECTS, Effect.WRITES_OBJECTS, Effect.ALLOCATES_OBJECTS)


@record.dataclass(frozen=True)
class ObjectAccess:
    """Objects that a piece of code may access, callees included."""

    headers: bool = False
    """True if a word of any header is read, as by each test, cast, length and check of an index."""
    read: frozenset[int] = frozenset()
    """Type numbers of the structs and arrays of which fields or elements are read."""
    written: frozenset[int] = frozenset()
    """The same for stores."""
    makes: bool = False
    """True if it may make an object."""

    @property
    def any(self) -> bool:
        """True if the object space is accessed at all."""
        return self.headers or self.makes or bool(self.accessed)

    def concerns(self, type_: int | None, is_prepared: bool = False) -> bool:
        """True if elements of an array of this type may be accessed (None: of an unknown one), or
        become those of a new one, if they are prepared for one."""
        if is_prepared:
            return self.makes
        return bool(self.accessed) if type_ is None else type_ in self.accessed

    @property
    def stores(self) -> bool:
        """True if it may store to an object, or make one."""
        return self.makes or bool(self.written)

    @property
    def accessed(self) -> frozenset[int]:
        """Types of which fields or elements are read or written."""
        return self.read | self.written


NO_OBJECTS = ObjectAccess()
"""The access of code without references."""


def object_access(region: Region) -> ObjectAccess:
    """The objects that a region may access, with its callees."""
    listing = region.verified.program.code
    pieces = (region.pcs, *(region.pcs_of(number) for number in region.callees))
    used = {(listing.opcodes[pc], listing.immediates[pc]) for pcs in pieces for pc in pcs}
    return _accessed(used, region.verified.types)


def _accessed(used: Iterable[tuple[int, int]], types: TypeHierarchy) -> ObjectAccess:
    read: set[int] = set()
    written: set[int] = set()
    headers = makes = False
    for opcode, immediate in used:
        row = INSTRUCTIONS[opcode]
        found = effects(row)
        makes |= Effect.ALLOCATES_OBJECTS in found
        headers |= Effect.READS_OBJECTS in found
        if found.isdisjoint(_ON_OBJECTS):
            continue
        if row.chapter == "struct":
            number = field_of(immediate)[0] if row.immediate is Immediate.FIELD else immediate
            accessed = {n for n in range(len(types.references)) if types.is_subtype(n, number)}
        elif row.immediate is Immediate.ARRAY:
            accessed = {immediate}
        elif row.mnemonic.startswith("array.") and row.mnemonic not in (
            "array.length",
            "array.index",
        ):
            accessed = {_ARRAYS[row.mnemonic.rpartition("_")[2]]}
        else:
            continue
        name = row.mnemonic.partition(".")[2].partition("_")[0]
        if name in ("get", "copy", "store", "atomic"):
            read |= accessed
        if name not in ("get", "store"):
            written |= accessed
    return ObjectAccess(headers or makes, frozenset(read), frozenset(written), makes)
