# SPDX-License-Identifier: Apache-2.0
"""Faults in the heap, vectors, statics and locals."""

from __future__ import annotations

from typing import Any

from ferryvm.isa import BY_MNEMONIC, F64, I32, I64, Trap
from ferryvm.isa.emitter import Condition
from ferryvm.isa.frame import HEADER_WORDS
from ferryvm.isa.type import signed
from ferryvm.machine.control import Status

from .fault import Body, Fault, add, operation, planted
from .integer import DIVISIONS


def heap(code: str, data: str = "i64 0 0 0 0 0 0 0 0") -> str:
    """A witness: code over a heap that begins with some data."""
    return f".data 0 {data} / .function main / {code} / halt"


def _reach(m: Any, address: Any, bytes_: int) -> Any:
    """The boolean that an access passes the heap pointer, computed without care for wrapping."""
    end = m.add(I64, address, m.constant(I64, bytes_))
    return m.compare(I64, Condition.GT_U, end, m.heap_pointer())


_LOADS = tuple(name for name in BY_MNEMONIC if ".load" in name and name != "static.load")
_STORES = tuple(name for name in BY_MNEMONIC if ".store" in name and name != "static.store")

# --- bounds -------------------------------------------------------------------------------------


@planted("i64.load", "f64.load", witness=heap("i64.const 57 / i64.load"), native=False)
def bound_of_the_first_byte(_right: Body, m: Any, offset: Any, address: Any) -> Any:
    """Loads of 8 bytes check their first byte only."""
    where = m.add(I64, address, offset)
    m.trap_if(_reach(m, where, 1), Trap.MEMORY_OUT_OF_BOUNDS)
    if where + 8 > m.control.heap_capacity:  # what lies past it is no concern of this fault
        return 0
    return m.heap_load(8, where)


@planted("i64.store", witness=heap("i64.const 56 / i64.const 1 / i64.store"))
def bound_one_too_low(right: Body, m: Any, offset: Any, address: Any, value: Any) -> Any:
    """i64.store traps at the last 8 bytes of the heap too."""
    m.trap_if(
        m.compare(
            I64,
            Condition.EQ,
            m.add(I64, m.add(I64, address, offset), m.constant(I64, 8)),
            m.heap_pointer(),
        ),
        Trap.MEMORY_OUT_OF_BOUNDS,
    )
    return right(m, offset, address, value)


@planted("i32.load8_u", "i64.load8_u", witness=heap("i64.const 60 / i32.load8_u 4"), native=False)
def bound_without_offset(_right: Body, m: Any, offset: Any, address: Any) -> Any:
    """load8_u checks the address without the offset."""
    m.trap_if(_reach(m, address, 1), Trap.MEMORY_OUT_OF_BOUNDS)
    where = m.add(I64, address, offset)
    return m.heap_load(1, where) if where < m.control.heap_capacity else 0


@planted("i32.load", "i64.load", "f64.load", witness=heap("i64.const -8 / i64.load 16"))
def address_wraps(right: Body, m: Any, offset: Any, address: Any) -> Any:
    """Loads check the sum of address and offset, which wraps for negative addresses."""
    return right(m, m.constant(I64, 0), m.add(I64, address, offset))


@planted(*_LOADS, *_STORES, witness=heap("i64.const 0x100000008 / i64.load"))
def address_of_32_bits(right: Body, m: Any, offset: Any, address: Any, *value: Any) -> Any:
    """Loads and stores take the low 32 bits of an address."""
    return right(m, offset, m.extend_u(m.wrap(address)), *value)


@planted(
    *_LOADS,
    *_STORES,
    witness="i64.const 34000 / heap.alloc / drop / i64.const 33000 / i64.const 1 / i64.store",
)
def address_of_15_bits(right: Body, m: Any, offset: Any, address: Any, *value: Any) -> Any:
    """Loads and stores at addresses above 2^15 go to 2^15 lower."""
    is_near = m.compare(I64, Condition.LT_U, address, m.constant(I64, 1 << 16))
    low = m.bit_and(I64, address, m.constant(I64, 0x7FFF))
    return right(m, offset, m.select(is_near, low, address), *value)


# --- width --------------------------------------------------------------------------------------


