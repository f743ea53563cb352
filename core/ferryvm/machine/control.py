# SPDX-License-Identifier: Apache-2.0
"""The control block: the record through which engines and backends transfer control.

It is a C struct, so that native code, a device buffer and Python see the same bytes. Stack
positions are word numbers and heap positions byte offsets, never addresses: the first half (up to
`instructions`) has all registers of a program and can be written to a file. The second half has
addresses and limits of this process. docs/architecture.md has the table.
"""

from __future__ import annotations

import ctypes
import enum
import struct

__all__ = [
    "ABI_VERSION",
    "DESCRIPTOR_WORDS",
    "MOST_AHEAD",
    "REGISTER_BYTES",
    "SCRATCH_WORDS",
    "Ahead",
    "ControlBlock",
    "Status",
]

ABI_VERSION = 10
"""Version of the layout of the control block."""


SCRATCH_WORDS = 3
"""Scratch words of the control block for compiled code; they are not part of the state."""


UNLIMITED = (1 << 63) - 1
"""Practically unlimited fuel, for counting without a limit."""


class Status(enum.IntEnum):
    """The reason for which a backend returned control; docs/architecture.md defines `pc`
    for each."""

    RUNNING = 0
    HALT = 1
    """The program ended; pc is the `halt` instruction, its result on top of the stack."""
    LEAVE = 2
    """The backend cannot continue at pc; another one can."""
    HOST = 3
    """A host call must be performed: pc is its instruction, arguments are on the stack."""
    TRAP = 4
    """pc is the instruction that trapped; the state is as before it."""
    GUARD = 5
    """A speculation failed at pc; the state is as before it."""
    GROW = 6
    """pc is an allocation that needs `wanted` bytes of heap; the state is as before it."""
    INTERRUPTED = 7
    """The interrupt flag was set; pc is the next instruction."""
    FUEL = 8
    """Fuel ran out; pc is the next instruction."""
    HOT = 9
    """A loop head or function entry became hot; pc is that site."""
    SLICED = 10
    """The time slice of compiled code ended; pc is the loop head or function entry at which it
    continues."""
    LOST = 11
    """Compiled code cannot run any more, for the reason in `Code.lost`; the state is as at its
    entry, or at its last exit."""
    LONG = 12
    """Quick code has run for long, see `Code.long`; pc is the loop head or function entry at which
    to continue."""
    THROW = 13
    """An exception needs a handler: pc is the instruction that throws it; the state is as before
    it."""
    ALLOCATE = 14
    """pc is an allocation of `wanted` bytes for an object of type `wanted_type` that does not fit,
    state is as before it."""
    LAUNCH = 15
    """pc is a `launch.test` whose range is done and whose record has more, or a `launch.barrier` at
    which the item is to wait; the state is as before it."""
    PARALLEL = 16
    """pc is a `launch.test` that compiled code came to with more items left than the launch's word
    in `launches`: to run them out of order may pay; the state is as before it."""


