# SPDX-License-Identifier: Apache-2.0
"""Clones of blocks: a second version of a loop beside it, or the iterations of an unrolled one.

    preheader ─┬─> loop ─────┐                 values that the loop defines and others use pass
               └─> clone ────┴─> exit ─> …     through parameters of the block `exit`

Clones have the states and back edges of their originals.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping

from ferryvm.ir.graph import (
    Block,
    Body,
    Edge,
    FrameState,
    Operation,
    Parameter,
    Terminator,
    Value,
)
from ferryvm.ir.loop.natural import Loop
from ferryvm.ir.loop.preheader import Labels, insert_before, lead_to
from ferryvm.ir.use import substitute


def copied(body: Body, is_omitted: Callable[[Operation], bool] = lambda _operation: False) -> Body:
    """A copy of a body, without the omitted operations, which yield nothing."""
    clones = Clones()
    for old in body.blocks:
        clones.start(old, Block(old.label, old.pc))
    for old in body.blocks:
        clones.operations(old, is_omitted)
        clones.end(
            old,
            tuple(
                Edge(clones.blocks[e.block], list(clones.all(e.arguments)), e.is_back)
                for e in old.end.edges
            ),
        )
    return dataclasses.replace(body, blocks=[clones.blocks[old] for old in body.blocks])


class Clones:
    """Clones of operations and blocks; operands are cloned if they have clones."""

    def __init__(self) -> None:
        self.values: dict[Value, Value] = {}
        """The clone of each cloned value."""
        self.blocks: dict[Block, Block] = {}
        """The clone of each cloned block."""
        self._states: dict[FrameState, FrameState] = {}

    def start(self, old: Block, new: Block) -> None:
        """Make a block the clone of another one, with clones of its parameters."""
        self.blocks[old] = new
        for parameter in old.parameters:
            clone = self.values[parameter] = Parameter(parameter.type)
            new.parameters.append(clone)

    def operations(
        self,
        old: Block,
        is_omitted: Callable[[Operation], bool],
        replaced: Mapping[Operation, Value] | None = None,
    ) -> None:
        """Give the clone of a block its operations, without the omitted ones. `replaced`:
        operations in whose place clones use other values, each with that value."""
        operations = []
        for each in old.operations:
            if replaced and each in replaced:
                (self.values[each],) = self.all([replaced[each]])
            elif not is_omitted(each):
                operations.append(self._operation(each))
        self.blocks[old].operations = operations

    def end(self, old: Block, edges: tuple[Edge, ...]) -> None:
        """Terminate the clone of a block, with these edges."""
        end = old.end
        new = Terminator(
            end.name, end.static, self.all(end.arguments), self._state(end.state), edges
        )
        new.pc = end.pc
        self.blocks[old].terminator = new

    def all(self, values: tuple[Value, ...] | list[Value]) -> tuple[Value, ...]:
        """The clones of some values; a value without a clone is unchanged."""
        return tuple([self.values.get(value, value) for value in values])

    def of(self, old: Operation) -> Operation:
        """The clone of an operation that yields a value."""
        new = self.values[old]
        assert isinstance(new, Operation)
        return new

    def _operation(self, old: Operation) -> Operation:
        new = Operation(old.name, old.type, old.static, self.all(old.arguments))
        new.state, new.pc, new.item = self._state(old.state), old.pc, old.item
        self.values[old] = new
        return new

    def _state(self, old: FrameState | None) -> FrameState | None:
        if old is None:
            return None
        if old not in self._states:
            self._states[old] = old.replace(self.values)
        return self._states[old]


class LoopClone(Clones):
    """A clone of a loop with its tails. No edge enters it: `select_version` adds one."""

    def __init__(
        self,
        body: Body,
        loop: Loop,
        omitted: Collection[Operation] = (),
        replaced: Mapping[Operation, Value] | None = None,
        prefix: str = "unchecked",
    ) -> None:
        """Requires that the loop has one exit. `omitted`: operations without a value that the clone
        omits; `replaced`: as for `operations`; `prefix`: of the labels of its blocks."""
        super().__init__()
        self.body, self.loop = body, loop
        self.labels = Labels(body)
        for old in loop.extent:
            self.start(old, self.labels.block(old, prefix))
        exit_ = self._join_exits()
        for old in loop.extent:
            self.operations(old, omitted.__contains__, replaced)
            self.end(old, tuple(self._edge(edge) for edge in old.end.edges))
        before = {old: [new] for old, new in self.blocks.items()}
        if exit_ is not None:
            before.setdefault(exit_.end.edges[0].block, []).append(exit_)
        insert_before(body, before)

    @property
    def header(self) -> Block:
        """The clone of the loop's header."""
        return self.blocks[self.loop.header]

    def new_block(self, prefix: str) -> Block:
        """An empty block whose label shows that it belongs to the loop."""
        return self.labels.block(self.loop.header, prefix)

    def select_version(
        self, first: Block, original: Block, preheader: Block, between: list[Block]
    ) -> None:
        """Redirect control to `first` instead of the loop. `original` becomes the preheader of the
        loop and `preheader` that of the clone; `between`: blocks after `first` that lead to
        these."""
        assert self.loop.entry is not None
        edge = self.loop.entry.edge
        lead_to(original, self.loop.header, edge.arguments)
        lead_to(preheader, self.header, edge.arguments)
        edge.block, edge.arguments = first, []
        insert_before(self.body, {self.header: [first, *between, original, preheader]})

    # --- the exit ---------------------------------------------------------------------------

    def _join_exits(self) -> Block | None:
        """The block after both; uses after the loop refer to its parameters now."""
        exits = self.loop.exits
        if not exits:
            return None
        target = exits[0].block
        joined = self.labels.block(target, "exit")
        passed = [Parameter(p.type) for p in target.parameters]
        own = set(self.loop.extent)
        behind = [block for block in self.body.blocks if block not in own]
        new: dict[Value, Value] = {value: Parameter(value.type) for value in used(behind, own)}
        joined.parameters = [*passed, *(p for p in new.values() if isinstance(p, Parameter))]
        lead_to(joined, target, passed)
        for edge in exits:
            edge.block = joined
            edge.arguments = [*edge.arguments, *new]
        substitute(behind, new)
        return joined

    def _edge(self, old: Edge) -> Edge:
        target = self.blocks.get(old.block, old.block)
        return Edge(target, list(self.all(old.arguments)), old.is_back)


def used(behind: list[Block], own: set[Block]) -> list[Value]:
    """The values that some blocks define and others use."""
    defined = {v for block in own for v in (*block.parameters, *block.operations)}
    found: dict[Value, None] = {}
    for block in behind:
        for operation in (*block.operations, block.end):
            found.update(dict.fromkeys(v for v in operation.uses() if v in defined))
    return list(found)
