# SPDX-License-Identifier: Apache-2.0
"""Loop versioning: copy a loop nest that stores, without the checks that runtime checks prove to
pass.

    preheader:  do all these checks pass in every iteration of the nest?
                  ├─ no  ─> the original nest
                  └─ yes ─> a copy without them

A store may change the length that another check compares with: references are plain offsets into
the heap. So all lengths have to be loaded again after each store, and no check implies a later one.
The pass therefore asks once, in front of the outermost loop where that is possible, whether all
objects in the nest's footprint (`ferryvm.ir.footprint`) are in bounds, and none that is stored into
overlaps another. Then no length changes in the copy; and what an inner loop does not store into is
loaded in its preheader. (Byler, Davies, Huson, Leasure, Wolfe: Multiple Version Loops, ICPP 1987.
Gupta: Optimizing Array Bound Checks Using Flow Analysis, 1993, section 5, checks the largest value
of an affine expression; here no check fails early, because the original nest is still there.)

The usual case is cheap to check: vectors that were made one after another, and so lie in the heap
in the order in which their references are defined. Otherwise all pairs are compared.

Nests whose innermost loops do not store are left to `range_check`. Requires `code_motion`, for one
entry into each loop, and `value_numbering`; runs before `canonicalisation`. Preserves effects, and
each exit that can be taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ferryvm.ir.clone import NestClone
from ferryvm.ir.flow import Flow
from ferryvm.ir.footprint import (
    LARGEST_BASE,
    LARGEST_NEST,
    OUTSIDE,
    TOO_LARGE,
    Footprint,
    HeapObject,
    NoNestError,
    RuntimeChecks,
    UnfitError,
    VersionedNest,
    VersioningReason,
    extent,
)
from ferryvm.ir.graph import BOOLEAN, Block, Body, Constant, Edge, Operation, Terminator, Value
from ferryvm.ir.passes.dead_code import remove_dead_code
from ferryvm.isa.emitter import Condition
from ferryvm.isa.type import I64, WORD_BYTES

OVERLAP = "what is accessed in two places overlaps"

Doubt = tuple[Value, VersioningReason]
"""What holds where a check may fail, and which."""


def version_loops(
    body: Body,
    footprints: dict[Operation, Footprint] | None = None,
    largest: int = LARGEST_NEST,
    told: list[VersionedNest] | None = None,
) -> int:
    """Version all nests for which that pays; the number of these nests.

    `footprints`: gets what is known of the accesses in the versions without checks; `largest`:
    operations that a nest may have; `told`: gets what became of nests, and code then tells which
    version is run.
    """
    footprints = {} if footprints is None else footprints
    made = 0
    done: set[Block] = set()
    """Heads of loops that have been looked at, or are in a nest that has two versions now."""
    while (checks := _next_checks(body, done, largest, told)) is not None:
        split = _Split(body, checks, told)
        footprints |= split.footprints()
        done |= split.run()
        made += 1
    if made:
        remove_dead_code(body)
    return made


def _next_checks(
    body: Body, done: set[Block], largest: int, told: list[VersionedNest] | None
) -> RuntimeChecks | None:
    """The checks for the first nest that gets two versions, outer ones before inner ones."""
    if not {"heap_store", "trap_if"} <= {operation.name for operation in body.operations}:
        return None
    flow = Flow(body)
    loops = flow.loops()
    for loop in reversed(loops):
        head = flow.blocks[loop.head]
        if head not in done:
            done.add(head)
            try:
                return RuntimeChecks(body, flow, loop, loops, largest)
            except NoNestError:
                continue
            except UnfitError as error:
                if told is not None:
                    told.append(VersionedNest(head.pc, error.reason))
    return None


class _Split:
    """The two versions of a nest, and the blocks of the runtime checks."""

    def __init__(self, body: Body, checks: RuntimeChecks, told: list[VersionedNest] | None) -> None:
        self.told = told
        self.body, self.checks, self.m = body, checks, checks
        head = checks.head
        (self.entry,) = (
            edge
            for s, edge in checks.flow.incoming[checks.loop.head]
            if s not in checks.loop.blocks
        )
        self.copy = NestClone(body, checks.nest, "sure")
        self.ask, self.pairs, self.load = checks.block, *(self._block(n) for n in ("pairs", "load"))
        self.ask.label = self.copy.label(head, "ask")
        self.plain = self._to(head, "plain")
        self.sure = self._to(self.copy.blocks[head], "front")
        self.objects = sorted(checks.objects.values(), key=self._order)
        self.tellers: list[Block] = []
        self.reasons: list[VersioningReason] = []
        assert checks.limit is not None
        self.limit = checks.limit

    def run(self) -> set[Block]:
        """Put them into the body; the heads of their loops."""
        checks, m = self.checks, self.m
        early = list(self._early())
        doubt = self._any(early)
        row = self._any(self._row())
        self._branch(m.any(doubt, row), self.pairs, self.load)
        m.open(self.pairs)
        overlaps = list(self._overlaps())
        unsure = m.any(doubt, self._any(overlaps))
        pairs = self._telling([*early, *overlaps])
        self._branch(unsure, pairs, self.load)
        m.open(self.load)
        late = list(self._late())
        self._branch(self._any(late), self._telling(late), self.sure)
        blocks = [self.ask, self.pairs, self.load, *self.tellers, self.plain, self.sure]
        self._end_telling()
        self.entry.block, self.entry.arguments = self.ask, []
        place = self.body.blocks.index(self.copy.blocks[checks.head])
        self.body.blocks[place:place] = blocks
        self._spare_checks()
        self._advance_loads()
        heads = {checks.blocks[loop.head] for loop in checks.loops}
        return heads | {self.copy.blocks[head] for head in heads}

    def footprints(self) -> dict[Operation, Footprint]:
        """The footprints of the copy's loads and stores, as far as they are known."""
        found = {access: self.checks.footprint(access) for access in self.checks.accesses}
        return {self.copy.operation(a): place for a, place in found.items() if place is not None}

    def _block(self, name: str) -> Block:
        head = self.checks.head
        return Block(self.copy.label(head, name), head.pc)

    def _to(self, head: Block, name: str) -> Block:
        """A block in front of a version."""
        block = self._block(name)
        block.terminator = Terminator("jump", edges=(Edge(head, [*self.entry.arguments]),))
        return block

    def _branch(self, doubt: Value, yes: Block, no: Block) -> None:
        edges = Edge(yes, []), Edge(no, [])
        self.m.close(Terminator("branch", (), (doubt,), edges=edges))

    def _order(self, each: HeapObject) -> tuple[int, int]:
        reference = each.reference
        if isinstance(reference, Constant):
            return -1, reference.bits
        order = self.checks.order
        return order.get(reference, len(order)), 0

    # --- what is asked ----------------------------------------------------------------------

    def _any(self, doubts: Iterable[Doubt]) -> Value:
        found: Value = self.m.constant(BOOLEAN, 0)
        for doubt, _ in doubts:
            found = self.m.any(found, doubt)
        return found

    def _early(self) -> Iterator[Doubt]:
        """Doubts about numbers: whether values are small, expressions are monotonic, and what is
        fixed passes."""
        m, checks = self.m, self.checks
        outside = VersioningReason(OUTSIDE, (checks.head.pc,))
        yield self._is_any_above([self.limit, *checks.first], LARGEST_BASE - 1), outside
        middle = m.constant(I64, LARGEST_BASE)
        numbers = [value for value in checks.small if not isinstance(value, Constant)]
        moved = [m.add(I64, number, middle) for number in numbers]
        yield self._is_any_above(moved, 2 * LARGEST_BASE - 1), outside
        capacity = m.invariant("heap_capacity", (), (), I64)
        yield m.compare(I64, Condition.GT_U, self.limit, capacity), outside
        yield from checks.doubts.items()

    def _is_any_above(self, values: Iterable[Value], most: int) -> Value:
        """Whether one of some values is above a number, which is one less than a power of two."""
        together: Value = self.checks.zero
        for value in values:
            together = self.m.bit_or(I64, together, value)
        return self.m.compare(I64, Condition.GT_U, together, self.m.constant(I64, most))

    def _row(self) -> Iterator[Doubt]:
        """Whether objects do not lie in the order of their references, up to the limit."""
        above = [*(self._first(each) for each in self.objects[1:]), self.limit]
        for each, end in zip(self.objects, above, strict=True):
            yield self._is_short(each, end), VersioningReason(OVERLAP, (each.pc,))

    def _first(self, each: HeapObject) -> Value:
        """The address of an object's first byte."""
        return self.m.add(I64, each.reference, extent(each).low)

    def _is_short(self, each: HeapObject, end: Value) -> Value:
        """Whether an object does not end before another place."""
        distance = self.m.sub(I64, end, each.reference)
        return self.m.compare(I64, Condition.LT_S, distance, extent(each).high)

    def _overlaps(self) -> Iterator[Doubt]:
        """Whether objects reach past the limit, or what is stored into overlaps others."""
        for number, a in enumerate(self.objects):
            yield self._is_short(a, self.limit), VersioningReason(OUTSIDE, (a.pc,))
            for b in self.objects[:number]:
                if a.stored or b.stored:
                    short = self._is_short(a, self._first(b)), self._is_short(b, self._first(a))
                    yield self.m.all(*short), VersioningReason(OVERLAP, (b.pc, a.pc))

    def _late(self) -> Iterator[Doubt]:
        """Whether an index is not below a length."""
        for (largest, address), pc in self.checks.late.items():
            length = self.m.invariant("heap_load", (WORD_BYTES,), (address,), I64)
            yield (
                self.m.compare(I64, Condition.GE_U, largest, length),
                VersioningReason(TOO_LARGE, (pc,)),
            )

    # --- what is told -----------------------------------------------------------------------

    def _telling(self, doubts: list[Doubt]) -> Block:
        """Where control goes if one of some doubts holds: to the nest as it was, by way of a block
        that tells the first of them, if somebody wants to know."""
        if self.told is None:
            return self.plain
        block, m = self._block("why"), self.m
        question = m.block
        first = len(self.reasons) + 1
        self.reasons += (reason for _, reason in doubts)
        m.open(block)
        number: Value = m.constant(I64, 0)
        for place, (doubt, _) in reversed([*enumerate(doubts, first)]):
            number = m.select(doubt, m.constant(I64, place), number)
        m.emit(Operation("tell", None, (len(self.told),), (number,)))
        m.close(Terminator("jump", edges=(Edge(self.plain, []),)))
        m.open(question)
        self.tellers.append(block)
        return block

    def _end_telling(self) -> None:
        """Have the version without checks tell that it is run."""
        if self.told is not None:
            nothing = self.m.constant(I64, 0)
            self.sure.operations.append(Operation("tell", None, (len(self.told),), (nothing,)))
            self.told.append(VersionedNest(self.checks.head.pc, None, tuple(self.reasons)))

    # --- the copy ---------------------------------------------------------------------------

    def _spare_checks(self) -> None:
        eliminated = self.checks.eliminated
        for old, new in self.copy.blocks.items():
            pairs = zip(old.operations, new.operations, strict=True)
            new.operations = [copy for each, copy in pairs if each not in eliminated]

    def _advance_loads(self) -> None:
        """Hoist loads from ranges that a loop does not store into."""
        checks = self.checks
        at = {
            operation: checks.home[operation]
            for operation in checks.accesses
            if operation.name == "heap_load" and self._is_sure(operation)
        }
        for loop in checks.loops:
            stored = {
                checks.accesses[o][0]
                for place in loop.blocks
                for o in checks.blocks[place].operations
                if o.name == "heap_store"
            }
            front = checks.front(loop)
            for load, place in at.items():
                reference, part = checks.accesses[load]
                address = checks.home.get(load.arguments[0])
                if (
                    place in loop.blocks
                    and reference not in stored
                    and address not in loop.blocks
                    and (loop is checks.loop or checks.holds(part.terms, front))
                ):
                    self._block_at(place).operations.remove(self.copy.operation(load))
                    at[load] = front
                    self._block_at(front).operations.append(self.copy.operation(load))

    def _block_at(self, place: int) -> Block:
        """The copy of a block, or what is in front of the copy."""
        return self.copy.blocks.get(self.checks.blocks[place], self.sure)

    def _is_sure(self, load: Operation) -> bool:
        """True if what is loaded lies in an object."""
        return self.checks.may_be_accessed(*self.checks.accesses[load])
