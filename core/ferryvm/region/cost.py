# SPDX-License-Identifier: Apache-2.0
"""The cost of compiling a region, known before lifting; and the parts of a region within limits.

Time and memory of a compiler are proportional to two numbers: instructions, and the words of frames
at exits and joins, since each of them is a value that must be available there.
"""

from __future__ import annotations

import collections
import dataclasses

from ferryvm.cost import Cost
from ferryvm.isa import INSTRUCTIONS
from ferryvm.isa.effect import Effect, effects
from ferryvm.region.call import call_graph
from ferryvm.region.code import code
from ferryvm.region.effect import code_effects
from ferryvm.region.graph import graph
from ferryvm.region.memo import memoised
from ferryvm.region.region import Region, RegionKind
from ferryvm.verify import Verified

__all__ = ["cost", "too_costly", "within"]

_LEAVING = frozenset(
    [
        Effect.TRAPS,
        Effect.GROWS,
        Effect.LEAVES_FOR_OBJECTS,
        Effect.CALLS,
        Effect.CALLS_HOST,
        Effect.HALTS,
    ]
)
_LEAVES = [not _LEAVING.isdisjoint(effects(row)) for row in INSTRUCTIONS]
"""For each opcode, True if code of the instruction may leave."""

_WHOLE = (RegionKind.FUNCTION, RegionKind.PROGRAM)
"""Kinds of regions that have all of a function."""


def cost(region: Region) -> Cost:
    """The cost of a region with its callees, each function once."""
    functions = set(region.callees)
    if region.kind in _WHOLE:
        functions.update(region.functions)
    found = Cost() if region.function in functions else _own_cost(region)
    return sum((_function_cost(region.verified, each) for each in functions), found)


def too_costly(region: Region, limits: Cost | None) -> str | None:
    """The reason that a compiler with these limits refuses a region; None if it does not."""
    return cost(region).beyond(limits) if limits is not None else None


def within(region: Region, limits: Cost) -> Region | None:
    """The region with as many of its callees as the limits allow: it leaves at calls of the others.
    None if it is too large by itself, or begins with a call that it would leave at.

    Functions that are called early are taken first, each with at most a quarter of the limits:
    mutually recursive functions in one unit call each other fast.
    """
    verified, calls = region.verified, call_graph(region.verified)
    if region.kind in _WHOLE:
        total = _function_cost(verified, region.function)
        worklist = collections.deque(calls.direct[region.function])
        taken = {region.function}
    else:
        total = _own_cost(region)
        worklist = collections.deque(
            sorted({callee for pc in region.pcs for callee in calls.targets(pc)})
        )
        taken = set()
    if total.beyond(limits) is not None:
        return None
    most = Cost(limits.instructions // 4, limits.words // 4, limits.frame)
    outside: set[int] = set()
    while worklist:
        function = worklist.popleft()
        if function in taken or function in outside:
            continue
        own = _function_cost(verified, function)
        if own.beyond(most) is not None or (total + own).beyond(limits) is not None:
            outside.add(function)
            continue
        total += own
        taken.add(function)
        worklist += calls.direct[function]
    # Code whose first instruction calls a function outside would leave at once.
    entries = [function.entry for function in verified.program.functions]
    own_function = region.function if region.kind in _WHOLE else None
    while idle := {
        function
        for function in taken - {own_function}
        if not outside.isdisjoint(calls.targets(entries[function]))
    }:
        taken -= idle
        outside |= idle
    if not outside.isdisjoint(calls.targets(region.entry)):
        return None
    return dataclasses.replace(region, outside=frozenset(outside))


def _own_cost(region: Region) -> Cost:
    return _cost(region.verified, region.function, sorted(region.pcs), len(region.blocks))


@memoised
def _function_cost(verified: Verified, function: int) -> Cost:
    blocks = graph(verified, function).blocks
    pcs = [pc for first in blocks for pc in range(first, blocks[first].last + 1)]
    return _cost(verified, function, pcs, len(blocks))


def _cost(verified: Verified, function: int, pcs: list[int], blocks: int) -> Cost:
    opcodes = code(verified).opcodes
    width = len(verified.program.frame_types(function))
    width += len(code_effects(verified, pcs).statics_written)
    depths = [verified.depth(pc) for pc in pcs if _LEAVES[opcodes[pc]]]
    words = width * (len(depths) + blocks) + sum(depths)
    return Cost(len(pcs), words, width + max(depths, default=0))
