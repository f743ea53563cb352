# SPDX-License-Identifier: Apache-2.0
"""Loops over the items of each parallel region, in place of the loop of a launch.

    group ──────────────────────────────────────> header (the launch's loop, as it was, up to barriers)
      └─> begin ─> head 0 ─> item 0 … latch 0        ▲
                      └──> done 0 ─> dispatch ─> head 1 ─> item 1 … latch 1 ─> done 1 ─> dispatch …
                                        └── all have ended ──┘

`group` decides: parallel regions are for a launch of which no item has started, with room for its context
arrays above its frames on the stack, and for the record that an exit may have to write. The loop as it was
serves all others; it leaves at the first barrier, as it did.

A region that is entered from one other region only follows it; the others follow a dispatch, so that the
loop around regions has one header. Behind a region with several ends, the first item's end decides; if
another item has come to another one, control leaves, for the engine to trap.
"""

from __future__ import annotations

import dataclasses

from ferryvm.ir.build import Builder
from ferryvm.ir.graph import (
    BOOLEAN,
    Block,
    Body,
    Constant,
    Edge,
    FrameState,
    Module,
    Operation,
    Parameter,
    Phase,
    Terminator,
    Value,
)
from ferryvm.ir.group.copy import RegionCopy
from ferryvm.ir.group.home import Homes
from ferryvm.ir.group.launch import (
    Barrier,
    Launch,
    NotGroupedError,
    launch_loops,
    split_launch,
    truncate,
)
from ferryvm.ir.group.record import (
    ARRAY_STRIDE,
    FIRST_SHARED,
    Computed,
    Element,
    Group,
    ItemNumber,
    Literal,
    Shared,
    Source,
    Wait,
)
from ferryvm.ir.loop.natural import Loop
from ferryvm.ir.loop.preheader import Labels, insert_before, lead_to
from ferryvm.ir.passes.dead_code import remove_dead_code
from ferryvm.isa.declared_type import ITEM_BYTES
from ferryvm.isa.emitter import Condition
from ferryvm.isa.frame import HEADER_WORDS
from ferryvm.isa.type import I32, I64, WORD_BYTES, Reference, Type
from ferryvm.verify import Verified

MOST_ITEMS = 1 << 16
"""Items of a group, at most: larger launches run as before."""


def form_groups(module: Module, verified: Verified) -> None:
    """Run the items of launches in parallel regions where they wait at barriers; `Module.groups` has these
    launches, `Module.ungrouped` the reasons for others."""
    for body in module.bodies:
        handled: set[Operation] = set()
        formed = len(module.groups)
        while (found := _next(body, verified, handled)) is not None:
            loop, exits = found
            handled.update(exits)
            _form(module, body, loop, exits, verified)
        if formed < len(module.groups):
            remove_dead_code(body)


def _next(
    body: Body, verified: Verified, handled: set[Operation]
) -> tuple[Loop, list[Operation]] | None:
    """The next launch whose items wait, with its barriers."""
    for loop, exits in launch_loops(body, verified.program):
        if handled.isdisjoint(exits):
            return loop, exits
    return None


def _form(
    module: Module, body: Body, loop: Loop, exits: list[Operation], verified: Verified
) -> None:
    pc = loop.header.pc
    try:
        if module.counting:
            raise NotGroupedError("instructions are counted")
        launch = split_launch(body, loop, exits, verified.program)
        homes = Homes(launch)
        homes.check_start()
        _Formation(module, launch, homes, verified).run()
    except NotGroupedError as reason:
        module.ungrouped[pc] = str(reason)


