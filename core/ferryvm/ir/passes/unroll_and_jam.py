# SPDX-License-Identifier: Apache-2.0
"""Unroll-and-jam: the next iterations of an outer loop, computed ahead in its inner loop.

    outer(j):                                ahead(j):  what inner loops j … j + 7 begin with
        inner(k, s): s = s + a[k] * b[j, k]  ─>  inner(k, s0 … s7): s0 = s0 + a[k] * b[j, k], …
        c[j] = s                                 c[j] = s0; …; c[j + 7] = s7; back to ahead
                                         rest:   outer(j), for the iterations that are left

An inner loop that adds up floats waits for each addition; several independent sums wait together, and
LLVM puts them into a vector. The order of each sum remains. (Allen, Kennedy: Optimizing Compilers for
Modern Architectures, 2001, section 8.4.)

The first sum is that of the iteration which runs; the others are speculative, and nothing else sees them
before their iterations come. So states, of polls and of what stands behind the inner loop, are those of
the original. Where a condition of an iteration ahead does not hold, such as that of the outer loop, that a
check passes, or that the checks of the inner loop cannot fail (`range_check`), the original loop runs,
from the iteration that is next.

Requires that what the inner loop and the code before it load is not stored behind the inner loop: it is of
other elements or fields, or of an array at another place, which is compared before the loop. Requires
`code_motion`, for one entry into each loop, and `range_check`; preserves effects and exits. Copies of
accesses have the footprints of their originals.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ferryvm.ir.build import Builder
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
from ferryvm.ir.loop.clone import Clones
from ferryvm.ir.loop.induction import find_induction_variable
from ferryvm.ir.loop.natural import Loop, find_loops
from ferryvm.ir.loop.preheader import Labels, insert_before, lead_to
from ferryvm.ir.operation import FIXED, PURE
from ferryvm.ir.passes.code_motion import is_movable
from ferryvm.isa.emitter import Condition
from ferryvm.isa.type import I64

COPIES = 8
"""Iterations that run together: as many doubles as the widest vectors have."""

LARGEST_INNER = 40
"""Operations of an inner loop without checks and their conditions."""

LARGEST_OUTER = 100
"""Operations of the rest of an outer loop."""

_LOADS = frozenset({"element_load", "field_load"})
_STORES = frozenset({"element_store", "canonicalise_elements", "field_store"})
_CHECKING = frozenset(
    {
        "trap_if",
        "poll",
        "add_overflows",
        "sub_overflows",
        "mul_overflows",
        "compare",
        "all",
        "any",
        "none",
    }
)
_SUMS = frozenset({"fadd", "fsub", "fmul", "fdiv", "ffma"})


def unroll_and_jam(body: Body, footprints: dict[Operation, Footprint] | None = None) -> int:
    """Jam the outer loops that profit from it; the number of them.

    `footprints`: of accesses; receives those of their copies.
    """
    known = {} if footprints is None else footprints
    done: set[Block] = set()
    made = 0
    while (nest := _next(body, done)) is not None:
        done.add(_Jam(body, nest, known).run())
        made += 1
    return made


class _Nest(NamedTuple):
    """An outer loop that contains one other loop, which only counts and adds up."""

    outer: Loop
    inner: Loop
    before: list[Block]
    """The blocks of the outer loop from which the inner one is entered, in order."""
    behind: list[Block]
    """The blocks behind the inner loop, with their tails."""
    doubts: list[Value]
    """If they are false, no check of the inner loop fails."""
    early: set[Value]
    """Values of the outer loop that can be computed for an iteration before those in front of it."""
    places: list[tuple[Value, Value]]
    """Places of arrays, two each, that must differ."""

    @property
    def next_values(self) -> dict[Parameter, Value]:
        """The next value of each parameter of the outer loop."""
        (edge,) = self.outer.back_edges
        return dict(zip(self.outer.header.parameters, edge.edge.arguments, strict=True))


def _next(body: Body, done: set[Block]) -> _Nest | None:
    """The next nest to jam."""
    for inner in find_loops(body):
        outer = inner.parent
        if inner.header in done or outer is None:
            continue
        done.add(inner.header)
        if inner.is_innermost and outer.loops == 2:
            nest = _nest(inner, outer)
            if nest is not None:
                return nest
    return None


def _nest(inner: Loop, outer: Loop) -> _Nest | None:
    """Two loops as a nest; None if they cannot be jammed, or it would not pay."""
    if inner.entry is None or inner.back_edge is None:
        return None
    if outer.entry is None or outer.back_edge is None:
        return None
    doubts = _doubts(inner)
    variable = find_induction_variable(inner, outer)
    if doubts is None or variable is None or not outer.is_invariant(variable.start):
        return None
    if not _is_chain(inner) or not _has_sum(inner) or inner.preheader.end.name != "jump":
        return None
    before, behind = _parts(outer, inner)
    if not _is_fit(outer, inner, before, behind):
        return None
    early = _early(outer, before, behind)
    needed = [
        *(value for block in before for o in block.operations for value in o.arguments),
        *(value for block in before for value in block.end.arguments),
        *(value for edge in _within(before, inner) for value in edge.arguments),
        *(value for o in inner.operations if o.name != "poll" for value in o.arguments),
        *doubts,
    ]
    own = {v for block in inner.members for v in (*block.parameters, *block.operations)}
    if not all(outer.is_invariant(v) or v in early or v in own for v in needed):
        return None
    places = _places(outer, [*before, *inner.members], behind)
    if places is None:
        return None
    return _Nest(outer, inner, before, behind, doubts, early, places)


def _within(before: list[Block], inner: Loop) -> Iterator[Edge]:
    """The edges between blocks in front of the inner loop, and into it."""
    targets = {*before[1:], inner.header}
    for block in before:
        yield from (edge for edge in block.end.edges if edge.block in targets)


def _doubts(inner: Loop) -> list[Value] | None:
    """Invariant conditions without which no check of a loop fails; None if it may leave without one."""
    found: dict[Value, None] = {}
    for operation in inner.operations:
        if operation.name == "trap_if":
            p = operation.arguments[0]
            parts = p.arguments if isinstance(p, Operation) and p.name == "all" else (p,)
            fixed = [part for part in parts if inner.is_invariant(part)]
            if not fixed:
                return None
            found[fixed[-1]] = None
        elif operation.name not in PURE | FIXED | _LOADS | {"poll"}:
            return None
    return [*found]


def _is_chain(inner: Loop) -> bool:
    """True if control leaves a loop in its header alone, and each iteration has the same blocks."""
    header, others = inner.header, inner.members[1:]
    return (
        inner.members[0] is header
        and header.end.name == "branch"
        and len({edge.block for edge in header.end.edges} - {*others}) == 1
        and all(block.end.name == "jump" for block in others)
        and not inner.tails
        and sum(o.name not in _CHECKING for o in inner.operations) <= LARGEST_INNER
    )


def _has_sum(inner: Loop) -> bool:
    """True if an iteration adds to a float of the one before, or multiplies it."""
    (back,) = inner.back_edges
    for parameter, value in zip(inner.header.parameters, back.edge.arguments, strict=True):
        while isinstance(value, Operation) and value.name == "canonical":
            value = value.arguments[0]
        if isinstance(value, Operation) and value.name in _SUMS:
            chain = {*value.arguments}
            for each in value.arguments:
                chain |= {*each.arguments} if isinstance(each, Operation) else set()
            if parameter in chain:
                return True
    return False


def _parts(outer: Loop, inner: Loop) -> tuple[list[Block], list[Block]]:
    """The blocks of the outer loop in front of the inner one, and behind it."""
    graph = outer.graph
    (entry,) = inner.entries
    before, todo = {entry.source}, [entry.source]
    while todo:
        place = todo.pop()
        if place != outer.head:
            new = {*graph.predecessors[place]} - before
            before |= new
            todo += new
    behind = {*outer.places, *outer.tails} - inner.blocks - before
    reached: set[int] = set()
    todo = [graph.places[e.block] for e in inner.exits]
    while todo:
        place = todo.pop()
        if place in behind and place not in reached:
            reached.add(place)
            todo += [graph.places[edge.block] for edge in graph.blocks[place].end.edges]
    return ([graph.blocks[p] for p in sorted(before)], [graph.blocks[p] for p in sorted(reached)])


def _is_fit(outer: Loop, inner: Loop, before: list[Block], behind: list[Block]) -> bool:
    """True if the parts of an outer loop have no effects but those that may be delayed, and are short."""
    inside = {*behind, outer.header}
    if before[0] is not outer.header:
        return False
    if sum(len(block.operations) for block in (*before, *behind)) > LARGEST_OUTER:
        return False
    plain = PURE | FIXED | _LOADS | {"trap_if"}
    return (
        all(o.name in plain for block in before for o in block.operations)
        and all(block.end.name in ("jump", "branch") for block in before)
        and all(o.name in plain | _STORES | {"poll"} for block in behind for o in block.operations)
        and all(edge.block in inside for block in behind for edge in block.end.edges)
    )


def _early(outer: Loop, before: list[Block], behind: list[Block]) -> set[Value]:
    """Values of an outer loop that follow from those at its beginning and from code in front of the
    inner loop alone."""
    header = outer.header
    (back,) = outer.back_edges
    nexts = dict(zip(header.parameters, back.edge.arguments, strict=True))
    early: set[Value] = {*nexts}
    while True:
        found: set[Value] = {*early & {*header.parameters}}
        for block in before:
            if block is not header:
                found |= {*block.parameters}  # checked where they are passed
            for o in block.operations:
                if all(outer.is_invariant(a) or a in found for a in o.arguments):
                    found.add(o)
        for block in behind:
            for o in block.operations:
                if is_movable(o) and all(outer.is_invariant(a) or a in found for a in o.arguments):
                    found.add(o)
        late = {
            p
            for p, value in nexts.items()
            if p in found and not (outer.is_invariant(value) or value in found)
        }
        if not late:
            return found
        early = found - late - {v for v in found if not isinstance(v, Parameter)}


def _places(
    outer: Loop, ahead: list[Block], behind: list[Block]
) -> list[tuple[Value, Value]] | None:
    """The places of arrays that must differ, so that no store behind the inner loop changes what
    is loaded ahead; None if that cannot be compared before the outer loop."""
    loads = [o for block in ahead for o in block.operations if o.name in _LOADS]
    found: dict[tuple[Value, Value], None] = {}
    for store in (o for block in behind for o in block.operations if o.name in _STORES):
        for load in loads:
            is_field = load.name == "field_load"
            if load.static != store.static or is_field != (store.name == "field_store"):
                continue
            place = load.arguments[0]
            # `canonicalise_elements` has groups of three operands.
            stored = store.arguments[:: 3 if store.name != "field_store" else 1]
            if is_field or place in stored:
                return None
            if not all(map(outer.is_invariant, (place, *stored))):
                return None
            found |= dict.fromkeys((place, each) for each in stored)
    return [*found]


class _Jam:
    """The code that runs several iterations of one nest together."""

    def __init__(self, body: Body, nest: _Nest, footprints: dict[Operation, Footprint]) -> None:
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
        insert_before(self.body, {header: [*self.made, self.rest]})
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
                else:
                    edges.append(self._leave())
            else:
                end = old.end
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
