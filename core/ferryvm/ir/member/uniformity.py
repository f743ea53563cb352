# SPDX-License-Identifier: Apache-2.0
"""Uniformity: the values that all members of a group have in common, and the blocks to which all
come.

A branch on a value that varies sends members apart until its post-dominator: the blocks between are
*divergent*. Parameters there and at the join vary, also those of a loop that members leave in different
iterations. Loads vary: what is stored meanwhile is not looked at. (Coutinho, Sampaio, Pereira, Meira:
Divergence Analysis and Optimizations, PACT 2011; Karrenberg, Hack: Whole-Function Vectorization, CGO
2011, section 4.)

Exits are left out: `ferryvm.ir.member.boundary` takes them out of a member's code.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ferryvm.flowgraph.dominance import DominatorTree
from ferryvm.flowgraph.traversal import reverse_postorder
from ferryvm.ir.graph import Block, Constant, Operation, Value
from ferryvm.ir.operation import SHAPES, Role

_COMMON = frozenset({"static", "iterations_spent"})
"""Operations that yield the same for all members that come to them together, although memory
decides."""


class Uniformity:
    """The uniform values and blocks of a member's code, as it was when this was made."""

    def __init__(
        self, blocks: Sequence[Block], varying: Iterable[Value], end: Block | None = None
    ) -> None:
        """`varying`: values that differ from member to member; `end`: the block where members end
        that is not one of theirs; None: they return."""
        self.blocks = blocks
        self.varying = {*varying}
        self.divergent: set[Block] = set()
        """Blocks to which some members may come without others."""
        self._after = post_dominators(blocks, end)
        while self._spread():
            pass

    def is_uniform(self, value: Value) -> bool:
        """True if a value is the same for all members that compute it together."""
        return isinstance(value, Constant) or value not in self.varying

    def behind(self, block: Block) -> Block | None:
        """The first block to which all members come that have come to a block and do not leave;
        None if that is the end."""
        return self._after.get(block)

    def _spread(self) -> bool:
        before = len(self.varying), len(self.divergent)
        for block in self.blocks:
            for operation in block.operations:
                if operation not in self.varying and self._varies(operation):
                    self.varying.add(operation)
            end = block.end
            for edge in end.edges:
                for parameter, argument in zip(edge.block.parameters, edge.arguments, strict=True):
                    if argument in self.varying:
                        self.varying.add(parameter)
            if len(end.edges) > 1 and any(a in self.varying for a in end.arguments):
                self._part(block)
        return (len(self.varying), len(self.divergent)) != before

    def _varies(self, operation: Operation) -> bool:
        if operation.name == "member_index":
            return True
        shape = SHAPES.get(operation.name)
        if shape is None:
            return True  # it is one of plain form (`ferryvm.portable.plain`), which accesses memory
        is_access = shape.role in (Role.READS, Role.CHANGES, Role.CALLS)
        if is_access and operation.name not in _COMMON:
            return True
        return any(argument in self.varying for argument in operation.arguments)

    def _part(self, block: Block) -> None:
        """Note that members go apart at the end of a block."""
        join = self._after.get(block)
        targets = {edge.block for edge in block.end.edges if edge.block in self._after}
        if len(targets) < 2:
            return  # the others leave
        seen, waiting = set[Block](), [*targets]
        while waiting:
            here = waiting.pop()
            if here in seen or here is join:
                continue
            seen.add(here)
            waiting += [edge.block for edge in here.end.edges if edge.block in self._after]
        for here in seen:
            self.varying.update(here.parameters)
        if join is not None:
            self.varying.update(join.parameters)
        self.divergent |= seen


def post_dominators(blocks: Sequence[Block], end: Block | None = None) -> dict[Block, Block | None]:
    """The immediate post-dominator of each block from which control may come to a return, or to
    `end`, which is none of the blocks: None if there is none of them in front of that. Exits are no
    edges."""
    sources: dict[Block, list[Block]] = {block: [] for block in blocks}
    last = []
    for block in blocks:
        targets = [edge.block for edge in block.end.edges]
        if block.end.name == "return" or end in targets:
            last.append(block)
        for target in targets:
            if target is not end:
                sources[target].append(block)
    alive, waiting = set[Block](), [*last]
    while waiting:
        block = waiting.pop()
        if block not in alive:
            alive.add(block)
            waiting += sources[block]
    order = _reverse_order(last, sources, alive)
    numbers = {block: number for number, block in enumerate(order, 1)}
    ends = {*last}
    predecessors: list[list[int]] = [[]]
    for block in order:
        to = [numbers[edge.block] for edge in block.end.edges if edge.block in alive]
        predecessors.append([*to, 0] if block in ends else to)
    tree = DominatorTree(predecessors)
    return {
        block: order[parent - 1] if (parent := tree.parent(numbers[block])) else None
        for block in order
    }


def _reverse_order(
    last: list[Block], sources: dict[Block, list[Block]], alive: set[Block]
) -> list[Block]:
    """The blocks in reverse postorder of the reversed graph."""
    root = Block("end", 0)

    def before(block: Block) -> list[Block]:
        return last if block is root else [b for b in sources[block] if b in alive]

    return reverse_postorder(root, before)[1:]
