# SPDX-License-Identifier: Apache-2.0
"""Traps: the errors of a program that end it.

A trap is a value shared by every backend. Its number is part of the control block's layout (version
`ferryvm.machine.control.ABI_VERSION`), so numbers are never reused.
"""

from __future__ import annotations

import enum


class Trap(enum.IntEnum):
    """Trap kinds; `message` is the text for users."""

    NONE = 0
    UNREACHABLE = 1
    INTEGER_DIVIDE_BY_ZERO = 2
    INTEGER_OVERFLOW = 3
    INVALID_CONVERSION = 4
    MEMORY_OUT_OF_BOUNDS = 5
    INDEX_OUT_OF_BOUNDS = 6
    STATIC_OUT_OF_BOUNDS = 7
    STACK_OVERFLOW = 8
    HEAP_EXHAUSTED = 9
    UNDEFINED_ELEMENT = 10
    SIGNATURE_MISMATCH = 11
    UNCAUGHT_EXCEPTION = 12
    INVALID_RECORD = 13
    NULL_REFERENCE = 14
    CAST_FAILURE = 15
    READ_ONLY_ARRAY = 16
    NEGATIVE_COUNT = 17
    INVALID_LAUNCH = 18
    BARRIER_DIVERGENCE = 19
    BARRIER_OUTSIDE = 20

    @property
    def message(self) -> str:
        """The message for users."""
        return _MESSAGES[self]


_MESSAGES = {
    Trap.NONE: "no trap",
    Trap.UNREACHABLE: "unreachable code was reached",
    Trap.INTEGER_DIVIDE_BY_ZERO: "integer division by zero",
    Trap.INTEGER_OVERFLOW: "integer overflow",
    Trap.INVALID_CONVERSION: "conversion of NaN to an integer",
    Trap.MEMORY_OUT_OF_BOUNDS: "heap access out of bounds",
    Trap.INDEX_OUT_OF_BOUNDS: "index out of bounds",
    Trap.STATIC_OUT_OF_BOUNDS: "static index out of bounds",
    Trap.STACK_OVERFLOW: "stack overflow",
    Trap.HEAP_EXHAUSTED: "heap exhausted",
    Trap.UNDEFINED_ELEMENT: "function table index out of bounds",
    Trap.SIGNATURE_MISMATCH: "function of another signature called through the table",
    Trap.UNCAUGHT_EXCEPTION: "uncaught exception",
    Trap.INVALID_RECORD: "record of no exception thrown",
    Trap.NULL_REFERENCE: "null reference",
    Trap.CAST_FAILURE: "reference cast to a type that the object is not of",
    Trap.READ_ONLY_ARRAY: "store into a read-only array",
    Trap.NEGATIVE_COUNT: "negative number of items",
    Trap.INVALID_LAUNCH: "record of another launch",
    Trap.BARRIER_DIVERGENCE: "items do not all wait at one barrier",
    Trap.BARRIER_OUTSIDE: "barrier outside of a launch",
}
