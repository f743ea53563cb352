# SPDX-License-Identifier: Apache-2.0
"""Loops over the items of each parallel region, in place of the loop of a launch.

    group ─> unfit: leave
      └─> begin ─> head 0 ─> item 0 … latch 0
                      └──> done 0 ─> dispatch ─> head 1 ─> item 1 … latch 1 ─> done 1 ─> dispatch …
                                        └── all have ended ──> header, behind the last item

`group` decides: parallel regions are for a launch of which no item has started, with room for its
context arrays above its frames on the stack, and for the record that an exit may have to write, and
without a null reference, read-only array or full stack that checks of items look for. Control
leaves in front of all others, which an interpreter runs.

A region that is entered from one other region only follows it; the others follow a dispatch, so
that the loop around regions has one header. Behind a region with several ends, the first item's end
decides; if another item has come to another one, control leaves, for the engine to trap.
"""

from __future__ import annotations

from ferryvm.ir.control_flow_graph import remove_unreached
from ferryvm.ir.graph import (
    Block,
    Body,
    Edge,
    Module,
    Operation,
    Terminator,
)
from ferryvm.ir.group.group_builder import GroupBuilder
from ferryvm.ir.group.home import DEAREST, Homes
from ferryvm.ir.group.item_loop import ItemLoop
from ferryvm.ir.group.launch import (
    NotGroupedError,
    launch_loops,
    leave_at_barriers,
    split_launch,
    uninlined,
)
from ferryvm.ir.loop.natural import Loop
from ferryvm.ir.loop.preheader import insert_before, lead_to
from ferryvm.ir.passes.dead_code import remove_dead_code
from ferryvm.isa.type import I64
from ferryvm.verify import Verified


def form_groups(module: Module, verified: Verified, dearest: int = DEAREST) -> None:
    """Run the items of launches in parallel regions where they wait at barriers; `Module.groups`
    has these launches, `Module.ungrouped` the reasons for others. `dearest`: as for `Homes`."""
    for body in module.bodies:
        for pc in uninlined(body, verified):
            module.ungrouped[pc] = "their function calls itself, never returns, or is too large"
        handled: set[Operation] = set()
        while (found := _next(body, verified, handled)) is not None:
            loop, exits = found
            handled.update(exits)
            _form(module, body, loop, exits, verified, dearest)
        if handled:
            leave_at_barriers(body)
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
    module: Module,
    body: Body,
    loop: Loop,
    exits: list[Operation],
    verified: Verified,
    dearest: int,
) -> None:
    pc = loop.header.pc
    try:
        launch = split_launch(body, loop, exits, verified.program)
        homes = Homes(launch, dearest)
        try:
            homes.check_start()
        except NotGroupedError:
            launch.join()
            raise
        _Formation(module, launch, homes, verified).run()
    except NotGroupedError as reason:
        if str(reason):
            module.ungrouped[pc] = str(reason)


class _Formation(GroupBuilder):
    """The replacement of one launch's loop."""

    def run(self) -> None:
        """Form them."""
        launch, group = self.launch, self.group
        begin = self._decide()
        for barrier in launch.barriers:
            group.barriers.append(self._wait(barrier))
        copies = self._copies()
        self._connect(begin, copies)
        insert_before(self.body, {launch.header: self.made})
        launch.end_at_header()
        remove_unreached(self.body)
        self.module.groups.append(group)

    # --- regions ----------------------------------------------------------------------------

    def _copies(self) -> dict[int, ItemLoop]:
        """The regions that items come to, by number."""
        starts = [self.launch.start, *(barrier.behind for barrier in self.launch.barriers)]
        self.group.ends = [frozenset()] * len(starts)
        found: dict[int, ItemLoop] = {}
        worklist = [0]
        while worklist:
            number = worklist.pop()
            if number in found:
                continue
            made = found[number] = ItemLoop(self, number, starts[number])
            self.group.ends[number] = made.ends
            worklist += made.ends - {0}
        return found

    def _connect(self, begin: Block, regions: dict[int, ItemLoop]) -> None:
        """Put the loops of regions in order, and lead control from one to the next."""
        sources: dict[int, set[int]] = {}
        for number, region in regions.items():
            for end in region.ends - {0}:
                sources.setdefault(end, set()).add(number)
        direct = {end: min(own) for end, own in sources.items() if len(own) == 1}
        self.dispatched = sorted(sources.keys() - direct.keys())
        lead_to(begin, regions[0].before, [])
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

    def _fill_dispatch(self, regions: dict[int, ItemLoop]) -> None:
        """Enter the region whose number is passed."""
        self.open(self.dispatch)
        (number,) = self.dispatch.parameters
        first = self.dispatched[0]
        edges = [Edge(regions[each].before, []) for each in self.dispatched]
        if len(edges) == 1:
            self.close(Terminator("jump", edges=(edges[0],)))
            return
        dense = [edges[0]] * (self.dispatched[-1] - first + 1)
        for each, edge in zip(self.dispatched, edges, strict=True):
            dense[each - first] = Edge(edge.block, [*edge.arguments])
        index = self.sub(I64, number, self.constant(I64, first))
        dense = [Edge(edge.block, [*edge.arguments]) for edge in dense]
        self.close(Terminator("switch", (), (index,), None, tuple(dense)))
