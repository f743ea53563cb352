# SPDX-License-Identifier: Apache-2.0
"""Full unrolling: make straight-line code of a loop with a small constant trip count.

    preheader ─> b0(0) ⇄ body          preheader ─> body(0) ─> body(1) ─> … ─> body(n - 1) ─> left
                   └──────> left

The loop around it becomes the innermost one, which a compiler can pipeline, and which
`loop_versioning` can handle as a whole. Only loops inside others are unrolled: elsewhere the gain
does not recur. (Allen, Kennedy: Optimizing Compilers for Modern Architectures, 2001, section 8.4.)

Start, bound and step have to be constants, and the bound the only exit condition; the trip count is
found by counting. Checks stay in each copy with their states, payments too. Polls go: they bounded
a loop that exists no more.

Requires `code_motion`, for one entry into each loop, and finds most after `value_numbering`. Leaves
jumps to `jump_threading`, parameters with one value to `dead_code`, and constants to
`value_numbering`. Preserves effects and exits, but those of the polls.
"""

from __future__ import annotations

import functools

from ferryvm.ir.affine import InductionVariable, find_induction_variable
from ferryvm.ir.clone import Nest, OperationClones, rename
from ferryvm.ir.flow import Flow, Loop
from ferryvm.ir.graph import (
    Block,
    Body,
    Constant,
    Edge,
    FrameState,
    Operation,
    Terminator,
    Value,
    ValueType,
)
from ferryvm.isa.type import I64, signed

MOST_ITERATIONS = 16
LARGEST = 2200
"""Operations that the iterations of a loop may have together, polls left out."""

_CALLS = frozenset({"call", "call_indirect"})


def unroll(body: Body) -> int:
    """Unroll loops in loops, inner ones before those around them; how many."""
    made = 0
    done: set[Block] = set()
    while (found := _next(body, done)) is not None:
        _Unrolling(body, *found).run()
        made += 1
    return made


def _next(body: Body, done: set[Block]) -> tuple[Nest, Loop, InductionVariable, int] | None:
    """A loop that is to be unrolled, with its count and how often it goes round."""
    if sum(edge.is_back for block in body.blocks for edge in block.end.edges) < 2:
        return None
    flow = Flow(body)
    home = flow.homes()
    loops = flow.loops()
    for loop in loops:
        head = flow.blocks[loop.head]
        if (
            head in done
            or any(each.blocks < loop.blocks for each in loops)
            or not any(loop.blocks < each.blocks for each in loops)
        ):
            continue
        done.add(head)
        count = find_induction_variable(flow, loop, functools.partial(_is_outside, home, loop))
        iterations = None if count is None else _iterations(count)
        if count is None or iterations is None:
            continue
        nest = Nest(flow, loop)
        if _is_fit(nest, head, iterations):
            return nest, loop, count, iterations
    return None


def _is_outside(home: dict[Value, int], loop: Loop, value: Value) -> bool:
    """True if a value does not vary in a loop."""
    return home.get(value) not in loop.blocks


def _iterations(count: InductionVariable) -> int | None:
    """How often a loop goes round; None if that is not known, or too often."""
    numbers = [each.bits for each in count[1:] if isinstance(each, Constant)]
    if len(numbers) < 3:
        return None
    value, bound, step = numbers
    for iterations in range(MOST_ITERATIONS + 1):
        if signed(I64, value) >= signed(I64, bound):
            return iterations
        value = (value + step) & I64.mask
    return None


def _is_fit(nest: Nest, head: Block, iterations: int) -> bool:
    """True if only the head leads out of the loop, to one block, and the iterations are short."""
    inside = {nest.flow.blocks[place] for place in nest.numbers}
    operations = [o.name for block in inside for o in block.operations if o.name != "poll"]
    ways = [
        (block, edge)
        for block in inside
        for edge in block.end.edges
        if edge.block is not head and (edge.is_back or edge.block not in inside)
    ]
    others = {edge.block for block, edge in ways if block is not head}
    (out,) = (edge for edge in head.end.edges if edge.block not in inside)
    return (
        not out.is_back  # the head looks at the interrupt flag for it, then
        and others <= set(nest.blocks) - inside - {out.block}
        and len(operations) * iterations <= LARGEST
        and _CALLS.isdisjoint(operations)
    )


