# SPDX-License-Identifier: Apache-2.0
"""Heap traffic, most of it close to a bound: addresses, loads, stores, vectors, allocation.

    0                 scratch            first_hp            hp
    │ may be written  │ data vectors     │ allocated blocks  │

A vector's length is only overwritten if risk is on: an index that is known to be below it remains
so.
"""

from __future__ import annotations

from ferryvm.testing.generate.body import DUP, GET, SET, STATIC_GET, Vector
from ferryvm.testing.generate.catalogue import (
    LOADS,
    OPCODE,
    STORES,
    VECTOR_BYTES,
    VECTOR_ELEMENT,
    VECTOR_NEW,
    Access,
)
from ferryvm.testing.generate.literal import I64, MASK
from ferryvm.testing.generate.value import Values

_SIZE, _ALLOC = OPCODE["heap.size"], OPCODE["heap.alloc"]
_SUB, _AND = OPCODE["i64.sub"], OPCODE["i64.and"]
_PAGE = 4096

_FAR = (
    -1, -4, -8, -16, 1 << 31, (1 << 32) - 8, 1 << 32, 1 << 32, (1 << 32) + 8, 1 << 48, 1 << 63,
    -(1 << 32), 1 << 16,
)  # fmt: skip
_FAR_OFFSETS = (0, 0, 0, 1, 7, 8, 16, 1 << 31, (1 << 32) - 8, (1 << 32) - 1)
_SMALL_BLOCKS = (0, 1, 7, 8, 9, 15, 16, 17, 24, 31, 32, 64)
_LARGE_BLOCKS = (1000, 2000, 4096, 4097, 5000, 8192, 9000)