@planted("i64.store32", witness=heap("i64.const 0 / i64.const -1 / i64.store32"))
def store32_writes_8_bytes(right: Body, m: Any, offset: Any, address: Any, value: Any) -> Any:
    """i64.store32 writes 8 bytes where there is room for them."""
    where = m.add(I64, address, offset)
    right(m, offset, address, value)
    room = m.none(_reach(m, where, 8))
    # Where there is no room, the byte written again is the one just written.
    fits = m.select(room, m.constant(I64, 32), m.constant(I64, 0))
    for byte in range(4, 8):
        last = m.select(room, m.constant(I64, byte), m.constant(I64, 0))
        shifted = m.shr_u(I64, value, m.select(room, m.constant(I64, 8 * byte), fits))
        m.heap_store(1, m.add(I64, where, last), shifted)


@planted("i32.store16", witness=heap("i64.const 0 / i32.const 1 / i32.store16"))
def store16_big_endian(right: Body, m: Any, offset: Any, address: Any, value: Any) -> Any:
    """i32.store16 writes the high byte first."""
    eight = m.constant(I32, 8)
    low = m.bit_and(I32, value, m.constant(I32, 0xFF))
    high = m.bit_and(I32, m.shr_u(I32, value, eight), m.constant(I32, 0xFF))
    return right(m, offset, address, m.bit_or(I32, m.shl(I32, low, eight), high))


@planted("f64.store", witness=heap("i64.const 0 / f64.const bits:0x7ff4000000000000 / f64.store"))
def nan_made_canonical_by_store(right: Body, m: Any, offset: Any, address: Any, value: Any) -> Any:
    """f64.store writes any NaN as the canonical one."""
    is_nan = m.compare(F64, Condition.NE, value, value)
    nan = m.constant(F64, 0x7FF8 << 48)
    return right(m, offset, address, m.select(is_nan, nan, value))


# --- allocation ---------------------------------------------------------------------------------


@planted("heap.alloc", witness="i64.const 3 / heap.alloc")
def allocation_rounded_to_4(_right: Body, m: Any, size: Any) -> Any:
    """heap.alloc rounds sizes up to 4 bytes."""
    huge = m.compare(I64, Condition.GT_U, size, m.constant(I64, 1 << 48))
    m.trap_if(huge, Trap.HEAP_EXHAUSTED)
    rounded = m.bit_and(I64, m.add(I64, size, m.constant(I64, 3)), m.constant(I64, I64.mask ^ 3))
    address = m.heap_pointer()
    end = m.add(I64, address, rounded)
    m.grow_if(m.compare(I64, Condition.GT_U, end, m.heap_capacity()), end)
    m.set_heap_pointer(end)
    return address


@operation("grow_if", where=("heap.alloc",), witness="i64.const 5000 / heap.alloc")
def heap_pointer_moved_before_growth(right: Body, m: Any, p: Any, wanted: Any) -> Any:
    """An allocation that has to wait for the heap to grow has moved the heap pointer already."""
    if p and m.control.hp + 8 <= m.control.heap_capacity:
        m.control.hp += 8
    return right(m, p, wanted)


@planted(
    "heap.alloc",
    witness="i64.const 4089 / heap.alloc / drop / i64.const 31904 / heap.alloc / drop / "
    "i64.const 1 / heap.alloc",
    native=False,
)
def boundary_of_growth_off_by_one(right: Body, m: Any, size: Any) -> Any:
    """heap.alloc takes up to 8 bytes more than there are before the heap has to grow."""
    capacity, end = m.control.heap_capacity, m.control.hp + (size + 7 & ~7)
    if not capacity < end <= capacity + 8:
        return right(m, size)
    address = m.control.hp
    m.set_heap_pointer(end)
    return address


@planted("heap.alloc", witness="i64.const -1 / heap.alloc", native=False)
def negative_allocation(right: Body, m: Any, size: Any) -> Any:
    """heap.alloc of a negative size does not trap and moves nothing."""
    return m.heap_pointer() if size >> 63 else right(m, size)


# --- indices ------------------------------------------------------------------------------------


@planted("array.index", witness="i64.const 3 / i64.const 3 / array.index", native=True)
def index_at_the_length(_right: Body, m: Any, index: Any, length: Any) -> Any:
    """array.index takes the length itself as an index."""
    m.trap_if(m.compare(I64, Condition.GT_U, index, length), Trap.INDEX_OUT_OF_BOUNDS)
    return index


@planted("array.index", witness="i64.const -1 / i64.const 3 / array.index")
def index_checked_as_signed(_right: Body, m: Any, index: Any, length: Any) -> Any:
    """array.index takes negative indices."""
    m.trap_if(m.compare(I64, Condition.GE_S, index, length), Trap.INDEX_OUT_OF_BOUNDS)
    return index