class _Unrolling:
    """The iterations of one loop."""

    def __init__(
        self, body: Body, nest: Nest, loop: Loop, count: InductionVariable, iterations: int
    ) -> None:
        self.body, self.count, self.iterations = body, count, iterations
        self.head = nest.flow.blocks[loop.head]
        inside = {nest.flow.blocks[place] for place in nest.numbers}
        (self.out,) = (edge for edge in self.head.end.edges if edge.block not in inside)
        (self.onward,) = (edge for edge in self.head.end.edges if edge is not self.out)
        self.copied = [block for block in nest.blocks if block is not self.out.block]
        """The loop's blocks, and what leads nowhere but is left for in the middle."""
        (self.entry,) = (e for s, e in nest.flow.incoming[loop.head] if s not in loop.blocks)

    def run(self) -> None:
        """Put them in place of the loop."""
        place = self.body.blocks.index(self.head)
        made: list[Block] = []
        heads = [Block(self._label(self.head, n), self.head.pc) for n in range(self.iterations + 1)]
        value, step = self.count.start, self.count.step
        assert isinstance(value, Constant)
        assert isinstance(step, Constant)
        for number in range(self.iterations):
            made += self._round(number, value, heads)
            value = _constant(self.body, I64, (value.bits + step.bits) & I64.mask)
        last = OperationClones()
        self._head(last, value, heads[-1])
        out = Edge(self.out.block, list(last.all(self.out.arguments)), self.out.is_back)
        heads[-1].terminator = self._jump(out)
        self.entry.block = heads[0]
        gone = {*self.copied}
        behind = [block for block in self.body.blocks[place:] if block not in gone]
        states: dict[FrameState, FrameState] = {}
        for block in behind:
            rename(block, last.values, states)
        self.body.blocks[place:] = [*made, heads[-1], *behind]

    def _label(self, old: Block, number: int) -> str:
        labels = {block.label for block in self.body.blocks}
        label = f"iteration{number}.{old.label}"
        while label in labels:
            label += "."
        return label

    def _jump(self, edge: Edge) -> Terminator:
        """The end of a copy of the head."""
        end = Terminator("jump", edges=(edge,))
        end.pc = self.head.end.pc
        return end

    def _head(self, twins: OperationClones, count: Constant, head: Block) -> None:
        """Copy the head of the loop, all but its end."""
        twins.parameters(self.head, head)
        twins.values[self.count.value] = count
        head.operations = _copied(twins, self.head)

    def _round(self, number: int, count: Constant, heads: list[Block]) -> list[Block]:
        """An iteration, from its head up to the next one."""
        twins = OperationClones()
        new = {self.head: heads[number]}
        for old in self.copied:
            if old is not self.head:
                new[old] = Block(self._label(old, number), old.pc)
                twins.parameters(old, new[old])
        self._head(twins, count, heads[number])

        def edge(old: Edge) -> Edge:
            target = heads[number + 1] if old.block is self.head else new[old.block]
            return Edge(target, list(twins.all(old.arguments)))

        heads[number].terminator = self._jump(edge(self.onward))
        for old, block in new.items():
            if old is not self.head:
                block.operations = _copied(twins, old)
                block.terminator = twins.end(old.end, tuple(map(edge, old.end.edges)))
        return list(new.values())


def _copied(twins: OperationClones, old: Block) -> list[Operation]:
    """A copy of a block's operations, but for polls."""
    return [twins.copied(each) for each in old.operations if each.name != "poll"]


def _constant(body: Body, t: ValueType, bits: int) -> Constant:
    return body.constants.setdefault((t, bits), Constant(t, bits))
