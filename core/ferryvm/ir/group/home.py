# SPDX-License-Identifier: Apache-2.0
"""The homes of values that live across barriers: what all items share, what is computed anew in
each region, and context arrays for the others.

    shared      computed once, in front of the group: it depends on what all items share
    computed    computed anew, from the item's number and what is shared, if that is cheap
    stored      an element of a context array for each item, stored at barriers behind which it is used

What all items have in common at a barrier, such as the number of a tile, is stored by each, since
some may have passed the next barrier when control leaves; a region loads it once.

Checks of shared values for null, read-only arrays, and a full stack are made in front of the group.

A value is live at a barrier if it is used behind it, by states too, or is a word of the frames of
an item that waits there. (Liveness: Muchnick, 1997, section 14.1.3.)
"""

from __future__ import annotations

from collections.abc import Iterable

from ferryvm.ir.graph import Block, Constant, Operation, Value
from ferryvm.ir.group.launch import Barrier, Launch, NotGroupedError
from ferryvm.ir.member.uniformity import Uniformity
from ferryvm.ir.operation import FIXED, PURE
from ferryvm.isa.trap import Trap

DEAREST = 16
"""The cost of a value that is computed anew, with all that it depends on: about that of a few
loads."""

_COST = {"mul": 3, "apply": 99, "ffma": 4, "fsqrt": 20, "lookup": 4} | dict.fromkeys(
    ("div_s", "div_u", "rem_s", "rem_u", "fdiv"), 20
)
"""The costs of operations in additions; of others 1."""

_PARTIAL = frozenset(
    ("div_s", "div_u", "rem_s", "rem_u", "to_int_s", "to_int_u", "shl", "shr_s", "shr_u")
)

_EARLY = frozenset({Trap.STACK_OVERFLOW, Trap.NULL_REFERENCE, Trap.READ_ONLY_ARRAY})
"""The traps of checks that are made in front of a group, whether or not its items come to them."""

_UNMOVED = frozenset({"cast", "table_function", "type_word"})
"""Operations that are computed in one place only: they are partial in what no check of them
says."""


