# SPDX-License-Identifier: Apache-2.0
"""Recursion on devices, whose language does not support it.

    region ─> f ─> f_1 ─> … ─> f_k   the deepest copy leaves: all frames are written, and control is
       ▲                         │   at the entry of the pending call
       └─── resume_ENTRY <───────┤
            resume_AFTER <───────┘   the caller's return point after that call

The program's own stack is in memory, so if a call is too deep for the copies the kernel unwinds
them and continues as an interpreter would, at the pc that it has reached.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from ferryvm.ir.graph import Body, Module, Operation
from ferryvm.region.region import Region, RegionKind

_LARGEST = {True: 8000, False: 600}
"""Operations of all copies, inlined into each other and into whatever calls them as drivers do; on
a processor, and on others, whose drivers take long for much code."""
_MOST_LEVELS = 6
_MOST_PLACES = 40
"""The largest number of points at which a kernel can continue by itself; with more, it leaves to
the interpreter instead."""

Improved = Callable[[Region], Module]
"""The IR of a region."""


def resumed(region: Region, module: Module, improved: Improved) -> dict[int, Module]:
    """The regions at which a kernel can resume by itself, by pc; empty without recursion."""
    found: dict[int, Module] = {}
    worklist = _places(module)
    while worklist and len(found) < _MOST_PLACES:
        pc = worklist.pop()
        part = _part(region, pc)
        if part is not None and pc not in found:
            found[pc] = improved(part)
            worklist |= _places(found[pc]) - found.keys()
    return {} if worklist else dict(sorted(found.items()))


def levels(module: Module, places: int, is_cpu: bool) -> int:
    """Number of copies of recursive functions; 0 without such functions."""
    recursing = _recursing(module)
    if not recursing:
        return 0
    bodies = [module.functions[number] for number in recursing]
    size = max(sum(len(block.operations) + 1 for block in body.blocks) for body in bodies)
    calls = max(sum(_recurs(o, recursing) for o in body.operations) for body in bodies)
    total, count = size, 1
    while count < _MOST_LEVELS and (total * calls + size) * (places + 1) <= _LARGEST[is_cpu]:
        total = total * calls + size
        count += 1
    return count


def _recursing(module: Module) -> frozenset[int]:
    return frozenset(number for number, body in module.functions.items() if body.recurs)


def _recurs(operation: Operation, recursing: frozenset[int]) -> bool:
    """True if it calls a function that recurs."""
    match operation.name:
        case "call":
            return operation.static[0] in recursing
        case "call_indirect":
            candidates = operation.static[0]
            assert isinstance(candidates, tuple)
            return not recursing.isdisjoint(candidates)
    return False


def _places(module: Module) -> set[int]:
    """pcs at which control may come out of the copies."""
    recursing = _recursing(module)
    found = {_entry(module.functions[number]) for number in recursing}
    for body in module.bodies:
        # One of no instruction is the whole region, which then returns by itself.
        found |= {o.pc + 1 for o in body.operations if o.pc >= 0 and _recurs(o, recursing)}
    return found


def _entry(body: Body) -> int:
    return body.blocks[0].pc


def _part(region: Region, pc: int) -> Region | None:
    """The region with which a kernel continues at a pc; None if it is outside of its own."""
    function = region.verified.owner(pc)
    if function != region.function:
        return Region(region.verified, RegionKind.FUNCTION, function, pc)
    if pc in region.pcs:
        return dataclasses.replace(region, entry=pc)
    return None
