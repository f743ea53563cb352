# SPDX-License-Identifier: Apache-2.0
"""Affine analysis: values that are affine expressions over the induction variables of loops.

An *affine expression* is

    base + scale * variable + … + scale * variable        modulo 2^64

where base and scales are invariant in a loop or nest. Sums, differences and products of affine
expressions are found by arithmetic modulo 2^64, so an expression always equals its value. That it
does not wrap, and so is monotonic, has to be checked by its users. (Aho, Lam, Sethi, Ullman:
Compilers, 2nd edition, section 9.8.)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from ferryvm.ir.build import Builder
from ferryvm.ir.graph import Constant, Operation, Parameter, Value
from ferryvm.ir.loop.natural import Loop
from ferryvm.isa.type import I64, signed


class Interval(NamedTuple):
    """Bounds of a value: the least and the greatest."""

    low: Value
    high: Value


class AffineExpression(NamedTuple):
    """base + scale * variable + …, modulo 2^64."""

    base: Value
    terms: tuple[tuple[Parameter, Value], ...]
    """Induction variables with their scales; each occurs once."""


class AffineAnalysis:
    """Finds affine expressions, and computes their bases and scales at the builder's position."""

    def __init__(self, builder: Builder, variables: Collection[Value], nest: Loop) -> None:
        """`variables`: the possible variables of expressions, in the order of their terms; `nest`:
        the loop in which bases and scales must be invariant."""
        self._builder, self._variables, self._nest = builder, variables, nest
        self._zero = builder.constant(I64, 0)
        self._found: dict[Value, AffineExpression | None] = {}

    def expression(self, value: Value) -> AffineExpression | None:
        """The affine expression of a value; None if none is recognised."""
        if value not in self._found:
            self._found[value] = self._recognise(value)
        return self._found[value]

    def _recognise(self, value: Value) -> AffineExpression | None:
        if value in self._variables:
            assert isinstance(value, Parameter)
            return AffineExpression(self._zero, ((value, self._builder.constant(I64, 1)),))
        if self._nest.is_invariant(value):
            return AffineExpression(value, ())
        if not isinstance(value, Operation) or value.type is not I64:
            return None
        if value.name not in ("add", "sub", "mul", "shl"):
            return None
        a, b = (self.expression(each) for each in value.arguments)
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
            variable: combine(I64, left.get(variable, self._zero), right.get(variable, self._zero))
            for variable in (*left, *right)
        }
        return self._made(combine(I64, a.base, b.base), scales)

    def _multiplied(self, name: str, a: AffineExpression, factor: Value) -> AffineExpression:
        multiply = getattr(self._builder, name)
        scales = {variable: multiply(I64, scale, factor) for variable, scale in a.terms}
        return self._made(multiply(I64, a.base, factor), scales)

    def _made(self, base: Value, scales: dict[Parameter, Value]) -> AffineExpression:
        """An expression with sorted terms, so that equal expressions compare equal."""
        terms = (
            (variable, scales[variable])
            for variable in self._variables
            if variable in scales and scales[variable] is not self._zero
        )
        return AffineExpression(base, tuple(terms))

    def at(self, expression: AffineExpression, values: Mapping[Value, Value]) -> Value:
        """The value of an expression for given values of its variables, modulo 2^64."""
        m, total = self._builder, expression.base
        for variable, scale in expression.terms:
            total = m.add(I64, total, m.mul(I64, scale, values[variable]))
        return total

    def step(self, expression: AffineExpression, steps: Mapping[Value, Value]) -> Value:
        """The change of an expression if each of its variables changes by a step, modulo 2^64."""
        m = self._builder
        return self.at(expression._replace(base=m.constant(I64, 0)), steps)

    def extremes(self, expression: AffineExpression, ranges: Mapping[Value, Interval]) -> Interval:
        """The extremes of an expression whose variables are in their intervals, modulo 2^64.

        Scales must have the sign that they appear to have. Only whole sums are meaningful: `p - n`
        is not negative if its smallest value is not, although its base is. If a variable has no
        values, the smallest may be above the largest.
        """
        m, low, high = self._builder, expression.base, expression.base
        for variable, scale in expression.terms:
            first, last = (m.mul(I64, scale, end) for end in ranges[variable])
            if looks_negative(scale):
                first, last = last, first
            low, high = m.add(I64, low, first), m.add(I64, high, last)
        return Interval(low, high)


def looks_negative(value: Value) -> bool:
    """True if a value is negative provided that its operands are not."""
    if isinstance(value, Constant):
        return signed(I64, value.bits) < 0
    if not isinstance(value, Operation) or value.name not in ("sub", "mul", "shl"):
        return False
    a, b = value.arguments
    if value.name == "sub":
        return isinstance(a, Constant) and not a.bits
    return looks_negative(a) != (value.name == "mul" and looks_negative(b))


def split_constant(m: Builder, value: Value) -> tuple[Value, int]:
    """A sum without its constants, and these; builds it."""
    if isinstance(value, Constant):
        return m.constant(I64, 0), value.bits
    if isinstance(value, Operation) and value.type is I64:
        if value.name in ("add", "sub"):
            (a, c), (b, d) = (split_constant(m, each) for each in value.arguments)
            build = m.add if value.name == "add" else m.sub
            return build(I64, a, b), c + d if value.name == "add" else c - d
        if value.name in ("shl", "mul") and isinstance(factor := value.arguments[1], Constant):
            a, c = split_constant(m, value.arguments[0])
            if value.name == "shl":
                return m.shl(I64, a, factor), c << factor.bits
            return m.mul(I64, a, factor), c * factor.bits
    return value, 0


def _is_small_count(value: Value) -> bool:
    return isinstance(value, Constant) and value.bits < I64.bits
