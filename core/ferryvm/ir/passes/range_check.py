# SPDX-License-Identifier: Apache-2.0
"""Range-check elimination: hoist one condition that implies all range checks of a loop.

    preheader:  doubt = not all of these checks are sure to pass in every iteration
    loop:       trap_if p        becomes        trap_if all(p, doubt)

Nothing else changes, so for each value of the doubt a check exits exactly where it did. The result
is an invariant condition: an optimiser that unswitches makes two loops of one, and the loop without
doubt has no checks. Without unswitching nothing is gained.

The pass is for inner loops that do not change the heap and have an induction variable i that counts
up while i < n. With 0 <= i and n at most 2^31, i never wraps. A checked affine expression base +
scale * i, with a base within 2^61 of zero and a scale within 2^31, does not wrap then, and is
monotonic: its extremes are those for the first i and for n - 1. The lower one must not be negative,
the upper one must be below the limit. All of this is checked at run time, so nothing has to be
known of the program. (Gupta: Optimizing Array Bound Checks Using Flow Analysis, 1993, section 5,
hoists the checks themselves. Here they stay where they are, so that none fails early.)

Loops that store are left alone: a store may change the length of a vector, and the runtime checks
were measured to cost more than they save.

Requires `code_motion`: one edge enters each loop, and invariant values are outside. Preserves
effects and exits; adds blocks in front of loops.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeGuard

from ferryvm.ir.affine import (
    AffineAnalysis,
    AffineExpression,
    InductionVariable,
    Interval,
    find_induction_variable,
    looks_negative,
)
from ferryvm.ir.build import Builder
from ferryvm.ir.flow import Flow, Loop
from ferryvm.ir.graph import (
    BOOLEAN,
    Block,
    Body,
    Constant,
    Edge,
    Operation,
    Parameter,
    Terminator,
    Value,
)
from ferryvm.isa.emitter import Condition
from ferryvm.isa.type import I64, WORD_BYTES, signed

_CHANGES_HEAP = frozenset({"heap_store", "canonicalise", "call", "call_indirect"})

LARGEST_COUNT = 1 << 31
"""Of n, of steps and of scales."""

LARGEST_BASE = 1 << 61
"""Without a sign, as of scales."""


def hoist_range_checks(body: Body) -> int:
    """Hoist range checks of all loops that it pays for; the number of these loops."""
    if not any(edge.is_back for block in body.blocks for edge in block.end.edges):
        return 0
    flow = Flow(body)
    loops = flow.loops()
    heads = {loop.head for loop in loops}
    home = flow.homes()
    made: dict[Block, tuple[Block, ...]] = {}
    for loop in loops:
        if heads & loop.blocks == {loop.head}:
            question = _Question(body, flow, loop, home)
            if question.is_profitable:
                made[question.head] = question.ask()
    body.blocks[:] = [each for block in body.blocks for each in (*made.get(block, ()), block)]
    return len(made)


class _RangeCheck(NamedTuple):
    """A check that exits unless a value is below a limit."""

    check: Operation
    value: Value
    limit: Value


class _Question(Builder):
    """The runtime checks in front of one loop."""

    def __init__(self, body: Body, flow: Flow, loop: Loop, home: dict[Value, int]) -> None:
        super().__init__(body.constants)
        self.body, self.flow, self.loop, self.home = body, flow, loop, home
        self.head = flow.blocks[loop.head]
        self.inside = [flow.blocks[place] for place in sorted(loop.blocks)]
        self.one = self.constant(I64, 1)
        self.entries = [edge for s, edge in flow.incoming[loop.head] if s not in loop.blocks]
        self.fixed: list[Operation] = []
        """Checks of loop invariants."""
        self.ranges: list[_RangeCheck] = []
        count = self._find_induction_variable() if self._is_simple() else None
        if count is not None:
            self.count = count
            self._open(Block("nowhere", self.head.pc))  # finding lines makes operations
            self._find_checks()

    @property
    def is_profitable(self) -> bool:
        """True if there is a check that may be saved."""
        return bool(self.ranges)

    def _open(self, block: Block) -> None:
        """Build in a block, and find affine expressions there."""
        self.open(block)
        self.lines = AffineAnalysis(self, (self.count.value,), self._is_outside)

    # --- what there is in the loop ----------------------------------------------------------

    def _is_outside(self, value: Value) -> bool:
        """True if a value does not vary in the loop."""
        return self.home.get(value) not in self.loop.blocks

    def _is_simple(self) -> bool:
        """True if the loop has one entry, and does not change the heap."""
        names = {o.name for block in self.inside for o in block.operations}
        return len(self.entries) == 1 and names.isdisjoint(_CHANGES_HEAP)

    def _find_induction_variable(self) -> InductionVariable | None:
        count = find_induction_variable(self.flow, self.loop, self._is_outside)
        onward = [edge for edge in self.head.end.edges if edge.block in self.inside]
        # What the condition says holds in the whole loop but its head:
        if count is None or self.flow.only_edge(self.flow.places[onward[0].block]) is None:
            return None
        return count

    def _find_checks(self) -> None:
        for block in self.inside:
            for operation in block.operations:
                if operation.name != "trap_if":
                    continue
                p = operation.arguments[0]
                if self._is_outside(p):
                    self.fixed.append(operation)
                elif (
                    isinstance(p, Operation)
                    and p.static == (I64, Condition.GE_U)
                    and block is not self.head  # nothing is known of the count there
                    and self._is_limit(p.arguments[1])
                    and self._is_rising(p.arguments[0])
                ):
                    self.ranges.append(_RangeCheck(operation, *p.arguments))

    def _is_limit(self, value: Value) -> bool:
        return self._is_outside(value) or self._is_length(value)

    def _is_length(self, value: Value) -> TypeGuard[Operation]:
        """True if a value is loaded from one address in the loop."""
        return (
            isinstance(value, Operation)
            and not self._is_outside(value)
            and value.name == "heap_load"
            and value.static == (WORD_BYTES,)
            and self._is_outside(value.arguments[0])
        )

    def _is_rising(self, value: Value) -> bool:
        """True if a value is affine, and can be checked not to wrap."""
        line = self.lines.line(value)
        return line is not None and not any(
            isinstance(part, Constant) and abs(signed(I64, part.bits)) > most
            for part, most in _bounds(line)
        )

    # --- what is asked ----------------------------------------------------------------------

    def ask(self) -> tuple[Block, ...]:
        """The blocks of the runtime checks; the caller puts them in front of the loop's head."""
        (entry,) = self.entries
        first, second, last = (self._new_block(name) for name in ("ask", "range", "asked"))
        self.open(first)
        doubt = self._doubt_of_count()
        yes = Edge(last, [self.constant(BOOLEAN, 1)])
        self.close(Terminator("branch", (), (doubt,), edges=(yes, Edge(second, []))))
        self._open(second)
        self.close(Terminator("jump", edges=(Edge(last, [self._doubt_of_ranges()]),)))
        last.parameters = [Parameter(BOOLEAN)]
        last.terminator = Terminator("jump", edges=(Edge(self.head, entry.arguments),))
        entry.block, entry.arguments = first, []
        self._spare_checks(last.parameters[0])
        return first, second, last

    def _doubt_of_count(self) -> Value:
        """Whether the count may wrap, what does not vary fails, or a limit cannot be loaded."""
        beyond = self.constant(I64, LARGEST_COUNT)
        doubt = self.any(
            self._is_above(self.count.start, LARGEST_COUNT),
            self._is_above(self.sub(I64, self.count.step, self.one), LARGEST_COUNT - 1),
        )
        doubt = self.any(doubt, self.compare(I64, Condition.GT_S, self.count.bound, beyond))
        for each in self.fixed:
            doubt = self.any(doubt, each.arguments[0])
        for address in self._loaded():
            doubt = self.any(doubt, self._is_unmapped(address))
        return doubt

    def _doubt_of_ranges(self) -> Value:
        """Whether a check may fail."""
        doubt: Value = self.constant(BOOLEAN, 0)
        zero = self.constant(I64, 0)
        ends = Interval(self.count.start, self.sub(I64, self.count.bound, self.one))
        for each in self.ranges:
            line = self.lines.line(each.value)
            assert line is not None
            low, high = self.lines.ends(line, {self.count.value: ends})
            base = self.add(I64, line.base, self.constant(I64, LARGEST_BASE))
            doubt = self.any(doubt, self._is_above(base, 2 * LARGEST_BASE))
            for _, scale in line.terms:
                size = self.sub(I64, zero, scale) if looks_negative(scale) else scale
                doubt = self.any(doubt, self._is_above(size, LARGEST_COUNT))
            doubt = self.any(doubt, self.compare(I64, Condition.LT_S, low, zero))
            is_over = self.compare(I64, Condition.GE_U, high, self._limit(each.limit))
            doubt = self.any(doubt, is_over)
        return doubt

    def _spare_checks(self, doubt: Value) -> None:
        """Make the loop's checks depend on the doubt."""
        spared = {*self.fixed, *(each.check for each in self.ranges)}
        for block in self.inside:
            operations = []
            for operation in block.operations:
                if operation in spared:
                    p = Operation("all", BOOLEAN, (), (operation.arguments[0], doubt))
                    p.pc = operation.pc
                    operation.arguments = (p,)
                    operations.append(p)
                operations.append(operation)
            block.operations = operations

    def _loaded(self) -> list[Value]:
        """Addresses of limits that are loaded in the loop."""
        limits = (each.limit for each in self.ranges)
        return list({o.arguments[0]: None for o in limits if self._is_length(o)})

    def _limit(self, limit: Value) -> Value:
        """A limit in front of the loop."""
        if self._is_length(limit):
            return self.invariant("heap_load", limit.static, limit.arguments, I64)
        return limit

    def _is_above(self, value: Value, most: int) -> Value:
        """Whether a value is above a limit, or negative."""
        return self.compare(I64, Condition.GT_U, value, self.constant(I64, most))

    def _is_unmapped(self, address: Value) -> Value:
        """Whether a word cannot be loaded from the heap, be that in bounds or not."""
        capacity = self.invariant("heap_capacity", (), (), I64)
        word = self.constant(I64, WORD_BYTES)
        return self.any(
            self.compare(I64, Condition.LT_U, capacity, word),
            self.compare(I64, Condition.GT_U, address, self.sub(I64, capacity, word)),
        )

    def _new_block(self, name: str) -> Block:
        labels = {block.label for block in self.body.blocks}
        label = f"{name}.{self.head.label}"
        while label in labels:
            label += "."
        return Block(label, self.head.pc)


def _bounds(line: AffineExpression) -> Iterator[tuple[Value, int]]:
    """The operands of an expression, each with its largest allowed value."""
    yield line.base, LARGEST_BASE
    for _, scale in line.terms:
        yield scale, LARGEST_COUNT
