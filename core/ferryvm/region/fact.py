# SPDX-License-Identifier: Apache-2.0
"""Facts of a region: all that a policy may ask of it, as plain values.

Counts are static: an instruction in a loop counts once. What is `with callees` covers the
functions that the region calls, directly or not; the rest is about its own instructions. The
region of a program has the code of all that is called in it.
"""

from __future__ import annotations

import collections
import dataclasses
import functools

from ferryvm.isa import INSTRUCTIONS, Flow, Instruction, Type
from ferryvm.isa.effect import Effect, effects
from ferryvm.region.call import call_graph
from ferryvm.region.code import FLOWS, code
from ferryvm.region.effect import Effects, code_effects, function_effects
from ferryvm.region.graph import graph
from ferryvm.region.loop import Loop
from ferryvm.region.memo import memoised
from ferryvm.region.region import Region, RegionKind
from ferryvm.verify import Verified

ITERATIONS = 10
"""Assumed trip count of a loop in the estimate of `work`."""

_LEVELS = 9
"""Loops inside each other that make a difference to `work`."""


@dataclasses.dataclass(frozen=True)
class Facts:
    """Facts of a region that are known without running it, and its hotness."""

    name: str
    """Its name: `work/loop.2.1`."""
    kind: str
    """`scope`, `loop`, `nest`, `function` or `program`."""
    function: str
    """Name of the function that it is in."""
    marked: bool
    """True if it contains a scope marked by `enter_jit`, lies in one, or is one."""
    instructions: int
    """Instructions of its own."""
    total_instructions: int
    """Instructions with callees, each function once."""
    loops: int
    """Loops in it, itself included; of a scope those that it has as a whole."""
    depth: int
    """Loops inside each other, at most: 1 for a loop without a loop inside, 0 without any."""
    calls: int
    """Instructions that call a function."""
    recursive: bool
    """True if a function that it calls, directly or not, is recursive."""
    indirect_calls: bool
    """True if it calls functions through the table, with callees."""
    host_calls: int
    """Instructions that call a host function, with callees."""
    allocates: bool
    """True if it allocates heap, with callees."""
    reads_heap: bool
    """True if it reads the heap, with callees."""
    writes_heap: bool
    """True if it writes the heap, with callees."""
    statics_read: int
    """Statics that can be read, with callees; all of them where a number is computed."""
    statics_written: int
    """Statics that can be written, likewise."""
    floats: float
    """Share of instructions, 0 to 1, that always take or give an f32 or f64."""
    integers: float
    """Share that always takes or gives integers only; control is not among them."""
    memory: float
    """Share that reads or writes the heap; these can be float or integer instructions too."""
    control: float
    """Share that jumps, branches, calls, returns or ends."""
    work: int
    """Estimated instructions of one execution from the entry: each counts ten times for every loop
    around it in the region (of a region that is a loop, of one iteration). Callees do not
    count."""
    hotness: int
    """The number of times that the profile saw its entry."""
    mix: dict[str, int]
    """Instructions by chapter of the instruction table; chapters without any are left out."""


def facts(region: Region, hotness: int = 0) -> Facts:
    """The facts of a region; `hotness` is the caller's to know."""
    verified, listing = region.verified, code(region.verified)
    opcodes = collections.Counter(listing.opcodes[pc] for pc in region.pcs)
    count = sum(opcodes.values())
    within = _with_callees(region, opcodes)
    done = region_effects(region)
    mix = collections.Counter[str]()
    for opcode, times in opcodes.items():
        mix[INSTRUCTIONS[opcode].chapter] += times

    def share(kind: str) -> float:
        return sum(times for op, times in opcodes.items() if kind in _classes(op)) / count

    inner, above = _inner_loops(region)
    return Facts(
        name=region.name,
        kind=region.kind.value,
        function=listing.names[region.function],
        marked=region.marked,
        instructions=count,
        total_instructions=sum(within.values()),
        loops=len(inner),
        depth=max((loop.depth - above for loop in inner), default=0),
        calls=_count(opcodes, Flow.CALL, Flow.CALL_INDIRECT),
        recursive=not call_graph(verified).recursive.isdisjoint(region.callees),
        indirect_calls=_count(within, Flow.CALL_INDIRECT) > 0,
        host_calls=_count(within, Flow.HOST),
        allocates=done.allocates,
        reads_heap=done.reads_heap,
        writes_heap=done.writes_heap,
        statics_read=done.all_read or len(done.numbered_reads),
        statics_written=done.all_written or len(done.numbered_writes),
        floats=share("float"),
        integers=share("integer"),
        memory=share("memory"),
        control=share("control"),
        work=_work(region, above),
        hotness=hotness,
        mix=dict(sorted(mix.items())),
    )