class _Formation(Builder):
    """The replacement of one launch's loop."""

    def __init__(self, module: Module, launch: Launch, homes: Homes, verified: Verified) -> None:
        super().__init__(launch.body.constants)
        self.launch, self.homes, self.verified = launch, homes, verified
        self.body: Body = launch.body
        self.labels = Labels(self.body)
        start = len(launch.test.exit.words)
        self.group = Group(len(module.groups), launch.pc, start - 1, slots=len(homes.slots) + 1)
        self.module = module
        self.made: list[Block] = []
        """The new blocks, in their order."""
        self._shared: dict[Value, Value] = {}
        """Shared values of items, computed in front of the group."""
        self._places: dict[Value, int] = {}
        """Of values that phases have, their places."""

    def run(self) -> None:
        """Form them."""
        launch, group = self.launch, self.group
        begin = self._decide()
        for barrier in launch.barriers:
            group.barriers.append(self._wait(barrier))
        copies = self._copies()
        self._connect(begin, copies)
        insert_before(self.body, {launch.header: self.made})
        truncate(launch)
        self.module.groups.append(group)

    # --- in front of the group --------------------------------------------------------------

    def _block(self, name: str, pc: int | None = None) -> Block:
        block = self.labels.block(self.launch.header, name)
        block.pc = self.launch.pc if pc is None else pc
        self.made.append(block)
        return block

    def _decide(self) -> Block:
        """The block that selects parallel regions; then the one in which they begin."""
        launch, number = self.launch, Parameter(I64)
        entry = self._block("group")
        entry.parameters = [number]
        for _, edge in launch.loop.entries:
            edge.block = entry
        self.open(entry)
        self.pc = launch.pc
        zero = self.constant(I64, 0)
        items, record = launch.limit, launch.test.exit.words[-1]
        assert record is not None
        longest = max(
            len(o.state.words)
            for block in launch.members
            for o in (*block.operations, block.end, *(b.exit for b in launch.barriers))
            if o.state is not None
        )
        frame = self.invariant("frame", (), (), I64)
        self.context = self.add(I64, frame, self.constant(I64, WORD_BYTES * longest))
        self.stride = self.shl(I64, items, self.constant(I64, ARRAY_STRIDE.bit_length() - 1))
        size = self.mul(I64, self.stride, self.constant(I64, self.group.slots))
        each = ITEM_BYTES + 2 * WORD_BYTES * longest
        objects = self.mul(I64, items, self.constant(I64, each))
        objects = self.add(I64, objects, self.constant(I64, ITEM_BYTES))
        top = self.emit(Operation("object_top", I64))
        end, limit = (self.invariant(n, (), (), I64) for n in ("object_end", "stack_limit"))
        most = self.constant(I64, MOST_ITEMS)
        conditions = [
            self.compare(I64, Condition.EQ, record, zero),
            self.compare(I64, Condition.EQ, number, zero),
            self.compare(I64, Condition.GT_S, items, zero),
            self.compare(I64, Condition.LE_S, items, most),
            self.compare(I64, Condition.LE_U, self.add(I64, top, objects), end),
            self.compare(I64, Condition.LE_U, self.add(I64, self.context, size), limit),
        ]
        is_fit = conditions[0]
        for each_ in conditions[1:]:
            is_fit = self.all(is_fit, each_)
        begin = self._block("begin")
        self._branch(is_fit, Edge(begin, []), Edge(launch.header, [number]))
        self.open(begin)
        for old in self.homes.shared:
            arguments = tuple([self._shared.get(a, a) for a in old.arguments])
            new = self.emit(Operation(old.name, old.type, old.static, arguments))
            new.pc = old.pc
            self._shared[old] = new
        self._arrays = {
            slot: self.add(I64, self.context, self.mul(I64, self.stride, self.constant(I64, slot)))
            for slot in range(self.group.slots)
        }
        return begin

    def _branch(self, p: Value, yes: Edge, no: Edge) -> None:
        self.close(Terminator("branch", (), (p,), None, (yes, no)))

    def _jump(self, target: Block, *arguments: Value, is_back: bool = False) -> None:
        self.close(Terminator("jump", edges=(Edge(target, [*arguments], is_back),)))

    # --- the record -------------------------------------------------------------------------

    def _wait(self, barrier: Barrier) -> Wait:
        """The frames of the items at a barrier."""
        state, start = barrier.exit.exit, self.group.record + 1
        words = [*state.words[start:-1], self.constant(I32, 1)]
        return Wait(
            state.pc,
            self.body.header_of(state) - start,
            tuple([self._source(word) for word in words]),
            tuple(place - start for place in self._references(state) if place >= start),
        )

    def _source(self, value: Value | None) -> Source:
        """The origin of a word of an item that waits."""
        assert value is not None
        t = value.type if isinstance(value.type, Type) else None
        shared = self._shared.get(value, value)
        if isinstance(shared, Constant):
            return Literal(shared.bits, t)
        if self.homes.is_shared(value):
            place = self._places.setdefault(shared, FIRST_SHARED + len(self._places))
            return Shared(place, t)
        if value is self.launch.number:
            return ItemNumber()
        if self.homes.cost(value) is None:
            element = Element(self.homes.slots[value], t or I32)
            if t is not None:
                return element
            return Computed("compare", (I32, Condition.NE), (element, Literal(0, I32)), None)
        assert isinstance(value, Operation)
        operands = tuple([self._source(each) for each in value.arguments])
        return Computed(value.name, value.static, operands, t)

    def _references(self, state: FrameState) -> list[int]:
        """The words of a state that are references, in rising order."""
        program, found = self.verified.program, list[int]()
        header, pc, end = self.body.header_of(state), state.pc, len(state.words)
        while True:
            function = self.verified.owner(pc)
            first = header - len(program.signature(function).parameters)
            types = [*program.frame_types(function), *self.verified.operand_types(pc)]
            places = [*range(first, header), *range(header + HEADER_WORDS, end)]
            pairs = zip(places, types, strict=False)
            found += [place for place, t in pairs if isinstance(t, Reference)]
            if header == self.body.parameters:
                return sorted(found)
            outer, distance = state.words[header : header + HEADER_WORDS]
            assert isinstance(outer, Constant)
            assert isinstance(distance, Constant)
            pc, header, end = outer.bits - 1, header - distance.bits, first

    def _phase(self, region: int, arrived: Value, started: Value) -> Phase:
        values = (arrived, started, self.launch.limit, self.context, *self._places)
        return Phase(self.group, region, values)

    def _at_test(self, region: int, started: Value) -> FrameState:
        """The state at `launch.test` where so many items have started, and all of them arrived."""
        state = self.launch.test.exit.replace({self.launch.number: started})
        return dataclasses.replace(state, phase=self._phase(region, started, started))

    # --- regions ----------------------------------------------------------------------------

    def _copies(self) -> dict[int, _Region]:
        """The regions that items come to, by number."""
        starts = [self.launch.start, *(barrier.behind for barrier in self.launch.barriers)]
        self.group.ends = [frozenset()] * len(starts)
        found: dict[int, _Region] = {}
        worklist = [0]
        while worklist:
            number = worklist.pop()
            if number in found:
                continue
            made = found[number] = _Region(self, number, starts[number])
            self.group.ends[number] = made.ends
            worklist += made.ends - {0}
        return found

    def _connect(self, begin: Block, regions: dict[int, _Region]) -> None:
        """Put the loops of regions in order, and lead control from one to the next."""
        sources: dict[int, set[int]] = {}
        for number, region in regions.items():
            for end in region.ends - {0}:
                sources.setdefault(end, set()).add(number)
        direct = {end: min(own) for end, own in sources.items() if len(own) == 1}
        self.dispatched = sorted(sources.keys() - direct.keys())
        lead_to(begin, regions[0].head, regions[0].first_arguments())
        self.dispatch = self._new_dispatch()
        for root in (0, None, *self.dispatched):
            if root is None:
                if self.dispatched:
                    self.made.append(self.dispatch)
                continue
            order = [root]
            for number in order:
                order += [end for end, source in direct.items() if source == number]
                self.made += regions[number].blocks
        for region in regions.values():
            region.end(regions, direct)
        if self.dispatched:
            self._fill_dispatch(regions)

    def _new_dispatch(self) -> Block:
        block = self.labels.block(self.launch.header, "dispatch")
        block.parameters = [Parameter(I64)]
        return block

    def _fill_dispatch(self, regions: dict[int, _Region]) -> None:
        """Enter the region whose number is passed."""
        self.open(self.dispatch)
        (number,) = self.dispatch.parameters
        first = self.dispatched[0]
        edges = [
            Edge(regions[each].head, [*regions[each].first_arguments()]) for each in self.dispatched
        ]
        if len(edges) == 1:
            self.close(Terminator("jump", edges=(edges[0],)))
            return
        dense = [edges[0]] * (self.dispatched[-1] - first + 1)
        for each, edge in zip(self.dispatched, edges, strict=True):
            dense[each - first] = Edge(edge.block, [*edge.arguments])
        index = self.sub(I64, number, self.constant(I64, first))
        dense = [Edge(edge.block, [*edge.arguments]) for edge in dense]
        self.close(Terminator("switch", (), (index,), None, tuple(dense)))


