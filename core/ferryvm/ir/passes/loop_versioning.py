# SPDX-License-Identifier: Apache-2.0
"""Loop versioning: copy a loop nest that stores, without the checks that runtime checks prove
redundant.

    preheader:  do all these checks pass in every iteration of the nest?
                  ├─ no  ─> the original nest
                  └─ yes ─> a copy without them

References into the heap are plain offsets, so a store may change what any later access loads, and
each access has a check of its own. Therefore one runtime check before the outermost possible loop
(`ferryvm.ir.loop.runtime_check`) establishes that all objects that the nest accesses are in bounds,
and that none that is stored into overlaps another. Then loads from objects that an inner loop does
not store into move to its preheader in the copy. (Byler, Davies, Huson,
Leasure, Wolfe: Multiple Version Loops, ICPP 1987. Gupta: Optimizing Array Bound Checks Using Flow
Analysis, 1993, section 5, checks the largest value of an affine expression; here no check fails
early, because the original nest is still there.)

Arrays are simpler: their lengths never change, and two of them are one or apart. So only indices
are checked, and for each load that can be hoisted out of an inner loop, that the loop stores into
another array.

The usual case is cheap to check: blocks that were allocated one after another, and so are in the
heap in the order in which their references are defined. Otherwise all pairs are compared.

Nests whose innermost loops do not store are left to `range_check`. Requires `code_motion`, for one
entry into each loop, and `value_numbering`; runs before `canonicalisation`. Preserves effects, and
each exit that can be taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ferryvm.ir.footprint import Footprint
from ferryvm.ir.graph import BOOLEAN, Block, Body, Constant, Edge, Operation, Terminator, Value
from ferryvm.ir.loop.access import HeapObject
from ferryvm.ir.loop.clone import LoopClone
from ferryvm.ir.loop.iteration_space import LARGEST_BASE
from ferryvm.ir.loop.natural import find_loops
from ferryvm.ir.loop.preheader import add_preheaders
from ferryvm.ir.loop.runtime_check import (
    LARGEST_NEST,
    OUTSIDE,
    NoNestError,
    RuntimeChecks,
    UnfitError,
)
from ferryvm.ir.passes.dead_code import remove_dead_code
from ferryvm.ir.versioned_nest import VersionedNest, VersioningReason
from ferryvm.isa.emitter import Condition
from ferryvm.isa.type import I64

OVERLAP = "what is accessed in two places overlaps"
ONE_ARRAY = "an array that is loaded from is also stored into"

Doubt = tuple[Value, VersioningReason]
"""A condition that is true if a check may fail, and its reason."""


def version_loops(
    body: Body,
    footprints: dict[Operation, Footprint] | None = None,
    largest: int = LARGEST_NEST,
    remarks: list[VersionedNest] | None = None,
    *,
    apart: bool = False,
) -> int:
    """Version all nests that profit from it; the number of these nests.

    `apart`: check that arrays that a nest stores into are not others of the same type, too, so that
    accesses to them have footprints; `footprints`: receives those of the accesses in the versions
    without checks; `largest`: the largest number of operations of a nest; `remarks`: receives the
    outcome for each nest, and code then reports which version is executed.
    """
    footprints = {} if footprints is None else footprints
    made = 0
    if {"element_load", "element_store", "trap_if"} <= {o.name for o in body.operations}:
        # Where an inner loop is entered the variables of the outer one have to be below their
        # bounds, which they are not if its header branches to the inner loop directly.
        add_preheaders(body, of_branches=True)
        remove_dead_code(body)
    done: set[Block] = set()
    """Headers of loops that are finished, or are in a nest that has two versions now."""
    while (checks := _next_checks(body, done, largest, remarks, apart)) is not None:
        split = _Split(body, checks, remarks)
        footprints |= split.footprints()
        done |= split.run()
        made += 1
    if made:
        remove_dead_code(body)
    return made


def _next_checks(
    body: Body,
    done: set[Block],
    largest: int,
    remarks: list[VersionedNest] | None,
    apart: bool,
) -> RuntimeChecks | None:
    """The checks for the first nest that gets two versions, outer ones before inner ones."""
    names = {operation.name for operation in body.operations}
    if "trap_if" not in names or names.isdisjoint({"heap_store", "element_store"}):
        return None
    loops = find_loops(body)
    for loop in reversed(loops):
        if loop.header not in done:
            done.add(loop.header)
            try:
                return RuntimeChecks(body, loop, loops, largest, apart=apart)
            except NoNestError:
                continue
            except UnfitError as error:
                if remarks is not None:
                    remarks.append(VersionedNest(loop.header.pc, error.reason))
    return None


class _Split:
    """The two versions of a nest, and the blocks of the runtime checks."""

    def __init__(
        self, body: Body, checks: RuntimeChecks, remarks: list[VersionedNest] | None
    ) -> None:
        self.remarks, self.checks, self.m = remarks, checks, checks.conditions
        self.nest, self.clone = (
            checks.nest,
            LoopClone(body, checks.nest, checks.eliminated, checks.replaced),
        )
        self.first, self.pairs, self.original, self.preheader = (
            self.clone.new_block(name) for name in ("check", "overlap", "original", "preheader")
        )
        self.first.operations = self.m.block.operations
        self.m.block = self.first
        definitions = self.nest.graph.definitions
        self.order = {value: number for number, value in enumerate(definitions)}
        self.objects = sorted(checks.objects.values(), key=self._order)
        self.apart: dict[tuple[Value, Value], int] = {}
        """Places of arrays that must be two arrays, each pair with the pc of an access to the
        first."""
        self.moves = [*self._plan_element_loads()]
        for (one, other), pc in checks.array_pairs.items():
            if (other, one) not in self.apart:
                self.apart.setdefault((one, other), pc)
        self.reporters: list[Block] = []
        self.reasons: list[VersioningReason] = []
        self.limit = checks.limit
        """The end of the heap in use; None where the nest accesses arrays alone."""

    def run(self) -> set[Block]:
        """Insert them into the body; the headers of their loops."""
        m = self.m
        early = list(self._early())
        doubt = self._any(early)
        row = self._any(self._row())
        self._branch(m.any(doubt, row), self.pairs, self.preheader)
        m.open(self.pairs)
        overlaps = list(self._overlaps())
        unsure = m.any(doubt, self._any(overlaps))
        self._branch(unsure, self._reporting([*early, *overlaps]), self.preheader)
        self._end_reporting()
        between = [self.pairs, *self.reporters]
        self.clone.select_version(self.first, self.original, self.preheader, between)
        self._advance_loads()
        headers = {loop.header for loop in self.checks.loops}
        return headers | {self.clone.blocks[header] for header in headers}

    def footprints(self) -> dict[Operation, Footprint]:
        """The footprints of the copy's loads and stores, as far as they are known."""
        checks = self.checks
        found = {access: checks.footprint(access) for access in checks.accesses}
        if checks.array_pairs:
            found |= {each: checks.array_footprint(each) for each in checks.array_accesses}
        return {self.clone.of(a): place for a, place in found.items() if place is not None}

    def _branch(self, doubt: Value, yes: Block, no: Block) -> None:
        edges = Edge(yes, []), Edge(no, [])
        self.m.close(Terminator("branch", (), (doubt,), edges=edges))

    def _order(self, each: HeapObject) -> tuple[int, int]:
        reference = each.reference
        if isinstance(reference, Constant):
            return -1, reference.bits
        return self.order.get(reference, len(self.order)), 0

    # --- runtime checks ---------------------------------------------------------------------

    def _any(self, doubts: Iterable[Doubt]) -> Value:
        found: Value = self.m.constant(BOOLEAN, 0)
        for doubt, _ in doubts:
            found = self.m.any(found, doubt)
        return found

    def _early(self) -> Iterator[Doubt]:
        """The conditions that values are not small, expressions not monotonic, or invariant checks
        fail."""
        m = self.m
        outside = VersioningReason(OUTSIDE, (self.nest.header.pc,))
        limits = [] if self.limit is None else [self.limit]
        yield self._is_any_above([*limits, *m.addresses], LARGEST_BASE - 1), outside
        middle = m.constant(I64, LARGEST_BASE)
        numbers = [value for value in m.small if not isinstance(value, Constant)]
        moved = [m.add(I64, number, middle) for number in numbers]
        yield self._is_any_above(moved, 2 * LARGEST_BASE - 1), outside
        for limit in limits:
            capacity = m.invariant("heap_capacity", (), (), I64)
            yield m.compare(I64, Condition.GT_U, limit, capacity), outside
        yield from m.doubts.items()
        yield from self._one_array()

    def _one_array(self) -> Iterator[Doubt]:
        """The condition that an array that is stored into is one of which a load is hoisted."""
        for (place, other), pc in self.apart.items():
            is_one = self.m.compare(I64, Condition.EQ, place, other)
            yield is_one, VersioningReason(ONE_ARRAY, (pc,))

    def _is_any_above(self, values: Iterable[Value], most: int) -> Value:
        """The condition that one of some values is above a number, which is 2^n - 1."""
        together: Value = self.m.zero
        for value in values:
            together = self.m.bit_or(I64, together, value)
        return self.m.compare(I64, Condition.GT_U, together, self.m.constant(I64, most))

    def _row(self) -> Iterator[Doubt]:
        """The condition that objects are not in the order of their references, up to the limit."""
        if self.limit is None:
            return
        above = [*(self._first(each) for each in self.objects[1:]), self.limit]
        for each, end in zip(self.objects, above, strict=True):
            yield self._is_short(each, end), VersioningReason(OVERLAP, (each.pc,))

    def _first(self, each: HeapObject) -> Value:
        """The address of an object's first byte."""
        return self.m.add(I64, each.reference, each.extent.low)

    def _is_short(self, each: HeapObject, end: Value) -> Value:
        """The condition that an object does not end before another address."""
        distance = self.m.sub(I64, end, each.reference)
        return self.m.compare(I64, Condition.LT_S, distance, each.extent.high)

    def _overlaps(self) -> Iterator[Doubt]:
        """The condition that objects extend past the limit, or that a store's object aliases
        others."""
        if self.limit is None:
            return
        for number, a in enumerate(self.objects):
            yield self._is_short(a, self.limit), VersioningReason(OUTSIDE, (a.pc,))
            for b in self.objects[:number]:
                if a.stored or b.stored:
                    short = self._is_short(a, self._first(b)), self._is_short(b, self._first(a))
                    yield self.m.all(*short), VersioningReason(OVERLAP, (b.pc, a.pc))

    # --- reports ----------------------------------------------------------------------------

    def _reporting(self, doubts: list[Doubt]) -> Block:
        """The target of control if one of some doubts holds: the preheader of the original nest, or
        a block before it that reports the first of them, if a compiler requests that."""
        if self.remarks is None:
            return self.original
        block, m = self.clone.new_block("reason"), self.m
        before = m.block
        first = len(self.reasons) + 1
        self.reasons += (reason for _, reason in doubts)
        m.open(block)
        number: Value = m.constant(I64, 0)
        for place, (doubt, _) in reversed([*enumerate(doubts, first)]):
            number = m.select(doubt, m.constant(I64, place), number)
        m.emit(Operation("report_version", None, (len(self.remarks),), (number,)))
        m.close(Terminator("jump", edges=(Edge(self.original, []),)))
        m.open(before)
        self.reporters.append(block)
        return block

    def _end_reporting(self) -> None:
        """Make the version without checks count its executions."""
        if self.remarks is not None:
            nothing = self.m.constant(I64, 0)
            self.preheader.operations.append(
                Operation("report_version", None, (len(self.remarks),), (nothing,))
            )
            self.remarks.append(VersionedNest(self.nest.header.pc, None, tuple(self.reasons)))

    # --- the copy ---------------------------------------------------------------------------

    def _advance_loads(self) -> None:
        """Hoist loads from ranges that a loop does not store into."""
        checks, definitions = self.checks, self.nest.graph.definitions
        at = {
            operation: definitions[operation]
            for operation in checks.accesses
            if operation.name == "heap_load" and self._is_in_bounds(operation)
        }
        for loop in checks.loops:
            stored = {
                checks.accesses[operation][0]
                for operation in loop.operations
                if operation.name == "heap_store"
            }
            preheader = loop.entries[0].source
            for load, place in at.items():
                reference, part = checks.accesses[load]
                if (
                    place in loop.blocks
                    and reference not in stored
                    and loop.is_invariant(load.arguments[0])
                    and (loop is self.nest or checks.space.holds(part.terms, preheader))
                ):
                    self._block_at(place).operations.remove(self.clone.of(load))
                    at[load] = preheader
                    self._block_at(preheader).operations.append(self.clone.of(load))
        for load, place, preheader in self.moves:
            self._block_at(place).operations.remove(self.clone.of(load))
            self._block_at(preheader).operations.append(self.clone.of(load))

    def _plan_element_loads(self) -> Iterator[tuple[Operation, int, int]]:
        """The loads of elements that are hoisted, each with its block and a preheader."""
        checks, definitions = self.checks, self.nest.graph.definitions
        at = {
            operation: definitions[operation]
            for operation in checks.array_accesses
            if operation.name == "element_load"
        }
        for loop in checks.loops:
            preheader = loop.entries[0].source
            for load, place in at.items():
                others = checks.hoistable(load, place, loop)
                if others is not None:
                    yield load, place, preheader
                    at[load] = preheader
                    for other in others:
                        own = checks.array_accesses[load].place
                        self.apart.setdefault((own, other), load.pc)

    def _block_at(self, place: int) -> Block:
        """The copy of a block, or the preheader of the copy."""
        return self.clone.blocks.get(self.nest.graph.blocks[place], self.preheader)

    def _is_in_bounds(self, load: Operation) -> bool:
        """True if the loaded bytes are those of an object."""
        return self.checks.may_be_accessed(*self.checks.accesses[load])
