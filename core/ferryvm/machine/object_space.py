# SPDX-License-Identifier: Apache-2.0
"""The object space: memory of a program's structs and arrays.

    base ─> │ 0 │ objects … │ free, zero … │ not usable before a collection … │ reserved
            0   8           top            end
    outside: elements of large arrays, each in a block of its own, which never moves, and of host
             arrays (see `ferryvm.machine.host_array`)

There are two such spaces. A collection copies from one to the other and clears the first one, so
allocation is a bump of `top`. (The alternative, free lists, would be slower for both: most objects
die young.) Blocks outside count against the same limit, and `end` falls as they are made, so that
many large arrays cause a collection, too.

The policy is deterministic: it depends on sizes, not on time or on the address of anything.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import sys
import time
from array import array
from collections.abc import Callable
from typing import Final

from ferryvm.isa.object import (
    ARRAY_HEADER_BYTES,
    FIRST_OFFSET,
    LENGTH_OFFSET,
    PLACE_OFFSET,
    padded,
)
from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine.collection import OUTSIDE_WORDS, CollectionFault, Request
from ferryvm.machine.host_array import HostArray, HostArrays, SharedBlock
from ferryvm.machine.memory import RESERVED, AddressSpaceError, why_refused

FIRST_BUDGET: Final = 4 << 20
"""Bytes of objects after which the first collection is due; also the smallest budget later."""

_GROWTH: Final = 15
"""The budget after a collection, in eighths of the live bytes. With the copies of what is alive at
the next collection, memory is then 23 eighths of that."""

_RETAINED: Final = 16 << 20
"""Bytes of both spaces that stay with the process in any case. Clearing them by stores takes
a tenth of the time of page faults."""

_LARGE: Final = 16 << 20
"""The smallest budget of a space with huge pages: they round its memory up."""

_HUGE_PAGE: Final = 2 << 20

_LARGE_BLOCK: Final = 4 << 20
"""Bytes of the elements of an array from which on they have huge pages, as in NumPy: page faults
would take most of the time of the first stores."""

_UNIT: Final = 1 << 16
"""Memory is given back in such units: a huge page is better split than held."""

_SPARE: Final = 4 << 20
"""Bytes of blocks of dead arrays that are held for the next ones, at most. An allocator gives them
back to the system, and page faults take ten times as long as clearing."""

_LARGEST: Final = 1 << 48
"""Bytes past which no request is looked at."""

_MASK = (1 << 64) - 1
_LENGTH, _PLACE = LENGTH_OFFSET // WORD_BYTES, PLACE_OFFSET // WORD_BYTES

_RESERVE = 16 << 20
"""Bytes of address space for the report of a trap where the system has no more of it."""

_libc = ctypes.CDLL(None)
_libc.calloc.restype = ctypes.c_void_p
_libc.calloc.argtypes = (ctypes.c_size_t, ctypes.c_size_t)
_libc.free.argtypes = (ctypes.c_void_p,)
_libc.free.restype = None
if hasattr(mmap, "MADV_HUGEPAGE"):
    _libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)

Collector = Callable[[Request], int]
"""Performs a collection: `ferryvm.machine.collection.collect`, or native code that does the
same."""


class CollectionMetrics:
    """Metrics of the collections of an object space."""

    NAMES = ("count", "seconds", "longest", "copied", "freed", "live")

    def __init__(self) -> None:
        self.count = 0
        self.seconds = 0.0
        """Pauses, in all."""
        self.longest = 0.0
        """The longest pause in seconds."""
        self.copied = 0
        """Bytes of objects copied, elements outside of the space not included."""
        self.freed = 0
        """Bytes of objects and elements that were dead."""
        self.live = 0
        """Bytes of objects and elements that the last collection found alive."""


def _reserved(size: int) -> mmap.mmap:
    """So many bytes of address space and a huge page, which take memory where they are touched.
    Raises AddressSpaceError."""
    try:
        return mmap.mmap(
            -1, size + _HUGE_PAGE, flags=RESERVED, prot=mmap.PROT_READ | mmap.PROT_WRITE
        )
    except (OSError, OverflowError, ValueError) as error:
        space = f"{size >> 20} MiB of address space for objects"
        message = f"cannot reserve {space} ({why_refused(error)})"
        mend = "lower the limit of objects (--object-limit, Limits.objects)"
        raise AddressSpaceError(f"{message}; {mend}") from None


def _prefer_huge_pages(address: int, size: int) -> None:
    """Ask for huge pages where memory has them; a kernel without them refuses."""
    if hasattr(mmap, "MADV_HUGEPAGE"):
        first = -(-address // mmap.PAGESIZE) * mmap.PAGESIZE
        _libc.madvise(first, address + size - first, mmap.MADV_HUGEPAGE)


class _Half:
    """One of the two spaces."""

    def __init__(self, size: int) -> None:
        self._map = _reserved(size)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        self._skipped = -start % _HUGE_PAGE
        self.base = start + self._skipped
        self.bytes = memoryview(self._map)[self._skipped : self._skipped + size]
        self.words = self.bytes.cast("Q")
        self._resident = 0
        """Bytes from the start on that may have memory."""

    def prefer_huge_pages(self) -> None:
        """Ask for huge pages: page faults would take half of the time of a large collection."""
        if hasattr(mmap, "MADV_HUGEPAGE"):
            with contextlib.suppress(OSError):  # a kernel without them
                self._map.madvise(mmap.MADV_HUGEPAGE)

    def clear(self, end: int, retained: int) -> None:
        """Zero the bytes up to `end`, no others were written since the last time; memory past about
        the first `retained` bytes is given back to the system."""
        self._resident = max(self._resident, end)
        retained = -(-retained // _UNIT) * _UNIT
        if self._resident > retained and sys.platform == "linux":
            size = -(-(self._resident - retained) // mmap.PAGESIZE) * mmap.PAGESIZE
            self._map.madvise(mmap.MADV_DONTNEED, self._skipped + retained, size)
            self._resident = retained
        ctypes.memset(self.base, 0, min(end, self._resident))


class ObjectSpace:
    """Memory of objects; `Machine` binds it to the control block."""

    def __init__(self, limit: int) -> None:
        """`limit`: bytes that live objects and elements may take together. Raises
        AddressSpaceError."""
        self.outside: dict[int, int] = {}  # before what may fail: `__del__` frees them
        """Blocks of elements by address: their bytes."""
        self._spare_blocks: dict[int, list[int]] = {}
        """Addresses of blocks of arrays that the last collection found dead, by their bytes."""
        self.limit = max(limit, FIRST_OFFSET)
        # To-space must be as large as the content of from-space.
        size = -(-self.limit // mmap.PAGESIZE) * mmap.PAGESIZE
        self._half, self._other = _Half(size), _Half(size)
        self._reserve = _reserved(_RESERVE)
        self.outside_bytes = 0
        self.hosts = HostArrays()
        self.large: list[int] = []
        """Offsets of the arrays with elements outside, as the last collection found them."""
        self.gaps: dict[int, int] = {}
        """Bytes behind arrays whose elements have moved outside since then, by offset of the
        array."""
        self.budget = min(FIRST_BUDGET, self.limit)
        """Bytes of objects and elements that cause a collection."""
        self.metrics = CollectionMetrics()
        self._is_large = False

    def __del__(self) -> None:
        self._free_spare()
        for address in self.outside:
            _libc.free(address)

    def _free_spare(self) -> None:
        for addresses in self._spare_blocks.values():
            for address in addresses:
                _libc.free(address)
        self._spare_blocks = {}

    @property
    def base(self) -> int:
        """Address of the space."""
        return self._half.base

    @property
    def end(self) -> int:
        """Bytes of the space that can be used before a collection."""
        return max(self.budget - self.outside_bytes, 0)

    @property
    def words(self) -> memoryview:
        """The words of the space up to its limit."""
        return self._half.words

    @property
    def bytes(self) -> memoryview:
        """The bytes of the space up to its limit."""
        return self._half.bytes

    def clear(self, top: int) -> None:
        """Forget all objects, of which the space has `top` bytes."""
        self._half.clear(top, _RETAINED)
        for address in [*self.outside]:
            self._free(address)
        self.hosts.retain({})
        self.large, self.gaps = [], {}

    def make_block(self, size: int) -> int | None:
        """The place of `size` zero bytes outside; None if the system has no memory for them."""
        spare = self._spare_blocks.get(size)
        address: int | None
        if spare:
            address = spare.pop()
            ctypes.memset(address, 0, size)
        else:
            address = _libc.calloc(max(size, 1), 1)
            if not address:
                return None
            if size >= _LARGE_BLOCK:
                _prefer_huge_pages(address, size)
        self.outside[address] = size
        self.outside_bytes += size
        return (address - self.base) & _MASK

    def release_reserve(self) -> None:
        """Give the system the memory back with which a trap for lack of it is reported."""
        self._reserve.close()

    def place(self, one: HostArray) -> int:
        """The place of the elements of a host array."""
        return (one.address - self.base) & _MASK

    def release(self, address: int) -> None:
        """Forget a host array that can be written and that no object or frame of the program refers
        to, so that its memory need not live until the next collection. Its object is an empty array
        from then on, since a device copies what it finds in objects; it serves the next array of
        its type."""
        reference = self.hosts.release(address)
        if reference is not None:
            self.set_elements(reference, 0, reference + ARRAY_HEADER_BYTES)

    def set_elements(self, reference: int, length: int, place: int) -> None:
        """Give an array, whose elements are not in the space, others."""
        words, at = self._half.words, reference // WORD_BYTES
        words[at + _LENGTH] = length
        words[at + _PLACE] = place

    def share_block(self, place: int, typestr: str, length: int, is_read_only: bool) -> SharedBlock:
        """The block at a place, as memory that Python shares from now on."""
        address = (place + self.base) & _MASK
        self.outside_bytes -= self.outside.pop(address)
        return SharedBlock(address, typestr, length, is_read_only, _libc.free)

    def free_block(self, place: int) -> None:
        """Give back a block that belongs to no array."""
        self._free((place + self.base) & _MASK)

    def _free(self, address: int) -> None:
        self.outside_bytes -= self.outside.pop(address)
        _libc.free(address)

    def bytes_at(self, address: int) -> int:
        """Bytes of the elements outside that begin at an address, with padding; 0 if none do."""
        host = self.hosts.get(address)
        return self.outside.get(address, 0) if host is None else padded(host.size)

    def block(self, place: int) -> memoryview:
        """The bytes of the block at a place, those of a host array as a copy with padding. Raises
        ValueError if there is none."""
        address = (place + self.base) & _MASK
        host = self.hosts.get(address)
        if host is not None:
            copied = ctypes.string_at(address, host.size)
            return memoryview(copied.ljust(padded(host.size), b"\0"))
        size = self.outside.get(address)
        if size is None:
            raise ValueError(f"the objects of the program are damaged: no elements at {place}")
        content = (ctypes.c_ubyte * size).from_address(address)
        return memoryview(content).cast("B")

    def collect(self, request: Request, top: int, collector: Collector) -> int:
        """Perform a collection of the `top` bytes in use; the bytes in use afterwards.

        `request` has the roots and the shapes; the rest is filled in. Raises ValueError where the
        state is none of a program: then nothing can be done with it any more."""
        began = time.perf_counter()
        blocks = {**self.outside, **self.hosts.rows()}
        addresses = sorted(blocks)
        rows = array("Q", bytes(WORD_BYTES * OUTSIDE_WORDS * (1 + len(addresses))))
        # One row more: an empty array would have no address.
        rows[:-OUTSIDE_WORDS:OUTSIDE_WORDS] = array("Q", addresses)
        rows[1:-OUTSIDE_WORDS:OUTSIDE_WORDS] = array("Q", map(blocks.__getitem__, addresses))
        request.from_base, request.from_top = self._half.base, top
        request.to_base, request.to_end = self._other.base, len(self._other.bytes)
        request.outside, _ = rows.buffer_info()
        request.outside_count = len(blocks)
        fault = CollectionFault(collector(request))
        if fault is not CollectionFault.NONE:
            raise ValueError(f"the objects of the program are damaged: {fault.name.lower()}")
        before = top + self.outside_bytes
        references = rows[2:-OUTSIDE_WORDS:OUTSIDE_WORDS]
        self.large, self.gaps = sorted(filter(None, references)), {}
        outside, retained, dead = self.outside, {}, []
        for address, reference in zip(addresses, references, strict=True):
            if not reference:
                dead.append(address)
            elif address not in outside:
                retained[address] = reference
        self._sweep(dead)
        self.hosts.retain(retained)
        self._half.clear(top, self._spare(request.to_top))
        self._half, self._other = self._other, self._half
        metrics, seconds = self.metrics, time.perf_counter() - began
        metrics.count += 1
        metrics.seconds += seconds
        metrics.longest = max(metrics.longest, seconds)
        metrics.copied += request.to_top - FIRST_OFFSET
        metrics.live = request.to_top + self.outside_bytes
        metrics.freed += before - metrics.live
        return request.to_top

    def _sweep(self, dead: list[int]) -> None:
        """Give back the blocks at these addresses but for a few, which the next arrays will get."""
        self._free_spare()
        spare, left = self._spare_blocks, _SPARE
        for address in dead:
            size = self.outside.pop(address, None)
            if size is None:  # a host's
                continue
            self.outside_bytes -= size
            if size <= left:
                left -= size
                spare.setdefault(size, []).append(address)
            else:
                _libc.free(address)

    def _budget(self, live: int) -> int:
        return min(max(FIRST_BUDGET, _GROWTH * live // 8), self.limit)

    def _spare(self, live: int) -> int:
        """Bytes of the space that is free now which may stay with the process; `live`: bytes of
        the other one, which grows up to its budget."""
        own = self._budget(live + self.outside_bytes) - self.outside_bytes
        return max(max(_RETAINED, (8 + _GROWTH) * live // 8) - own, 0)

    def enlarge(self, top: int, wanted: int) -> bool:
        """Set the budget after a collection so that `wanted` more bytes fit; False if the limit
        forbids it."""
        if wanted > _LARGEST:
            return False
        needed = top + self.outside_bytes + wanted
        self.budget = self._budget(needed)
        if self.budget > _LARGE and not self._is_large:
            self._is_large = True
            for half in (self._half, self._other):
                half.prefer_huge_pages()
        return needed <= self.limit
