# SPDX-License-Identifier: Apache-2.0
"""The loop over all items of one parallel region.

before: what all items have in common
  └──> head ─> item: values loaded or computed ─> the region's copy ─> values stored ─> latch ─> head
         └──> done ─> what comes next
"""

from __future__ import annotations

from ferryvm.ir.graph import (
    BOOLEAN,
    Block,
    Edge,
    FrameState,
    Operation,
    Parameter,
    Terminator,
    Value,
)
from ferryvm.ir.group.copy import RegionCopy
from ferryvm.ir.group.entry_value import EntryValues
from ferryvm.ir.group.group_builder import GroupBuilder
from ferryvm.ir.loop.preheader import lead_to
from ferryvm.isa.emitter import Condition
from ferryvm.isa.type import I32, I64, Type


class ItemLoop:
    """The loop over all items of one region."""

    def __init__(self, formation: GroupBuilder, number: int, start: Block) -> None:
        self.formation, self.number = formation, number
        form, launch = formation, formation.launch
        before, form.made = form.made, []
        name = f"region{number}"
        self.before = form.new_block(f"{name}.before")
        self.head = form.new_block(f"{name}.head")  # as that of a launch: its items are independent
        self.item = form.new_block(f"{name}.item", start.pc)
        made, form.made = form.made, before
        self.index = Parameter(I64)
        self._values = EntryValues(form.homes, form.shared, self.index, self.item, self._load)
        self.head.parameters = [self.index]
        form.open(self.item)
        if not number:
            self._pay_test()
        self.started = form.add(I64, self.index, form.constant(I64, 1))
        phase = form.phase(number, self.index, self.started)
        self.copy = RegionCopy(form.homes, start, form.labels, name, self._values, phase)
        self.copy.fill()
        self._numbers = {b: at + 1 for at, b in enumerate(launch.barriers)}
        found = {0 if b is None else self._numbers[b] for _, _, b in self.copy.ends}
        self.ends = frozenset(found)
        self.latch = form.labels.block(launch.header, f"{name}.latch")
        self.done = form.labels.block(launch.header, f"{name}.done")
        self.has_choice = len(self.ends) > 1
        self.may_differ = not all(form.homes.is_common(node[0]) for _, node, _ in self.copy.ends)
        """True if items may come to different ends."""
        self.blocks = [*made, *self.copy.blocks, self.latch, self.done]
        self.more: list[Block] = []
        self._store()
        self.copy.finish()
        lead_to(self.item, self.copy.entry, [])
        self._loop()
        zero = form.constant(I64, 0)
        first: list[Value] = [zero, zero, form.constant(BOOLEAN, 0)]
        lead_to(self.before, self.head, first[: len(self.head.parameters)])

    def _pay_test(self) -> None:
        """Pay for the `launch.test` in front of each item, in the counting form."""
        form = self.formation
        for pay in form.launch.header.operations:
            if pay.name == "pay":
                state = form.at_test(self.number, self.index)
                form.emit(Operation("pay", None, pay.static, (), state))

    def _load(self, value: Value) -> Value:
        """A value of its context array."""
        form = self.formation
        slot = form.homes.slots[value]
        t = value.type if isinstance(value.type, Type) else I32
        is_uniform = form.homes.is_uniform(value)
        index = form.constant(I64, 0) if is_uniform else self.index
        place = form.arrays[slot], index
        load = Operation("context_load", t, form.group.context(t, slot), place)
        block = self.before if is_uniform else self.item
        block.operations.append(load)
        if isinstance(value.type, Type):
            return load
        form.open(block)
        return form.compare(I32, Condition.NE, load, form.constant(I32, 0))

    def _store(self) -> None:
        """Store what is needed behind the barriers at which it ends."""
        form = self.formation
        for block, node, barrier in self.copy.ends:
            number = 0 if barrier is None else self._numbers[barrier]
            stored = [] if barrier is None else [*form.homes.stored(barrier)]
            # A value that is read for the first time may be loaded in the item's block.
            found = [self.copy.read(node, value) for value in stored]
            form.open(block)
            for value, new in zip(stored, found, strict=True):
                if new is not self._values.found.get(value):
                    self._put(form.homes.slots[value], new)
            reached = form.constant(I64, number)
            if self.has_choice:
                self._put(0, reached)
                form.jump(self.latch, reached)
            else:
                form.jump(self.latch)

    def _put(self, slot: int, value: Value) -> None:
        form = self.formation
        if not isinstance(value.type, Type):
            value = form.boolean_to_i32(value)
        static, arguments = (
            form.group.context(value.word_type, slot),
            (form.arrays[slot], self.index, value),
        )
        form.emit(Operation("context_store", None, static, arguments))

    def _loop(self) -> None:
        """Finish the loop over items."""
        form = self.formation
        form.open(self.head)
        arguments: list[Value] = [self.started]
        more = form.compare(I64, Condition.LT_S, self.index, form.launch.limit)
        if self.has_choice:
            first, differs = Parameter(I64), Parameter(BOOLEAN)
            self.head.parameters += [first, differs] if self.may_differ else [first]
            self.first, self.differs = first, differs
            form.branch(more, Edge(self.item, []), Edge(self.done, []))
            form.open(self.latch)
            reached = Parameter(I64)
            self.latch.parameters = [reached]
            if self.may_differ:
                is_first = form.compare(I64, Condition.EQ, self.index, form.constant(I64, 0))
                new = form.select(is_first, reached, first)
                other = form.compare(I64, Condition.NE, new, reached)
                arguments += [new, form.any(differs, other)]
            else:
                arguments.append(reached)
        else:
            form.branch(more, Edge(self.item, []), Edge(self.done, []))
            form.open(self.latch)
        state = form.at_test(self.number, self.started)
        if form.module.counting and self.number and 0 in self.ends:
            # An item that has ended comes to `launch.test`, which lets the next one go on at no cost.
            form.emit(Operation("pay", None, (0, 1), (), state))
        form.emit(Operation("poll", None, (), (), state))
        form.jump(self.head, *arguments, is_back=True)

    def end(self, regions: dict[int, ItemLoop], direct: dict[int, int]) -> None:
        """Lead control from the end of the loop to what comes next."""
        form = self.formation
        form.open(self.done)
        state = form.at_test(self.number, form.launch.limit)
        if self.has_choice and self.may_differ:
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
            form.branch(p, edge, Edge(between, []))
            form.open(between)

    def _before_dispatch(self, direct: dict[int, int]) -> set[int]:
        found = [0]
        for number in found:
            found += [end for end, source in direct.items() if source == number]
        return {*found}

    def _edge(
        self,
        end: int,
        regions: dict[int, ItemLoop],
        direct: dict[int, int],
        back: FrameState | None,
    ) -> Edge:
        """The edge behind items that have come to an end; `back`: the state of a poll, if the
        dispatch is in front of this region."""
        form = self.formation
        if not end:
            return Edge(form.launch.header, [form.launch.limit])
        if end in direct:
            return Edge(regions[end].before, [])
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
