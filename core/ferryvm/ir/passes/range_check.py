# SPDX-License-Identifier: Apache-2.0
"""Range-check elimination: hoist one condition that implies all range checks of a loop.

    preheader:  doubt = not all of these checks certainly pass in every iteration
    loop:       trap_if p        becomes        trap_if all(p, doubt)

Nothing else changes, so for each value of the doubt a check exits exactly where it did. The result
is an invariant condition: loop unswitching makes two loops, one of them without checks. Without
unswitching nothing is gained.

The pass is for inner loops that do not change the heap and have an induction variable i that
increases while i < n. With 0 <= i and n at most 2^31, i never wraps. A checked affine expression
base + scale * i, with a base within 2^61 of zero and a scale within 2^31, does not wrap then, and
is monotonic: its extremes are those for the first i and for n - 1. The lower one must not be
negative, the upper one must be below the limit. All of this is checked at run time, so no static
bounds are needed. Where i decreases while i > n, the ends are exchanged. (Gupta: Optimizing Array
Bound Checks Using Flow Analysis, 1993, section 5, hoists the checks themselves. Here they are not
moved, so that none fails early.)

An index that two limits bound, such as the length of a list and that of the array with its items,
is compared with the second one only if that is below the first: this is found before the loop,
whatever the index. So are conditions that do not vary. Neither needs a variable, and the loop may
have any effects.

Otherwise loops that store into the heap are excluded: a store may change a limit that lies there,
and the runtime checks were measured to cost more than they save.

Requires `code_motion`: one edge enters each loop, and invariant values are outside. Preserves
effects and exits; adds blocks before loops.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeGuard

from ferryvm.ir.build import Builder
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
from ferryvm.ir.index import from_end, plain_index
from ferryvm.ir.loop.affine import (
    AffineAnalysis,
    AffineExpression,
    Interval,
    looks_negative,
    split_constant,
)
from ferryvm.ir.loop.induction import (
    InductionVariable,
    find_descending_variable,
    find_induction_variable,
)
from ferryvm.ir.loop.natural import Loop, find_loops
from ferryvm.ir.loop.preheader import Labels, insert_before, lead_to
from ferryvm.ir.loop.value_range import Range, ValueRanges
from ferryvm.ir.operation import HEAP_CHANGES
from ferryvm.isa.emitter import Condition
from ferryvm.isa.overflow import EXPANSIONS
from ferryvm.isa.type import I64, WORD_BYTES, signed

LARGEST_COUNT = 1 << 31
"""The limit of n, of steps and of scales."""

LARGEST_BASE = 1 << 61
"""The limit of the magnitude of a base."""


def hoist_range_checks(
    body: Body,
    groups: bool = False,
    certain: Callable[[Loop], bool] | None = None,
    invariant: bool = False,
) -> int:
    """Hoist range checks of all loops that profit from it; the number of these loops. `groups`:
    also of outer loops, and with barriers, which change no limit: of members of groups. `certain`:
    only of loops for which this holds, and where the condition implies that a check fails, but for
    numbers near the largest; `invariant`: also of loops whose checks are all of loop invariants."""
    made: dict[Block, tuple[Block, ...]] = {}
    labels = Labels(body)
    loops = find_loops(body)
    slow = _with_all_checks(body, loops)
    for loop in loops:
        is_wanted = (loop.is_innermost or groups) and loop.entry is not None
        if certain is not None and not certain(loop):
            continue
        if is_wanted and loop.header not in slow:
            checks = _LoopChecks(body, loop, labels, groups)
            is_profitable = checks.is_profitable or (invariant and checks.fixed)
            if is_profitable and (certain is None or checks.is_certain):
                made[loop.header] = checks.hoist()
    if made:
        insert_before(body, made)
    return len(made)


def _with_all_checks(body: Body, loops: list[Loop]) -> set[Block]:
    """The headers of loops in nests that have a version without checks (`loop_versioning`)."""
    labels = {block.label for block in body.blocks}
    slow = [loop for loop in loops if f"unchecked.{loop.header.label}" in labels]
    return {loop.header for loop in loops if any(nest.contains(loop) for nest in slow)}


class _RangeCheck(NamedTuple):
    """A check that exits unless a value is below a limit."""

    check: Operation
    value: Value
    limit: Value


class _Alike(NamedTuple):
    """Indices that differ by a constant, and have one limit."""

    root: Value
    terms: tuple[tuple[Parameter, Value], ...]
    limit: Value
    apart: Value | None
    """The index itself, if its constant is large."""


class _LoopChecks(Builder):
    """The range checks of one loop, and the runtime checks before it."""

    def __init__(self, body: Body, loop: Loop, labels: Labels, groups: bool) -> None:
        super().__init__(body.constants)
        self._always = groups
        """Hoist only checks that each iteration makes: if others fail, that is for nothing."""
        self._changes = HEAP_CHANGES - {"barrier"} if groups else HEAP_CHANGES
        self.loop, self.labels = loop, labels
        self.one = self.constant(I64, 1)
        self.fixed: list[Operation] = []
        """Checks of loop-invariant values."""
        self.exact: list[Operation] = []
        """Checks of overflow of affine expressions."""
        self.fitting: list[Operation] = []
        """Checks of overflow of values whose ranges follow from those of first values."""
        self.ranges: list[_RangeCheck] = []
        self.bounded: list[_RangeCheck] = []
        """Checks of values that are below another limit by then."""
        self.limits: dict[tuple[Value, Value], None] = {}
        """The first limit of such a value and the second one, which also bounds it unless it is
        smaller."""
        self.is_descending = False
        self.variable = self._find_induction_variable()
        counts: dict[Value, Range] = {}
        if self.variable is not None:
            counts[self.variable.value] = Range(0, LARGEST_COUNT - 1)
        self.ranges_of_values = ValueRanges(loop, counts)
        self._open(Block("analysis", loop.header.pc))  # the analysis creates operations
        self._find_checks()

    @property
    def is_profitable(self) -> bool:
        """True if there is a check that can be saved."""
        # LLVM finds tests of overflow that are needless whatever the first values are.
        fitting = self.fitting and self.ranges_of_values.assumed
        return bool(self.ranges or fitting or self.bounded)

    @property
    def is_certain(self) -> bool:
        """True if a check fails wherever the hoisted condition holds."""
        is_doubtful = self.exact or self.fitting or self.bounded or self.ranges_of_values.assumed
        return not is_doubtful and not any(from_end(each.value) for each in self.ranges)

    def _open(self, block: Block) -> None:
        """Build in a block, and find affine expressions there."""
        self.open(block)
        variables = () if self.variable is None else (self.variable.value,)
        self.affine = AffineAnalysis(self, variables, self.loop)

    # --- the loop ---------------------------------------------------------------------------

    def _find_induction_variable(self) -> InductionVariable | None:
        """The induction variable of a loop that does not change the heap."""
        if any(operation.name in self._changes for operation in self.loop.operations):
            return None
        variable, graph = find_induction_variable(self.loop), self.loop.graph
        if variable is None:
            variable = find_descending_variable(self.loop, self)
            self.is_descending = True
        # The header's condition holds in all other blocks of the loop, if no other edge enters it.
        if variable is None or graph.only_edge(graph.places[variable.onward.block]) is None:
            return None
        return variable

    def _find_checks(self) -> None:
        limits: dict[Value, list[tuple[int, Value]]] = {}
        graph, latches = self.loop.graph, self.loop.latches
        for place, block in zip(self.loop.places, self.loop.members, strict=True):
            if self._always and not all(graph.dominates(place, latch) for latch in latches):
                continue
            for operation in block.operations:
                if operation.name == "trap_if":
                    self._find_check(operation, place, limits)

    def _find_check(
        self, check: Operation, place: int, limits: dict[Value, list[tuple[int, Value]]]
    ) -> None:
        """Sort a check in; `limits`: of values that have been checked, with the places of the
        checks."""
        p = check.arguments[0]
        if self.loop.is_invariant(p):
            self.fixed.append(check)
            return
        if not isinstance(p, Operation):
            return
        is_range = p.static == (I64, Condition.GE_U)
        # The variable has no known bounds in the header.
        if self.variable is not None and place != self.loop.head:
            if p.name in EXPANSIONS:
                if self._may_be_exact(p):
                    self.exact.append(check)
                elif self.ranges_of_values.fits(p):
                    self.fitting.append(check)
                return
            if (
                is_range
                and self._is_limit(p.arguments[1])
                and self._is_monotonic(plain_index(p.arguments[0]))
            ):
                self.ranges.append(_RangeCheck(check, *p.arguments))
                return
        if is_range and self.loop.is_invariant(p.arguments[1]):
            value, limit = p.arguments
            known = limits.setdefault(value, [])
            for before, other in known:
                if self.loop.graph.dominates(before, place):
                    self.bounded.append(_RangeCheck(check, value, limit))
                    self.limits[other, limit] = None
                    return
            known.append((place, limit))

    def _may_be_exact(self, p: Operation) -> bool:
        """True if an operation can be checked not to overflow."""
        if p.static != (I64,) or not all(map(self._is_monotonic, p.arguments)):
            return False
        return p.name != "mul_overflows" or any(map(self.loop.is_invariant, p.arguments))

    def _is_limit(self, value: Value) -> bool:
        return self.loop.is_invariant(value) or self._is_length(value)

    def _is_length(self, value: Value) -> TypeGuard[Operation]:
        """True if a value is loaded from one address in the loop."""
        return (
            isinstance(value, Operation)
            and not self.loop.is_invariant(value)
            and value.name == "heap_load"
            and value.static == (WORD_BYTES,)
            and self.loop.is_invariant(value.arguments[0])
        )

    def _is_monotonic(self, value: Value) -> bool:
        """True if a value is affine, and can be checked not to wrap."""
        expression = self.affine.expression(value)
        return expression is not None and not any(
            isinstance(part, Constant) and abs(signed(I64, part.bits)) > most
            for part, most in _bounds(expression)
        )

    # --- runtime checks ---------------------------------------------------------------------

    def hoist(self) -> tuple[Block, ...]:
        """The blocks of the runtime checks; the caller inserts them before the loop's header."""
        header = self.loop.header
        first, second, last = (
            self.labels.block(header, name) for name in ("check", "range", "checked")
        )
        self.open(first)
        doubt = self._doubt_of_invariants()
        if self.variable is None:
            self.close(Terminator("jump", edges=(Edge(last, [doubt]),)))
        elif self._always:  # without branches, so that all of it can move further
            doubt = self.any(doubt, self._doubt_of_variable(self.variable))
            self.close(Terminator("jump", edges=(Edge(second, []),)))
            self._open(second)
            doubt = self.any(doubt, self._doubt_of_ranges())
            self.close(Terminator("jump", edges=(Edge(last, [doubt]),)))
        else:
            doubt = self.any(doubt, self._doubt_of_variable(self.variable))
            yes = Edge(last, [self.constant(BOOLEAN, 1)])
            self.close(Terminator("branch", (), (doubt,), edges=(yes, Edge(second, []))))
            self._open(second)
            self.close(Terminator("jump", edges=(Edge(last, [self._doubt_of_ranges()]),)))
        last.parameters = [Parameter(BOOLEAN)]
        (entry,) = self.loop.entries
        lead_to(last, header, entry.edge.arguments)
        entry.edge.block, entry.edge.arguments = first, []
        self._spare_checks(last.parameters[0])
        return (first, last) if self.variable is None else (first, second, last)

    def _doubt_of_invariants(self) -> Value:
        """True if an invariant check fails, or a limit is above one that it is to be below."""
        doubts = dict.fromkeys(_largest(each.arguments[0] for each in self.fixed))
        for first, second in self.limits:
            doubts[self.compare(I64, Condition.GT_U, first, second)] = None
        return self._any_of(doubts)

    def _any_of(self, doubts: Iterable[Value]) -> Value:
        no: Value = self.constant(BOOLEAN, 0)
        return functools.reduce(self.any, doubts, no)

    def _doubt_of_variable(self, variable: InductionVariable) -> Value:
        """True if the variable may wrap, or a limit cannot be loaded."""
        beyond = self.constant(I64, LARGEST_COUNT)
        if self.is_descending:
            below = self.constant(I64, -1 & I64.mask)
            doubt = self.any(
                self._is_above(variable.start, LARGEST_COUNT - 1),
                self.compare(I64, Condition.LT_S, variable.bound, below),
            )
        else:
            doubt = self.any(
                self._is_above(variable.start, LARGEST_COUNT),
                self._is_above(self.sub(I64, variable.step, self.one), LARGEST_COUNT - 1),
            )
            doubt = self.any(doubt, self.compare(I64, Condition.GT_S, variable.bound, beyond))
        for address in self._loaded():
            doubt = self.any(doubt, self._is_unmapped(address))
        return doubt

    def _doubt_of_ranges(self) -> Value:
        """True if a range check may fail, or an operation overflow."""
        doubts: dict[Value, None] = {}
        zero = self.constant(I64, 0)
        for value, limit, is_first, is_last in self._outermost():
            low, high = self._extremes(value, doubts)
            if is_first:
                doubts[self.compare(I64, Condition.LT_S, low, zero)] = None
            if is_last:
                doubts[self.compare(I64, Condition.GE_U, high, self._limit(limit))] = None
        for value, range_ in self.ranges_of_values.assumed.items():
            first = self.sub(I64, self._first(value), self.constant(I64, range_.low & I64.mask))
            doubts[self._is_above(first, range_.high - range_.low)] = None
        for check in self.exact:
            (p,) = check.arguments
            assert isinstance(p, Operation)
            most = LARGEST_COUNT if p.name == "mul_overflows" else LARGEST_BASE
            for operand in p.arguments:
                for end in self._extremes(operand, doubts):
                    moved = self.add(I64, end, self.constant(I64, most))
                    doubts[self._is_above(moved, 2 * most)] = None
        return self._any_of(doubts)

    def _outermost(self) -> Iterator[tuple[Value, Value, bool, bool]]:
        """The indices to check with their limits, and if they are the first, or the last, of those
        that differ by a constant: the others are between them, as both are near zero."""
        groups: dict[_Alike, dict[int, Value]] = {}
        for each in self.ranges:
            value = plain_index(each.value)
            expression = self.affine.expression(value)
            assert expression is not None
            root, offset = split_constant(self, expression.base)
            offset = signed(I64, offset & I64.mask)
            apart = value if abs(offset) > LARGEST_COUNT else None
            alike = _Alike(root, expression.terms, each.limit, apart)
            groups.setdefault(alike, {})[offset] = value
        for alike, values in groups.items():
            first, last = min(values), max(values)
            yield values[first], alike.limit, True, first == last
            if first != last:
                yield values[last], alike.limit, False, True

    def _first(self, value: Parameter) -> Value:
        """The value of a parameter of the header in the first iteration."""
        (entry,) = self.loop.entries
        return entry.edge.arguments[self.loop.header.parameters.index(value)]

    def _extremes(self, value: Value, doubts: dict[Value, None]) -> Interval:
        """The extremes of an affine expression; adds the conditions under which it may wrap."""
        expression = self.affine.expression(value)
        variable = self.variable
        assert expression is not None
        assert variable is not None
        ends = Interval(variable.start, self._last(variable))
        if self.is_descending:
            ends = Interval(self.add(I64, variable.bound, self.one), variable.start)
        zero = self.constant(I64, 0)
        base = self.add(I64, expression.base, self.constant(I64, LARGEST_BASE))
        doubts[self._is_above(base, 2 * LARGEST_BASE)] = None
        for _, scale in expression.terms:
            size = self.sub(I64, zero, scale) if looks_negative(scale) else scale
            doubts[self._is_above(size, LARGEST_COUNT)] = None
        return self.affine.extremes(expression, {variable.value: ends})

    def _last(self, variable: InductionVariable) -> Value:
        """The largest value of a rising variable in an iteration, or a larger one below the
        bound."""
        start, step = variable.start, variable.step
        last = self.sub(I64, variable.bound, self.one)
        if not self._always or not isinstance(step, Constant) or step is self.one:
            return last
        if step.bits & (step.bits - 1):
            return last
        mask = self.sub(I64, self.constant(I64, 0), step)
        return self.add(I64, start, self.bit_and(I64, self.sub(I64, last, start), mask))

    def _spare_checks(self, doubt: Value) -> None:
        """Make the loop's checks depend on the doubt, and what is added to negative indices."""
        spared = {*self.fixed, *self.exact, *self.fitting}
        spared |= {each.check for each in (*self.ranges, *self.bounded)}
        spared |= {found[1] for each in self.ranges if (found := from_end(each.value))}
        for block in self.loop.members:
            operations = []
            for operation in block.operations:
                if operation in spared:
                    p = Operation("all", BOOLEAN, (), (operation.arguments[0], doubt))
                    p.pc = operation.pc
                    operation.arguments = (p, *operation.arguments[1:])
                    operations.append(p)
                operations.append(operation)
            block.operations = operations

    def _loaded(self) -> list[Value]:
        """Addresses of limits that are loaded in the loop."""
        limits = (each.limit for each in self.ranges)
        return list({o.arguments[0]: None for o in limits if self._is_length(o)})

    def _limit(self, limit: Value) -> Value:
        """A limit, computed in the preheader."""
        if self._is_length(limit):
            return self.invariant("heap_load", limit.static, limit.arguments, I64)
        return limit

    def _is_above(self, value: Value, most: int) -> Value:
        """True if a value is above a limit, or negative."""
        return self.compare(I64, Condition.GT_U, value, self.constant(I64, most))

    def _is_unmapped(self, address: Value) -> Value:
        """True if a word cannot be loaded from the heap, whether in bounds or not."""
        capacity = self.invariant("heap_capacity", (), (), I64)
        word = self.constant(I64, WORD_BYTES)
        return self.any(
            self.compare(I64, Condition.LT_U, capacity, word),
            self.compare(I64, Condition.GT_U, address, self.sub(I64, capacity, word)),
        )


def _bounds(expression: AffineExpression) -> Iterator[tuple[Value, int]]:
    """The operands of an expression, each with its largest allowed value."""
    yield expression.base, LARGEST_BASE
    for _, scale in expression.terms:
        yield scale, LARGEST_COUNT


def _largest(checks: Iterable[Value]) -> Iterator[Value]:
    """Conditions without those that hold only if another one does: of constants that are not below
    one limit, the largest."""
    largest: dict[Value, tuple[int, Value]] = {}
    for p in checks:
        if isinstance(p, Operation) and p.static == (I64, Condition.GE_U):
            value, limit = p.arguments
            if isinstance(value, Constant):
                largest[limit] = max(largest.get(limit, (-1, p)), (value.bits, p), key=_first_of)
                continue
        yield p
    yield from (p for _, p in largest.values())


def _first_of(pair: tuple[int, Value]) -> int:
    return pair[0]
