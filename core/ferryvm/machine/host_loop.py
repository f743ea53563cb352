# SPDX-License-Identifier: Apache-2.0
"""Host calls performed between runs of native code, by native code.

    run ──> HOST ──> the call is one of the rows ──> performing[exit_id]() ──┐
     ▲               └─ it is not, or an interrupt ──> return                │
     └───────────────────────────────────────────────────────────────────────┘

`ferryvm.engine.driver` does the same in Python, which takes longer than a short host function, and
defines it. Each call is performed at its place, with the machine stopped there, so whatever it
raises finds the state that it finds with the driver's own loop.
"""

from __future__ import annotations

import ctypes
import enum

ROWS = 64
"""Rows of call sites: the one of a pc is at its remainder."""


class CallRow(enum.IntEnum):
    """Words of a row, by which native code knows a state that the engine's checks have passed."""

    PC = 0
    SIZE = 1
    """Words from fp to sp."""
    NUMBER = 2
    """The import."""


NO_PC = (1 << 64) - 1
"""The pc of an empty row."""


class HostLoopRequest(ctypes.Structure):
    """The input and output of the native function."""

    run: int
    resume: int
    map: int
    control: int
    performing: int
    rows: int
    stack_words: int
    drives: int
    counting: int
    failed: int

    _fields_ = [
        ("run", ctypes.c_uint64),  # a C function as `ferryvm.backend.DirectEntry.run`
        ("resume", ctypes.c_uint64),  # a C function as `ferryvm.machine.item_map.RESUME`, or 0
        ("map", ctypes.c_uint64),  # its first argument
        ("control", ctypes.c_uint64),
        ("performing", ctypes.c_uint64),  # a list of callables without arguments, by import
        ("rows", ctypes.c_uint64),  # `ROWS` rows of `CallRow`
        ("stack_words", ctypes.c_uint64),
        (
            "drives",
            ctypes.c_uint64,
        ),  # address of a word that changes when a call enters the machine
        ("counting", ctypes.c_uint64),  # fuel of a host call
        ("failed", ctypes.c_uint64),  # result: 1 if a call has raised
    ]


PERFORMED = 1 << 31
"""Result behind a call that has entered the machine, for which another form may be bound since; no
`Status`."""

HOST_LOOP = ctypes.PYFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p)
"""`(HostLoopRequest *)`, with the interpreter lock, which it releases while the machine runs: run
the machine, and perform its host calls. The status with which it was left, HOST at a call that is
not performed yet or that has raised; or `PERFORMED`."""
