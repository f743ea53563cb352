# SPDX-License-Identifier: Apache-2.0
"""Exit threading: an iteration that decides the loop's exit condition leaves the loop at once.

    while (ok and i < k) {              while (i < k) {
        if (bad(i)) ok = false;             if (bad(i)) { i = i + 1; ok = false; goto exit; }
        i = i + 1;                          i = i + 1;
    }                                   }
    exit:                               exit:

An edge to the latch passes a constant that makes the header's branch leave the loop. The edge leads
to the exit instead, through a block with what latch and header compute. The poll is not repeated
there, since no cycle goes through that block. If all edges that change the flag are such edges, it
is invariant, and `dead_code` and `value_numbering` remove its tests. (Jump threading across a
header, which `jump_threading` never does; Mueller, Whalley: Avoiding Conditional Branches by Code
Replication, 1995.)

Requires no other pass. Preserves effects, exits and the order of blocks. Values of the header that
are used behind the loop pass through parameters of the exit.
"""

from __future__ import annotations

import heapq

from ferryvm.ir.build import Builder
from ferryvm.ir.control_flow_graph import ControlFlowGraph
from ferryvm.ir.graph import Block, Body, Constant, Edge, Parameter, Terminator, Value
from ferryvm.ir.loop.natural import Loop, find_loops
from ferryvm.ir.loop.preheader import Labels
from ferryvm.ir.operation import PURE
from ferryvm.ir.use import substitute

_LARGEST = 8
"""The largest number of operations of a latch and of a header that are repeated."""


def thread_exits(body: Body) -> bool:
    """Lead edges that decide an exit out of their loops; True if there were any."""
    has_changed = False
    while any(_Threading(body, loop).run() for loop in find_loops(body)):
        has_changed = True
    return has_changed


class _Threading:
    """The edges of one loop."""

    def __init__(self, body: Body, loop: Loop) -> None:
        self.body, self.loop = body, loop
        self.graph: ControlFlowGraph = loop.graph

    def run(self) -> bool:
        """Redirect the edges to its latches that decide its exit; True if there were any.

        The loops of the body have to be found again then."""
        header = self.loop.header
        if header.end.name != "branch" or not _is_short(header):
            return False
        changed: dict[Block, list[Block]] = {}
        passed: dict[Block, list[Value]] = {}
        labels = Labels(self.body)
        for source, back in self.loop.back_edges:
            latch = self.graph.blocks[source]
            if latch is header or latch.end.name != "jump" or not _is_short(latch):
                continue
            for block in self.loop.members:
                for edge in block.end.edges:
                    if edge.block is latch and any(isinstance(a, Constant) for a in edge.arguments):
                        made = self._redirect(labels, edge, back, passed)
                        if made is not None:
                            changed.setdefault(made.end.edges[0].block, []).append(made)
        if not changed:
            return False
        for exit_, blocks in changed.items():
            self._pass_values(exit_, passed[exit_], blocks)
        self.body.blocks += [block for blocks in changed.values() for block in blocks]
        _sort(self.body, self.graph.places)
        return True

    def _redirect(
        self, labels: Labels, edge: Edge, back: Edge, passed: dict[Block, list[Value]]
    ) -> Block | None:
        """The block through which an edge leads out of the loop now, if it decides the exit. Its
        edge has the values of the header that are used behind the loop as further arguments."""
        latch, header = edge.block, self.loop.header
        values: dict[Value, Value] = dict(zip(latch.parameters, edge.arguments, strict=True))
        made = labels.block(latch, "last")
        builder = Builder(self.body.constants)
        builder.open(made)

        def all_of(old: list[Value]) -> list[Value]:
            return [values.get(value, value) for value in old]

        def compute(block: Block) -> None:
            for operation in block.operations:
                if operation.name == "poll":
                    continue
                assert operation.type is not None
                builder.pc = operation.pc
                values[operation] = builder.pure(
                    operation.name,
                    operation.static,
                    tuple(all_of([*operation.arguments])),
                    operation.type,
                )

        compute(latch)
        values.update(zip(header.parameters, all_of(back.arguments), strict=True))
        compute(header)
        (condition,) = all_of([*header.end.arguments])
        if not isinstance(condition, Constant):
            return None
        onward = header.end.edges[0 if condition.bits else 1]
        exit_ = onward.block
        if exit_ not in passed:
            used = self._used_behind(exit_)
            if used is None:
                return None
            passed[exit_] = used
        arguments = [*all_of(onward.arguments), *all_of(passed[exit_])]
        made.terminator = Terminator("jump", edges=(Edge(exit_, arguments),))
        made.terminator.pc = header.end.pc
        edge.block, edge.arguments = made, []
        return made

    def _used_behind(self, exit_: Block) -> list[Value] | None:
        """The values of the header that are used in blocks dominated by an exit; None if it is no
        exit, if it is a header, or if others that control reaches from it use some."""
        graph, place = self.graph, self.graph.places[exit_]
        inside = self.loop.blocks
        if place in inside or any(edge.is_back for _, edge in graph.incoming[place]):
            return None
        header = self.loop.header
        own = {*header.parameters, *header.operations}
        reached, worklist = {place}, [place]
        while worklist:
            for edge in graph.blocks[worklist.pop()].end.edges:
                following = graph.places[edge.block]
                if following not in reached and following not in inside:
                    reached.add(following)
                    worklist.append(following)
        found: dict[Value, None] = {}
        for each in reached:
            block = graph.blocks[each]
            uses = [
                value
                for operation in (*block.operations, block.end)
                for value in operation.uses()
                if value in own
            ]
            if uses and not graph.dominates(place, each):
                return None
            found.update(dict.fromkeys(uses))
        return list(found)

    def _pass_values(self, exit_: Block, used: list[Value], made: list[Block]) -> None:
        """Give an exit parameters for values of the header; the new blocks pass them already."""
        graph, place = self.graph, self.graph.places[exit_]
        new: dict[Value, Value] = {value: Parameter(value.type) for value in used}
        exit_.parameters += [p for p in new.values() if isinstance(p, Parameter)]
        for _, edge in graph.incoming[place]:
            edge.arguments = [*edge.arguments, *used]
        behind = [block for at, block in enumerate(graph.blocks) if graph.dominates(place, at)]
        if new:
            substitute(behind, new)


def _is_short(block: Block) -> bool:
    return len(block.operations) <= _LARGEST and all(
        operation.name in PURE or operation.name == "poll" for operation in block.operations
    )


def _sort(body: Body, places: dict[Block, int]) -> None:
    """Restore the order of blocks, where it can be as it was; new blocks come as late as they
    can."""
    waiting = dict.fromkeys(body.blocks, 0)
    for edge in body.edges:
        if not edge.is_back:
            waiting[edge.block] += 1
    ready = [(0, 0, body.blocks[0])]
    ordered: list[Block] = []
    count = 0
    while ready:
        block = heapq.heappop(ready)[2]
        ordered.append(block)
        for edge in block.end.edges:
            if not edge.is_back:
                waiting[edge.block] -= 1
                if not waiting[edge.block]:
                    count += 1
                    place = places.get(edge.block, len(places))
                    heapq.heappush(ready, (place, count, edge.block))
    body.blocks[:] = ordered