class ControlBlock(ctypes.Structure):
    """Registers and bindings of one execution. Sizes are in bytes unless stated otherwise."""

    abi_version: int
    status: int
    trap: int
    exit_id: int
    pc: int
    sp: int
    fp: int
    hp: int
    fuel: int
    instructions: int
    interrupt: int
    reserved: int
    wanted: int
    heap_capacity: int
    heap_limit: int
    static_count: int
    table_size: int
    statics: int
    stack: int
    stack_end: int
    heap: int
    code: int
    functions: int
    table: int
    counters: int
    entries: int
    originals: int
    scratch: ctypes.Array[ctypes.c_uint64]
    host_stack: int
    natives: int
    objects: int
    object_top: int
    object_end: int
    prepared: int
    prepared_bytes: int
    wanted_type: int
    types: int
    ahead: int
    launches: int

    _fields_ = [
        ("abi_version", ctypes.c_uint32),  # ABI_VERSION
        ("status", ctypes.c_uint32),  # a Status
        ("trap", ctypes.c_uint32),  # a Trap, when status is TRAP
        ("exit_id", ctypes.c_uint32),  # number of the host import or guard at which code left
        ("pc", ctypes.c_uint64),  # instruction number
        ("sp", ctypes.c_uint64),  # words of the stack in use
        ("fp", ctypes.c_uint64),  # word number of the running function's frame
        ("hp", ctypes.c_uint64),  # bytes of the heap in use
        ("fuel", ctypes.c_int64),  # instructions that may still complete, when counting
        (
            "instructions",
            ctypes.c_uint64,
        ),  # completed in counting runs; the engine adds them up
        ("interrupt", ctypes.c_uint32),  # set by another thread to stop the program, usually to 1
        ("reserved", ctypes.c_uint32),
        ("wanted", ctypes.c_uint64),  # bytes requested, when GROW or ALLOCATE
        ("heap_capacity", ctypes.c_uint64),  # bytes usable now
        ("heap_limit", ctypes.c_uint64),  # limit of growth, in bytes
        ("static_count", ctypes.c_uint64),  # words
        ("table_size", ctypes.c_uint64),  # entries of the function table
        ("statics", ctypes.c_uint64),  # addresses from here on
        ("stack", ctypes.c_uint64),
        ("stack_end", ctypes.c_uint64),
        ("heap", ctypes.c_uint64),
        ("code", ctypes.c_uint64),  # the artifact, in the backend's own form
        ("functions", ctypes.c_uint64),  # descriptors, DESCRIPTOR_WORDS words each
        ("table", ctypes.c_uint64),  # function numbers, a word each
        ("counters", ctypes.c_uint64),  # words by pc: remaining counts of the count cells
        ("entries", ctypes.c_uint64),  # words by pc: addresses of the functions installed
        ("originals", ctypes.c_uint64),  # by pc: replaced by cells, in the backend's form
        ("scratch", ctypes.c_uint64 * SCRATCH_WORDS),  # for compiled code while it runs
        ("host_stack", ctypes.c_uint64),  # lowest usable address of the thread's stack; or 0
        ("natives", ctypes.c_uint64),  # rows by host import, see `ferryvm.machine.native`
        ("objects", ctypes.c_uint64),  # address of the object space
        ("object_top", ctypes.c_uint64),  # bytes of the object space in use
        ("object_end", ctypes.c_uint64),  # bytes usable before a collection
        ("prepared", ctypes.c_uint64),  # place of elements for the array requested; or 0
        ("prepared_bytes", ctypes.c_uint64),  # bytes of these elements, with padding
        ("wanted_type", ctypes.c_uint64),  # type number, when status is ALLOCATE
        ("types", ctypes.c_uint64),  # type rows, see `ferryvm.isa.object`
        ("ahead", ctypes.c_uint64),  # address of an `Ahead`, or 0
        ("launches", ctypes.c_uint64),  # words by launch, see `PARALLEL`; or 0
    ]


class Ahead(enum.IntEnum):
    """Words where `ahead` is: places of zeroed elements, all of one size, that the engine has
    prepared before they are asked for. Code that finds `prepared` unsuitable may take the last one
    of them as `prepared`, with the size as `prepared_bytes`, and reduce the number, instead of
    leaving with ALLOCATE."""

    COUNT = 0
    BYTES = 1
    """Bytes of each, with padding."""
    PLACES = 2
    """The first place."""


MOST_AHEAD = 14
"""Places, at most."""

DESCRIPTOR_WORDS = 8
"""Words of a function descriptor: the `FunctionField`s, then zeros (a power of two in all)."""

REGISTER_BYTES: int = vars(ControlBlock)["interrupt"].offset
"""Bytes of the first half of the control block: the registers."""

PC, SP, FP = (vars(ControlBlock)[name].offset // 8 for name in ("pc", "sp", "fp"))
"""Words of the control block, in `Memory.control_words`."""

STATUS, EXIT_ID, INTERRUPT = (
    vars(ControlBlock)[name].offset // 4 for name in ("status", "exit_id", "interrupt")
)
"""Half words of the control block, in `Memory.control_halves`."""

CALL_REGISTERS = slice(vars(ControlBlock)["status"].offset, vars(ControlBlock)["fp"].offset + 8)
"""Bytes of the control block, in `Memory.control_bytes`: status, trap, exit_id, pc, sp, fp. A call
from outside saves them, and goes back to them by one store, which no signal handler interrupts."""

FORM_FIELDS = ("code", "counters", "entries", "originals")
"""The fields by which a form of an interpreter's code, with or without counting, is bound to a
machine."""

CALL_FORMAT = struct.Struct("<IIIQQQ")
"""The format of these bytes."""
