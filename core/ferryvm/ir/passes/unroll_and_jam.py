# SPDX-License-Identifier: Apache-2.0
"""Unroll-and-jam: the next iterations of an outer loop, computed ahead in its inner loop.

    outer(j):                                ahead(j):  what inner loops j … j + 7 begin with
        inner(k, s): s = s + a[k] * b[j, k]  ─>  inner(k, s0 … s7): s0 = s0 + a[k] * b[j, k], …
        c[j] = s                                 c[j] = s0; …; c[j + 7] = s7; back to ahead
                                         rest:   outer(j), for the iterations that are left

An inner loop that adds up floats waits for each addition; several independent sums wait together,
and LLVM puts them into a vector. The order of each sum remains. (Allen, Kennedy: Optimizing
Compilers for Modern Architectures, 2001, section 8.4.)

The first sum is that of the iteration which runs; the others are speculative, and nothing else sees
them before their iterations come. So states, of polls and of what stands behind the inner loop, are
those of the original. Where a condition of an iteration ahead does not hold, such as that of the
outer loop, that a check passes, or that the checks of the inner loop cannot fail (`range_check`),
the original loop runs, from the iteration that is next. There is none if all conditions are known
to hold.

Requires that what the inner loop and the code before it load is not stored behind the inner loop:
it is of other elements or fields, or of an array at another place, which is compared before the
loop. Requires `code_motion`, for one entry into each loop, and `range_check`; preserves effects and
exits. Copies of accesses have the footprints of their originals.
"""

from __future__ import annotations

from ferryvm.ir.build import Builder
from ferryvm.ir.control_flow_graph import remove_unreached
from ferryvm.ir.footprint import Footprint
from ferryvm.ir.graph import (
    BOOLEAN,
    Block,
    Body,
    Edge,
    Operation,
    Parameter,
    Terminator,
    Value,
)
from ferryvm.ir.jam_nest import COPIES, JamNest, jam_nest
from ferryvm.ir.loop.clone import Clones
from ferryvm.ir.loop.natural import find_loops
from ferryvm.ir.loop.preheader import Labels, insert_before, lead_to
from ferryvm.ir.operation import PURE
from ferryvm.ir.passes.code_motion import is_movable
from ferryvm.ir.use import substitute
from ferryvm.isa.emitter import Condition
from ferryvm.isa.type import I64


def unroll_and_jam(
    body: Body,
    footprints: dict[Operation, Footprint] | None = None,
    rests: set[Block] | None = None,
) -> int:
    """Jam the outer loops that profit from it; the number of them.

    `footprints`: of accesses; receives those of their copies. `rests`: receives the headers of
    the jammed loops, and of those that run the iterations that are left.
    """
    known = {} if footprints is None else footprints
    done: set[Block] = set()
    made = 0
    while (nest := _next(body, done)) is not None:
        jam = _Jam(body, nest, known)
        done.add(jam.run())
        if rests is not None:
            rests |= {jam.first, nest.outer.header}
        made += 1
    return made


def _next(body: Body, done: set[Block]) -> JamNest | None:
    """The next nest to jam."""
    for inner in find_loops(body):
        outer = inner.parent
        if inner.header in done or outer is None:
            continue
        done.add(inner.header)
        if inner.is_innermost and outer.loops == 2:
            nest = jam_nest(inner, outer)
            if nest is not None:
                return nest
    return None


