# SPDX-License-Identifier: Apache-2.0
"""Loops of items that end after a number of iterations which the host knows before the launch.

A loop that may go on for ever is polled, which keeps a GPU's compiler from unrolling it. Where all
loops of an item count up to values that all items share, these bound the iterations of each loop by
a product, over the loop and those around it. If the sum is small enough, the kernel is one without
polls.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ferryvm.ir.graph import Body, Constant, Module, Operation, Value
from ferryvm.ir.loop.induction import find_induction_variable
from ferryvm.ir.loop.natural import find_loops
from ferryvm.isa.type import I64, signed

Bound = tuple[int | None, int]
"""The number of an argument of the kernel and what is to be added; None: that alone."""

MOST_ITERATIONS = 1 << 26
"""Iterations of an item that is not polled, at most: so many take a fraction of a second."""


def loop_bounds(module: Module, function: int) -> tuple[tuple[Bound, ...], ...] | None:
    """The bounds of each loop of the items' function and of the loops around it; None if one has
    none that is known, or the function calls others."""
    body = module.functions[function]
    if len(module.functions) > 1:
        return None
    own: list[Bound] = []
    loops = find_loops(body)
    for loop in loops:
        variable = find_induction_variable(loop)
        if variable is None or not _counts_up(variable.start, variable.step):
            return None
        bound = argument_bound(variable.bound, body)
        if bound is None:
            return None
        own.append(bound)
    return tuple(
        tuple(
            bound for bound, around in zip(own, loops, strict=True) if loop.blocks <= around.blocks
        )
        for loop in loops
    )


def _counts_up(start: Value, step: Value) -> bool:
    """True if a variable starts at 0 or above, and rises without wrapping at bounds that are small
    enough."""
    if not (isinstance(start, Constant) and isinstance(step, Constant)):
        return False
    return signed(I64, start.bits) >= 0 and 1 <= signed(I64, step.bits) <= MOST_ITERATIONS


def argument_bound(value: Value, body: Body) -> Bound | None:
    """A value that is an argument that items share, or differs from it by a constant."""
    if isinstance(value, Constant):
        return None, signed(I64, value.bits)
    shared = body.blocks[0].parameters[1:]
    if value in shared and value.type is I64:
        return [*shared].index(value), 0
    if isinstance(value, Operation) and value.name in ("add", "sub"):
        base, more = (argument_bound(each, body) for each in value.arguments)
        if base is not None and more is not None and more[0] is None:
            return base[0], base[1] + (more[1] if value.name == "add" else -more[1])
    return None


def is_short(bounds: Sequence[Sequence[Bound]], arguments: Sequence[int]) -> bool:
    """True if items with these arguments have few enough iterations."""

    def value(bound: Bound) -> int:
        number, more = bound
        return max(more + (0 if number is None else signed(I64, arguments[number])), 1)

    return sum(math.prod(map(value, nest)) for nest in bounds) <= MOST_ITERATIONS
