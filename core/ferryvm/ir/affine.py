# SPDX-License-Identifier: Apache-2.0
"""Affine analysis: values that are affine expressions over the induction variables of loops.

An *induction variable* is a value to which a loop adds a step while it is below a bound. An *affine
expression* is

    base + scale * variable + … + scale * variable        modulo 2^64

where base and scales are invariant in an outer loop. Sums, differences and products of affine
expressions are found by arithmetic modulo 2^64, so an expression always equals its value. That it
does not wrap, and so is monotonic, has to be checked by its users. (Aho, Lam, Sethi, Ullman:
Compilers, 2nd edition, section 9.8.)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from ferryvm.ir.build import Builder
from ferryvm.ir.flow import Flow, Loop
from ferryvm.ir.graph import Constant, Edge, Operation, Parameter, Value
from ferryvm.isa.emitter import Condition
from ferryvm.isa.type import I64, Type, signed


class InductionVariable(NamedTuple):
    """An induction variable of a loop: while it is below the bound, the step is added.

    The bound holds of it in all blocks of the loop but the head.
    """

    value: Parameter
    start: Value
    bound: Value
    step: Value


class Interval(NamedTuple):
    """The least and the greatest value that a value can have."""

    low: Value
    high: Value


class AffineExpression(NamedTuple):
    """base + scale * count + …, modulo 2^64."""

    base: Value
    terms: tuple[tuple[Parameter, Value], ...]
    """Induction variables with their scales; each occurs once."""


def find_induction_variable(
    flow: Flow, loop: Loop, is_outside: Callable[[Value], bool]
) -> InductionVariable | None:
    """The induction variable of a loop with one entry; None if none is recognised."""
    head = flow.blocks[loop.head]
    end = head.end
    p = end.arguments[0] if end.name == "branch" else None
    if not isinstance(p, Operation) or p.name != "compare" or p.fact(0, Type) is not I64:
        return None
    match p.fact(1, Condition):
        case Condition.LT_S:
            onward, out = end.edges
        case Condition.GE_S:
            out, onward = end.edges
        case _:
            return None
    value, bound = p.arguments
    if (
        not isinstance(value, Parameter)
        or value not in head.parameters
        or not is_outside(bound)
        or flow.places.get(onward.block) not in loop.blocks
        or flow.places.get(out.block) in loop.blocks  # it may be a new block, in front of another
    ):
        return None
    entries: list[Edge] = []
    backs: list[Edge] = []
    for place, edge in flow.incoming[loop.head]:
        (backs if place in loop.blocks else entries).append(edge)
    index = head.parameters.index(value)
    steps = {step_of(value, edge.arguments[index], is_outside) for edge in backs}
    step = steps.pop()
    if steps or step is None or len(entries) != 1:
        return None
    return InductionVariable(value, entries[0].arguments[index], bound, step)


def step_of(value: Value, next_: Value, is_outside: Callable[[Value], bool]) -> Value | None:
    """The step that is added to a value in each iteration; None if there is none."""
    if isinstance(next_, Operation) and next_.name == "add" and next_.arguments[0] is value:
        step = next_.arguments[1]
        return step if is_outside(step) else None
    return None


class AffineAnalysis:
    """Finds affine expressions; computes their bases and scales where a builder is."""

    def __init__(
        self, builder: Builder, counts: Collection[Value], is_outside: Callable[[Value], bool]
    ) -> None:
        """`counts`: the induction variables that expressions may have."""
        self._builder, self._counts, self._is_outside = builder, counts, is_outside
        self._zero = builder.constant(I64, 0)
        self._found: dict[Value, AffineExpression | None] = {}

    def line(self, value: Value) -> AffineExpression | None:
        """The affine expression of a value; None if none is recognised."""
        if value not in self._found:
            self._found[value] = self._line(value)
        return self._found[value]

    def _line(self, value: Value) -> AffineExpression | None:
        if value in self._counts:
            assert isinstance(value, Parameter)
            return AffineExpression(self._zero, ((value, self._builder.constant(I64, 1)),))
        if self._is_outside(value):
            return AffineExpression(value, ())
        if not isinstance(value, Operation) or value.type is not I64:
            return None
        if value.name not in ("add", "sub", "mul", "shl"):
            return None
        a, b = (self.line(each) for each in value.arguments)
        if a is None or b is None:
            return None
        if value.name in ("add", "sub"):
            return self._combined(value.name, a, b)
        if value.name == "mul" and not a.terms:
            a, b = b, a
        if b.terms or (value.name == "shl" and not _is_small_count(b.base)):
            return None
        return self._multiplied(value.name, a, b.base)

    def _combined(self, name: str, a: AffineExpression, b: AffineExpression) -> AffineExpression:
        combine = getattr(self._builder, name)
        left, right = dict(a.terms), dict(b.terms)
        scales = {
            count: combine(I64, left.get(count, self._zero), right.get(count, self._zero))
            for count in (*left, *right)
        }
        return self._made(combine(I64, a.base, b.base), scales)

    def _multiplied(self, name: str, a: AffineExpression, factor: Value) -> AffineExpression:
        multiply = getattr(self._builder, name)
        scales = {count: multiply(I64, scale, factor) for count, scale in a.terms}
        return self._made(multiply(I64, a.base, factor), scales)

    def _made(self, base: Value, scales: dict[Parameter, Value]) -> AffineExpression:
        """An expression with sorted terms, so that equal expressions compare equal."""
        terms = (
            (count, scales[count])
            for count in self._counts
            if count in scales and scales[count] is not self._zero
        )
        return AffineExpression(base, tuple(terms))

    def at(self, line: AffineExpression, values: Mapping[Value, Value]) -> Value:
        """The value of an expression for given values of its variables, modulo 2^64."""
        m, total = self._builder, line.base
        for count, scale in line.terms:
            total = m.add(I64, total, m.mul(I64, scale, values[count]))
        return total

    def ends(self, line: AffineExpression, ranges: Mapping[Value, Interval]) -> Interval:
        """The extremes of an expression whose variables are in their intervals, modulo
        2^64.

        Scales have to be of the sign that they look like. Only whole sums say anything: `p - n` is
        not negative where its smallest value is not, though its base is. Where a count has no
        values, the smallest may be above the largest.
        """
        m, low, high = self._builder, line.base, line.base
        for count, scale in line.terms:
            first, last = (m.mul(I64, scale, end) for end in ranges[count])
            if looks_negative(scale):
                first, last = last, first
            low, high = m.add(I64, low, first), m.add(I64, high, last)
        return Interval(low, high)


def looks_negative(value: Value) -> bool:
    """True if a value is negative if what it is made of is not."""
    if isinstance(value, Constant):
        return signed(I64, value.bits) < 0
    if not isinstance(value, Operation) or value.name not in ("sub", "mul", "shl"):
        return False
    a, b = value.arguments
    if value.name == "sub":
        return isinstance(a, Constant) and not a.bits
    return looks_negative(a) != (value.name == "mul" and looks_negative(b))


def _is_small_count(value: Value) -> bool:
    return isinstance(value, Constant) and value.bits < I64.bits
