# SPDX-License-Identifier: Apache-2.0
"""Loops over groups and their members, for targets that have no work-items.

    member: A ─ barrier ─ B    ─>    for each group:
                                         arrays of the group = 0
                                         for each member: A      values that live across the barrier
                                         for each member: B      are elements of context arrays

Parallel regions are those of `ferryvm.ir.group`: their copies and the homes of values, here in
plain form, which has no states. All members come to each barrier, and those that are behind one to
the same next one, since that was checked; so the last member of a region says which region is the
next. A member that fails returns: groups run in order, and so do members between two barriers.

Sizes that are no constants are computed at the entry. The caller lends the memory of arrays with such
a length; context arrays are as large as the largest group.
"""

from __future__ import annotations

import dataclasses

from ferryvm.flowgraph.traversal import reverse_postorder
from ferryvm.ir.build import FlowBuilder
from ferryvm.ir.graph import (
    BOOLEAN,
    Block,
    Edge,
    Operation,
    Parameter,
    Terminator,
    Value,
)
from ferryvm.ir.group.copy import RegionCopy
from ferryvm.ir.group.entry_value import EntryValues
from ferryvm.ir.group.home import Homes
from ferryvm.ir.group.launch import Barrier, Launch
from ferryvm.ir.loop.natural import find_loops
from ferryvm.ir.loop.preheader import Labels
from ferryvm.ir.passes.dead_code import remove_dead_code
from ferryvm.ir.passes.jump_threading import thread_jumps
from ferryvm.ir.use import substitute
from ferryvm.isa.element import Element
from ferryvm.isa.emitter import Condition
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import F32, F64, I32, I64, Type
from ferryvm.portable.expression import OPERATIONS, Compound, Expression
from ferryvm.portable.interface import MOST_MEMBERS
from ferryvm.portable.plain import LocalArray, PlainFunction

_CONTEXTS = {F64: Element.F64, F32: Element.F32, I64: Element.I64, I32: Element.I32}
"""The elements of a context array, by the type of its values; booleans are numbers of 8 bits."""


def item_loops(function: PlainFunction) -> PlainFunction:
    """The launch of groups as a function, from the code of a member with the interface of its
    launch."""
    return _Loops(function).run()


