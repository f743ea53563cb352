# SPDX-License-Identifier: Apache-2.0
"""Loops over items in lanes: a vector of items runs through branches and loops of their own.

    head(item): item + lanes <= items ? ─> items of lanes ─> head(item + lanes)
          │                                     │ gives up
          └──────────────> loop over items <────┘ as it was, from this item on

The code of an item becomes lanes as that of a launch's item does (`ferryvm.ir.lane`), with masks.
A vector of items gives up in front of its first store if one of them would leave
(`ferryvm.ir.lane.speculation`), so states are those of the loop as it was. Loops over items without
branches and loops are left to the compiler.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection

from ferryvm.ir.build import Builder
from ferryvm.ir.graph import (
    Block,
    Body,
    Constant,
    Edge,
    FrameState,
    Operation,
    Parameter,
    Terminator,
    Value,
)
from ferryvm.ir.group.branch import item_poll
from ferryvm.ir.group.record import ARRIVED
from ferryvm.ir.lane.cost import ratio
from ferryvm.ir.lane.item import UnvectorisedError, refuse_ordered_updates
from ferryvm.ir.lane.linearise import linearised
from ferryvm.ir.lane.profit import REASON, is_better_scalar
from ferryvm.ir.lane.speculation import GIVE_UP
from ferryvm.ir.loop.clone import Clones
from ferryvm.ir.loop.induction import InductionVariable, find_induction_variable
from ferryvm.ir.loop.natural import Loop, find_loops
from ferryvm.ir.loop.poll import short_loops
from ferryvm.ir.loop.preheader import Labels, insert_before, lead_to
from ferryvm.ir.operation import POLL_BUDGET, PURE, SHAPES, Role
from ferryvm.ir.passes.overflow_check import RARE
from ferryvm.ir.use import users_of
from ferryvm.isa.emitter import Condition
from ferryvm.isa.type import I64

LARGEST_RATIO = 0.9
"""Estimated time in lanes to that one by one, at most."""

Width = Callable[[Body], int]

_OTHER = "their numbers have another form"
_OWN = "the state behind an item has values of it"

_REFUSED = frozenset({"pay", "allocate_if", "grow_if", "call_host", "continue_launch_if"})
"""Operations that are done in the order of items, or leave always."""


def run_in_lanes(
    body: Body, width: Width, left: Collection[Block] = (), *, always: bool = False
) -> dict[int, str]:
    """Run loops over items with branches or loops inside in lanes where that pays; the reasons of
    loops that run one by one, by the pc at which their items begin. `width`: the number of lanes
    for a body of lanes; `left`: headers of loops that are left as they are; `always`: also where it
    does not pay."""
    done: set[Block] = {*left}
    reasons: dict[int, str] = {}
    while (found := _next(body, done)) is not None:
        loop, poll = found
        done.add(loop.header)
        try:
            lanes = _Lanes(body, loop, poll)
            lanes.run(width, always=always)
            done.add(lanes.head)
        except UnvectorisedError as error:
            start = [e.block for e in loop.header.end.edges if e.block in {*loop.members}]
            reasons.setdefault(start[0].pc, str(error))
    return reasons


def _next(body: Body, done: set[Block]) -> tuple[Loop, Operation] | None:
    """The next loop over items that has branches or loops, and the poll at its end."""
    loops = find_loops(body)
    around: set[Loop] = set()
    for loop in loops:
        poll = item_poll(loop)
        if poll is None or loop in around:
            continue
        parent = loop.parent
        while parent is not None:
            around.add(parent)
            parent = parent.parent
        has_branch = any(
            len(block.end.edges) > 1 for block in loop.members if block is not loop.header
        )
        if has_branch and loop.header not in done:
            return loop, poll
    return None


class _Lanes:
    """One loop over items."""

    def __init__(self, body: Body, loop: Loop, poll: Operation) -> None:
        self.body, self.loop, self.poll = body, loop, poll
        self.labels, self.m = Labels(body), Builder(body.constants)
        variable = find_induction_variable(loop)
        if variable is None or loop.entry is None:
            raise UnvectorisedError(_OTHER)
        if variable.step is not body.constant(I64, 1) or loop.exits != [variable.exit]:
            raise UnvectorisedError(_OTHER)
        self.variable: InductionVariable = variable
        assert loop.back_edge is not None
        self.back = loop.back_edge.edge.arguments
        self.place = loop.header.parameters.index(variable.value)
        self._check_parameters()
        self.head = self.labels.block(loop.header, "lanes")
        self.head.parameters = [Parameter(p.type) for p in loop.header.parameters]
        self.first = self.head.parameters[self.place]

    def _check_parameters(self) -> None:
        """Raise UnvectorisedError if an item uses what an earlier one has passed on."""
        for parameter, value in zip(self.loop.header.parameters, self.back, strict=True):
            if parameter is not self.variable.value and not self.loop.is_invariant(value):
                raise UnvectorisedError("their ends are compared")

    def run(self, width: Width, *, always: bool) -> None:
        """Insert the code."""
        item = self._item()
        if not always and is_better_scalar(item):
            raise UnvectorisedError(REASON)
        self.m.pc = self.loop.header.pc
        lanes = linearised(item, before=self._state(self.head, self.first))
        _check(lanes)  # other lanes may have stored where these would leave
        if not always and (times := ratio(item, lanes)) > LARGEST_RATIO:
            raise UnvectorisedError(f"they would take {times:.2g} times as long, by an estimate")
        count = self.body.lanes or width(lanes)  # all loops of a body have as many
        start, bound = self.variable.start, self.variable.bound
        is_known = isinstance(start, Constant) and isinstance(bound, Constant)
        if is_known and bound.bits - start.bits < count:  # type: ignore[attr-defined]  # constants
            raise UnvectorisedError("they are fewer than lanes")
        self._insert(lanes, count)

    # --- the code of an item ----------------------------------------------------------------

    def _item(self) -> Body:
        """The code of an item, which returns at the end of the loop's body."""
        loop, variable = self.loop, self.variable
        short = short_loops(self.body).polls
        clones = Clones()
        entry = Block("item", loop.header.pc)
        number = Parameter(I64)
        entry.parameters = [number]
        clones.values[variable.value] = number
        clones.blocks[loop.header] = entry
        test = loop.header.end.arguments[0]
        blocks = loop.extent
        for old in blocks:
            if old is not loop.header:
                clones.start(old, Block(old.label, old.pc))
        users = users_of(self.body).get(test, ())
        omitted = {self.poll, *([test] if len(users) == 1 else [])}
        for old in blocks:
            clones.operations(old, omitted.__contains__)
            if old is loop.header:
                end = Edge(
                    clones.blocks[variable.onward.block],
                    [*clones.all(variable.onward.arguments)],
                )
                entry.terminator = Terminator("jump", edges=(end,))
                continue
            if old is loop.latch:
                clones.blocks[old].terminator = Terminator("return")
                continue
            edges = [
                Edge(clones.blocks[e.block], [*clones.all(e.arguments)], e.is_back)
                for e in old.end.edges
            ]
            clones.end(old, tuple(edges))
        item = dataclasses.replace(
            self.body, blocks=[clones.blocks[old] for old in blocks], is_root=False
        )
        for old in blocks:
            for operation in clones.blocks[old].operations:
                operation.pc = old.pc if operation.pc < 0 else operation.pc
            last = old.operations[-1] if old.operations else None
            if last in short and last is not self.poll:
                bounded = Operation("bounded", None, (POLL_BUDGET,))
                bounded.pc = last.pc
                clones.blocks[old].operations[-1] = bounded
        _move_doubts(item)
        refuse_ordered_updates(item)
        _check(item)
        return item

    # --- states -----------------------------------------------------------------------------

    def _state(self, block: Block, number: Value) -> FrameState:
        """The state in front of the item of a number; what it needs is computed at the end of a
        block."""
        state = self.poll.exit
        assert state.phase is not None
        following = state.phase.values[ARRIVED]
        own = {value for value in state.values() if not self.loop.is_invariant(value)}
        if own != {following} or not isinstance(following, Operation):
            raise UnvectorisedError(_OWN)
        self.m.open(block)
        return state.replace({following: self._at(following.arguments[0], number)})

    def _at(self, value: Value, number: Value) -> Value:
        """A value of the item with another number."""
        if value is self.variable.value:
            return number
        if self.loop.is_invariant(value):
            return value
        if not isinstance(value, Operation) or value.name not in PURE or value.type is None:
            raise UnvectorisedError(_OWN)
        arguments = tuple([self._at(each, number) for each in value.arguments])
        return self.m.pure(value.name, value.static, arguments, value.type)

    # --- insertion --------------------------------------------------------------------------

    def _insert(self, lanes: Body, width: int) -> None:
        """Let control come to the lanes, and from there to the loop."""
        body, m, head, header = self.body, self.m, self.head, self.loop.header
        again = self.labels.block(header, "lanes.next")
        for block in lanes.blocks:
            rare, block.pc = block.label.startswith(GIVE_UP), max(block.pc, header.pc)
            block.label = self.labels.block(block, f"{RARE}.lanes" if rare else "lanes").label
            if block.end.name == "return":
                if rare:
                    lead_to(block, header, head.parameters)
                else:
                    lead_to(block, again, [])
                block.end.pc = header.pc
        m.open(head)
        last = m.sub(I64, self.variable.bound, m.constant(I64, width - 1))
        more = m.compare(I64, Condition.LT_S, self.first, last)
        edges = Edge(lanes.blocks[0], [self.first]), Edge(header, [*head.parameters])
        m.close(Terminator("branch", (), (more,), None, edges))
        m.open(again)
        following = m.add(I64, self.first, m.constant(I64, width))
        poll = Operation("poll", None, (), (), self._state(again, following))
        m.emit(poll)
        passed = [*self.back]
        passed[self.place] = following
        m.close(Terminator("jump", edges=(Edge(head, passed, True),)))
        assert self.loop.entry is not None
        self.loop.entry.edge.block = head
        blocks = [b for b in lanes.blocks if not b.label.startswith(RARE)]
        rare_ones = [b for b in lanes.blocks if b.label.startswith(RARE)]
        insert_before(body, {header: [head, *blocks, again, *rare_ones]})
        assert lanes.varying is not None
        body.varying = (body.varying or set()) | lanes.varying
        body.lanes = width


