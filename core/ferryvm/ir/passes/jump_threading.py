# SPDX-License-Identifier: Apache-2.0
"""Jump threading: lead an edge straight to the block that control reaches anyway.

    p jumps to b(true), and b is `branch %x t() f()`       p jumps to t()
    b does nothing but jump to c                           edges to b lead to c
    b alone jumps to c, and no other edge leads there      b and c become one block
    a branch on a constant                                 a jump

A block of only computations and a branch is bypassed where an argument decides the branch, or makes
it a condition that exists already. Loop heads are never bypassed: a loop keeps one entry, and each
back edge its poll. (Bodik, Gupta, Soffa: Interprocedural Conditional Branch Elimination, 1997,
names the general problem; this is its case of one block.)

Requires no other pass. Preserves effects and exits; removes unreachable blocks. Back edges remain
marked: a head dominates its loop even after edges were removed, so it is never merged into a block
of the loop, and never left with back edges alone.
"""

from __future__ import annotations

from ferryvm.ir.build import Builder
from ferryvm.ir.control_flow_graph import edges_to, remove_unreached
from ferryvm.ir.graph import Block, Body, Constant, Edge, Terminator, Value
from ferryvm.ir.operation import PURE
from ferryvm.ir.use import substitute

_LARGEST = 6
"""The largest number of operations of a block that is bypassed."""


def thread_jumps(body: Body) -> bool:
    """Shorten the paths of control; True if anything changed."""
    has_ever_changed = False
    while _Iteration(body).run():
        has_ever_changed = True
    return has_ever_changed


class _Iteration:
    def __init__(self, body: Body) -> None:
        self.body = body
        self.has_changed = False

    def run(self) -> bool:
        """One iteration over all blocks; True if it changed anything."""
        self._decide()
        self._bypass()
        remove_unreached(self.body)
        self._merge()
        return self.has_changed

    def _decide(self) -> None:
        """Replace branches with one possible edge by jumps."""
        for block in self.body.blocks:
            end = block.end
            if end.name not in ("branch", "switch"):
                continue
            (p,) = end.arguments
            if isinstance(p, Constant):
                edge = _chosen(end, p)
            elif all(_is_same(edge, end.edges[0]) for edge in end.edges):
                edge = end.edges[0]
            else:
                continue
            block.terminator = Terminator("jump", edges=(edge,))
            self.has_changed = True

    # --- bypassing --------------------------------------------------------------------------

    def _bypass(self) -> None:
        incoming = edges_to(self.body)
        inner: set[Block] = set()
        """Blocks that can be bypassed unless other blocks use their values."""
        for block in self.body.blocks[1:]:
            if (
                block.end.edges
                and len(block.operations) <= (0 if block.end.name == "jump" else _LARGEST)
                and all(operation.name in PURE for operation in block.operations)
                and not any(edge.is_back for edge in (*incoming[block], *block.end.edges))
            ):
                inner.add(block)
        if not inner:
            return
        inner -= self._used_elsewhere(inner)
        for block in self.body.blocks:
            for edge in block.end.edges:
                if edge.block in inner and edge.block is not block:
                    self._shorten(block, edge)

    def _used_elsewhere(self, inner: set[Block]) -> set[Block]:
        """The blocks whose values another block uses."""
        home: dict[Value, Block] = {}
        for block in inner:
            for value in (*block.parameters, *block.operations):
                home[value] = block
        found = set()
        if home:
            for block in self.body.blocks:
                for operation in (*block.operations, block.end):
                    if not home.keys().isdisjoint(operation.uses()):
                        homes = {home[value] for value in operation.uses() if value in home}
                        found |= homes - {block}
        return found

    def _shorten(self, source: Block, edge: Edge) -> None:
        """Redirect an edge past a block that can be bypassed, if the next target is known."""
        block = edge.block
        values: dict[Value, Value] = dict(zip(block.parameters, edge.arguments, strict=True))
        made = Block("made", block.pc)
        builder = Builder(self.body.constants)
        builder.open(made)
        for operation in block.operations:
            arguments = tuple(values.get(a, a) for a in operation.arguments)
            assert operation.type is not None
            values[operation] = builder.pure(
                operation.name, operation.static, arguments, operation.type
            )
        end = block.end
        is_alone = source.end.name == "jump"
        if made.operations and not is_alone:
            return
        condition = values.get(end.arguments[0], end.arguments[0]) if end.arguments else None
        if condition is None or isinstance(condition, Constant):
            onward = end.edges[0] if condition is None else _chosen(end, condition)
            edge.block = onward.block
            edge.arguments = [values.get(a, a) for a in onward.arguments]
        elif is_alone and not made.operations:
            source.terminator = Terminator(
                end.name,
                end.static,
                (condition,),
                edges=tuple(
                    Edge(each.block, [values.get(a, a) for a in each.arguments])
                    for each in end.edges
                ),
            )
        else:
            return
        source.operations += made.operations
        self.has_changed = True

    # --- blocks -----------------------------------------------------------------------------

    def _merge(self) -> None:
        """Append blocks to their only predecessor."""
        incoming = edges_to(self.body)
        gone: set[Block] = set()
        new: dict[Value, Value] = {}
        for block in self.body.blocks:
            while block not in gone and block.end.name == "jump":
                (edge,) = block.end.edges
                target = edge.block
                if len(incoming[target]) > 1 or target is block:
                    break
                new.update(zip(target.parameters, edge.arguments, strict=True))
                block.operations += target.operations
                block.terminator = target.terminator
                gone.add(target)
        if not gone:
            return
        self.has_changed = True
        self.body.blocks[:] = [block for block in self.body.blocks if block not in gone]
        for value in [*new]:
            new[value] = _last(new, value)
        if new:
            substitute(self.body.blocks, new)


def _last(new: dict[Value, Value], value: Value) -> Value:
    while value in new:
        value = new[value]
    return value


def _chosen(end: Terminator, p: Constant) -> Edge:
    """The edge that is taken if the operand of a branch or switch is `p`."""
    if end.name == "branch":
        return end.edges[0 if p.bits else 1]
    return end.edges[min(p.bits, len(end.edges) - 1)]


def _is_same(a: Edge, b: Edge) -> bool:
    return a.block is b.block and a.arguments == b.arguments