class _Loops(FlowBuilder):
    def __init__(self, function: PlainFunction) -> None:
        super().__init__(function.body.constants)
        assert function.member is not None
        assert function.launch is not None
        assert function.launch.geometry is not None
        self.function, self.body = function, function.body
        self.member, self.interface = function.member, function.launch
        self.axes = len(function.launch.geometry.counts)
        self.labels = Labels(self.body)
        self.arrays = dict(function.arrays)
        self.shared: dict[Value, Value] = {}
        """Values that members share, computed where a group begins."""
        self.contexts: dict[Value, Parameter] = {}
        """The context arrays of values."""

    def run(self) -> PlainFunction:
        """The function."""
        self.entry = self.labels.block(self.body.blocks[0], "entry")
        indices = self._parameters()
        self.homes = self._homes()
        for value, slot in self.homes.slots.items():
            element = _CONTEXTS[value.type] if isinstance(value.type, Type) else Element.U8
            made = self.contexts[value] = Parameter(I64)
            length = self.member.members if self.member.size is None else MOST_MEMBERS
            self.arrays[made] = LocalArray(f"c{slot}", element, length)
        begin, next_group = self._group_loops(indices)
        self._begin(begin)
        self._regions(begin, next_group)
        order = reverse_postorder(self.entry, lambda b: [e.block for e in reversed(b.end.edges)])
        self.body.blocks[:] = order
        substitute(self.body.blocks, self.sizes)
        remove_dead_code(self.body)
        thread_jumps(self.body)
        remove_dead_code(self.body)
        errors = self.interface.errors
        if self.function.sizes:
            lines = errors.get(Trap.INDEX_OUT_OF_BOUNDS, ())
            errors = {**errors, Trap.INDEX_OUT_OF_BOUNDS: tuple(sorted({0, *lines}))}
        interface = dataclasses.replace(self.interface, geometry=None, errors=errors)
        return dataclasses.replace(
            self.function,
            interface=interface,
            pointers={**self.function.pointers, **self.borrowed},
            arrays={p: array for p, array in self.arrays.items() if p not in self.borrowed},
            member=None,
            launch=None,
            sizes={},
        )

    def _parameters(self) -> list[Parameter]:
        """Move the parameters to the new entry; the indices of a group, which become those of
        loops."""
        start = self.body.blocks[0]
        indices, rest = start.parameters[: self.axes], start.parameters[self.axes :]
        start.parameters = []
        if not self.function.counts_items:
            rest = [*(Parameter(I64) for _ in indices), *rest]
        arguments = len(self.interface.names) - 2 * len(self.interface.borrowed)
        self.computed = rest[arguments:]
        """Sizes that are computed from arguments."""
        self.sizes: dict[Value, Value] = {}
        """Their values."""
        names = {argument.name: argument for argument in self.interface.borrowed}
        self.borrowed = {p: names[a.name] for p, a in self.arrays.items() if a.size is not None}
        self.lent = {pointer: Parameter(I64) for pointer in self.borrowed}
        lent = [each for pair in self.lent.items() for each in pair]
        self.entry.parameters = [*rest[:arguments], *lent]
        return indices

    def _homes(self) -> Homes:
        """The homes of values in a loop over members."""
        body, start = self.body, self.body.blocks[0]
        header, out = self.labels.block(start, "members"), self.labels.block(start, "out")
        number = Parameter(I64)
        header.parameters = [number]
        barriers: list[Barrier] = []
        members: list[Block] = []
        for block in body.blocks:
            members.append(block)
            if block.operations and block.operations[0].name == "barrier":
                behind = self.labels.block(block, "behind")
                behind.operations, behind.terminator = block.operations[1:], block.terminator
                barriers.append(Barrier(block, block.operations[0], behind))
                block.operations = []
                block.terminator = Terminator("jump", edges=(Edge(behind, []),))
                members.append(behind)
        self.open(header)
        more = self.compare(I64, Condition.LT_S, number, self._limit())
        self.branch(more, Edge(start, []), Edge(out, []))
        self.open(out)
        self.close(Terminator("return"))
        for block in members:
            if block.end.name == "return":
                self.open(block)
                onward = self.add(I64, number, self.constant(I64, 1))
                self.jump(header, onward, is_back=True)
        first = self.labels.block(start, "first")
        self.open(first)
        self.jump(header, self.constant(I64, 0))
        body.blocks[:] = [first, header, *members, out]
        for block in members:
            block.operations = [o for o in block.operations if o is not self.member.number]
        substitute(body.blocks, {self.member.number: number})
        loops = find_loops(body)
        (loop,) = (each for each in loops if each.header is header)
        inner = [each for each in loops if each.header in members]
        test = self.member.number  # which nothing needs
        limit = self._limit()
        launch = Launch(body, loop, test, number, limit, start, barriers, members, inner)
        return Homes(launch)

    def _limit(self) -> Value:
        return self.member.size or self.constant(I64, self.member.members)

    # --- loops over groups ------------------------------------------------------------------

    def _group_loops(self, indices: list[Parameter]) -> tuple[Block, Block]:
        """The block in which a group begins, and the one behind its end, which leads to the next
        group."""
        zero, one = self.constant(I64, 0), self.constant(I64, 1)
        heads = [self.labels.block(self.entry, f"groups{axis}") for axis in range(self.axes)]
        done = self.labels.block(self.entry, "done")
        begin = self.labels.block(self.entry, "group")
        latches = [self.labels.block(self.entry, f"next{axis}") for axis in range(self.axes)]
        self.open(self.entry)
        self._compute_sizes()
        self.jump(heads[0], zero)
        for axis, (head, index) in enumerate(zip(heads, indices, strict=True)):
            head.parameters = [index]
            self.open(head)
            more = self.compare(I64, Condition.LT_S, index, self.entry.parameters[axis])
            inside, behind = Edge(begin, []), Edge(done, [])
            if axis + 1 < self.axes:
                inside = Edge(heads[axis + 1], [zero])
            if axis:
                behind = Edge(latches[axis - 1], [])
            self.branch(more, inside, behind)
            self.open(latches[axis])
            self.jump(head, self.add(I64, index, one), is_back=True)
        self.open(done)
        self.close(Terminator("return"))
        return begin, latches[-1]

    def _compute_sizes(self) -> None:
        """Compute the sizes of groups from arguments; fail for those that are too large, or larger
        than what the caller lends."""
        values = dict(zip(self.interface.names, self.entry.parameters, strict=True))

        def value(expression: Expression) -> Value:
            if isinstance(expression, int):
                return self.constant(I64, expression & I64.mask)
            if isinstance(expression, Compound):
                operands = value(expression.left), value(expression.right)
                return self.pure(OPERATIONS[expression.operator], (I64,), operands, I64)
            assert isinstance(expression, str)
            return values[expression]

        for parameter in self.computed:
            self.sizes[parameter] = value(self.function.sizes[parameter])
        if self.member.size is not None:
            size = self.sizes.get(self.member.size, self.member.size)
            one, most = self.constant(I64, 1), self.constant(I64, MOST_MEMBERS)
            self._fail_if(self.compare(I64, Condition.LT_S, size, one))
            self._fail_if(self.compare(I64, Condition.GT_S, size, most))
        for pointer, length in self.lent.items():
            wanted = self.function.arrays[pointer].size
            assert wanted is not None
            needed = self.sizes.get(wanted, wanted)
            self._fail_if(self.compare(I64, Condition.LT_U, length, needed))

    def _fail_if(self, condition: Value) -> None:
        static = (Trap.INDEX_OUT_OF_BOUNDS, 0)
        self.emit(Operation("error_if", None, static, (condition,)))

    def _begin(self, begin: Block) -> None:
        """Compute what members share, and make the arrays of the group zero."""
        self.open(begin)
        for old in self.homes.shared:
            arguments = tuple([self.shared.get(a, a) for a in old.arguments])
            new = self.emit(Operation(old.name, old.type, old.static, arguments))
            new.pc = old.pc
            self.shared[old] = new
        zero = self.constant(I64, 0)
        for pointer, array in self.function.arrays.items():
            if array.is_zero and (array.length or array.size is not None):
                length = array.size or self.constant(I64, array.length)
                given = (pointer, zero, length, zero)
                self.emit(Operation("array_fill", None, (array.element,), given))

    # --- regions ----------------------------------------------------------------------------

    def _regions(self, begin: Block, next_group: Block) -> None:
        """Make the loops over members of each region, and lead control from one to the next."""
        launch = self.homes.launch
        starts = [launch.start, *(barrier.behind for barrier in launch.barriers)]
        regions: dict[int, _Region] = {}
        worklist = [0]
        while worklist:
            number = worklist.pop()
            if number not in regions:
                regions[number] = _Region(self, number, starts[number])
                worklist += regions[number].ends - {0}
        sources: dict[int, set[int]] = {}
        for number, region in regions.items():
            for end in region.ends - {0}:
                sources.setdefault(end, set()).add(number)
        direct = {end: min(own) for end, own in sources.items() if len(own) == 1}
        dispatched = sorted(sources.keys() - direct.keys())
        before = [0]
        for number in before:
            before += [end for end, source in direct.items() if source == number]
        dispatch = self.labels.block(self.entry, "dispatch")
        selector = Parameter(I64)
        dispatch.parameters = [selector]
        self.open(begin)
        self.jump(regions[0].head, *self._start())
        for number, region in regions.items():
            targets: dict[int, Edge] = {}
            for end in sorted(region.ends):
                if not end:
                    targets[end] = Edge(next_group, [])
                elif end in direct:
                    targets[end] = Edge(regions[end].head, self._start())
                else:
                    again = Edge(dispatch, [self.constant(I64, end)], number not in before)
                    targets[end] = again
            self._select(region.done, region.end, targets)
        if dispatched:
            targets = {each: Edge(regions[each].head, self._start()) for each in dispatched}
            self._select(dispatch, selector, targets)

    def _start(self) -> list[Value]:
        """The arguments with which the loop of a region is entered."""
        zero = self.constant(I64, 0)
        return [zero, zero]

    def _select(self, block: Block, number: Value, targets: dict[int, Edge]) -> None:
        """Go from the end of a block to one of several, by a number."""
        self.open(block)
        *others, (_, last) = targets.items()
        for end, edge in others:
            is_it = self.compare(I64, Condition.EQ, number, self.constant(I64, end))
            between = self.labels.block(block, "or")
            self.branch(is_it, self._apart(edge), Edge(between, []))
            self.open(between)
        self.close(Terminator("jump", edges=(last,)))

    def _apart(self, edge: Edge) -> Edge:
        """An edge to a block of its own, since a block has one edge to another at most."""
        here, passed = self.block, self.labels.block(self.entry, "to")
        self.open(passed)
        self.close(Terminator("jump", edges=(edge,)))
        self.open(here)
        return Edge(passed, [])


