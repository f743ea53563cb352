# SPDX-License-Identifier: Apache-2.0
"""Facts of a region that policies can test, as plain values.

Counts are static: an instruction in a loop counts once. Facts `with callees` cover the functions
that the region calls, directly or not; the others cover its own instructions. The region of a
program includes the code of all functions that it calls. Of a launch the shares and `mix` are those
with callees, since its items are calls.
"""

from __future__ import annotations

import collections
import functools

from ferryvm import record
from ferryvm.isa import BY_MNEMONIC, INSTRUCTIONS, Flow, Instruction, Type
from ferryvm.isa.effect import Effect, effects
from ferryvm.region.call import call_graph
from ferryvm.region.code import FLOWS, code
from ferryvm.region.effect import Effects, code_effects, function_effects
from ferryvm.region.graph import graph
from ferryvm.region.loop import Loop
from ferryvm.region.memo import memoised
from ferryvm.region.region import Region, RegionKind
from ferryvm.verify import Verified

_BEGIN = BY_MNEMONIC["launch.begin"].opcode

ITERATIONS = 10
"""Assumed trip count of a loop in the estimate of `work`."""

_LEVELS = 9
"""The number of nested loops that make a difference to `work`."""


@record.dataclass(frozen=True)
class Facts:
    """Static facts of a region, and its hotness."""

    name: str
    """Its name: `work/loop.2.1`."""
    kind: str
    """`scope`, `loop`, `nest`, `launch`, `function` or `program`."""
    function: str
    """Name of the function that it is in."""
    marked: bool
    """True if it contains a scope marked by `enter_jit`, is inside one, or is one."""
    instructions: int
    """Number of its own instructions."""
    total_instructions: int
    """Number of instructions with callees, each function once."""
    loops: int
    """Number of loops in it, itself included; for a scope those that it contains completely."""
    depth: int
    """The largest depth of nested loops: 1 for a loop without inner loops, 0 without loops."""
    calls: int
    """Number of instructions that call a function."""
    recursive: bool
    """True if a function that it calls, directly or not, is recursive."""
    indirect_calls: bool
    """True if it calls functions through the table, with callees."""
    host_calls: int
    """Number of instructions that call a host function, with callees."""
    launches: int
    """Number of instructions that begin a launch, with callees; a launch is not counted for
    itself."""
    allocates: bool
    """True if it allocates heap, with callees."""
    reads_heap: bool
    """True if it reads the heap, with callees."""
    writes_heap: bool
    """True if it writes the heap, with callees."""
    statics_read: int
    """Number of statics that can be read, with callees; all of them if an index is computed."""
    statics_written: int
    """Number of statics that can be written, likewise."""
    floats: float
    """Share of instructions, 0 to 1, with an f32 or f64 operand or result for every immediate; this
    and the next three of a launch with callees."""
    integers: float
    """Share of instructions with integer operands and results only; control is excluded."""
    memory: float
    """Share of instructions that read or write the heap; they can be float or integer instructions,
    too."""
    control: float
    """Share of instructions that jump, branch, call, return or end."""
    work: int
    """Estimated instructions of one execution from the entry: each counts ten times for every loop
    around it in the region (of a region that is a loop, of one iteration). Callees do not
    count."""
    hotness: int
    """The number of entries that the profile counted."""
    mix: dict[str, int]
    """Instructions by chapter of the instruction table, of a launch with callees; chapters without
    any are left out."""
    items: int = 0
    """Items of a launch, as the program last had it when its code, or code of its items, got hot; 0
    if it has not, and for other regions."""
    item_work: int = 0
    """Instructions of one item of a launch, with callees: each counts as often as the profile
    counted the loop or function around it, or ten times for each loop if it did not. 0 for other
    regions."""
    bytes_read: int = 0
    """Bytes of the arrays among the arguments of a launch that its items may read, as the program
    last had them; 0 likewise."""
    bytes_written: int = 0
    """Bytes of the arrays that they may write, likewise."""
    bytes_resident: int = 0
    """Bytes of the arrays among the arguments of a launch of which a device with memory of its own
    has copies, likewise."""
    resident_on: str = ""
    """The device that has copies of most of these; empty if none has any."""


@record.dataclass(frozen=True)
class LaunchProfile:
    """The facts of a launch that a program has shown; see `Facts`."""

    items: int
    item_work: int
    bytes_read: int
    bytes_written: int
    bytes_resident: int = 0
    resident_on: str = ""


def facts(region: Region, hotness: int = 0, launch: LaunchProfile | None = None) -> Facts:
    """The facts of a region; the caller supplies `hotness` and, for a launch, its profile."""
    verified, listing = region.verified, code(region.verified)
    opcodes = collections.Counter(listing.opcodes[pc] for pc in region.pcs)
    count = sum(opcodes.values())
    within = _with_callees(region, opcodes)
    mixed = within if region.kind is RegionKind.LAUNCH else opcodes  # its items are calls
    total = sum(mixed.values())
    done = region_effects(region)
    mix = collections.Counter[str]()
    for opcode, times in mixed.items():
        mix[INSTRUCTIONS[opcode].chapter] += times

    def share(kind: str) -> float:
        return sum(times for op, times in mixed.items() if kind in _classes(op)) / total

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
        launches=within[_BEGIN],
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
        items=0 if launch is None else launch.items,
        item_work=0 if launch is None else launch.item_work,
        bytes_read=0 if launch is None else launch.bytes_read,
        bytes_written=0 if launch is None else launch.bytes_written,
        bytes_resident=0 if launch is None else launch.bytes_resident,
        resident_on="" if launch is None else launch.resident_on,
    )


def region_effects(region: Region) -> Effects:
    """The effects of a region, with those of its callees."""
    done = code_effects(region.verified, region.pcs)
    for callee in region.callees:
        done |= function_effects(region.verified, callee)
    return done


def statics(region: Region) -> tuple[frozenset[int], frozenset[int]]:
    """Numbers of statics that a region can read, and that it can write, with callees."""
    done = region_effects(region)
    return done.statics_read, done.statics_written


def _with_callees(region: Region, opcodes: collections.Counter[int]) -> collections.Counter[int]:
    """The number of occurrences of each opcode in a region and its callees; `opcodes` are its
    own."""
    functions = set(region.callees)
    if region.kind in (RegionKind.FUNCTION, RegionKind.PROGRAM):
        functions.update(region.functions)
    # If a part of a function calls that function, the function's code includes the part already.
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


_MEMORY = frozenset(
    [Effect.READS_HEAP, Effect.WRITES_HEAP, Effect.READS_OBJECTS, Effect.WRITES_OBJECTS]
)


@functools.cache
def _classes(opcode: int) -> frozenset[str]:
    """The classes of an instruction: float, integer, memory, control."""
    row = INSTRUCTIONS[opcode]
    found = set()
    if row.flow is not Flow.NEXT:
        found.add("control")
    elif types := _types(row):
        found.add("float" if any(t.is_float for t in types) else "integer")
    if not _MEMORY.isdisjoint(effects(row)):
        found.add("memory")
    return frozenset(found)


def _types(row: Instruction) -> set[Type]:
    """Types of operands and results of an instruction that do not depend on its immediate."""
    return {operand for operand in row.pops + row.pushes if isinstance(operand, Type)}


def _inner_loops(region: Region) -> tuple[list[Loop], int]:
    """Loops that are completely in a region, and the number of loops around it."""
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
    while around in inner:  # the scope begins inside a loop that it contains completely
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
