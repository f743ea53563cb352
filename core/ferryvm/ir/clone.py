# SPDX-License-Identifier: Apache-2.0
"""Clone a loop nest; both copies exit to the same block.

    preheader ─┬─> nest ────┐                 values that the nest defines and others use pass
               └─> clone ───┴─> left ─> …     through parameters of the block `left`

Requires one entry into the nest and, but for blocks without successors, one exit. Preserves states
and back edges. No edge enters the clone: the caller adds it.
"""

from __future__ import annotations

from ferryvm.ir.flow import Flow, Loop
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


class Nest:
    """The blocks of a loop, inner loops included, with what belongs to it alone."""

    def __init__(self, flow: Flow, loop: Loop) -> None:
        self.flow = flow
        self.numbers = sorted(loop.blocks)
        self.tails = sorted(self._tails(loop))
        """Blocks that only the loop leads to and that lead nowhere, such as traps."""
        self.blocks = [flow.blocks[place] for place in sorted([*self.numbers, *self.tails])]
        own = set(self.blocks)
        self.out: list[Edge] = [
            edge for block in self.blocks for edge in block.end.edges if edge.block not in own
        ]
        """The exit edges after which control goes on."""

    def _tails(self, loop: Loop) -> set[int]:
        flow = self.flow
        targets = {
            flow.places[edge.block]
            for place in loop.blocks
            for edge in flow.blocks[place].end.edges
        } - loop.blocks
        return {
            place
            for place in targets
            if not flow.blocks[place].end.edges
            and all(source in loop.blocks for source, _ in flow.incoming[place])
        }

    @property
    def has_one_exit(self) -> bool:
        """True if control goes on at one block, which is no loop's head, if it does at all."""
        return len({edge.block for edge in self.out}) <= 1 and not any(e.is_back for e in self.out)


class OperationClones:
    """Clones of operations, with cloned operands where these are cloned, too."""

    def __init__(self) -> None:
        self.values: dict[Value, Value] = {}
        """The clone of each cloned value."""
        self._states: dict[FrameState, FrameState] = {}

    def parameters(self, old: Block, new: Block) -> None:
        """Give a copy of a block its parameters."""
        for parameter in old.parameters:
            twin = self.values[parameter] = Parameter(parameter.type)
            new.parameters.append(twin)

    def copied(self, old: Operation) -> Operation:
        """A copy of an operation, but for the end of a block."""
        new = Operation(old.name, old.type, old.static, self.all(old.arguments))
        new.state, new.pc = self.state(old.state), old.pc
        self.values[old] = new
        return new

    def end(self, old: Terminator, edges: tuple[Edge, ...]) -> Terminator:
        """A copy of the end of a block, with edges."""
        new = Terminator(
            old.name, old.static, self.all(old.arguments), self.state(old.state), edges
        )
        new.pc = old.pc
        return new

    def all(self, values: tuple[Value, ...] | list[Value]) -> tuple[Value, ...]:
        """The clones of some values; a value without a clone stands for itself."""
        return tuple([self.values.get(value, value) for value in values])

    def state(self, old: FrameState | None) -> FrameState | None:
        """A frame state over the clones of its values."""
        if old is None:
            return None
        if old not in self._states:
            self._states[old] = old.replace(self.values)
        return self._states[old]


class NestClone(OperationClones):
    """A copy of a nest in its body."""

    def __init__(self, body: Body, nest: Nest, prefix: str) -> None:
        """`prefix`: of the labels of new blocks."""
        super().__init__()
        self.body, self.nest, self.prefix = body, nest, prefix
        self._labels = {block.label for block in body.blocks}
        self.blocks = {each: self._block(each) for each in nest.blocks}
        """Copies of blocks by what they are copies of."""
        left = self._left()
        for old, new in self.blocks.items():
            for operation in old.operations:
                new.operations.append(self.copied(operation))
            new.terminator = self._terminator(old.end)
        before = {old: [new] for old, new in self.blocks.items()}
        if left is not None:
            before.setdefault(left.end.edges[0].block, []).append(left)
        body.blocks[:] = [each for b in body.blocks for each in (*before.get(b, ()), b)]

    def operation(self, old: Operation) -> Operation:
        """The copy of an operation that yields a value."""
        new = self.values[old]
        assert isinstance(new, Operation)
        return new

    def label(self, old: Block, prefix: str = "") -> str:
        """A new label for a block that has to do with another one."""
        label = f"{prefix or self.prefix}.{old.label}"
        while label in self._labels:
            label += "."
        self._labels.add(label)
        return label

    # --- the exit ---------------------------------------------------------------------------

    def _left(self) -> Block | None:
        """The block behind both; what is used behind the nest comes from its parameters now."""
        out = self.nest.out
        if not out:
            return None
        target = out[0].block
        left = Block(self.label(target, "left"), target.pc)
        passed = [Parameter(p.type) for p in target.parameters]
        new: dict[Value, Value] = {value: Parameter(value.type) for value in self._used_behind()}
        left.parameters = [*passed, *(p for p in new.values() if isinstance(p, Parameter))]
        left.terminator = Terminator("jump", edges=(Edge(target, [*passed]),))
        for edge in out:
            edge.block = left
            edge.arguments = [*edge.arguments, *new]
        own = set(self.nest.blocks)
        states: dict[FrameState, FrameState] = {}
        for block in self.body.blocks:
            if block not in own:
                rename(block, new, states)
        return left

    def _used_behind(self) -> list[Value]:
        """The values that are defined in the nest and used behind it."""
        own = set(self.nest.blocks)
        defined = {v for block in own for v in (*block.parameters, *block.operations)}
        found: dict[Value, None] = {}
        for block in self.body.blocks:
            if block not in own:
                for operation in (*block.operations, block.end):
                    found.update(dict.fromkeys(v for v in operation.uses() if v in defined))
        return list(found)

    # --- copying ----------------------------------------------------------------------------

    def _block(self, old: Block) -> Block:
        new = Block(self.label(old), old.pc)
        self.parameters(old, new)
        return new

    def _terminator(self, old: Terminator) -> Terminator:
        edges = tuple(
            Edge(self.blocks.get(e.block, e.block), list(self.all(e.arguments)), e.is_back)
            for e in old.edges
        )
        return self.end(old, edges)


def rename(block: Block, new: dict[Value, Value], states: dict[FrameState, FrameState]) -> None:
    """Replace uses of some values in a block."""
    for operation in (*block.operations, block.end):
        operation.arguments = tuple([new.get(a, a) for a in operation.arguments])
        state = operation.state
        if state is not None:
            if state not in states:
                states[state] = state.replace(new)
            operation.state = states[state]
    for edge in block.end.edges:
        edge.arguments = [new.get(a, a) for a in edge.arguments]