def region_effects(region: Region) -> Effects:
    """The effects of a region, with those of its callees."""
    done = code_effects(region.verified, region.pcs)
    for callee in region.callees:
        done |= function_effects(region.verified, callee)
    return done


def statics(region: Region) -> tuple[frozenset[int], frozenset[int]]:
    """Statics that a region can read, and those that it can write, with all that it calls."""
    done = region_effects(region)
    return done.statics_read, done.statics_written


def _with_callees(region: Region, opcodes: collections.Counter[int]) -> collections.Counter[int]:
    """The number of each opcode in a region and in what it calls; `opcodes` are its own."""
    functions = set(region.callees)
    if region.kind in (RegionKind.FUNCTION, RegionKind.PROGRAM):
        functions.update(region.functions)
    # A part of a function that calls the function again is in the function's code already.
    found = collections.Counter[int]() if region.function in functions else opcodes.copy()
    for function in functions:
        found.update(_opcodes(region.verified, function))
    return found


@memoised
def _opcodes(verified: Verified, function: int) -> collections.Counter[int]:
    """Number of occurrences of each opcode in a function."""
    listing = code(verified)
    found = collections.Counter[int]()
    for block in graph(verified, function).blocks.values():
        found.update(listing.opcodes[block.first : block.last + 1])
    return found


def _count(opcodes: collections.Counter[int], *flows: Flow) -> int:
    return sum(times for opcode, times in opcodes.items() if FLOWS[opcode] in flows)


@functools.cache
def _classes(opcode: int) -> frozenset[str]:
    """The classes of an instruction: float, integer, memory, control."""
    row = INSTRUCTIONS[opcode]
    found = set()
    if row.flow is not Flow.NEXT:
        found.add("control")
    elif types := _types(row):
        found.add("float" if any(t.is_float for t in types) else "integer")
    if effects(row) & {Effect.READS_HEAP, Effect.WRITES_HEAP}:
        found.add("memory")
    return frozenset(found)


def _types(row: Instruction) -> set[Type]:
    """Types that an instruction takes or gives whatever its immediate; open ones are not said."""
    return {operand for operand in row.pops + row.pushes if isinstance(operand, Type)}


def _inner_loops(region: Region) -> tuple[list[Loop], int]:
    """Loops that are in a region as a whole, and how many there are around it."""
    if region.loop is not None:
        blocks = region.loop.blocks
        return [loop for loop in region.graph.loops if loop.head in blocks], region.loop.depth - 1
    if region.kind is not RegionKind.SCOPE:
        return [loop for f in region.functions for loop in graph(region.verified, f).loops], 0
    own, pcs = region.graph, region.pcs
    inner = [
        loop
        for loop in own.loops
        if loop.head in pcs
        and all(first in pcs and own.blocks[first].last in pcs for first in loop.blocks)
    ]
    around = own.loop_at(region.entry)
    while around in inner:  # the scope begins inside a loop that is all in it
        around = around.parent if around else None
    return inner, around.depth if around else 0


def _work(region: Region, above: int) -> int:
    """The estimate; `above` is the number of loops around the region."""
    base = above + (region.loop is not None)  # one iteration of the region's own loop
    found = 0
    for function in region.functions:
        own = graph(region.verified, function)
        for first, block in own.blocks.items():
            loop = own.loop(first)
            level = max(0, (loop.depth if loop else 0) - base)
            count = sum(pc in region.pcs for pc in range(first, block.last + 1))
            found += count * ITERATIONS ** min(level, _LEVELS)
    return found
