# SPDX-License-Identifier: Apache-2.0
"""The code of batches of groups, in place of that of one group (`ferryvm.ir.group.batch`)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator

from ferryvm.ir.build import FlowBuilder
from ferryvm.ir.graph import (
    BOOLEAN,
    Block,
    Body,
    Constant,
    Edge,
    Operation,
    Parameter,
    Value,
)
from ferryvm.ir.group.batch_access import AddressDivision, OwnArrays, drop_unused, own_arrays
from ferryvm.ir.group.batch_form import GroupChain, GroupRegion, NotBatchedError
from ferryvm.ir.group.branch import item_poll
from ferryvm.ir.group.record import ARRAY_STRIDE, CONTEXT, ITEMS, Group
from ferryvm.ir.loop.preheader import Labels, insert_before
from ferryvm.ir.operation import DIVISIONS, FIXED, PURE, UPDATES
from ferryvm.ir.use import substitute
from ferryvm.isa.emitter import Condition
from ferryvm.isa.type import I64, WORD_BYTES, Type

MOST_ITEMS = 2048
"""Items of a batch, at most: as long as it runs, nothing interrupts it."""

MOST_BYTES = 1 << 16
"""Bytes of the groups' own arrays in a batch, at most."""

_CHECKS = frozenset({"trap_if", "allocate_if"})
_BEFORE = frozenset({*_CHECKS, "set_header_word", "set_object_top", "clear_prepared"})
"""Operations with an effect in front of a group's regions."""