def _move_doubts(item: Body) -> None:
    """Give up where a doubt arises that hoisted checks depend on, and make no such check."""
    doubts: dict[Value, Operation] = {}
    for block in item.blocks:
        operations = []
        for operation in block.operations:
            doubt = _doubt(operation)
            if doubt is None:
                operations.append(operation)
            else:
                doubts.setdefault(doubt, operation)
        block.operations = operations
    left = {*doubts}
    for block in item.blocks:
        operations = [_guard(p, doubts[p]) for p in block.parameters if p in left]
        left -= {*block.parameters}
        for operation in block.operations:
            operations.append(operation)
            if operation in left:
                operations.append(_guard(operation, doubts[operation]))
                left.remove(operation)
        block.operations = operations
    item.blocks[0].operations[:0] = [_guard(p, doubts[p]) for p in doubts if p in left]


def _doubt(operation: Operation) -> Value | None:
    """The doubt on which a hoisted check depends."""
    if operation.name != "trap_if":
        return None
    (p,) = operation.arguments
    if isinstance(p, Operation) and p.name == "all" and isinstance(p.arguments[1], Parameter):
        return p.arguments[1]
    return None


def _guard(p: Value, check: Operation) -> Operation:
    made = Operation("guard", None, (0,), (p,), check.state)
    made.pc = check.pc
    return made


def _check(item: Body) -> None:
    """Raise UnvectorisedError if an item may leave when it has changed something, or has operations
    whose order matters."""
    changed: set[Block] = set()
    count = -1
    while count < len(changed):
        count = len(changed)
        for block in item.blocks:
            if block in changed or any(map(_changes, block.operations)):
                changed.update(edge.block for edge in block.end.edges)
    for block in item.blocks:
        has_changed = block in changed
        for operation in (*block.operations, block.end):
            if operation.name in _REFUSED:
                raise UnvectorisedError(f"they have the operation {operation.name!r}")
            if has_changed and _leaves(operation):
                raise UnvectorisedError("one may leave when it has stored")
            has_changed = has_changed or _changes(operation)


def _changes(operation: Operation) -> bool:
    return SHAPES[operation.name].role is Role.CHANGES and operation.name != "bounded"


def _leaves(operation: Operation) -> bool:
    """True if an item may leave at an operation, or its vector give up there."""
    edges = operation.edges if isinstance(operation, Terminator) else ()
    return operation.state is not None or any(e.block.label.startswith(GIVE_UP) for e in edges)
