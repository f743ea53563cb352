# SPDX-License-Identifier: Apache-2.0
"""The source file of an exported function in C11: directives, helpers, and the function."""

from __future__ import annotations

from ferryvm.ir.c.c11 import C11
from ferryvm.ir.c.context import Choices, PrintingContext
from ferryvm.ir.c.function_helper import function_definitions
from ferryvm.ir.c.module import no_comment
from ferryvm.portable.c.lane_printer import LanePrinter
from ferryvm.portable.c.processor import CLONED, directives
from ferryvm.portable.c.source import origin
from ferryvm.portable.plain import PlainFunction

_CONTRACTION = """\
/* A product and a sum are two roundings: compile with -ffp-contract=off, too. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("-ffp-contract=off")
#endif
"""


def c_text(function: PlainFunction) -> str:
    """The source file of an exported function."""
    name = function.interface.name
    shared = PrintingContext(C11, Choices(), False, [], {}, no_comment)
    text = LanePrinter(shared, function).text()
    applied = function_definitions(C11, shared.helpers)
    directed = directives(function.body, shared.helpers)
    if any(CLONED in each for each in directed):
        text = f"{CLONED}\n{text}"
    parts = [
        f"/* {origin(function)} */\n",
        f'#include "{name}.h"\n',
        C11.prelude,
        _CONTRACTION,
        *directed,
        *C11.definitions(shared.helpers),
        *applied,
        text,
    ]
    return "\n".join(part for part in parts if part)
