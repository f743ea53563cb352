# SPDX-License-Identifier: Apache-2.0
"""Full unrolling: turn a loop with a small constant trip count into straight-line code.

    preheader ─> b0(0) ⇄ body          preheader ─> body(0) ─> body(1) ─> … ─> body(n - 1) ─> left
                   └──────> left

The loop around it becomes the innermost one, which a compiler can pipeline, and which
`loop_versioning` can handle as a whole. Only loops inside others are unrolled: elsewhere the gain
does not recur. (Allen, Kennedy: Optimizing Compilers for Modern Architectures, 2001, section 8.4.)

Start, bound and step have to be constants, and the bound the only exit condition; the trip count is
found by counting. Each copy has the checks and payments with their states. Polls are removed with
the loop that they bounded.

Requires `code_motion`, for one entry into each loop, and finds most after `value_numbering`. Leaves
jumps to `jump_threading`, parameters with one value to `dead_code`, and constants to
`value_numbering`. Preserves effects and exits, but those of the polls.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping

from ferryvm.ir.graph import (
    Block,
    Body,
    Constant,
    Edge,
    Operation,
    Terminator,
    UnrolledItem,
)
from ferryvm.ir.loop.clone import Clones
from ferryvm.ir.loop.induction import InductionVariable, find_induction_variable
from ferryvm.ir.loop.natural import Loop, find_loops
from ferryvm.ir.loop.preheader import Labels
from ferryvm.ir.operation import CALLS
from ferryvm.ir.use import substitute
from ferryvm.isa.type import I64

MOST_ITERATIONS = 16
LARGEST = 2200
"""The largest total number of operations of a loop's iterations, without polls."""


def unroll(
    body: Body, launches: Collection[int] = (), is_wanted: Callable[[Loop], bool] = lambda _: True
) -> int:
    """Unroll inner loops, innermost first; the number of unrolled loops. `launches`: pcs of the
    heads of loops over items, whose operations are numbered by items then; `is_wanted`: True for
    loops that may be unrolled."""
    made = 0
    done: set[Block] = set()
    taken = max((o.item.loop for o in body.operations if o.item is not None), default=0)
    numbers = itertools.count(taken + 1)
    while (found := _next(body, done, is_wanted)) is not None:
        _Unrolling(body, *found, found[0].header.pc in launches, numbers).run()
        made += 1
    return made


def _next(
    body: Body, done: set[Block], is_wanted: Callable[[Loop], bool]
) -> tuple[Loop, InductionVariable, int] | None:
    """The next loop to unroll, with its induction variable and its trip count."""
    if sum(edge.is_back for edge in body.edges) < 2:
        return None
    for loop in find_loops(body):
        if loop.header in done or not loop.is_innermost or loop.parent is None:
            continue
        done.add(loop.header)
        variable = find_induction_variable(loop)
        count = None if variable is None else variable.constant_trip_count(MOST_ITERATIONS)
        if variable is None or count is None or not is_wanted(loop):
            continue
        if _is_fit(loop, variable, count):
            return loop, variable, count
    return None


def _is_fit(loop: Loop, variable: InductionVariable, count: int) -> bool:
    """True if only the header leads out of the loop, to one block, and the iterations are short."""
    inside = {*loop.members}
    operations = [operation.name for operation in loop.operations if operation.name != "poll"]
    others = {
        edge.block
        for block in loop.members
        for edge in block.end.edges
        if block is not loop.header
        and edge.block is not loop.header
        and (edge.is_back or edge.block not in inside)
    }
    return (
        not variable.exit.is_back  # then the header polls the interrupt flag for it
        and others <= {*loop.extent} - inside - {variable.exit.block}
        and len(operations) * count <= LARGEST
        and CALLS.isdisjoint(operations)
    )


class _Unrolling:
    """The iterations of one loop."""

    def __init__(
        self,
        body: Body,
        loop: Loop,
        variable: InductionVariable,
        count: int,
        is_over_items: bool,
        numbers: Iterator[int],
    ) -> None:
        """`numbers`: of unrolled loops, for the items in them."""
        self.numbers, self.own = numbers, next(numbers)
        self.launch = loop.header.pc if is_over_items else None
        self.body, self.loop, self.variable, self.count = body, loop, variable, count
        self.cloned = [block for block in loop.extent if block is not variable.exit.block]
        """The loop's blocks and tails, without the target of the header's exit."""
        self.labels = Labels(body)

    def run(self) -> None:
        """Insert them in place of the loop."""
        place = self.body.blocks.index(self.loop.header)
        headers = [self._block(self.loop.header, n) for n in range(self.count + 1)]
        made: list[Block] = []
        value, step = self.variable.start, self.variable.step
        assert isinstance(value, Constant)
        assert isinstance(step, Constant)
        for number in range(self.count):
            made += self._iteration(number, value, headers)
            value = self.body.constant(I64, (value.bits + step.bits) & I64.mask)
        last = Clones()
        self._header(last, value, headers[-1])
        exit_ = self.variable.exit
        self._jump(headers[-1], Edge(exit_.block, list(last.all(exit_.arguments))))
        assert self.loop.entry is not None
        self.loop.entry.edge.block = headers[0]
        gone = {*self.cloned}
        behind = [block for block in self.body.blocks[place:] if block not in gone]
        substitute(behind, last.values)
        self.body.blocks[place:] = [*made, headers[-1], *behind]

    def _block(self, old: Block, number: int) -> Block:
        return self.labels.block(old, f"iteration{number}")

    def _jump(self, header: Block, edge: Edge) -> None:
        """Terminate a clone of the header."""
        header.terminator = Terminator("jump", edges=(edge,))
        header.terminator.pc = self.loop.header.end.pc

    def _header(self, clones: Clones, value: Constant, header: Block) -> None:
        """Clone the header of the loop, except its terminator."""
        clones.start(self.loop.header, header)
        clones.values[self.variable.value] = value
        clones.operations(self.loop.header, _is_poll)

    def _iteration(self, number: int, value: Constant, headers: list[Block]) -> list[Block]:
        """An iteration, from its header up to the next one."""
        clones, header = Clones(), self.loop.header
        others = [block for block in self.cloned if block is not header]
        for old in others:
            clones.start(old, self._block(old, number))
        self._header(clones, value, headers[number])

        def edge(old: Edge) -> Edge:
            target = headers[number + 1] if old.block is header else clones.blocks[old.block]
            return Edge(target, list(clones.all(old.arguments)))

        self._jump(headers[number], edge(self.variable.onward))
        for old in others:
            clones.operations(old, _is_poll)
            clones.end(old, tuple(map(edge, old.end.edges)))
        renumbered: defaultdict[int, int] = defaultdict(lambda: next(self.numbers))
        for block in clones.blocks.values():
            for operation in block.operations:
                operation.item = self._item(operation.item, number, renumbered)
        return [headers[number], *(clones.blocks[old] for old in others)]

    def _item(
        self, old: UnrolledItem | None, number: int, renumbered: Mapping[int, int]
    ) -> UnrolledItem | None:
        """The item of an operation in an iteration. `renumbered`: the iteration's numbers of
        unrolled loops."""
        if self.launch is not None and (old is None or old.launch == self.launch):
            inner = 0 if old is None else old.number
            return UnrolledItem(self.launch, self.own, inner * MOST_ITERATIONS + number)
        return None if old is None else old._replace(loop=renumbered[old.loop])


def _is_poll(operation: Operation) -> bool:
    return operation.name == "poll"
