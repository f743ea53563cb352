# SPDX-License-Identifier: Apache-2.0
"""Products that GCC may fuse with sums, although it is told not to.

Where neighbouring results are the difference and the sum of products, as the parts of a product of
complex numbers are, GCC 12's vectoriser takes one instruction for both (FMADDSUB), which rounds once:
also with `-ffp-contract=off`, and at -O2. Without the vectoriser it does not. Clang is right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ferryvm.ir.c.directive import options
from ferryvm.ir.graph import Body, Operation
from ferryvm.ir.loop.natural import Loop, find_loops
from ferryvm.isa.type import F32, F64

NO_VECTORS = "-fno-tree-vectorize"

WITHOUT_VECTORS = options(NO_VECTORS)
"""For the beginning of a text: GCC fuses nothing in it."""

_FLOATS = frozenset({F32, F64})


def may_be_fused(bodies: Iterable[Body], loops: Callable[[Body], list[Loop]] = find_loops) -> bool:
    """True if functions that may be inlined into each other subtract products, add products, and
    have neighbouring results: two stores, or two floats that a loop passes on. `loops`: those of a
    body."""
    adds = subtracts = False
    results = 0
    for body in bodies:
        for operation in body.operations:
            adds |= operation.name == "fadd" and _has_product(operation)
            subtracts |= operation.name == "fneg"
            subtracts |= operation.name == "fsub" and _has_product(operation)
        results += _neighbours(body, loops(body))
    return adds and subtracts and results > 1


def _has_product(operation: Operation) -> bool:
    return any(isinstance(v, Operation) and v.name == "fmul" for v in operation.arguments)


def _neighbours(body: Body, all_loops: list[Loop]) -> int:
    """The largest number of results in an inner loop, or outside of these: loops are often there
    twice, with their checks and without."""
    loops = [loop for loop in all_loops if loop.is_innermost]
    inside = {block for loop in loops for block in loop.members}
    rest = [o for block in body.blocks if block not in inside for o in block.operations]
    stored = [_stores(operations) for operations in (rest, *(loop.operations for loop in loops))]
    passed = [sum(p.type in _FLOATS for p in loop.header.parameters) for loop in loops]
    return max([*stored, *passed])


def _stores(operations: Iterable[Operation]) -> int:
    return sum("store" in o.name or o.name.startswith("set_static") for o in operations)
