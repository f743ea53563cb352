# SPDX-License-Identifier: Apache-2.0
"""Streaming stores: a launch that fills a large array stores past the caches.

    while i < bound { … }              split = array is large ? next multiple of 64 bytes : bound
                              ─>       while i < split { … }
                                       while i < bound { … }     with streaming stores

An ordinary store reads the line of the cache that it changes. A line that is stored as a whole need
not be read, and one of a large array is gone from the caches before anything reads it again. The
second loop begins at a line, and runs for large arrays only. (Intel 64 and IA-32 Architectures
Optimization Reference Manual, section 9.4.1.)

Streaming stores are not ordered with other stores, so a region that has some ends with a fence.
LLVM vectorises no loop with stores that are marked for it. So they get alias metadata of their own,
by which they are found and marked in the optimised code.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ferryvm.ir.build import Builder
from ferryvm.ir.footprint import Footprint
from ferryvm.ir.graph import (
    Block,
    Body,
    Constant,
    Edge,
    Operation,
    Parameter,
    Terminator,
    Value,
)
from ferryvm.ir.loop.affine import AffineAnalysis
from ferryvm.ir.loop.clone import Clones, used
from ferryvm.ir.loop.natural import Loop, find_loops
from ferryvm.ir.loop.preheader import Labels, lead_to
from ferryvm.ir.operation import element_bytes
from ferryvm.ir.use import substitute
from ferryvm.isa.element import Element
from ferryvm.isa.emitter import Condition
from ferryvm.isa.type import I64, WORD_BYTES
from ferryvm_backends.llvm.storage import STREAMED
from ferryvm_backends.llvm.strip_mining import StripMinedLoop, strip_of

LINE = 64
"""Bytes of a line of the cache."""

LARGE = 32 << 20
"""Bytes of an array that counts as large. On a Xeon with 2 MiB of cache for a core, streaming stores
took 0.62 to 0.80 of the time in arrays of 8 MiB and more, and 1.3 to 1.8 in those of 1 MiB."""

FEWEST = 512
"""Iterations of a loop that streams, at least."""

_ACCESSES = frozenset({"element_load", "element_store"})


class _Store(NamedTuple):
    """A store of consecutive elements."""

    operation: Operation
    array: Value
    base: Value
    """The part of the offset that does not vary, which `operations` compute."""
    operations: list[Operation]


def stream_stores(
    body: Body, streams: dict[Operation, Value], footprints: dict[Operation, Footprint]
) -> int:
    """Split loops that fill arrays; the number of these loops. `streams`: receives their streaming
    stores, each with the invariant part of its offset; `footprints`: receives those of copies.

    Requires `code_motion`. Preserves effects and exits.
    """
    done: set[Block] = set()
    made = 0
    while (found := _next(body, done)) is not None:
        done.add(_Split(body, *found, streams, footprints).run())
        made += 1
    return made


def _next(body: Body, done: set[Block]) -> tuple[Loop, StripMinedLoop, _Store] | None:
    for loop in find_loops(body):
        if loop.header in done or not loop.is_innermost:
            continue
        done.add(loop.header)
        strip = strip_of(body, loop)
        if strip is None or strip.is_checked or loop.entry is None or not _has_one_exit(loop):
            continue
        trips = strip.count.constant_trip_count(FEWEST)
        store = None if trips is not None and trips < FEWEST else _store(body, loop, strip)
        if store is not None:
            return loop, strip, store
    return None


def _has_one_exit(loop: Loop) -> bool:
    own = {*loop.members}
    return sum(edge.block not in own for block in own for edge in block.end.edges) == 1


def _store(body: Body, loop: Loop, strip: StripMinedLoop) -> _Store | None:
    """The only store of a loop, if it stores consecutive words of an array that the loop does not
    load."""
    accesses = [o for o in loop.operations if o.name in _ACCESSES]
    stores = [o for o in accesses if o.name == "element_store"]
    if len(stores) != 1 or (
        stores[0].static != (Element.F64,) and stores[0].static != (Element.I64,)
    ):
        return None
    place, offset, _ = stores[0].arguments
    if sum(o.arguments[0] is place for o in accesses) > 1 or not loop.is_invariant(place):
        return None
    if not isinstance(place, Operation) or place.name != "header_word":
        return None
    m = Builder(body.constants)
    m.open(Block("stream", loop.header.pc))
    m.pc = loop.header.pc
    found = AffineAnalysis(m, [strip.count.value], loop).expression(offset)
    if found is None or len(found.terms) != 1:
        return None
    (_, scale) = found.terms[0]
    if not isinstance(scale, Constant) or scale.bits != element_bytes(Element.F64):
        return None
    return _Store(stores[0], place.arguments[0], found.base, m.block.operations)


class _Split:
    """The split of one loop."""

    def __init__(
        self,
        body: Body,
        loop: Loop,
        strip: StripMinedLoop,
        store: _Store,
        streams: dict[Operation, Value],
        footprints: dict[Operation, Footprint],
    ) -> None:
        self.body, self.loop, self.strip, self.store = body, loop, strip, store
        self.streams, self.footprints = streams, footprints
        self.labels = Labels(body)

    def run(self) -> Block:
        """Split the loop; the header of the second one."""
        loop, header = self.loop, self.loop.header
        joined = self._joined()
        clones = Clones()
        for old in loop.members:
            clones.start(old, self.labels.block(old, "stream"))
        for old in loop.members:
            clones.operations(old, lambda _operation: False)
            edges = [
                Edge(clones.blocks.get(e.block, e.block), [*clones.all(e.arguments)], e.is_back)
                for e in old.end.edges
            ]
            clones.end(old, tuple(edges))
        for access in loop.operations:
            if access in self.footprints:
                self.footprints[clones.values[access]] = self.footprints[access]  # type: ignore[index]
        self.streams[clones.of(self.store.operation)] = self.store.base
        between = self.labels.block(header, "streams")
        is_large = self._split_range()
        edges = [Edge(clones.blocks[header], [*header.parameters])]
        edges.append(Edge(joined, [*self.strip.out.arguments]))
        between.terminator = Terminator("branch", (), (is_large,), edges=tuple(edges))
        self.strip.out.block, self.strip.out.arguments = between, []
        place = self.body.blocks.index(header) + 1
        new = [clones.blocks[old] for old in loop.members]
        self.body.blocks[place:place] = [between, *new, joined]
        return clones.blocks[header]

    def _joined(self) -> Block:
        """The block behind both loops; uses behind them refer to its parameters now."""
        out, own = self.strip.out, {*self.loop.members}
        target = out.block
        joined = self.labels.block(target, "streamed")
        behind = [block for block in self.body.blocks if block not in own]
        new: dict[Value, Value] = {value: Parameter(value.type) for value in used(behind, own)}
        passed = [Parameter(each.type) for each in target.parameters]
        joined.parameters = [*passed, *(p for p in new.values() if isinstance(p, Parameter))]
        lead_to(joined, target, passed)
        substitute(behind, new)
        out.block, out.arguments = joined, [*out.arguments, *new]
        return joined

    def _split_range(self) -> Value:
        """End the first loop where the second one begins; the condition for that one."""
        count, store, preheader = self.strip.count, self.store, self.loop.preheader
        preheader.operations.extend(store.operations)
        m = Builder(self.body.constants)
        m.open(preheader)
        m.pc = self.loop.header.pc
        length = m.invariant("header_word", (1,), (store.array,), I64)
        size, most = m.constant(I64, LARGE // WORD_BYTES), m.constant(I64, FEWEST)
        trips = m.sub(I64, count.bound, count.start)
        is_long = m.compare(I64, Condition.GE_S, trips, most)
        is_large = m.all(m.compare(I64, Condition.GE_U, length, size), is_long)
        three = m.constant(I64, 3)
        # Places are relative to the space of objects, which begins at a line.
        at = m.add(I64, store.operation.arguments[0], store.base)
        at = m.add(I64, at, m.shl(I64, count.start, three))
        ahead = m.sub(I64, m.constant(I64, 0), m.shr_u(I64, at, three))
        ahead = m.bit_and(I64, ahead, m.constant(I64, LINE // WORD_BYTES - 1))
        split = m.select(is_large, m.add(I64, count.start, ahead), count.bound)
        p = self.loop.header.end.arguments[0]
        assert isinstance(p, Operation)
        p.arguments = (p.arguments[0], split)
        return is_large


_TAG = re.compile(rf'(!\d+) = !{{!"[^"]*{STREAMED}",')
_NODE = re.compile(r"^!(\d+) =", re.MULTILINE)
_USE = re.compile(r"(!\d+) = !\{(!\d+), !\d+, i64 0")


def marked(text: str) -> str:
    """LLVM IR whose streaming stores are marked, as LLVM generates code for it."""
    kinds = {*_TAG.findall(text)}
    tags = {tag for tag, kind in _USE.findall(text) if kind in kinds}
    if not tags:
        return text
    node = f"!{1 + max(map(int, _NODE.findall(text)))}"
    store = re.compile(rf"^( *store .*!tbaa (?:{'|'.join(sorted(tags))})\b.*)$", re.MULTILINE)
    found = store.sub(rf"\1, !nontemporal {node}", text)
    return f"{found}\n{node} = !{{i32 1}}\n"