class Homes:
    """The homes of the values of a launch's items."""

    def __init__(self, launch: Launch, dearest: int = DEAREST) -> None:
        """`dearest`: the cost of a value that is computed anew, at most."""
        self.launch, self._dearest = launch, dearest
        self.defined: dict[Value, Block] = {
            value: block
            for block in (launch.header, *launch.members)
            for value in (*block.parameters, *block.operations)
        }
        """The block of each value of the header and of items."""
        self._written = {o.static for o in self._operations() if o.name == "set_static"}
        self._writes_any = any(o.name == "set_static_at" for o in self._operations())
        self.shared: list[Operation] = []
        """The operations whose values items share, in an order in which they can be computed."""
        self._is_shared: dict[Value, bool] = {}
        self._costs: dict[Value, int | None] = {}
        for value in self.defined:
            self.is_shared(value)
        self.faults = {
            o.arguments[0]: None
            for o in self._operations()
            if o.name == "trap_if" and o.static[0] in _EARLY and self.is_shared(o.arguments[0])
        }
        """Conditions under which no group begins: none of its items passes a check of them."""
        self._uniformity = self._find_uniformity()
        self.live = _live(launch)
        """By barrier the values that are used behind it, and those of its state."""
        self.slots: dict[Value, int] = {}
        """The context arrays of values, from 1 on."""
        for barrier in launch.barriers:
            for value in self.stored(barrier):
                self.slots.setdefault(value, len(self.slots) + 1)

    def _operations(self) -> Iterable[Operation]:
        for block in self.launch.members:
            yield from block.operations

    def is_shared(self, value: Value) -> bool:
        """True if a value is the same for all items, and can be computed in front of them."""
        if isinstance(value, Constant) or value not in self.defined:
            return True
        found = self._is_shared.get(value)
        if found is None:
            found = self._is_shared[value] = self._can_be_shared(value)
            if found:
                assert isinstance(value, Operation)
                self.shared.append(value)
        return found

    def _can_be_shared(self, value: Value) -> bool:
        if not isinstance(value, Operation):
            return False
        if value.name == "static":
            return not self._writes_any and value.static not in self._written
        is_movable = value.name in PURE or value.name in FIXED
        if not is_movable or value.name in _UNMOVED or not _is_total(value):
            return False
        return all(map(self.is_shared, value.arguments))

    def _find_uniformity(self) -> Uniformity | None:
        """The values that items have in common when they come to a barrier; None if some may come
        to one that others do not come to, or in another iteration: then these have nothing in
        common."""
        launch = self.launch
        varying = [launch.number, *launch.header.operations]
        if self._written or self._writes_any:
            varying += [o for o in self._operations() if o.name in ("static", "static_at")]
        found = Uniformity(launch.members, varying, launch.header)
        is_apart = any(barrier.block in found.divergent for barrier in launch.barriers)
        return None if is_apart else found

    def is_uniform(self, value: Value) -> bool:
        """True if a value is the same for all items that come to a barrier."""
        return self._uniformity is not None and self._uniformity.is_uniform(value)

    def is_common(self, block: Block) -> bool:
        """True if all items come to a block, or none."""
        return self._uniformity is not None and block not in self._uniformity.divergent

    def cost(self, value: Value) -> int | None:
        """The cost of computing a value of an item anew; None if that is impossible, or costs too
        much."""
        if value is self.launch.number or self.is_shared(value):
            return 0
        if value not in self._costs:
            self._costs[value] = self._cost(value)
        return self._costs[value]

    def _cost(self, value: Value) -> int | None:
        if not isinstance(value, Operation):
            return None
        if value.name not in PURE:
            return None
        total = _COST.get(value.name, 1)
        for each in value.arguments:
            own = self.cost(each)
            if own is None:
                return None
            total += own
        return total if total <= self._dearest else None

    def stored(self, barrier: Barrier) -> list[Value]:
        """The values that are in context arrays behind a barrier."""
        return [value for value in self.live[barrier] if self.cost(value) is None]

    def check_start(self) -> None:
        """Raise NotGroupedError if an item uses a value of the header that is not computed anew."""
        header = {*self.launch.header.operations}
        for block in self.launch.members:
            for operation in (*block.operations, block.end):
                for value in operation.uses():
                    if value in header and self.cost(value) is None:
                        raise NotGroupedError("the launch's loop has another form")


def _is_total(operation: Operation) -> bool:
    if operation.name not in _PARTIAL:
        return True
    count = operation.arguments[-1]
    if not operation.name.startswith("sh"):
        return False
    if isinstance(count, Operation) and count.name == "bit_and":
        return any(isinstance(each, Constant) for each in count.arguments)
    return isinstance(count, Constant)


def _live(launch: Launch) -> dict[Barrier, list[Value]]:
    """The values of items that are live behind each barrier, with those that its state has."""
    blocks = launch.members
    at_barrier = {barrier.block: barrier for barrier in launch.barriers}
    uses: dict[Block, dict[Value, None]] = {}
    definitions: dict[Block, set[Value]] = {}
    for block in blocks:
        defined: set[Value] = {*block.parameters}
        used: dict[Value, None] = {}
        barrier = at_barrier.get(block)
        exits = () if barrier is None else (barrier.exit,)
        for operation in (*block.operations, *exits, block.end):
            used.update(dict.fromkeys(v for v in operation.uses() if v not in defined))
            defined.add(operation)
        uses[block], definitions[block] = used, defined
    live: dict[Block, dict[Value, None]] = {block: {} for block in blocks}
    has_changed = True
    while has_changed:
        has_changed = False
        for block in reversed(blocks):
            found = dict(uses[block])
            for edge in block.end.edges:
                onward = live.get(edge.block, {})
                found.update(dict.fromkeys(v for v in onward if v not in definitions[block]))
            if len(found) > len(live[block]):
                live[block] = found
                has_changed = True
    own = {v for block in blocks for v in (*block.parameters, *block.operations)}
    return {
        barrier: [
            value
            for value in {**live[barrier.behind], **dict.fromkeys(barrier.exit.uses())}
            if value in own
        ]
        for barrier in launch.barriers
    }
