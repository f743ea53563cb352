# SPDX-License-Identifier: Apache-2.0
"""Operations that all parallel regions of a launch share: the choice in front of them, the
addresses of context arrays, phases of states, and the description of the frames of items that
wait."""

from __future__ import annotations

import dataclasses
import functools

from ferryvm.ir.build import FlowBuilder
from ferryvm.ir.graph import (
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
from ferryvm.ir.group.home import Homes
from ferryvm.ir.group.launch import (
    MOST_ITEMS,
    Barrier,
    Launch,
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
from ferryvm.ir.loop.preheader import Labels
from ferryvm.isa.declared_type import ITEM_BYTES
from ferryvm.isa.emitter import Condition
from ferryvm.isa.frame import HEADER_WORDS
from ferryvm.isa.type import I32, I64, WORD_BYTES, Reference, Type
from ferryvm.verify import Verified


class GroupBuilder(FlowBuilder):
    """The parts of a launch's parallel regions that all of them share."""

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
        self.shared: dict[Value, Value] = {}
        """Shared values of items, computed in front of the group."""
        self._places: dict[Value, int] = {}
        """Of values that phases have, their places."""
        self.dispatch = self.labels.block(launch.header, "dispatch")
        """The block that enters the region whose number it is passed. It is lifted from a barrier:
        the loops over items alone are lifted from the launch."""
        self.dispatch.pc = launch.barriers[0].exit.exit.pc
        self.dispatch.parameters = [Parameter(I64)]

    # --- in front of the group --------------------------------------------------------------

    def new_block(self, name: str, pc: int | None = None) -> Block:
        """A new block behind those that were made, lifted from an instruction: the launch's, if
        none is given."""
        block = self.labels.block(self.launch.header, name)
        block.pc = self.launch.pc if pc is None else pc
        self.made.append(block)
        return block

    def _decide(self) -> Block:
        """The block that selects parallel regions; then the one in which they begin."""
        launch, number = self.launch, Parameter(I64)
        entry = self.new_block("group")
        entry.parameters = [number]
        for _, edge in launch.loop.entries:
            edge.block = entry
        self.open(entry)
        self.pc = launch.pc
        zero, start = self.constant(I64, 0), self.group.record + 1
        items, record = launch.limit, launch.test.exit.words[-1]
        assert record is not None
        at_test = dataclasses.replace(launch.test.exit.replace({launch.number: number}), unpaid=0)
        for old in self.homes.shared:
            arguments = tuple([self.shared.get(a, a) for a in old.arguments])
            new = self.emit(Operation(old.name, old.type, old.static, arguments))
            new.pc = old.pc
            self.shared[old] = new
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
        most = max(
            len(state.words) - start + len(self._references(state))
            for state in (barrier.exit.exit for barrier in launch.barriers)
        )
        each = ITEM_BYTES + WORD_BYTES * most
        objects = self.mul(I64, items, self.constant(I64, each))
        objects = self.add(I64, objects, self.constant(I64, ITEM_BYTES))
        top = self.emit(Operation("object_top", I64))
        end, limit = (self.invariant(n, (), (), I64) for n in ("object_end", "stack_limit"))
        largest = self.constant(I64, MOST_ITEMS)
        conditions = [
            self.compare(I64, Condition.EQ, record, zero),
            self.compare(I64, Condition.EQ, number, zero),
            self.compare(I64, Condition.GT_S, items, zero),
            self.compare(I64, Condition.LE_S, items, largest),
            self.compare(I64, Condition.LE_U, self.add(I64, top, objects), end),
            self.compare(I64, Condition.LE_U, self.add(I64, self.context, size), limit),
        ]
        conditions += [self.none(self.shared.get(each, each)) for each in self.homes.faults]
        is_fit = functools.reduce(self.all, conditions)
        begin, unfit = self.new_block("begin"), self.new_block("unfit")
        self.branch(is_fit, Edge(begin, []), Edge(unfit, []))
        self.open(unfit)
        self.close(Terminator("leave", state=at_test))
        self.open(begin)
        self.emit(Operation("begin_group", None, (self.group.number,)))
        self.arrays = {
            slot: self.add(I64, self.context, self.mul(I64, self.stride, self.constant(I64, slot)))
            for slot in range(self.group.slots)
        }
        return begin

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
        shared = self.shared.get(value, value)
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

    def phase(self, region: int, arrived: Value, started: Value) -> Phase:
        """The phase of a region where so many items have come to its end, and so many have
        started."""
        values = (arrived, started, self.launch.limit, self.context, *self._places)
        return Phase(self.group, region, values)

    def at_test(self, region: int, started: Value) -> FrameState:
        """The state at `launch.test` where so many items have started, and all of them arrived."""
        state = self.launch.test.exit.replace({self.launch.number: started})
        return dataclasses.replace(state, unpaid=0, phase=self.phase(region, started, started))
