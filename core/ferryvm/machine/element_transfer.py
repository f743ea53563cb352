# SPDX-License-Identifier: Apache-2.0
"""Long fills and copies of elements, performed in parts between which a program can be interrupted.

    array.fill_i64    … │ array │ 0        │ value │ count            │ <─ sp      ALLOCATE
                        part of 4 MiB, again and again
                      … │ array │ 2^19 · n │ value │ count - 2^19 · n │ <─ sp      the instruction: the rest

An instruction that would take long leaves with ALLOCATE (see
`ferryvm.isa.object.LARGEST_TRANSFER`). After each part its operands say what is left, so the state
is exact: an interrupted fill is one that has fewer elements to store. The alternative, polls in
native code, would need a state of its own in each backend.

Operands are checked here as the instruction does it, because backends are not trusted.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from ferryvm.isa import INSTRUCTIONS
from ferryvm.isa.element import Element
from ferryvm.isa.object import (
    ARRAY_HEADER_BYTES,
    LARGEST_TRANSFER,
    LENGTH_OFFSET,
    PLACE_OFFSET,
    READ_ONLY,
    padded,
    type_number,
)
from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine.collection import SHAPE_WORDS, ShapeKind
from ferryvm.machine.memory import Memory

if TYPE_CHECKING:
    from ferryvm.machine.object_shape import Shapes
    from ferryvm.machine.object_space import ObjectSpace

_MASK = (1 << 64) - 1
_BYTES = {element.kind: element.bytes for element in Element} | {"ref": WORD_BYTES}


class Transfer(NamedTuple):
    """An instruction that fills or copies elements."""

    verb: str
    """`fill`, `copy`, `load`, `store`; `new` for one that makes a filled array."""
    bytes: int
    """Bytes of an element."""


def _transfer(mnemonic: str) -> Transfer | None:
    name, _, kind = mnemonic.removeprefix("array.").rpartition("_")
    is_one = mnemonic.startswith("array.") and name in ("fill", "copy", "load", "store", "new")
    return Transfer(name, _BYTES[kind]) if is_one else None


TRANSFERS = {
    row.opcode: found for row in INSTRUCTIONS if (found := _transfer(row.mnemonic)) is not None
}
"""By opcode the instructions that fill or copy elements."""

LONG = frozenset(opcode for opcode, one in TRANSFERS.items() if one.verb != "new")
"""The opcodes of those that leave if that takes long."""

Stops = Callable[[], bool]
"""True if the program is to stop between two parts."""


class ElementTransfer:
    """Long fills and copies of one machine."""

    def __init__(self, memory: Memory, space: ObjectSpace, shapes: Shapes) -> None:
        self._memory, self._space, self._shapes = memory, space, shapes

    def advance(self, transfer: Transfer, stops: Stops) -> None:
        """Perform parts of the instruction at pc until the rest is short, or the program is to
        stop. Raises ValueError for operands that it would have trapped for."""
        control, stack = self._memory.control, self._memory.stack
        sp, size = control.sp, transfer.bytes
        most = LARGEST_TRANSFER // size
        count_at = sp - 1
        while stack[count_at] > most and not stops():
            match transfer.verb:
                case "fill":
                    to = self._elements(stack[sp - 4], size, stack[sp - 3], most, is_stored=True)
                    self.fill(to, size, most, stack[sp - 2])
                    stack[sp - 3] += most
                case "copy":
                    self._copy_part(sp, size, most)
                case "load" | "store":
                    is_load = transfer.verb == "load"
                    at = self._elements(stack[sp - 4], size, stack[sp - 3], most, is_load)
                    heap = self._heap(stack[sp - 2], size * most)
                    to, source = (at, heap) if is_load else (heap, at)
                    ctypes.memmove(to, source, size * most)
                    stack[sp - 3] += most
                    stack[sp - 2] += size * most
            stack[count_at] -= most

    def _copy_part(self, sp: int, size: int, most: int) -> None:
        """Copy a part: from the end on where both ranges are of one array and the target is behind
        the source, or elements would be overwritten before they are copied."""
        stack = self._memory.stack
        index, start, left = stack[sp - 4], stack[sp - 2], stack[sp - 1] - most
        is_backward = stack[sp - 5] == stack[sp - 3] and index > start
        skipped = left if is_backward else 0
        to = self._elements(stack[sp - 5], size, index + skipped, most, is_stored=True)
        source = self._elements(stack[sp - 3], size, start + skipped, most, is_stored=False)
        ctypes.memmove(to, source, size * most)
        if not is_backward:
            stack[sp - 4], stack[sp - 2] = index + most, start + most

    @staticmethod
    def fill(address: int, size: int, count: int, word: int) -> None:
        """Store the low `size` bytes of a word in each of `count` elements."""
        import numpy as np  # programs without long fills need none

        memory = (ctypes.c_ubyte * (size * count)).from_address(address)
        elements = np.frombuffer(memoryview(memory), f"<u{size}")
        elements[:] = word & ((1 << 8 * size) - 1)

    def fill_all(self, address: int, transfer: Transfer, bytes_: int, stops: Stops) -> bool:
        """Fill new elements with the value on the stack; False if the program is to stop."""
        word = self._memory.stack[self._memory.control.sp - 2]
        if not word:
            return True
        length = self._memory.stack[self._memory.control.sp - 1]
        left = min(length, bytes_ // transfer.bytes)  # the padding stays zero
        most = LARGEST_TRANSFER // transfer.bytes
        while left:
            if stops():
                return False
            part = min(left, most)
            self.fill(address, transfer.bytes, part, word)
            address, left = address + part * transfer.bytes, left - part
        return True

    def _elements(self, reference: int, size: int, index: int, count: int, is_stored: bool) -> int:
        """The address of elements of an array that has so many from an index on."""
        space, top = self._space, self._memory.control.object_top
        if not 0 < reference <= top - ARRAY_HEADER_BYTES or reference % WORD_BYTES:
            raise ValueError(f"a transfer with the reference {reference}")
        words, at = space.words, reference // WORD_BYTES
        number, length = type_number(words[at]), words[at + LENGTH_OFFSET // WORD_BYTES]
        place = words[at + PLACE_OFFSET // WORD_BYTES]
        row = SHAPE_WORDS * number
        kinds = (ShapeKind.NUMBERS, ShapeKind.REFERENCES)
        is_array = number < self._shapes.count and self._shapes.rows[row] in kinds
        if not is_array or self._shapes.rows[row + 1] != size or index + count > length:
            raise ValueError(f"a transfer of {count} elements from {index} on")
        if is_stored and words[at] & READ_ONLY:
            raise ValueError("a transfer into a read-only array")
        address = (place + space.base) & _MASK
        is_inline = place == reference + ARRAY_HEADER_BYTES
        if not is_inline and space.bytes_at(address) < padded(size * length):
            raise ValueError(f"a transfer with elements at {place}")
        return address + size * index

    def _heap(self, address: int, bytes_: int) -> int:
        """The address of bytes of the heap in use."""
        if address + bytes_ > self._memory.control.hp:
            raise ValueError(f"a transfer with {bytes_} bytes at {address} of the heap")
        return self._memory.heap_address + address
