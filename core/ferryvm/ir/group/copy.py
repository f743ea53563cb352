# SPDX-License-Identifier: Apache-2.0
"""The copy of a parallel region's blocks, in SSA form.

    barrier in loops L1 < L2:   behind ─> rest of L1 ─┬─> rest of L2 ─> header of L2 ─> … whole loops
                                                      └─> header of L1 ─> … whole loop

A region begins in the middle of the loops around its barrier. So it has the rest of their present
iterations first, and each loop as a whole behind that, which its header enters: a copy of a block
is named by the number of loops around the barrier, from the inside out, of which a new iteration
has begun or that control has left. Thus every cycle of the copy is a loop with its own header and
poll.

A value may come from the region's start, where it is loaded or computed, or from its definition in
the copy; where both meet a block gets a parameter. (Braun et al.: Simple and Efficient Construction
of Static Single Assignment Form, CC 2013. All edges are known, so no block is unsealed.)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from ferryvm.ir.graph import (
    Block,
    Edge,
    FrameState,
    Operation,
    Parameter,
    Phase,
    Terminator,
    Value,
)
from ferryvm.ir.group.home import Homes
from ferryvm.ir.group.launch import Barrier
from ferryvm.ir.loop.preheader import Labels

Node = tuple[Block, int]
"""A block, and the number of loops around the region's barrier that are behind control, of those
from the inside out."""


@dataclasses.dataclass(eq=False)
class _Copy:
    block: Block
    incoming: list[tuple[Node, Edge]] = dataclasses.field(default_factory=list)
    values: dict[Value, Value] = dataclasses.field(default_factory=dict)
    """The values at its end, by those of the original."""
    at_start: dict[Value, Value] = dataclasses.field(default_factory=dict)


class RegionCopy:
    """The copy of a region's blocks."""

    def __init__(
        self,
        homes: Homes,
        start: Block,
        labels: Labels,
        name: str,
        entry_value: Callable[[Value], Value],
        phase: Phase | None,
    ) -> None:
        """`start`: the block with which it begins; `name`: of its blocks; `entry_value`: a value of
        the original at its start, which that loads or computes; `phase`: of its states, if there
        are some."""
        self.homes, self.launch = homes, homes.launch
        self._entry_value, self._phase = entry_value, phase
        self._around = [loop for loop in self.launch.loops if start in {*loop.members}]
        self._header_of = {loop.header: loop for loop in self.launch.loops}
        self._members = {loop: {*loop.members} for loop in self.launch.loops}
        self._barriers = {barrier.block: barrier for barrier in self.launch.barriers}
        self.ends: list[tuple[Block, Node, Barrier | None]] = []
        """The blocks in which it ends: without terminators, each with the barrier at which it does;
        None: items end there."""
        self._copies: dict[Node, _Copy] = {}
        self._bound: dict[Edge, dict[Parameter, Value]] = {}
        self._states: dict[tuple[Node, FrameState], FrameState] = {}
        self.first: Node = start, self._behind(start, 0)
        self._find(labels, name)

    def _behind(self, block: Block, level: int) -> int:
        """The number of loops that are behind control at a block: those that it is not in, at
        least."""
        while level < len(self._around) and block not in self._members[self._around[level]]:
            level += 1
        return level

    def _target(self, source: Node, edge: Edge) -> tuple[Node, bool]:
        """The copy to which an edge leads, and if it goes back there."""
        level, loop = source[1], self._header_of.get(edge.block)
        if edge.is_back and loop in self._around[level:]:
            return (edge.block, self._around.index(loop) + 1), False
        return (edge.block, self._behind(edge.block, level)), edge.is_back

    def _find(self, labels: Labels, name: str) -> None:
        """Find all copies."""
        nodes, worklist = {self.first}, [self.first]
        while worklist:
            node = worklist.pop()
            for target in self._targets(node):
                if target not in nodes:
                    nodes.add(target)
                    worklist.append(target)
        places = {block: place for place, block in enumerate(self.launch.body.blocks)}
        for node in sorted(nodes, key=lambda node: (node[1], places[node[0]])):
            self._copies[node] = _Copy(labels.block(node[0], name))

    def _targets(self, node: Node) -> list[Node]:
        if node[0] in self._barriers:
            return []
        edges = node[0].end.edges
        return [self._target(node, e)[0] for e in edges if e.block is not self.launch.header]

    # --- copies -----------------------------------------------------------------------------

    @property
    def entry(self) -> Block:
        """The block with which it begins, to which nothing leads yet."""
        return self._copies[self.first].block

    @property
    def blocks(self) -> list[Block]:
        """Its blocks, in the order of a body."""
        return [copy.block for copy in self._copies.values()]

    def fill(self) -> None:
        """Copy all operations; blocks in which it ends get no terminator."""
        edges = [(node, self._edges(node)) for node in self._copies]
        for node, copy in self._copies.items():
            for parameter in node[0].parameters:
                if node != self.first:
                    made = copy.at_start[parameter] = Parameter(parameter.type)
                    copy.block.parameters.append(made)
        for node, own in edges:
            self._fill(node, own)

    def _edges(self, node: Node) -> list[tuple[Edge, Edge]]:
        """The edges of a copy, each with that of the original."""
        if node[0] in self._barriers:
            return []
        found = []
        for edge in node[0].end.edges:
            if edge.block is not self.launch.header:
                target, is_back = self._target(node, edge)
                made = Edge(self._copies[target].block, [], is_back)
                self._copies[target].incoming.append((node, made))
                found.append((edge, made))
        return found

    def _fill(self, node: Node, edges: list[tuple[Edge, Edge]]) -> None:
        copy, old = self._copies[node], node[0]
        is_end = old not in self._barriers and bool(old.end.edges) and not edges
        is_latch = all(edge.is_back and not new.is_back for edge, new in edges)
        for operation in old.operations:
            if operation.name == "poll" and is_latch:
                continue  # it is that of a loop around the region
            if operation.name == "trap_if" and operation.arguments[0] in self.homes.faults:
                continue  # no group begins then
            new = Operation(operation.name, operation.type, operation.static)
            new.arguments = self._all(node, operation.arguments)
            new.state, new.pc = self._state(node, operation.state), operation.pc
            copy.block.operations.append(new)
            copy.values[operation] = new
        barrier = self._barriers.get(old)
        if barrier is not None or is_end:
            self.ends.append((copy.block, node, barrier))
            return
        end = old.end
        made = Terminator(
            end.name,
            end.static,
            self._all(node, end.arguments),
            self._state(node, end.state),
            tuple(new for _, new in edges),
        )
        made.pc = end.pc
        copy.block.terminator = made
        for edge, copied in edges:
            bound = zip(copied.block.parameters, self._passed(node, edge), strict=False)
            self._bound.setdefault(copied, {}).update(bound)

    def _passed(self, node: Node, edge: Edge) -> tuple[Value, ...]:
        """The values that an edge of the original passes on."""
        return self._all(node, tuple(edge.arguments))

    def finish(self) -> None:
        """Give all edges their arguments, after the last value has been read."""
        done = 0
        copies = [*self._copies.values()]
        while done < len(copies):
            # To read an argument may make parameters of any block.
            copy = copies[done]
            done += 1
            for source, edge in copy.incoming:
                bound = self._bound.setdefault(edge, {})
                for original, value in [*copy.at_start.items()]:
                    if (
                        isinstance(value, Parameter)
                        and value in copy.block.parameters
                        and value not in bound
                    ):
                        bound[value] = self.read(source, original)
                        done = 0
        for copy in copies:
            for _, edge in copy.incoming:
                edge.arguments = [self._bound[edge][each] for each in copy.block.parameters]

    # --- values -----------------------------------------------------------------------------

    def read(self, node: Node, value: Value) -> Value:
        """The value of the original at the end of a copy."""
        if value not in self.homes.defined or self.homes.is_shared(value):
            return self._entry_value(value)
        copy = self._copies[node]
        found = copy.values.get(value)
        return self._at_start(node, value) if found is None else found

    def _at_start(self, node: Node, value: Value) -> Value:
        copy = self._copies[node]
        found = copy.at_start.get(value)
        if found is None:
            if node == self.first:
                found = self._entry_value(value)
            elif len(copy.incoming) == 1:
                found = self.read(copy.incoming[0][0], value)
            else:
                found = Parameter(value.type)
                copy.block.parameters.append(found)
            copy.at_start[value] = found
        return found

    def _all(self, node: Node, values: tuple[Value, ...]) -> tuple[Value, ...]:
        return tuple([self.read(node, value) for value in values])

    def _state(self, node: Node, old: FrameState | None) -> FrameState | None:
        if old is None:
            return None
        key = node, old
        if key not in self._states:
            new = {value: self.read(node, value) for value in old.values()}
            phase = self._phase
            if phase is not None and old.pc == self.launch.item_pc:
                arrived, _, *others = phase.values
                phase = dataclasses.replace(phase, values=(arrived, arrived, *others))
            self._states[key] = dataclasses.replace(old.replace(new), phase=phase)
        return self._states[key]