class _Jam:
    """The code that runs several iterations of one nest together."""

    def __init__(self, body: Body, nest: JamNest, footprints: dict[Operation, Footprint]) -> None:
        self.body, self.nest, self.footprints = body, nest, footprints
        self.labels = Labels(body)
        self.no = body.constant(BOOLEAN, 0)
        self.copies = [Clones() for _ in range(COPIES)]
        self.made: list[Block] = []
        header = nest.outer.header
        self.first, self.rest = self._block(header, "ahead"), self._block(header, "rest")
        self.first.parameters = [Parameter(p.type) for p in header.parameters]
        self.copies[0].values.update(zip(header.parameters, self.first.parameters, strict=True))
        self.rest.parameters = [Parameter(p.type) for p in header.parameters]
        lead_to(self.rest, header, self.rest.parameters)

    def _block(self, old: Block, prefix: str) -> Block:
        return self.labels.block(old, prefix)

    def _leave(self) -> Edge:
        """An edge to the original loop."""
        return Edge(self.rest, [*self.first.parameters])

    def run(self) -> Block:
        """Insert the code before the outer loop; the header of the jammed loop."""
        nest, header = self.nest, self.nest.outer.header
        (entry,) = nest.outer.entries
        (into,) = nest.inner.entries
        ends = [self._ahead(number) for number in range(COPIES)]
        inner, out = self._inner()
        for end, following in zip(ends[:-1], self._starts[1:], strict=True):
            lead_to(end, following, [])
        lead_to(ends[-1], inner, self._first_values(into.edge.arguments))
        self._behind(out)
        entry.edge.block = self._compared(entry.edge)
        if not nest.is_whole:
            insert_before(self.body, {header: [*self.made, self.rest]})
            return inner
        insert_before(self.body, {header: self.made})
        remove_unreached(self.body)
        new: dict[Value, Value] = {
            **dict(zip(header.parameters, self.first.parameters, strict=True))
        }
        substitute(self.body.blocks, new)
        return inner

    def _compared(self, entry: Edge) -> Block:
        """The block before the outer loop, which compares places of arrays."""
        if not self.nest.places:
            return self.first
        m = Builder(self.body.constants)
        block = self._block(self.nest.outer.header, "places")
        m.open(block)
        same: Value = self.no
        for a, b in self.nest.places:
            same = m.any(same, m.compare(I64, Condition.EQ, a, b))
        block.parameters = [Parameter(p.type) for p in self.first.parameters]
        edges = Edge(self.rest, [*block.parameters]), Edge(self.first, [*block.parameters])
        m.close(Terminator("branch", (), (same,), edges=edges))
        self.made[:0] = [block]
        return block

    # --- ahead ------------------------------------------------------------------------------

    @property
    def _starts(self) -> list[Block]:
        return [copy.blocks[self.nest.outer.header] for copy in self.copies]

    def _ahead(self, number: int) -> Block:
        """Compute what an iteration's inner loop begins with; the last block, which has no end
        yet. Where a condition does not hold control goes to the rest."""
        nest, copy, header = self.nest, self.copies[number], self.nest.outer.header
        if number:
            self._advance(number)
        for old in nest.before:
            if old is header:
                new = self._block(old, f"ahead{number}") if number else self.first
                copy.blocks[old] = new
            else:
                copy.start(old, self._block(old, f"ahead{number}"))
        for old in nest.before:
            block = self._checked(copy, old, copy.blocks[old])
            edges = []
            for edge in old.end.edges:
                if edge.block in nest.before and edge.block is not header:
                    edges.append(Edge(copy.blocks[edge.block], [*copy.all(edge.arguments)]))
                elif edge.block is nest.inner.header:
                    break
                elif nest.is_whole and not number:
                    edges.append(Edge(edge.block, [*copy.all(edge.arguments)]))
                elif not nest.is_whole:
                    edges.append(self._leave())
            else:
                end = old.end
                if nest.is_whole and number and old is header:
                    block.terminator = Terminator("jump", edges=tuple(edges))
                    block.terminator.pc = end.pc
                    continue
                block.terminator = Terminator(
                    end.name, end.static, copy.all(end.arguments), edges=tuple(edges)
                )
                block.terminator.pc = end.pc
                continue
            return self._without(copy.all(nest.doubts), block)
        raise AssertionError("the inner loop is entered from the blocks before it")

    def _advance(self, number: int) -> None:
        """The values of the outer loop's parameters in the iteration after another one."""
        before, copy = self.copies[number - 1], self.copies[number]
        block = self.made[-1]
        for parameter, value in self.nest.next_values.items():
            if parameter in self.nest.early:
                copy.values[parameter] = self._computed(before, value, block)

    def _computed(self, copy: Clones, value: Value, block: Block) -> Value:
        """A value of an iteration, computed in a block if nothing has done so."""
        if value in copy.values or self.nest.outer.is_invariant(value):
            return copy.values.get(value, value)
        assert isinstance(value, Operation)
        for each in value.arguments:
            self._computed(copy, each, block)
        made = Operation(value.name, value.type, value.static, copy.all(value.arguments))
        made.pc = value.pc
        block.operations.append(made)
        copy.values[value] = made
        return made

    def _checked(self, copy: Clones, old: Block, block: Block) -> Block:
        """Clone operations into a block, and leave it where a check of theirs fails; the last
        block."""
        self.made.append(block)
        pending: list[Value] = []
        for each in old.operations:
            if each.name == "trap_if":
                pending += copy.all(each.arguments)
                continue
            if pending and not is_movable(each):
                block, pending = self._without(pending, block), []
            block.operations.append(self._clone(copy, each))
        return self._without(pending, block)

    def _without(self, conditions: list[Value] | tuple[Value, ...], block: Block) -> Block:
        """The block that follows if none of some conditions holds."""
        if not conditions:
            return block
        m = Builder(self.body.constants)
        m.open(block)
        any_: Value = self.no
        for each in conditions:
            any_ = m.any(any_, each)
        following = self._block(self.nest.outer.header, "passed")
        edges = self._leave(), Edge(following, [])
        block.terminator = Terminator("branch", (), (any_,), edges=edges)
        self.made.append(following)
        return following

    def _clone(self, copy: Clones, old: Operation) -> Operation:
        new = Operation(old.name, old.type, old.static, copy.all(old.arguments))
        new.pc = old.pc
        copy.values[old] = new
        if old in self.footprints:
            self.footprints[new] = self.footprints[old]
        return new

    # --- the inner loop ---------------------------------------------------------------------

    def _shared(self) -> set[Value]:
        """The values of the inner loop that are the same in all iterations of the outer one."""
        inner, outer = self.nest.inner, self.nest.outer
        entry, back = (edge.arguments for _, edge in (*inner.entries, *inner.back_edges))
        rows = list(zip(inner.header.parameters, entry, back, strict=True))
        shared: set[Value] = {p for p, first, _ in rows if outer.is_invariant(first)}
        while True:
            found = {*shared}
            for block in inner.members:
                passed = (
                    edge for b in inner.members for edge in b.end.edges if edge.block is block
                )
                if block is not inner.header:
                    (edge,) = passed
                    for parameter, value in zip(block.parameters, edge.arguments, strict=True):
                        if outer.is_invariant(value) or value in found:
                            found.add(parameter)
                for o in block.operations:
                    if all(outer.is_invariant(a) or a in found for a in o.arguments):
                        found.add(o)
            late = {
                p
                for p, _, value in rows
                if p in found and not (outer.is_invariant(value) or value in found)
            }
            if not late:
                return found
            shared -= late

    def _inner(self) -> tuple[Block, Block]:
        """The jammed loop; and the block to which it leads."""
        inner = self.nest.inner
        shared = self._shared_values = self._shared()
        maps = [{**copy.values, **dict.fromkeys(self.nest.doubts, self.no)} for copy in self.copies]
        blocks = {old: self._block(old, "jammed") for old in inner.members}
        for old, new in blocks.items():
            for p in old.parameters:
                made = [Parameter(p.type) for _ in maps[: 1 if p in shared else None]]
                new.parameters += made
                for number, values in enumerate(maps):
                    values[p] = made[0 if p in shared else number]
        for old, new in blocks.items():
            self._fill(old, new, maps)
        out = self._block(inner.header, "jammed.exit")
        for old, new in blocks.items():
            edges = []
            for edge in old.end.edges:
                if edge.block in blocks:
                    passed = self._passed(edge, maps)
                    edges.append(Edge(blocks[edge.block], passed, edge.is_back))
                else:
                    edges.append(Edge(out, []))
            arguments = tuple(maps[0].get(a, a) for a in old.end.arguments)
            new.terminator = Terminator(old.end.name, old.end.static, arguments, edges=tuple(edges))
            new.terminator.pc = old.end.pc
        self.made += [*blocks.values(), out]
        for copy, values in zip(self.copies, maps, strict=True):
            copy.values = {
                **{v: new for v, new in values.items() if v not in self.nest.doubts},
                **{v: new for v, new in copy.values.items() if v in self.nest.doubts},
            }
        return blocks[inner.header], out

    def _fill(self, old: Block, new: Block, maps: list[dict[Value, Value]]) -> None:
        m = Builder(self.body.constants)
        m.open(new)
        for each in old.operations:
            m.pc = each.pc
            if each.name == "trap_if":
                continue
            if each.name == "poll":
                poll = Operation("poll", None, each.static, (), each.exit.replace(maps[0]))
                m.emit(poll)
                continue
            copies = maps[:1] if each in self._shared_values else maps
            for values in copies:
                values[each] = self._made(m, each, values)
            for values in maps:
                values.setdefault(each, maps[0][each])

    def _made(self, m: Builder, old: Operation, values: dict[Value, Value]) -> Value:
        arguments = tuple(values.get(a, a) for a in old.arguments)
        assert old.type is not None
        if old.name in PURE:
            return m.pure(old.name, old.static, arguments, old.type)
        made = m.invariant(old.name, old.static, arguments, old.type)
        if old in self.footprints:
            assert isinstance(made, Operation)
            self.footprints[made] = self.footprints[old]
        return made

    def _passed(self, edge: Edge, maps: list[dict[Value, Value]]) -> list[Value]:
        """The arguments of a copy of an edge within the inner loop."""
        found: list[Value] = []
        for parameter, value in zip(edge.block.parameters, edge.arguments, strict=True):
            number = 1 if parameter in self._shared_values else None
            found += [values.get(value, value) for values in maps[:number]]
        return found

    def _first_values(self, arguments: list[Value]) -> list[Value]:
        found: list[Value] = []
        for parameter, value in zip(self.nest.inner.header.parameters, arguments, strict=True):
            number = 1 if parameter in self._shared_values else None
            found += [copy.all([value])[0] for copy in self.copies[:number]]
        return found

    # --- behind -----------------------------------------------------------------------------

    def _behind(self, block: Block) -> None:
        """The rests of the iterations, one after the other; `block` leads to the first."""
        nest = self.nest
        (exit_,) = (e for e in nest.inner.header.end.edges if e.block not in nest.inner.members)
        (back,) = nest.outer.back_edges
        for number, copy in enumerate(self.copies):
            if number:
                before = self.copies[number - 1]
                for parameter, value in nest.next_values.items():
                    copy.values.setdefault(parameter, before.all([value])[0])
            for old in nest.behind:
                copy.start(old, self._block(old, f"behind{number}"))
            for old in nest.behind:
                copy.operations(old, _is_poll if copy is not self.copies[-1] else _is_none)
                edges = []
                for edge in old.end.edges:
                    arguments = [*copy.all(edge.arguments)]
                    if edge is not back.edge:
                        edges.append(Edge(copy.blocks[edge.block], arguments))
                    elif number < COPIES - 1:
                        following = self._block(old, "following")
                        edges.append(Edge(following, []))
                    else:
                        edges.append(Edge(self.first, arguments, is_back=True))
                copy.end(old, tuple(edges))
                self.made.append(copy.blocks[old])
            lead_to(block, copy.blocks[exit_.block], copy.all(exit_.arguments))
            for old in nest.behind:
                for o in old.operations:
                    if o in self.footprints and o in copy.values:
                        self.footprints[copy.of(o)] = self.footprints[o]
            if number < COPIES - 1:
                self.made.append(following)
                block = following


def _is_poll(operation: Operation) -> bool:
    return operation.name == "poll"


def _is_none(_: Operation) -> bool:
    return False
