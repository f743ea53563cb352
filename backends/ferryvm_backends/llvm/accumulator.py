# SPDX-License-Identifier: Apache-2.0
"""Accumulators of unrolled sums, which LLVM's vectoriser of straight-line code has to meet first in
their loop.

    loop(%a, %b, %c, %d):  %a' = %a + x[i], %b' = %b + x[i + 1], …     rows of a vector of four
    exit(%a, %b, %c, %d):  (%a + %c) + (%b + %d)                       pairs

LLVM goes from a function's end to its start. From the two operands of the last sum it would make
pairs, and of what they are computed from, so that the loop runs in vectors of two. A fence in front
of the sums hides what their operands come from: the loop is seen for itself, and all accumulators
become lanes of one vector. (Larsen, Amarasinghe: Exploiting Superword Level Parallelism with
Multimedia Instruction Sets, PLDI 2000.)
"""

from __future__ import annotations

from ferryvm.ir.graph import Body, Parameter
from ferryvm.ir.loop.natural import find_loops
from ferryvm.isa.type import F64

FEWEST = 4
"""Accumulators of a loop: of fewer, pairs are the largest vectors. Only those of f64 form pairs,
since LLVM makes no vectors of less than 128 bits."""


def left_accumulators(body: Body) -> set[Parameter]:
    """The parameters of blocks behind loops to which a loop's exits pass its own accumulators."""
    found: set[Parameter] = set()
    for loop in find_loops(body):
        own = {parameter for parameter in loop.header.parameters if parameter.type is F64}
        if len(own) < FEWEST:
            continue
        for edge in loop.exits:
            pairs = zip(edge.block.parameters, edge.arguments, strict=True)
            passed = {parameter for parameter, argument in pairs if argument in own}
            if len(passed) >= FEWEST:
                found |= passed
    return found
