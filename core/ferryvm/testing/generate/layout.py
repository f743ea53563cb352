# SPDX-License-Identifier: Apache-2.0
"""The initial memory of a random program: statics, and data with vectors in it.

0              scratch
│ edge values  │ length │ elements … │ length │ elements … │ a few bytes more
                 vector              vector
"""

from __future__ import annotations

from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine.host import STANDARD, Context
from ferryvm.program import HostImport, Static
from ferryvm.testing.generate import literal
from ferryvm.testing.generate.body import Vector
from ferryvm.testing.generate.catalogue import VECTOR_BYTES
from ferryvm.testing.generate.chance import Chance
from ferryvm.testing.generate.literal import BITS, F64, I64, NUMBER, TYPES
from ferryvm.testing.generate.object_type import ObjectTypes

HOSTS = tuple(
    HostImport(host.name, host.signature)
    for host in STANDARD.values()
    if host.context is Context.OUTPUT and not host.takes_bytes
)
"""The host functions that random programs import: those that print, whose effect is the same each
time."""


class Layout:
    """Statics and data."""

    def __init__(self, chance: Chance, all_i64: bool, objects: ObjectTypes | None) -> None:
        """`all_i64`: whether every static is an i64, so that they can be numbered at run time."""
        self.all_i64 = all_i64
        self.by_type: list[list[int]] = [[] for _ in (objects.types if objects else TYPES)]
        self.statics: list[Static] = []
        """The free ones come first: a power of two of them if they are all i64."""
        types = [I64] * chance.pick((2, 4, 8)) if all_i64 else self._types(chance)
        for t in types:
            self.by_type[t].append(len(self.statics))
            bits = literal.edge(chance, t) if chance.flip(0.7) else literal.ordinary(chance, t)
            self.statics.append(Static(f"s{len(self.statics)}", TYPES[t], bits))
        self.free = len(types)
        if objects is not None:
            for _ in range(chance.between(2, 5)):
                t = chance.pick(objects.usual)
                self.by_type[t].append(len(self.statics))
                self.statics.append(Static(f"r{len(self.statics)}", objects.types[t]))
        self.scratch: int = chance.pick((32, 64, 128))
        """Bytes of the data from 0 that may be overwritten."""
        self.vectors: list[Vector] = []
        self.data = self._data(chance)
        self.first_hp = -(-len(self.data) // WORD_BYTES) * WORD_BYTES
        """Bytes of the heap in use from the start."""
        self.hosts = [
            (number, NUMBER[host.signature.parameters[0]])
            for number, host in enumerate(HOSTS)
            if len(host.signature.parameters) == 1 and not host.signature.results
        ]

    def _types(self, chance: Chance) -> list[int]:
        extra = [chance.below(4) for _ in range(chance.between(0, 4))]
        return [*range(4), *extra]

    def _data(self, chance: Chance) -> bytes:
        parts = [self._edges(chance, self.scratch // WORD_BYTES)]
        address = self.scratch
        for _ in range(chance.between(1, 3)):
            width = chance.pick((*VECTOR_BYTES, 8, 8))
            length = chance.pick((1, 2, 3, 4, 5, 8, 8, 9, 16))
            number = len(self.statics)
            self.statics.append(Static(f"vector{len(self.vectors)}", TYPES[I64], address))
            self.vectors.append(Vector(address, width, length, number))
            elements = self._edges(chance, -(-width * length // WORD_BYTES))
            # Data after a vector whose elements end within a word comes right after them.
            part = length.to_bytes(WORD_BYTES, "little") + elements[: width * length]
            parts.append(part)
            address += len(part)
        parts.append(self._edges(chance, 1)[: chance.below(8)])
        return b"".join(parts)

    def _edges(self, chance: Chance, words: int) -> bytes:
        """Words of literals of all types."""
        found = []
        for _ in range(words):
            t = chance.below(F64 + 1)
            bits = literal.edge(chance, t)
            if BITS[t] == 32:
                bits |= literal.edge(chance, t) << 32
            found.append(bits.to_bytes(WORD_BYTES, "little"))
        return b"".join(found)
