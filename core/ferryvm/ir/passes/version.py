# SPDX-License-Identifier: Apache-2.0
"""Two versions of a loop nest that stores: one as it was, one without the checks that all pass.

    in front:   is it sure that these checks pass, however often the nest's loops go round?
                  ├─ no  ─> the nest as it was
                  └─ yes ─> a copy without them

A store may hit the length that another check compares with: references are plain offsets into the
heap. So after each store all lengths have to be loaded again, and no check follows from an earlier
one. It is asked once, then, in front of the outermost loop where that can be done, whether all
objects that the nest touches (`ferryvm.ir.touch`) are in bounds, and none that is stored into
overlaps another. So no length changes in the copy; and what an inner loop does not store into is
loaded in front of that loop there. (Gupta: Optimizing Array Bound Checks Using Flow Analysis, 1993,
section 5, asks for the largest value of a line; but here no check fails early, for the nest as it
was is still there.)

The usual case is cheap to ask about: vectors that were made one after another, and so lie in the
heap in the order in which their references are defined. Otherwise all pairs are compared.

Nests whose innermost loops do not store are left to `range`. Needs `hoist` before it, for one way into each loop,
and `number`; runs before `relax`. Keeps effects, and every exit that can be taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ferryvm.ir.duplicate import Copy
from ferryvm.ir.flow import Flow
from ferryvm.ir.graph import TRUTH, Block, Body, Constant, Edge, Operation, Terminator, Value
from ferryvm.ir.line import Line
from ferryvm.ir.passes.prune import prune
from ferryvm.ir.touch import LARGEST_BASE, LARGEST_NEST, Object, Place, Plan, UnfitError
from ferryvm.isa.emitter import Condition
from ferryvm.isa.type import I64, WORD_BYTES


def version_nests(
    body: Body, places: dict[Operation, Place] | None = None, largest: int = LARGEST_NEST
) -> int:
    """Make two versions of nests where that pays; how many nests that were.

    `places`: gets what is known of the accesses in the versions without checks; `largest`: operations
    that a nest may have.
    """
    places = {} if places is None else places
    made = 0
    done: set[Block] = set()
    """Heads of loops that have been looked at, or are in a nest that has two versions now."""
    while (plan := _next_plan(body, done, largest)) is not None:
        split = _Split(body, plan)
        places |= split.places()
        done |= split.run()
        made += 1
    if made:
        prune(body)
    return made


def _next_plan(body: Body, done: set[Block], largest: int) -> Plan | None:
    """The plan for the first nest that gets two versions, outer ones before inner ones."""
    if not {"heap_store", "trap_if"} <= {operation.name for operation in body.operations}:
        return None
    flow = Flow(body)
    loops = flow.loops()
    for loop in reversed(loops):
        head = flow.blocks[loop.head]
        if head not in done:
            done.add(head)
            try:
                return Plan(body, flow, loop, loops, largest)
            except UnfitError:
                continue
    return None


class _Split:
    """Two versions of a nest, and the blocks in front of them."""

    def __init__(self, body: Body, plan: Plan) -> None:
        self.body, self.plan, self.m = body, plan, plan
        head = plan.head
        (self.entry,) = (
            edge for s, edge in plan.flow.incoming[plan.loop.head] if s not in plan.loop.blocks
        )
        self.copy = Copy(body, plan.nest, "sure")
        self.ask, self.pairs, self.load = plan.block, *(self._block(n) for n in ("pairs", "load"))
        self.ask.label = self.copy.label(head, "ask")
        self.plain = self._to(head, "plain")
        self.sure = self._to(self.copy.blocks[head], "front")
        self.objects = sorted(plan.objects.values(), key=self._order)
        self.sizes = [self._size(each) for each in self.objects]
        assert plan.limit is not None
        self.limit = plan.limit

    def run(self) -> set[Block]:
        """Put them into the body; the heads of their loops."""
        plan, m = self.plan, self.m
        blocks = [self.ask, self.pairs, self.load, self.plain, self.sure]
        doubt = self._any(self._early())
        self._branch(m.any(doubt, self._any(self._row())), self.pairs, self.load)
        m.open(self.pairs)
        self._branch(m.any(doubt, self._any(self._overlaps())), self.plain, self.load)
        m.open(self.load)
        self._branch(self._any(self._late()), self.plain, self.sure)
        self.entry.block, self.entry.arguments = self.ask, []
        place = self.body.blocks.index(self.copy.blocks[plan.head])
        self.body.blocks[place:place] = blocks
        self._spare_checks()
        self._advance_loads()
        heads = {plan.blocks[loop.head] for loop in plan.loops}
        return heads | {self.copy.blocks[head] for head in heads}

    def places(self) -> dict[Operation, Place]:
        """Where loads and stores of the copy go, as far as that is known."""
        found = {access: self.plan.place(access) for access in self.plan.places}
        return {self.copy.operation(a): place for a, place in found.items() if place is not None}

    def _block(self, name: str) -> Block:
        head = self.plan.head
        return Block(self.copy.label(head, name), head.pc)

    def _to(self, head: Block, name: str) -> Block:
        """A block in front of a version."""
        block = self._block(name)
        block.terminator = Terminator("jump", edges=(Edge(head, [*self.entry.arguments]),))
        return block

    def _branch(self, doubt: Value, yes: Block, no: Block) -> None:
        edges = Edge(yes, []), Edge(no, [])
        self.m.close(Terminator("branch", (), (doubt,), edges=edges))

    def _order(self, each: Object) -> tuple[int, int]:
        reference = each.reference
        if isinstance(reference, Constant):
            return -1, reference.bits
        order = self.plan.order
        return order.get(reference, len(order)), 0

    # --- what is asked ----------------------------------------------------------------------

    def _any(self, doubts: Iterable[Value]) -> Value:
        found: Value = self.m.constant(TRUTH, 0)
        for doubt in doubts:
            found = self.m.any(found, doubt)
        return found

    def _size(self, each: Object) -> Value:
        """Bytes from the reference on up to the last one that is touched."""
        m = self.m
        ends: dict[Value, None] = {}
        fixed = 0
        for part in each.parts:
            end = m.constant(I64, part.offset + part.bytes)
            largest = self.plan.lines.largest(Line(end, part.terms), self.plan.tops)
            if isinstance(largest, Constant):
                fixed = max(fixed, largest.bits)
            else:
                ends[largest] = None
        size: Value = m.constant(I64, fixed)
        for more in ends:  # all at most 2^62
            is_more = m.compare(I64, Condition.GT_U, more, size)
            size = m.select(is_more, more, size)
        return size

    def _early(self) -> Iterator[Value]:
        """Doubts about numbers: whether lines rise, values are small, and what is fixed passes."""
        m, plan = self.m, self.plan
        together: Value = self.limit
        for value in plan.small:
            if not isinstance(value, Constant):
                together = m.bit_or(I64, together, value)
        most = m.constant(I64, LARGEST_BASE - 1)
        yield m.compare(I64, Condition.GT_U, together, most)
        capacity = m.invariant("heap_capacity", (), (), I64)
        yield m.compare(I64, Condition.GT_U, self.limit, capacity)
        yield from plan.doubts

    def _row(self) -> Iterator[Value]:
        """Whether objects do not lie in the order of their references, up to the limit."""
        references = [each.reference for each in self.objects]
        above = [*references[1:], self.limit]
        for reference, size, end in zip(references, self.sizes, above, strict=True):
            yield self._is_short(reference, size, end)

    def _is_short(self, reference: Value, size: Value, end: Value) -> Value:
        """Whether an object does not end before another place."""
        m = self.m
        return m.compare(I64, Condition.LT_S, m.sub(I64, end, reference), size)

    def _overlaps(self) -> Iterator[Value]:
        """Whether objects reach past the limit, or what is stored into overlaps others."""
        objects = list(zip(self.objects, self.sizes, strict=True))
        for number, (a, size) in enumerate(objects):
            yield self._is_short(a.reference, size, self.limit)
            for b, other in objects[:number]:
                if a.stored or b.stored:
                    yield self.m.all(
                        self._is_short(a.reference, size, b.reference),
                        self._is_short(b.reference, other, a.reference),
                    )

    def _late(self) -> Iterator[Value]:
        """Whether an index is not below a length."""
        for largest, address in self.plan.late:
            length = self.m.invariant("heap_load", (WORD_BYTES,), (address,), I64)
            yield self.m.compare(I64, Condition.GE_U, largest, length)

    # --- the copy ---------------------------------------------------------------------------

    def _spare_checks(self) -> None:
        spared = self.plan.spared
        for old, new in self.copy.blocks.items():
            pairs = zip(old.operations, new.operations, strict=True)
            new.operations = [copy for each, copy in pairs if each not in spared]

    def _advance_loads(self) -> None:
        """Load in front of a loop what the loop does not store into."""
        plan = self.plan
        at = {
            operation: plan.home[operation]
            for operation in plan.places
            if operation.name == "heap_load" and self._is_sure(operation)
        }
        for loop in plan.loops:
            stored = {
                plan.places[o][0]
                for place in loop.blocks
                for o in plan.blocks[place].operations
                if o.name == "heap_store"
            }
            front = plan.front(loop)
            for load, place in at.items():
                reference, part = plan.places[load]
                address = plan.home.get(load.arguments[0])
                if (
                    place in loop.blocks
                    and reference not in stored
                    and address not in loop.blocks
                    and (loop is plan.loop or plan.holds(part.terms, front))
                ):
                    self._block_at(place).operations.remove(self.copy.operation(load))
                    at[load] = front
                    self._block_at(front).operations.append(self.copy.operation(load))

    def _block_at(self, place: int) -> Block:
        """The copy of a block, or what is in front of the copy."""
        return self.copy.blocks.get(self.plan.blocks[place], self.sure)

    def _is_sure(self, load: Operation) -> bool:
        """Whether what is loaded lies in an object."""
        return self.plan.is_touched(*self.plan.places[load])
