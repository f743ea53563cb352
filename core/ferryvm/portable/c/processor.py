# SPDX-License-Identifier: Apache-2.0
"""Directives for GCC in an exported source, so that its code is as fast without special options.

GCC 12 at -O2 has vectors in few loops, and code for any x86-64 has those of 128 bits, and a call in
place of a fused product and sum. Other compilers skip the directives; clang needs none at -O2.
"""

from __future__ import annotations

import enum
from collections.abc import Collection

from ferryvm.ir.c.contraction import NO_VECTORS, may_be_fused
from ferryvm.ir.c.directive import options
from ferryvm.ir.graph import Body
from ferryvm.ir.loop.natural import Loop, find_loops
from ferryvm.isa.type import F32, F64

_INSTRUCTIONS = ("fma_", "ceil_", "floor_", "trunc_", "nearest_", "popcnt_")
"""Helpers that are calls of a library on the oldest processors."""

CLONED = "FOR_PROCESSORS"
"""The macro before the head of a function that has a version for newer processors."""

_CLONED = f"""\
/* GCC makes a second version with AVX and FMA, and the program takes that where it can. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) \\
    && defined(__OPTIMIZE__) && !defined(__FMA__) && !defined(__SANITIZE_ADDRESS__) \\
    && !defined(__SANITIZE_THREAD__)
#define {CLONED} __attribute__((target_clones("fma", "default")))
#else
#define {CLONED}
#endif
"""


class Vectors(enum.Enum):
    """The use of vectors in the loops of a function."""

    ORDINARY = ()
    """As the compiler's options say."""
    ALWAYS = ("-ftree-vectorize", "-fvect-cost-model=dynamic", "-funroll-loops")
    """Iterations are independent."""
    NEVER = (NO_VECTORS,)
    """Loops with several sums: GCC takes products apart to add them in order, which is slower. And
    what it would fuse, see `ferryvm.ir.c.contraction`."""


SELECTED = ("-fno-tree-sink", "-fno-split-paths")
"""Options with which both values of a selection are computed: GCC makes a branch of it otherwise,
which depends on data, and so is predicted wrong about every second time."""


def vectors(body: Body, loops: list[Loop]) -> Vectors:
    """The best use of vectors in a function with some loops."""
    found = Vectors.ORDINARY
    if may_be_fused([body], lambda _: loops):
        return Vectors.NEVER
    for loop in loops:
        if not loop.is_innermost:
            continue
        carried = sum(parameter.type in (F32, F64) for parameter in loop.header.parameters)
        if carried > 1:
            return Vectors.NEVER
        if not carried and _is_plain(loop):
            found = Vectors.ALWAYS
    return found


def _is_plain(loop: Loop) -> bool:
    names = {operation.name for operation in loop.operations}
    return "array_store" in names and names.isdisjoint(
        {"error_if", "array_update", "array_exchange", "array_fill", "array_move"}
    )


def directives(body: Body, helpers: Collection[str]) -> list[str]:
    """The directives of a source with this function, whose text calls some helpers."""
    loops = find_loops(body)
    use = vectors(body, loops)
    has_selection = any(o.name == "select" for loop in loops for o in loop.operations)
    used = [*use.value, *(SELECTED if has_selection else ())]
    parts = [options(*used)] if used else []
    if use is Vectors.ALWAYS or any(name.startswith(_INSTRUCTIONS) for name in helpers):
        parts.append(_CLONED)
    return parts