class _Region:
    """The loop over the members of one region."""

    def __init__(self, loops: _Loops, number: int, start: Block) -> None:
        self.loops = loops
        name = f"region{number}"
        labels = loops.labels
        self.head, self.item = (
            labels.block(start, f"{name}.head"),
            labels.block(start, f"{name}.item"),
        )
        self.latch, self.done = (
            labels.block(start, f"{name}.latch"),
            labels.block(start, f"{name}.done"),
        )
        self.index, self.end = Parameter(I64), Parameter(I64)
        self.head.parameters = [self.index, self.end]
        self._values = EntryValues(loops.homes, loops.shared, self.index, self.item, self._loaded)
        self.copy = RegionCopy(loops.homes, start, labels, name, self._values, None)
        self.copy.fill()
        numbers = {barrier: at for at, barrier in enumerate(loops.homes.launch.barriers, 1)}
        ends = [0 if each is None else numbers[each] for _, _, each in self.copy.ends]
        self.ends = frozenset(ends)
        for (block, node, barrier), reached in zip(self.copy.ends, ends, strict=True):
            self._leave(block, node, barrier, reached)
        self.copy.finish()
        loops.open(self.item)
        loops.jump(self.copy.entry)
        self._loop()

    def _loaded(self, value: Value) -> Value:
        loops = self.loops
        loops.open(self.item)
        place = loops.contexts[value], self.index
        element = loops.arrays[place[0]].element
        t = element.type if element.type.is_float else I64
        loaded = loops.emit(Operation("array_load", t, (element,), place))
        if value.type is BOOLEAN:
            return loops.compare(I64, Condition.NE, loaded, loops.constant(I64, 0))
        return loops.wrap(loaded) if value.type is I32 else loaded

    def _leave(
        self, block: Block, node: tuple[Block, int], barrier: Barrier | None, end: int
    ) -> None:
        """Store what is needed behind a barrier at which the region ends."""
        loops = self.loops
        stored = [] if barrier is None else loops.homes.stored(barrier)
        # A value that is read for the first time may be loaded in the item's block.
        found = [self.copy.read(node, value) for value in stored]
        loops.open(block)
        for value, new in zip(stored, found, strict=True):
            if new is self._values.found.get(value):
                continue
            if value.type is BOOLEAN:
                new = loops.extend_u(loops.boolean_to_i32(new))
            elif value.type is I32:
                new = loops.extend_u(new)
            pointer = loops.contexts[value]
            static = (loops.arrays[pointer].element,)
            loops.emit(Operation("array_store", None, static, (pointer, self.index, new)))
        loops.jump(self.latch, loops.constant(I64, end))

    def _loop(self) -> None:
        loops = self.loops
        loops.open(self.head)
        limit = loops.homes.launch.limit
        more = loops.compare(I64, Condition.LT_S, self.index, limit)
        loops.branch(more, Edge(self.item, []), Edge(self.done, []))
        reached = Parameter(I64)
        self.latch.parameters = [reached]
        loops.open(self.latch)
        onward = loops.add(I64, self.index, loops.constant(I64, 1))
        loops.jump(self.head, onward, reached, is_back=True)
