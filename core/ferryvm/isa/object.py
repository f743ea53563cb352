# SPDX-License-Identifier: Apache-2.0
"""Objects in the object space: words of a reference, headers, offsets, limits.

A reference is a word. It is 0 (null), an odd number (an i31 without memory), or the offset of an
object in bytes from the base of the object space, a multiple of 8.

    struct   │ header │ field 0 │ field 1 │ …                          each field a word
    array    │ header │ length │ place │ elements, if they are inline …  padded to 8 bytes

    header   bit 0: 1      bits 1 to 31: type number      bits 32 to 63: flags
    i31      bit 0: 1      bits 1 to 31: the integer      bits 32 to 63: 0

*Length* is the number of elements. *Place* is the distance in bytes from the base of the object
space to element 0, modulo 2^64. docs/decisions/2026-11-25-references.md gives the reasons.
"""

from __future__ import annotations

from ferryvm.isa.type import WORD_BYTES

FIRST_OFFSET = WORD_BYTES
"""Offset of the first object; the word below it is 0."""

LENGTH_OFFSET = WORD_BYTES
"""Bytes from an array to its length."""
PLACE_OFFSET = 2 * WORD_BYTES
"""Bytes from an array to its place."""
ARRAY_HEADER_BYTES = 3 * WORD_BYTES
"""Bytes from an array to its elements if they are inline."""
STRUCT_HEADER_BYTES = WORD_BYTES
"""Bytes from a struct to its first field."""

FLAG_BIT = 32
"""Bit of a header at which its flags start."""
READ_ONLY = 1 << FLAG_BIT
"""Header bit of an array whose elements cannot be stored to."""
TYPE_MASK = (1 << FLAG_BIT) - 1
"""Bits of a header that hold the type number, doubled, plus 1."""

LARGEST_INLINE = 32768
"""The largest size of inline elements in bytes, with padding; larger ones are outside of the object
space."""

LARGEST_TRANSFER = 4 << 20
"""The largest number of bytes that an instruction fills or copies by itself: some 5 ms where no
page has been touched. For more it leaves with ALLOCATE, see `ferryvm.machine.element_transfer`."""

LARGEST_LENGTH = 1 << 40
"""Elements past which a request is refused before any arithmetic on it could wrap."""

# --- type rows ------------------------------------------------------------------------------

ROW_WORDS = 16
"""Words of a type row."""
ROW_KIND = 0
"""Word of a row: a `RowKind`, and above bit 7 bytes: of a struct, or of one element of an array."""
ROW_DEPTH = 1
"""Word of a row: the number of ancestors of the type; 0 for types that have none but `anyref`."""
ROW_ANCESTORS = 2
"""First word of a row's ancestors: by their depth, the type itself last, `anyref` not included."""
ROW_SIZE_SHIFT = 8
MOST_GENERATIONS = 12
"""Structs in a chain of parents."""


def header(number: int) -> int:
    """The header of a new object of a type number."""
    return 2 * number + 1


def is_object(reference: int) -> bool:
    """True if a reference refers to an object: it is not null, nor a number in the reference
    itself."""
    return bool(reference) and not reference & 1


def type_number(header_: int) -> int:
    """The type number of an object with this header."""
    return (header_ & TYPE_MASK) >> 1


def padded(bytes_: int) -> int:
    """Bytes that elements of so many bytes take."""
    return (bytes_ + 7) & ~7


def outside_bytes(wanted: int, is_array: bool) -> int:
    """Bytes of the elements that an allocation of `wanted` bytes has outside of the object space,
    0 if it has none."""
    elements = wanted - ARRAY_HEADER_BYTES
    return elements if is_array and elements > LARGEST_INLINE else 0
