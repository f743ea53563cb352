# SPDX-License-Identifier: Apache-2.0
"""The region IR as C text, in the dialect of a compiler: C11 here, OpenCL C one day.

    Module ─> structure: the nesting of blocks ─> function: statements ─> expression: values
                                                          └─> module: all of it, as one text

The text refers to fields of the control block and to statuses by name;
`ferryvm.machine.declaration` declares both.
"""

from ferryvm.ir.c.c11 import C11
from ferryvm.ir.c.context import (
    ACTIVITY,
    CROWDED,
    ENTRIES,
    FAILURES,
    INSTRUCTIONS,
    NANOSECONDS,
    STACK,
    UNFINISHED,
    Choices,
)
from ferryvm.ir.c.dialect import Dialect
from ferryvm.ir.c.module import ENTRY, Resumed, guard_pcs, module_text

__all__ = [
    "ACTIVITY",
    "C11",
    "CROWDED",
    "ENTRIES",
    "ENTRY",
    "FAILURES",
    "INSTRUCTIONS",
    "NANOSECONDS",
    "STACK",
    "UNFINISHED",
    "Choices",
    "Dialect",
    "Resumed",
    "guard_pcs",
    "module_text",
]
