# SPDX-License-Identifier: Apache-2.0
"""Functions that only trap: the engine shows their names, with their arguments, in place of the
message of the trap."""

from __future__ import annotations

from ferryvm.isa.type import I64
from ferryvm.listing import FunctionListing
from ferryvm.skeleton.writer import Writer

UNEQUAL = "unequal lengths of "
TOO_MANY = "too many items of "
NO_SIZE = "the size of a group is at least 1 in groups of "
STATED = (UNEQUAL, TOO_MANY, NO_SIZE)
"""The starts of the names of such functions, which nothing else has in a program of a front end."""


def stated_trap(name: str, count: int) -> FunctionListing:
    """A function that takes so many numbers, and traps."""
    writer = Writer(name, [I64] * count)
    writer.emit("trap")
    return writer.endless()