class BatchBuilder(FlowBuilder):
    """The batches of a launch of groups."""

    def __init__(self, body: Body, group: Group, chain: GroupChain) -> None:
        super().__init__(body.constants)
        self.body, self.group, self.chain = body, group, chain
        self.labels = Labels(body)
        self.zero, self.one = self.constant(I64, 0), self.constant(I64, 1)
        poll = item_poll(chain.regions[0].loop)
        assert poll is not None
        phase = poll.exit.phase
        assert phase is not None
        self._context, items = phase.values[CONTEXT], phase.values[ITEMS]
        if not isinstance(items, Constant):
            raise NotBatchedError
        self.items = items.bits
        front = (chain.groups.header, *chain.before)
        self.before = [o for block in front for o in block.operations]
        self.moved = [o for block in chain.behind for o in block.operations]
        self.poll = self.moved.pop()
        assert chain.groups.back_edge is not None
        (self.following,) = chain.groups.back_edge.edge.arguments
        self.places: dict[Value, int] = {}
        """Places of objects, relative to that of the group's first one."""
        self.objects: list[tuple[int, int]] = []
        """The places at which objects begin and end."""
        self._place_objects()
        self.bytes = self.objects[-1][1] if self.objects else 0
        self._check()
        self.own = OwnArrays(own_arrays(chain.regions, self.places, self.objects), self.places)
        bytes_ = sum(array.bytes for array in self.own.arrays)
        self.most = min(MOST_ITEMS // self.items, MOST_BYTES // max(bytes_, 1))
        if self.most < 2:
            raise NotBatchedError

    # --- what a group computes ------------------------------------------------------------------

    def _place_objects(self) -> None:
        top = 0
        for o in self.before:
            if o.name == "object_top":
                self.places[o] = top
            elif o.name == "add" and o.arguments[0] in self.places:
                if isinstance(o.arguments[1], Constant):
                    self.places[o] = self.places[o.arguments[0]] + o.arguments[1].bits
            elif o.name == "set_object_top":
                if o.arguments[0] not in self.places:
                    raise NotBatchedError
                before, top = top, self.places[o.arguments[0]]
                self.objects.append((before, top))

    def _check(self) -> None:
        """Raises NotBatchedError for operations that cannot be made for a group before others have
        ended."""
        found: set[Value] = {self.chain.number}
        own: set[Value] = {
            v for r in self.chain.regions for b in r.loop.members for v in b.operations
        }
        own |= {p for r in self.chain.regions for p in r.loop.header.parameters}
        for place, o in enumerate((*self.before, *self.moved)):
            if not own.isdisjoint(o.arguments):
                raise NotBatchedError
            is_variant = o in self.places or not found.isdisjoint(o.arguments)
            if is_variant and o.type is not None:
                found.add(o)
            if o.name in _BEFORE and place < len(self.before):
                continue
            if o.name == "begin_group" or o in self.places:
                continue
            if o.name in FIXED and not is_variant:
                continue
            known = found if place < len(self.before) else None
            if o.name not in PURE or not _is_total(o, known):
                raise NotBatchedError
        updating = [
            r for r in self.chain.regions if any(o.name in UPDATES for o in r.loop.operations)
        ]
        if any(value in own for value in self.poll.uses()) or len(updating) > 1:
            raise NotBatchedError

    def _find_passed(self, computed: list[Operation]) -> None:
        """Find what regions use, and groups compute each for itself."""
        self.computed = [*self.before, *computed]
        self.variant: set[Value] = {self.chain.number}
        for o in self.computed:
            if o.type is not None and (
                o in self.places or not self.variant.isdisjoint(o.arguments)
            ):
                self.variant.add(o)
        found: dict[Value, None] = {}
        for region in self.chain.regions:
            for block in region.loop.members:
                for o in (*block.operations, block.end):
                    if o.name != "poll":
                        found.update(dict.fromkeys(v for v in o.uses() if v in self.variant))
        apart = {self.chain.number, *self.places}
        self.slots = {v: n for n, v in enumerate(v for v in found if v not in apart)}

    # --- building -------------------------------------------------------------------------------

    def run(self) -> None:
        """Make them."""
        chain, groups = self.chain, self.chain.groups
        header = groups.header
        self.pc = header.pc
        names = ("fits", "ready", "checks", "check", "checked", "objects", "object", "entry")
        made = [self.labels.block(header, name) for name in names]
        fits, ready, checks, check, checked, objects, object_, enter = made
        last = chain.before[-1]
        (onward,) = (edge for edge in last.end.edges if edge.block is not chain.unfit)
        onward.block, onward.arguments = fits, []

        self.open(fits)
        fits.operations = [o for o in self.moved if o.name != "begin_group"]
        top = ARRAY_STRIDE * self.items * self.group.slots
        for array in self.own.arrays:
            self.own.addresses.append(self.add(I64, self._context, self.constant(I64, top)))
            top += array.bytes * self.most + WORD_BYTES - 1 & -WORD_BYTES
        for region in chain.regions:
            self._prepare(region)
        self._find_passed(fits.operations)
        self.values: dict[Value, Value] = {}
        for value in self.slots:
            if not isinstance(value.type, Type):
                raise NotBatchedError
            place = top + WORD_BYTES * len(self.values)
            self.values[value] = self.add(I64, self._context, self.constant(I64, place))
        words = -(-max((a.bytes for a in self.own.arrays), default=0) // WORD_BYTES)
        self.stride = max(len(self.values), words)
        top += WORD_BYTES * self.stride * self.most
        limit = self.invariant("stack_limit", (), (), I64)
        end = self.add(I64, self._context, self.constant(I64, top))
        doubts = [*chain.doubts, self.compare(I64, Condition.GT_U, end, limit)]
        assert chain.unfit is not None
        self.branch(self._any(doubts), Edge(chain.unfit, []), Edge(ready, []))

        self.open(ready)
        rest = self.sub(I64, chain.limit, chain.number)
        most = self.constant(I64, self.most)
        tried = self.select(self.compare(I64, Condition.LT_S, rest, most), rest, most)
        for value in self.slots:
            self._put(value, self.zero, value)
        self.jump(checks, self.one, self.constant(BOOLEAN, 0))

        index, doubt = Parameter(I64), Parameter(BOOLEAN)
        checks.parameters = [index, doubt]
        self.open(checks)
        more = self.compare(I64, Condition.LT_S, index, tried)
        self.branch(more, Edge(check, []), Edge(checked, []))
        self.open(check)
        mine = self._computed(index)
        found = self.any(doubt, self._any(self._failing(mine)))
        for value in self.slots:
            self._put(value, index, mine[value])
        self._again(checks, index, self.most, found)

        self.open(checked)
        number = self.select(doubt, self.one, tried)
        if self.bytes:
            self._make_objects(objects, object_, enter, number)
        else:
            self.jump(enter)
        self.open(enter)
        if self.bytes:
            first_end = next(v for v, place in self.places.items() if place == self.bytes)
            others = self.sub(I64, number, self.one)
            more_bytes = self.mul(I64, others, self.constant(I64, self.bytes))
            end = self.add(I64, first_end, more_bytes)
            self.emit(Operation("set_object_top", None, (), (end,)))
        following = self.add(I64, chain.number, number)
        for region in chain.regions:
            self._enter(region, number)
        self.jump(groups.latch)
        first = chain.regions[0].loop.header
        groups.latch.operations = [self.poll]
        self.poll.state = self.poll.exit.replace({self.following: following})
        assert groups.back_edge is not None
        groups.back_edge.edge.arguments = [following]
        self.body.blocks.insert(self.body.blocks.index(last) + 1, fits)
        insert_before(self.body, {first: [b for b in made[1:] if b.terminator is not None]})

    def _make_objects(self, header: Block, block: Block, behind: Block, number: Value) -> None:
        """Write the headers of the other groups' objects."""
        self.jump(header, self.one)
        index = Parameter(I64)
        header.parameters = [index]
        self.open(header)
        more = self.compare(I64, Condition.LT_S, index, number)
        self.branch(more, Edge(block, []), Edge(behind, []))
        self.open(block)
        moved = self._moved_by(index)
        for o in self.before:
            if o.name == "set_header_word":
                arguments = tuple([moved(a) for a in o.arguments])
                self.emit(Operation(o.name, None, o.static, arguments))
        self._again(header, index, self.most)

    def _any(self, doubts: Iterable[Value]) -> Value:
        no: Value = self.constant(BOOLEAN, 0)
        return functools.reduce(self.any, dict.fromkeys(_leaves(doubts, "any")), no)

    def _again(self, header: Block, index: Value, most: int, *values: Value) -> None:
        """The end of an iteration of a loop that is made so often, at most."""
        self.emit(Operation("bounded", None, (most,)))
        self.jump(header, self.add(I64, index, self.one), *values, is_back=True)

    def _put(self, value: Value, index: Value, new: Value) -> None:
        place = self._place_of(value, index)
        self.emit(Operation("context_store", None, self._slot(value), (*place, new)))

    def _place_of(self, value: Value, index: Value) -> tuple[Value, Value]:
        """The operands of accesses to what a group has computed."""
        distance = self.mul(I64, index, self.constant(I64, WORD_BYTES * self.stride))
        return self.add(I64, self.values[value], distance), self.zero

    def _slot(self, value: Value) -> tuple[Type, int, int]:
        assert isinstance(value.type, Type)
        slot = self.group.slots + len(self.own.arrays) + self.slots[value]
        return self.group.context(value.type, slot)

    def _moved_by(self, index: Value) -> Callable[[Value], Value]:
        """The place of an object of a later group."""
        bytes_ = self.mul(I64, index, self.constant(I64, self.bytes))
        return lambda value: self.add(I64, value, bytes_) if value in self.places else value

    def _computed(self, index: Value) -> dict[Value, Value]:
        """The values of a later group, by those of the first one."""
        new: dict[Value, Value] = {self.chain.number: self.add(I64, self.chain.number, index)}
        moved = self._moved_by(index)
        for o in self.computed:
            if o in self.places:
                new[o] = moved(o)
            elif o in self.variant:
                arguments = tuple([new.get(a, a) for a in o.arguments])
                assert o.type is not None
                new[o] = self.pure(o.name, o.static, arguments, o.type)
        return new

    def _failing(self, new: dict[Value, Value]) -> Iterator[Value]:
        """The conditions under which a later group leaves in front of its regions."""
        checks = [o.arguments[0] for o in self.before if o.name in _CHECKS]
        for each in _leaves((*checks, *self.chain.doubts), "any"):
            if each in new:
                yield new[each]
        for each in _leaves(self.chain.before[-1].end.arguments, "all"):
            if each in new:
                yield self.none(new[each])

    # --- regions --------------------------------------------------------------------------------

    def _prepare(self, region: GroupRegion) -> None:
        """Divide the addresses of a region's accesses into what each group computes once, in front,
        and what varies with the row."""
        divide = AddressDivision(self, self.own, region, self.group)
        for block in region.loop.members:
            divide.run(block)
        drop_unused(region.loop)

    def _enter(self, region: GroupRegion, number: Value) -> None:
        """Enter a region's loop, for so many groups, and continue behind it."""
        loop, variable, done, group = region.loop, region.variable, region.done, region.group
        header, latch = loop.header, loop.latch
        count = self.constant(I64, region.count)
        all_ = self.mul(I64, number, count)
        self.jump(header, self.zero, self.zero, self.zero)
        self.pc, before = header.pc, self.pc
        header.parameters, header.operations = [done, variable.value, group], []
        self.open(header)
        more = self.compare(I64, Condition.LT_S, done, all_)
        header.end.arguments, header.end.edges = (more,), (variable.onward, variable.exit)

        self.open(Block("values", header.pc))
        new: dict[Value, Value] = {}
        moved = self._moved_by(group)
        used = {v for b in loop.members for o in (*b.operations, b.end) for v in o.uses()}
        for value in (v for v in (self.chain.number, *self.computed) if v in used):
            if value is self.chain.number:
                new[value] = self.add(I64, value, group)
            elif value in self.places:
                new[value] = moved(value)
            elif value in self.slots:
                place = self._place_of(value, group)
                load = Operation("context_load", value.type, self._slot(value), place)
                new[value] = self.emit(load)
        latch.operations.pop()
        substitute(loop.members, new)
        region.first.operations[:0] = self.block.operations

        self.open(latch)
        row = self.add(I64, variable.value, self.one)
        is_last = self.compare(I64, Condition.EQ, row, count)
        self.emit(Operation("bounded", None, (self.most * region.count,)))
        assert loop.back_edge is not None
        loop.back_edge.edge.arguments = [
            self.add(I64, done, self.one),
            self.select(is_last, self.zero, row),
            self.select(is_last, self.add(I64, group, self.one), group),
        ]
        self.pc = before
        behind = self.labels.block(header, "behind")
        variable.exit.block, variable.exit.arguments = behind, []
        last = max(self.body.blocks.index(block) for block in loop.members)
        self.body.blocks.insert(last + 1, behind)
        self.open(behind)


def _is_total(o: Operation, variant: set[Value] | None) -> bool:
    """True if an operation can be made for each group before checks are: it is defined for all
    operands, or was made for the first group, whose operands differ only if they are variant."""
    if o.name not in DIVISIONS:
        return True
    divisor = o.arguments[1]
    if variant is not None and (
        o not in variant or (o.name in ("div_u", "rem_u") and divisor not in variant)
    ):
        return True
    if not isinstance(divisor, Constant) or not isinstance(divisor.type, Type):
        return False
    return divisor.bits not in (0, divisor.type.mask)


def _leaves(values: Iterable[Value], name: str) -> Iterator[Value]:
    """The conditions of which conjunctions or disjunctions are made."""
    waiting = [*values][::-1]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Operation) and value.name == name:
            waiting += reversed(value.arguments)
        else:
            yield value