class _Region:
    """The loop over all items of one region."""

    def __init__(self, formation: _Formation, number: int, start: Block) -> None:
        self.formation, self.number = formation, number
        form, launch = formation, formation.launch
        before, form.made = form.made, []
        name = f"region{number}"
        self.head = form._block(f"{name}.head", start.pc)
        self.item = form._block(f"{name}.item", start.pc)
        made, form.made = form.made, before
        self._loaded: dict[Value, Value] = {}
        self.index = Parameter(I64)
        self.head.parameters = [self.index]
        form.open(self.item)
        self.started = form.add(I64, self.index, form.constant(I64, 1))
        phase = form._phase(number, self.index, self.started)
        self.copy = RegionCopy(form.homes, start, form.labels, name, self._entry_value, phase)
        self.copy.fill()
        self._numbers = {b: at + 1 for at, b in enumerate(launch.barriers)}
        found = {0 if b is None else self._numbers[b] for _, _, b in self.copy.ends}
        self.ends = frozenset(found)
        self.latch = form.labels.block(launch.header, f"{name}.latch")
        self.done = form.labels.block(launch.header, f"{name}.done")
        self.has_choice = len(self.ends) > 1
        self.blocks = [*made, *self.copy.blocks, self.latch, self.done]
        self.more: list[Block] = []
        self._store()
        self.copy.finish()
        lead_to(self.item, self.copy.entry, [])
        self._loop()

    def first_arguments(self) -> list[Value]:
        """The arguments with which its loop is entered."""
        form = self.formation
        zero = form.constant(I64, 0)
        return [zero, zero, form.constant(BOOLEAN, 0)] if self.has_choice else [zero]

    def _entry_value(self, value: Value) -> Value:
        """A value of items at the region's start."""
        form, homes = self.formation, self.formation.homes
        if isinstance(value, Constant) or value not in homes.defined:
            return value
        if homes.is_shared(value):
            return form._shared[value]
        if value is form.launch.number:
            return self.index
        found = self._loaded.get(value)
        if found is None:
            found = self._loaded[value] = self._load(value)
        return found

    def _load(self, value: Value) -> Value:
        form = self.formation
        if form.homes.cost(value) is None:
            array = form._arrays[form.homes.slots[value]]
            t = value.type if isinstance(value.type, Type) else I32
            load = Operation("context_load", t, (t,), (array, self.index))
            self.item.operations.append(load)
            if isinstance(value.type, Type):
                return load
            form.open(self.item)
            return form.compare(I32, Condition.NE, load, form.constant(I32, 0))
        assert isinstance(value, Operation)
        arguments = tuple([self._entry_value(each) for each in value.arguments])
        new = Operation(value.name, value.type, value.static, arguments)
        new.pc = value.pc
        self.item.operations.append(new)
        return new

    def _store(self) -> None:
        """Store what is needed behind the barriers at which it ends."""
        form = self.formation
        for block, node, barrier in self.copy.ends:
            form.open(block)
            number = 0 if barrier is None else self._numbers[barrier]
            for value in () if barrier is None else form.homes.stored(barrier):
                found = self.copy.read(node, value)
                if found is not self._loaded.get(value):
                    self._put(form.homes.slots[value], found)
            reached = form.constant(I64, number)
            if self.has_choice:
                self._put(0, reached)
                form._jump(self.latch, reached)
            else:
                form._jump(self.latch)

    def _put(self, slot: int, value: Value) -> None:
        form = self.formation
        if not isinstance(value.type, Type):
            value = form.boolean_to_i32(value)
        array = form._arrays[slot]
        arguments = array, self.index, value
        form.emit(Operation("context_store", None, (value.word_type,), arguments))

    def _loop(self) -> None:
        """Finish the loop over items."""
        form = self.formation
        form.open(self.head)
        arguments: list[Value] = [self.started]
        more = form.compare(I64, Condition.LT_S, self.index, form.launch.limit)
        if self.has_choice:
            first, differs = Parameter(I64), Parameter(BOOLEAN)
            self.head.parameters += [first, differs]
            self.first, self.differs = first, differs
            form._branch(more, Edge(self.item, []), Edge(self.done, []))
            form.open(self.latch)
            reached = Parameter(I64)
            self.latch.parameters = [reached]
            is_first = form.compare(I64, Condition.EQ, self.index, form.constant(I64, 0))
            new = form.select(is_first, reached, first)
            other = form.compare(I64, Condition.NE, new, reached)
            arguments += [new, form.any(differs, other)]
        else:
            form._branch(more, Edge(self.item, []), Edge(self.done, []))
            form.open(self.latch)
        state = form._at_test(self.number, self.started)
        form.emit(Operation("poll", None, (), (), state))
        form._jump(self.head, *arguments, is_back=True)

    def end(self, regions: dict[int, _Region], direct: dict[int, int]) -> None:
        """Lead control from the end of the loop to what comes next."""
        form = self.formation
        form.open(self.done)
        state = form._at_test(self.number, form.launch.limit)
        if self.has_choice:
            form.emit(Operation("continue_launch_if", None, (), (self.differs,), state))
        is_back = self.number not in self._before_dispatch(direct)
        onward = sorted(self.ends)
        while True:
            end = onward.pop()
            edge = self._edge(end, regions, direct, state if is_back else None)
            if not onward:
                form.close(Terminator("jump", edges=(edge,)))
                return
            p = form.compare(I64, Condition.EQ, self.first, form.constant(I64, end))
            between = form.labels.block(form.launch.header, f"region{self.number}.next")
            form.made.insert(form.made.index(form.block) + 1, between)
            form._branch(p, edge, Edge(between, []))
            form.open(between)

    def _before_dispatch(self, direct: dict[int, int]) -> set[int]:
        found = [0]
        for number in found:
            found += [end for end, source in direct.items() if source == number]
        return {*found}

    def _edge(
        self,
        end: int,
        regions: dict[int, _Region],
        direct: dict[int, int],
        back: FrameState | None,
    ) -> Edge:
        """The edge behind items that have come to an end; `back`: the state of a poll, if the dispatch is
        in front of this region."""
        form = self.formation
        if not end:
            return Edge(form.launch.header, [form.launch.limit])
        if end in direct:
            return Edge(regions[end].head, regions[end].first_arguments())
        edge = Edge(form.dispatch, [form.constant(I64, end)], back is not None)
        if back is None:
            return edge
        here, again = (
            form.block,
            form.labels.block(form.launch.header, f"region{self.number}.again"),
        )
        form.made.insert(form.made.index(here) + 1, again)
        form.open(again)
        form.emit(Operation("poll", None, (), (), back))
        form.close(Terminator("jump", edges=(edge,)))
        form.open(here)
        return Edge(again, [])
