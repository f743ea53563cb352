# SPDX-License-Identifier: Apache-2.0
"""Nests whose inner loops several iterations of the outer one can share (`unroll_and_jam`).

    outer:  before ─> inner ⇄ … ─> behind ─> outer

The inner loop counts and adds up floats: it changes nothing, and each iteration has the same
blocks. So does the code before it, whose values follow from those of the iteration in front without
the code behind.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ferryvm.ir.graph import Block, Edge, Operation, Parameter, Value
from ferryvm.ir.loop.induction import find_induction_variable
from ferryvm.ir.loop.natural import Loop
from ferryvm.ir.operation import FIXED, PURE
from ferryvm.ir.passes.code_motion import is_movable

COPIES = 8
"""Iterations that run together: as many doubles as the widest vectors have."""

LARGEST_INNER = 64
"""Operations of an inner loop without checks and their conditions."""

_MOST_ITERATIONS = 1 << 10
"""Iterations of an outer loop of which the number is known, at most."""

LARGEST_OUTER = 100
"""Operations of the rest of an outer loop."""

_LOADS = frozenset({"element_load", "field_load"})
_STORES = frozenset({"element_store", "canonicalise_elements", "field_store"})
_CONTEXTS = frozenset({"context_load", "context_store"})
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


class JamNest(NamedTuple):
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
    """Values of the outer loop that can be computed for an iteration before those in front of
    it."""
    places: list[tuple[Value, Value]]
    """Places of arrays, two each, that must differ."""

    is_whole: bool
    """True if so many iterations are left at the header, again and again, until none is."""

    @property
    def next_values(self) -> dict[Parameter, Value]:
        """The next value of each parameter of the outer loop."""
        (edge,) = self.outer.back_edges
        return dict(zip(self.outer.header.parameters, edge.edge.arguments, strict=True))


def jam_nest(inner: Loop, outer: Loop) -> JamNest | None:
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
    is_whole = not doubts and not places and _is_whole(outer, before)
    return JamNest(outer, inner, before, behind, doubts, early, places, is_whole)


def _is_whole(outer: Loop, before: list[Block]) -> bool:
    """True if an outer loop has a constant number of iterations, of which `COPIES` have no rest,
    ends only in front of one, and has no values that code behind it uses but those of its
    parameters."""
    variable = find_induction_variable(outer)
    trips = None if variable is None else variable.constant_trip_count(_MOST_ITERATIONS)
    if not trips or trips % COPIES or any(b.end.name != "jump" for b in before[1:]):
        return False
    if any(o.name == "trap_if" for block in before for o in block.operations):
        return False
    inside = {*outer.members}
    exits = [e for b in outer.members for e in b.end.edges if e.block not in inside]
    others = [block for block in outer.graph.blocks if block not in inside]
    own = {*outer.operations}
    return len(exits) == 1 and all(
        own.isdisjoint(o.uses()) for block in others for o in (*block.operations, block.end)
    )


def _within(before: list[Block], inner: Loop) -> Iterator[Edge]:
    """The edges between blocks in front of the inner loop, and into it."""
    targets = {*before[1:], inner.header}
    for block in before:
        yield from (edge for edge in block.end.edges if edge.block in targets)


def _doubts(inner: Loop) -> list[Value] | None:
    """Invariant conditions without which no check of a loop fails; None if it may leave without
    one."""
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
    """True if the parts of an outer loop have no effects but those that may be delayed, and are
    short."""
    inside = {*behind, outer.header}
    if before[0] is not outer.header:
        return False
    if sum(len(block.operations) for block in (*before, *behind)) > LARGEST_OUTER:
        return False
    plain = PURE | FIXED | _LOADS | {"trap_if"}
    if _has_own_contexts(outer, (*before, *behind)):
        plain |= {"context_load", "context_store"}
    return (
        all(o.name in plain for block in before for o in block.operations)
        and all(block.end.name in ("jump", "branch") for block in before)
        and all(o.name in plain | _STORES | {"poll"} for block in behind for o in block.operations)
        and all(edge.block in inside for block in behind for edge in block.end.edges)
    )


def _has_own_contexts(outer: Loop, blocks: tuple[Block, ...]) -> bool:
    """True if each iteration of an outer loop accesses elements of its own in context arrays."""
    variable = find_induction_variable(outer)
    indices = {o.arguments[1] for block in blocks for o in block.operations if o.name in _CONTEXTS}
    if variable is None or len(indices) != 1:
        return False
    (index,) = indices
    if isinstance(index, Operation) and index.name == "add":
        offset, index = index.arguments
        return index is variable.value and outer.is_invariant(offset)
    return index is variable.value


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