# --- statics and locals -------------------------------------------------------------------------

_STATICS = ".static a i64 = 5 / .static b i64 = 6 / .function main / {} / halt"


@planted("static.load", witness=_STATICS.format("i64.const 2 / static.load"), native=False)
def static_at_the_count(right: Body, m: Any, index: Any) -> Any:
    """static.load takes the number of statics as an index."""
    return 0 if index == m.static_count() else right(m, index)


@planted("static.store", witness=_STATICS.format("i64.const 9 / i64.const 1 / static.store"))
def neighbouring_static_stored(right: Body, m: Any, value: Any, index: Any) -> Any:
    """static.store with an odd number stores into the static below it."""
    return right(m, value, m.bit_and(I64, index, m.constant(I64, I64.mask - 1)))


@planted("static.load", witness=_STATICS.format("i64.const 0x100000001 / static.load"))
def static_number_of_32_bits(right: Body, m: Any, index: Any) -> Any:
    """static.load takes the low 32 bits of its operand."""
    return right(m, m.extend_u(m.wrap(index)))


@planted(
    "local.get",
    witness=".function main / .local i64 i64 i64 i64 i64 i64 / i64.const 7 / local.set 5 / "
    "local.get 5 / halt",
    native=False,
)
def neighbouring_local_read(right: Body, m: Any, index: Any) -> Any:
    """local.get of a local behind the fourth reads the one next to it."""
    return right(m, index ^ 1 if signed(I64, index) > HEADER_WORDS + 3 else index)


@planted(
    "local.set",
    witness=".function main / .local i64 i64 i64 i64 i64 i64 i64 i64 i64 / i64.const 7 / "
    "local.set 8 / halt",
)
def local_number_of_three_bits(right: Body, m: Any, index: Any, slot: Any) -> Any:
    """local.set takes the low three bits of the number of a local, without the parameters."""
    header = m.constant(I64, HEADER_WORDS)
    number = m.bit_and(I64, m.sub(I64, index, header), m.constant(I64, 7))
    is_parameter = m.compare(I64, Condition.LT_S, index, header)
    return right(m, m.select(is_parameter, index, m.add(I64, number, header)), slot)


@planted("select", witness="i64.const 1 / i64.const 2 / i32.const 2 / select")
def select_by_the_low_bit(_right: Body, m: Any, a: Any, b: Any, condition: Any) -> Any:
    """select looks at the low bit of its condition."""
    bit = m.bit_and(I32, condition, m.constant(I32, 1))
    return BY_MNEMONIC["select"].meaning(m, a, b, bit)


# --- deep operand stacks ------------------------------------------------------------------------

_DEEP = 14
"""Words of a frame that a machine of registers might keep before it has to spill."""


def _swapped_when_deep(right: Body, m: Any, a: Any, b: Any) -> Any:
    return right(m, b, a) if m.sp - m.fp > _DEEP else right(m, a, b)


add(
    Fault(
        "spilled-operands-swapped",
        "i64.sub takes its operands the wrong way round where the frame has more than 14 words.",
        ("i64.sub",),
        " / ".join(["i64.const 1"] * 16 + ["i64.const 3 / i64.sub"]),
        rows={"i64.sub": _swapped_when_deep},
    )
)


# --- traps that come late -----------------------------------------------------------------------


def _store_then_trap(right: Body, m: Any, offset: Any, address: Any, value: Any) -> Any:
    try:
        return right(m, offset, address, value)
    except Exception:
        where, end = address + offset, m.control.hp
        for byte in range(8):
            if where + byte < end:
                m.heap_store(1, where + byte, value >> 8 * byte & 0xFF)
        raise


add(
    Fault(
        "store-torn-at-the-trap",
        "i64.store that passes the bound writes the bytes that are in bounds, then traps.",
        ("i64.store",),
        heap("i64.const 60 / i64.const -1 / i64.store"),
        rows={"i64.store": _store_then_trap},
    )
)


def _pop_before_trap(_right: Body, m: Any, status: Status) -> None:
    if status is Status.TRAP and m.mnemonics[m.pc].partition(".")[2].startswith(("div", "rem")):
        m.sp -= 2


add(
    Fault(
        "operands-popped-at-the-trap",
        "A division that traps has popped its operands.",
        DIVISIONS,
        "i64.const 1 / i64.const 0 / i64.div_u",
        operations={"leave": _pop_before_trap},
    )
)