class HeapTraffic(Values):
    """Values that come from the heap, statements that write to it."""

    # --- addresses --------------------------------------------------------------------------

    def address(self, first: int, end: int, width: int, is_load: bool) -> int:
        """Append an address in bounds; the offset for its access.

        All `width` bytes are between `first` and `end`, or in an allocated block.
        """
        chance = self.chance
        last = end - width
        choice = chance.random()
        if choice < 0.25 and self.blocks:
            local, size = chance.pick(self.blocks)
            if size >= width:
                self.put(GET, local)
                return chance.pick((0, chance.below(size - width + 1), size - width))
        if choice < 0.5:
            mask = chance.pick((7, 15, 31, 63))
            if first + mask <= last:
                self.masked(I64, mask)
                return chance.pick((first, last - mask, chance.between(first, last - mask)))
        if choice < 0.65 and is_load:
            self.put(_SIZE)
            self.const(I64, chance.pick((width, width, width + 1, 8, end)) if width < 8 else 8)
            self.put(_SUB)
            return 0
        where = chance.pick((first, last, chance.between(first, last)))
        offset = chance.pick((0, 0, 0, where, chance.between(0, where)))
        self.const(I64, where - offset)
        return offset

    def wild_address(self, width: int) -> int:
        """Append an address that is out of bounds, mostly by a little; its offset."""
        chance = self.chance
        choice = chance.random()
        if choice < 0.55:  # around the bound: the last bytes below it, or the first past it
            back = chance.pick((0, 1, width - 1, width, 8))
            self.put(_SIZE)
            if back:
                self.const(I64, back)
                self.put(_SUB)
            return max(0, back - width + chance.pick((0, 1, 1, 1, 2, width)))
        if choice < 0.67:  # the sum with the offset would wrap, to an address in bounds
            back = chance.pick((1, 8, 16, 1 << 16))
            self.const(I64, MASK[I64] + 1 - back)
            return back + chance.pick((0, 8))
        if choice < 0.85:
            self.const(I64, chance.pick(_FAR) & MASK[I64])
            return chance.pick(_FAR_OFFSETS)
        if choice < 0.92:
            self.const(I64, 0)
            return chance.pick(_FAR_OFFSETS[-3:])
        self.value(I64, 2)
        return chance.pick(_FAR_OFFSETS)

    # --- values -----------------------------------------------------------------------------

    def value_load(self, t: int, depth: int) -> None:
        """The value at an address."""
        access = self.chance.pick(LOADS[t])
        if self.is_wild():
            offset = self.wild_address(access.bytes)
        else:
            offset = self.address(0, self.plan.first_hp, access.bytes, True)
        self.put(access.opcode, offset)

    def value_element_load(self, t: int, depth: int) -> None:
        """An element of a vector."""
        vector = self._vector(LOADS[t])
        if vector is None:
            self.value_load(t, depth)
            return
        self.element(vector)
        self.put(self._access(LOADS[t], vector).opcode)

    def value_heap_size(self, t: int, depth: int) -> None:
        """The size of the heap in use."""
        if t == I64:
            self.put(_SIZE)
        else:
            self.leaf(t)

    def value_new_block(self, t: int, depth: int) -> None:
        """An address that was just allocated."""
        if t != I64 or self._new_block() is None:
            self.leaf(t)

    # --- vectors ----------------------------------------------------------------------------

    def _vector(self, accesses: tuple[Access, ...]) -> Vector | None:
        """A vector whose elements one of these does not overrun."""
        narrowest = min(access.bytes for access in accesses)
        wide = [vector for vector in self.plan.vectors if vector.width >= narrowest]
        return self.chance.pick(wide) if wide else None

    def _access(self, accesses: tuple[Access, ...], vector: Vector) -> Access:
        """One that overruns no element; most often one of the elements' width."""
        exact = [access for access in accesses if access.bytes == vector.width]
        if exact and self.chance.flip(0.8):
            return self.chance.pick(exact)
        return self.chance.pick([a for a in accesses if a.bytes <= vector.width])

    def element(self, vector: Vector) -> None:
        """Append the address of an element of the vector."""
        chance = self.chance
        holder = self.vector_locals.get(vector.address)
        if holder is not None and chance.flip(0.7):
            self.put(GET, holder)
        elif chance.flip(0.6):
            self.put(STATIC_GET, vector.static)
        else:
            self.const(I64, vector.address)
        if self.is_wild():
            self.value(I64, 1)
        else:
            self.index(vector.length)
        self.put(VECTOR_ELEMENT[vector.width])

    def index(self, length: int) -> None:
        """Append an index below the length, which is at least 1."""
        chance = self.chance
        bounded = [local for local, bound in self.indexes if bound <= length]
        choice = chance.random()
        if bounded and choice < 0.7:
            self.put(GET, bounded[-1] if choice < 0.5 else chance.pick(bounded))
        elif length >= 2 and choice < 0.4:
            self.masked(I64, (1 << (length.bit_length() - 1)) - 1)
        else:
            self.const(I64, chance.pick((0, length - 1, chance.below(length))))

    # --- statements -------------------------------------------------------------------------

    def statement_store(self) -> None:
        """A value to an address."""
        t = self.chance.below(4)
        access = self.chance.pick(STORES[t])
        if self.is_wild():
            offset = self.wild_address(access.bytes)
        else:
            offset = self.address(0, self.plan.scratch, access.bytes, False)
        self.value(t, self.chance.between(0, 3))
        self.put(access.opcode, offset)

    def statement_element_store(self) -> None:
        """A value into a vector."""
        t = self.chance.below(4)
        vector = self._vector(STORES[t])
        if vector is None:
            self.statement_store()
            return
        self.element(vector)
        self.value(t, self.chance.between(0, 3))
        self.put(self._access(STORES[t], vector).opcode)

    def statement_allocate(self) -> None:
        """A new block or vector, written to at its ends, and usable by the following code."""
        chance = self.chance
        size = self._new_block()
        if size is None:
            self.statement_store()
            return
        for _ in range(chance.below(3)):
            t = chance.below(4)
            access = chance.pick(STORES[t])
            if access.bytes <= size:
                self.put(DUP)
                self.value(t, 1)
                last = size - access.bytes
                self.put(access.opcode, chance.pick((0, last, chance.between(0, last))))
        local = self.new_local(I64)
        self.put(SET, local)
        self.blocks.append((local, size))

    def _new_block(self) -> int | None:
        """Append an allocation; the bytes that may be overwritten from its address."""
        chance = self.chance
        choice = chance.random()
        if choice < 0.15 and self.affords(5, _PAGE + 8):
            # Up to the end of a page, which is where the heap has to grow.
            self.charge(0, _PAGE + 8)
            self.const(I64, chance.pick((0, 0, 0, 8, MASK[I64] - 7)))
            self.put(_SIZE)
            self.put(_SUB)
            self.const(I64, _PAGE - 1)
            self.put(_AND)
            self.put(_ALLOC)
            return 0
        width = chance.pick(VECTOR_BYTES) if choice < 0.45 else 0
        if width:
            count = chance.pick((0, 1, 2, 3, 4, 7, 8, 9, 16, 100, 1000))
            size = 8 + width * count
        else:
            count = size = chance.pick(_LARGE_BLOCKS if chance.flip(0.25) else _SMALL_BLOCKS)
            left = self.plan.heap_budget - self.heap - 64
            if left > 0 and self.weight == 1 and chance.flip(0.15):
                count = size = left & ~7  # nearly all that there is
        if not self.affords(2, size + 8):
            return None
        self.charge(0, size + 8)
        self.const(I64, count)
        self.put(VECTOR_NEW[width] if width else _ALLOC)
        return size
