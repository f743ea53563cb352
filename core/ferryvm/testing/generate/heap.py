# SPDX-License-Identifier: Apache-2.0
"""Heap traffic, most of it close to a bound: addresses, loads, stores, vectors, allocation.

    0                 scratch            first_hp            hp
    │ may be written  │ data vectors     │ allocated blocks  │

    address of a vector ─> │ length: 8 bytes │ element 0 │ element 1 │ …

A vector's length is only overwritten if risk is on: an index that is known to be below it remains
so. Code that accesses an element loads the length and checks the index, mostly.
"""

from __future__ import annotations

from ferryvm.isa.type import WORD_BYTES
from ferryvm.testing.generate.body import DUP, GET, SET, STATIC_GET, Vector
from ferryvm.testing.generate.catalogue import (
    CONST,
    LOADS,
    OPCODE,
    STORES,
    VECTOR_BYTES,
    Access,
)
from ferryvm.testing.generate.literal import I64, MASK
from ferryvm.testing.generate.value import Values

_SIZE, _ALLOC = OPCODE["heap.size"], OPCODE["heap.alloc"]
_SUB, _AND = OPCODE["i64.sub"], OPCODE["i64.and"]
_ADD, _SHL, _LOAD = OPCODE["i64.add"], OPCODE["i64.shl"], OPCODE["i64.load"]
_CHECKED = OPCODE["array.index"]
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
        offset = self.element(vector)
        self.put(self._access(LOADS[t], vector).opcode, offset)

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

    def element(self, vector: Vector) -> int:
        """Append an address; the offset from it to an element of the vector."""
        chance = self.chance
        holder = self.vector_locals.get(vector.address)
        if holder is not None and chance.flip(0.7):
            base = GET, holder
        elif chance.flip(0.6):
            base = STATIC_GET, vector.static
        else:
            base = CONST[I64], vector.address
        self.put(*base)
        is_after = chance.flip(0.3)
        if is_after:
            self.const(I64, WORD_BYTES)
            self.put(_ADD)
        if self.is_wild():
            self.value(I64, 1)
        else:
            self.index(vector.length)
        self.scaled(base, vector.width, chance.flip(0.8))
        return 0 if is_after else WORD_BYTES

    def scaled(self, base: tuple[int, int], width: int, is_checked: bool = True) -> None:
        """Replace an address and an index by the address so many elements on.

        `base`: the instruction that gives the address of the vector, whose length is loaded if the
        index is to be checked."""
        if is_checked:
            self.put(*base)
            self.put(_LOAD)
            self.put(_CHECKED)
        if width > 1:
            self.const(I64, width.bit_length() - 1)
            self.put(_SHL)
        self.put(_ADD)

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
        offset = self.element(vector)
        self.value(t, self.chance.between(0, 3))
        self.put(self._access(STORES[t], vector).opcode, offset)

    def statement_allocate(self) -> None:
        """A new block, written to at its ends, and usable by the following code."""
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
        if choice < 0.45:
            count = chance.pick((0, 1, 2, 3, 4, 7, 8, 9, 16, 100, 1000))
            size = WORD_BYTES + chance.pick(VECTOR_BYTES) * count
        else:
            size = chance.pick(_LARGE_BLOCKS if chance.flip(0.25) else _SMALL_BLOCKS)
            left = self.plan.heap_budget - self.heap - 64
            if left > 0 and self.weight == 1 and chance.flip(0.15):
                size = left & ~7  # nearly all that there is
        if not self.affords(2, size + 8):
            return None
        self.charge(0, size + 8)
        self.const(I64, size)
        self.put(_ALLOC)
        return size
