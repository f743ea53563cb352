# SPDX-License-Identifier: Apache-2.0
"""Ranges of signed integers in a loop, as intervals of constants.

A parameter of the loop's header whose next value has a range has that one in all iterations,
provided that its first value is in it: this is *assumed*, and has to be checked before the loop. A
hash that each iteration masks with 2^32 - 1 is such a value. (Interval analysis: Cousot and Cousot,
Abstract Interpretation, POPL 1977; without widening, as no range depends on its own.)
"""

from __future__ import annotations

from typing import NamedTuple

from ferryvm.ir.graph import Constant, Operation, Parameter, Value
from ferryvm.ir.loop.natural import Loop
from ferryvm.ir.operation import element_bytes
from ferryvm.isa.element import Element
from ferryvm.isa.type import I32, Type, signed

_DEEPEST = 12
"""Operations between a value and what its range follows from, at most."""


class Range(NamedTuple):
    """The least and the greatest value."""

    low: int
    high: int


class ValueRanges:
    """Ranges of values in one loop."""

    def __init__(self, loop: Loop, known: dict[Value, Range]) -> None:
        """`known`: ranges of some values, such as induction variables."""
        self._loop, self._known = loop, dict(known)
        self._open: set[Value] = set()
        self.assumed: dict[Parameter, Range] = {}
        """Ranges of the header's parameters that first values have to be in."""

    def fits(self, p: Operation) -> bool:
        """True if the operation of a test of overflow does not overflow; for that, more ranges may
        be assumed."""
        t, before = p.fact(0, Type), dict(self.assumed)
        a, b = (self.range(each) for each in p.arguments)
        name = p.name.removesuffix("_overflows")
        found = None if a is None or b is None else exact_range(name, t, a, b)
        if found is None:
            self.assumed = before
        return found is not None

    def range(self, value: Value, depth: int = 0) -> Range | None:
        """The range of a value; None if none is known."""
        if value in self._known:
            return self._known[value]
        if isinstance(value, Constant):
            if not isinstance(value.type, Type) or value.type.is_float:
                return None
            number = signed(value.type, value.bits)
            return Range(number, number)
        if depth > _DEEPEST:
            return None
        if isinstance(value, Parameter):
            return self._of_parameter(value, depth)
        if isinstance(value, Operation):
            return self._of_operation(value, depth + 1)
        return None

    def _of_parameter(self, value: Parameter, depth: int) -> Range | None:
        if value in self.assumed:
            return self.assumed[value]
        loop = self._loop
        if value not in loop.header.parameters or value in self._open or loop.entry is None:
            return None
        self._open.add(value)
        index = loop.header.parameters.index(value)
        found = self._union([each.edge.arguments[index] for each in loop.back_edges], depth + 1)
        self._open.discard(value)
        if found is not None:
            self.assumed[value] = found
        return found

    def _union(self, values: list[Value], depth: int) -> Range | None:
        ranges = [self.range(each, depth) for each in values]
        known = [each for each in ranges if each is not None]
        if len(known) < len(ranges):
            return None
        return Range(min(each.low for each in known), max(each.high for each in known))

    def _of_operation(self, value: Operation, depth: int) -> Range | None:
        arguments = value.arguments
        match value.name:
            case "bit_and":
                # A number that is not negative bounds the result, whatever the other one is.
                each = [self.range(argument, depth) for argument in arguments]
                highs = [one.high for one in each if one is not None and one.low >= 0]
                return Range(0, min(highs)) if highs else None
            case "element_load" | "heap_load":
                what = value.static[0]
                size = element_bytes(what) if isinstance(what, Element) else what
                if value.name == "element_load" and not isinstance(what, Element):
                    return None
                assert isinstance(size, int)
                return Range(0, (1 << 8 * size) - 1) if size < 8 else None
            case "boolean_to_i32":
                return Range(0, 1)
            case "extend_u":
                found = self.range(arguments[0], depth)
                return found if found is not None and found.low >= 0 else Range(0, I32.mask)
            case "extend_s":
                return self.range(arguments[0], depth) or _all_of(I32)
            case "wrap":
                found = self.range(arguments[0], depth)
                return found if found is not None and _is_in(found, _all_of(I32)) else None
            case "select":
                return self._union([*arguments[1:]], depth)
            case "bit_or" | "bit_xor" | "add" | "sub" | "mul" | "shr_s" | "shr_u":
                a, b = (self.range(argument, depth) for argument in arguments)
                if a is not None and b is not None:
                    return exact_range(value.name, value.fact(0, Type), a, b)
        return None


def _all_of(t: Type) -> Range:
    half = 1 << (t.bits - 1)
    return Range(-half, half - 1)


def _is_in(one: Range, other: Range) -> bool:
    return other.low <= one.low and one.high <= other.high


def exact_range(name: str, t: Type, a: Range, b: Range) -> Range | None:
    """The range of an operation's exact results; None if some do not fit, or none is known."""
    match name:
        case "add":
            found = Range(a.low + b.low, a.high + b.high)
        case "sub":
            found = Range(a.low - b.high, a.high - b.low)
        case "mul":
            ends = [x * y for x in a for y in b]
            found = Range(min(ends), max(ends))
        case "shr_s" | "shr_u" if b.low == b.high and 0 <= b.low < t.bits and a.low >= 0:
            found = Range(a.low >> b.low, a.high >> b.low)
        case "bit_or" | "bit_xor" if a.low >= 0 and b.low >= 0:
            found = Range(0, (1 << max(a.high, b.high).bit_length()) - 1)
        case _:
            return None
    return found if _is_in(found, _all_of(t)) else None
