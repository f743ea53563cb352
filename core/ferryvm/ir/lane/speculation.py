# SPDX-License-Identifier: Apache-2.0
"""Lanes that give up: the items of a vector, of which none may leave while others go on.

    items ─> loads, loops, checks, polls ─> stores ─> next vector
                            │
                            └─> gives up: the scalar code runs these items, from the first one on

Until a vector stores nobody sees that it has begun. So where an item would leave, all of its items
begin again in scalar code, one by one, which leaves where the first of them does; and a poll leaves
in front of the first item. No state has several items in the middle.
"""

from __future__ import annotations

from collections.abc import Callable

from ferryvm.ir.graph import BOOLEAN, Block, Constant, Edge, FrameState, Terminator, Value
from ferryvm.ir.lane.emission import Emission
from ferryvm.ir.lane.shape import VARYING

GIVE_UP = "one.by.one"
"""The label of the block where control comes to if a vector gives up."""


class Speculation:
    """The places where the lanes of one body give up."""

    def __init__(
        self, emission: Emission, before: FrameState, new_block: Callable[[str, int], Block]
    ) -> None:
        """`before`: the state in front of a vector's first item; `new_block`: makes a block with a
        label like that."""
        self.emission, self.before, self._new_block = emission, before, new_block
        self.end = new_block(GIVE_UP, emission.pc)
        self.is_possible = False

    def give_up_if(self, p: Value) -> None:
        """Give up if a condition holds in a lane of the mask."""
        emission = self.emission
        p = p if emission.is_full else emission.both(emission.mask, p)
        if isinstance(p, Constant) and not p.bits:
            return
        if emission.shape(p) is VARYING:
            p = emission.emit("any_lane", BOOLEAN, (), (p,))
        first = emission.block
        onward = self._new_block(f"{first.label}.on", emission.pc)
        edges = Edge(self.end, []), Edge(onward, [])
        first.terminator = Terminator("branch", (), (p,), edges=edges)
        first.terminator.pc = emission.pc
        emission.variables.incoming[onward] = [(first, edges[1])]
        emission.body.blocks.append(onward)
        emission.block = onward
        self.is_possible = True

    def poll(self) -> None:
        """Leave in front of the first item if the interrupt flag is set, now and then."""
        made = self.emission.emit("poll", None)
        made.state = self.before
