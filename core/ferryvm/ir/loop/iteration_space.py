# SPDX-License-Identifier: Apache-2.0
"""The iteration space of a loop nest: its induction variables, with the interval of each.

Magnitudes are checked to be so small that nothing wraps: an expression stays within 2^60 + 4 * 2^59
< 2^62 of zero, and differences of two are exact. Only whole sums are checked, so a base or a scale
may be negative. If a loop has no iterations the extremes may be in the wrong order; then it makes
no accesses, and the results of its checks do not matter. (Gupta: Optimizing Array Bound Checks
Using Flow Analysis, 1993, section 5, for the extremes.)
"""

from __future__ import annotations

from ferryvm.ir.build import Builder
from ferryvm.ir.graph import Constant, Parameter, Value, ValueType
from ferryvm.ir.loop.affine import AffineAnalysis, AffineExpression, Interval, looks_negative
from ferryvm.ir.loop.induction import InductionVariable, find_induction_variable
from ferryvm.ir.loop.natural import Loop
from ferryvm.ir.versioned_nest import VersioningReason
from ferryvm.isa.emitter import Condition
from ferryvm.isa.type import I64, signed

LARGEST_BASE = 1 << 60
"""The limit of references and other bases of expressions, exclusive; all these are magnitudes."""

LARGEST_VALUE = 1 << 32
"""The limit of an induction variable, and of its step."""

LARGEST_SCALE = 1 << 27
MOST_TERMS = 4


class FailureConditions(Builder):
    """The conditions under which a check of a nest may fail, computed before it."""

    def __init__(self, constants: dict[tuple[ValueType, int], Constant]) -> None:
        super().__init__(constants)
        self.zero = self.constant(I64, 0)
        self.addresses: dict[Value, None] = {}
        """Addresses that must be below `LARGEST_BASE`."""
        self.small: dict[Value, None] = {}
        """Signed numbers that must be within `LARGEST_BASE` of zero."""
        self.doubts: dict[Value, VersioningReason] = {}
        """The other conditions; computed before any load."""

    def doubt_above(self, value: Value, most: int, reason: VersioningReason) -> None:
        """Add the condition that a value is above a number, or negative."""
        self.doubt(self.compare(I64, Condition.GT_U, value, self.constant(I64, most)), reason)

    def doubt_below(self, value: Value, least: Value, reason: VersioningReason) -> None:
        """Add the condition that a value is less than another one."""
        self.doubt(self.compare(I64, Condition.LT_S, value, least), reason)

    def doubt(self, condition: Value, reason: VersioningReason) -> None:
        """Add a condition, unless it never holds."""
        if not isinstance(condition, Constant) or condition.bits:
            self.doubts.setdefault(condition, reason)


class IterationSpace:
    """The induction variables of a nest, and affine expressions over them."""

    def __init__(self, nest: Loop, loops: list[Loop], conditions: FailureConditions) -> None:
        """`loops`: those of the nest, inner ones before outer ones, with one entry each."""
        self.nest, self.conditions = nest, conditions
        self.variables: dict[Value, tuple[InductionVariable, Loop]] = {}
        self.intervals: dict[Value, Interval] = {}
        """The values of induction variables while they are below their bounds."""
        self._checked: set[Value] = set()
        """Induction variables that are checked to increase."""
        self.affine = AffineAnalysis(conditions, self.variables, nest)
        for loop in reversed(loops):
            self._find_induction_variable(loop)

    def _find_induction_variable(self, loop: Loop) -> None:
        variable = find_induction_variable(loop, self.nest)
        if variable is None:
            return
        start = self.expression_at(variable.start, loop.entries[0].source)
        if start is not None:
            self.variables[variable.value] = variable, loop
            low = self.extremes(start).low
            self.intervals[variable.value] = Interval(low, self._top(variable))

    def _top(self, variable: InductionVariable) -> Value:
        """An upper bound of an induction variable while it is below its loop's bound."""
        m = self.conditions
        one = m.constant(I64, 1)
        top = m.sub(I64, variable.bound, one)
        step = variable.step
        if step is one or not self.nest.is_invariant(variable.start):
            return top
        distance = m.sub(I64, top, variable.start)
        if not isinstance(step, Constant):  # it may be zero; then a check fails
            step = m.select(m.compare(I64, Condition.EQ, step, m.zero), one, step)
        if isinstance(step, Constant) and not step.bits & (step.bits - 1):
            rest = m.bit_and(I64, distance, m.constant(I64, step.bits - 1 & I64.mask))
        else:
            rest = m.rem_u(I64, distance, step)
        return m.sub(I64, top, rest)

    def expression_at(self, value: Value, place: int) -> AffineExpression | None:
        """The affine expression of a value in a block where its variables are below their bounds;
        None if there is none that can be checked."""
        found = self.affine.expression(value)
        if found is None or len(found.terms) > MOST_TERMS or not self.holds(found.terms, place):
            return None
        if not _is_within(found.base, LARGEST_BASE - 1):
            return None
        if not all(_is_within(scale, LARGEST_SCALE) for _, scale in found.terms):
            return None
        return found

    def holds(self, terms: tuple[tuple[Parameter, Value], ...], place: int) -> bool:
        """True if the induction variables of some terms are below their bounds in a block."""
        for variable, _ in terms:
            _, loop = self.variables[variable]
            if place not in loop.blocks or place == loop.head:
                return False
        return True

    def extremes(self, expression: AffineExpression) -> Interval:
        """The extremes of an expression whose variables are below their bounds."""
        return self.affine.extremes(expression, self.intervals)

    def check(self, expression: AffineExpression, pc: int) -> None:
        """Add the conditions under which an expression wraps for some values of its variables."""
        m = self.conditions
        if expression.base is not m.zero:
            m.small[expression.base] = None
        for variable, scale in expression.terms:
            reason = VersioningReason("a number that an address is made of is too large", (pc,))
            if looks_negative(scale):
                scale = m.sub(I64, m.zero, scale)
            m.doubt_above(scale, LARGEST_SCALE, reason)
            if variable not in self._checked:
                self._checked.add(variable)
                self._check_variable(variable)

    def _check_variable(self, value: Value) -> None:
        """Add the conditions under which a variable does not increase through its interval."""
        m, (variable, loop) = self.conditions, self.variables[value]
        pc = loop.header.pc
        for end in self.intervals[value]:
            moved = m.add(I64, end, m.constant(I64, LARGEST_VALUE))
            m.doubt_above(moved, 2 * LARGEST_VALUE, VersioningReason("a bound is too large", (pc,)))
        less = m.sub(I64, variable.step, m.constant(I64, 1))
        m.doubt_above(less, LARGEST_VALUE - 1, VersioningReason("a step is not above zero", (pc,)))
        start = self.affine.expression(variable.start)
        assert start is not None
        self.check(start, pc)


def _is_within(value: Value, most: int) -> bool:
    """False if a value is known to be further from zero than a number."""
    return not isinstance(value, Constant) or abs(signed(I64, value.bits)) <= most
