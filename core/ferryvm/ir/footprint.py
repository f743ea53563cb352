# SPDX-License-Identifier: Apache-2.0
"""The heap footprint of a loop nest, and runtime checks that imply its bounds checks.

The footprint consists of *objects*: a reference with the bytes around it. Each access names a
*range* of one, whose offset is an affine expression over the loops' induction variables; so its
first and its last byte are found at the extremes of each variable. A check is *eliminated* if it
passes wherever the object is in bounds, or if its smallest index is not negative and its largest is
below a length that nothing in the nest changes.

Numbers are checked to be so small, whatever their sign, that nothing wraps: an expression stays
within 2^60 + 4 * 2^59 < 2^62 of zero, and differences of two are exact. Only whole sums are
checked, so a base or a scale may be negative. Where a loop makes no iteration the extremes may be
in wrong order; then nothing in it is accessed, and the results of their checks do not matter.
Building the checks changes nothing in the body. (Gupta: Optimizing Array Bound Checks Using Flow
Analysis, 1993, section 5, for the extremes.)
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

from ferryvm.ir.affine import (
    AffineAnalysis,
    AffineExpression,
    InductionVariable,
    Interval,
    find_induction_variable,
    looks_negative,
)
from ferryvm.ir.build import Builder
from ferryvm.ir.clone import Nest
from ferryvm.ir.flow import Flow, Loop
from ferryvm.ir.graph import Block, Body, Constant, Operation, Parameter, Value
from ferryvm.ir.headroom import headroom
from ferryvm.isa.emitter import Condition
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import I64, WORD_BYTES, signed

LARGEST_BASE = 1 << 60
"""Of references and other bases of expressions, exclusive; like all of these for magnitudes."""

LARGEST_COUNT = 1 << 32
LARGEST_SCALE = 1 << 27
MOST_TERMS = 4

LARGEST_OFFSET = 1 << 31
"""Of an address from its reference; a base that is further off is a reference itself."""

LARGEST_NEST = 1000
"""The most operations of a nest that is versioned, by default."""

MOST_OBJECTS = 16
FEWEST_OBJECTS = 2
"""Of a loop that has no other in it: with one alone, asking was measured to cost more than it
saves."""

OUTSIDE = "an address may be outside of the heap or of its vector"
TOO_LARGE = "an index may be past the last element"

_CALLS = frozenset({"call", "call_indirect"})


class AccessRange(NamedTuple):
    """Bytes of an object: an affine offset from its reference, and a size."""

    offset: int
    terms: tuple[tuple[Parameter, Value], ...]
    bytes: int
    more: Value
    """An invariant that is added to the offset."""


class Footprint(NamedTuple):
    """The bytes of an access in a versioned nest, in which no object that is stored into overlaps
    another one, in any iteration."""

    nest: Block
    """The head of the original nest; accesses in different nests may overlap."""
    reference: Value
    offset: int
    stride: int | None
    """The varying part of the offset is a multiple of it; 0: the offset is constant; None:
    unknown."""
    bytes: int

    def is_apart(self, other: Footprint) -> bool:
        """True if two accesses, one of which stores, overlap in no pair of iterations."""
        return self.nest is other.nest and self.reference is not other.reference

    def is_in_step(self, other: Footprint) -> bool:
        """True if two accesses to one object are to the same bytes or do not overlap."""
        if self.nest is not other.nest or self.reference is not other.reference:
            return False
        if self.stride is None or other.stride is None:
            return False
        distances = self.offset - other.offset, self.stride, other.stride
        return self.bytes == other.bytes and not any(d % self.bytes for d in distances)


@dataclasses.dataclass(eq=False)
class HeapObject:
    """The bytes that a nest accesses relative to one reference."""

    reference: Value
    pc: int
    """Of the first access."""
    parts: dict[AccessRange, None] = dataclasses.field(default_factory=dict)
    stored: dict[AccessRange, None] = dataclasses.field(default_factory=dict)
    """The ranges that are stored into."""
    lengths: dict[AccessRange, None] = dataclasses.field(default_factory=dict)
    """The ranges that must not change."""
    extent: Interval | None = None
    """Offsets of the first byte and behind the last one; set when all ranges are known."""


def extent(each: HeapObject) -> Interval:
    """The extent of an object whose ranges are all known."""
    assert each.extent is not None
    return each.extent


class VersioningReason(NamedTuple):
    """The reason why a nest is not versioned, or why its versioned copy is not executed."""

    text: str
    pcs: tuple[int, ...]
    """The instructions concerned."""


class VersionedNest(NamedTuple):
    """A nest that stores, and the runtime checks of its versioned copy."""

    pc: int
    """Of its outermost loop's condition."""
    unfit: VersioningReason | None
    """The reason why it is not versioned; None if it is."""
    doubts: tuple[VersioningReason, ...] = ()
    """The reasons for which a runtime check can fail; `tell` numbers them from 1."""

    @classmethod
    def from_json(cls, data: list[Any]) -> VersionedNest:
        """The nest that a JSON array describes."""
        pc, unfit, doubts = data
        reasons = [
            None if each is None else VersioningReason(each[0], tuple(each[1]))
            for each in (unfit, *doubts)
        ]
        return cls(pc, reasons[0], tuple(filter(None, reasons[1:])))


class UnfitError(Exception):
    """The nest cannot be versioned."""

    def __init__(self, text: str, *pcs: int) -> None:
        super().__init__(text)
        self.reason = VersioningReason(text, pcs)


class NoNestError(UnfitError):
    """The loop is no candidate for versioning, or gains nothing by it."""


class RuntimeChecks(Builder):
    """The runtime checks in front of one nest, and the checks that they eliminate."""

    def __init__(
        self,
        body: Body,
        flow: Flow,
        loop: Loop,
        loops: list[Loop],
        largest: int = LARGEST_NEST,
    ) -> None:
        """Raises UnfitError for a nest that cannot be versioned. `largest`: operations that it may
        have."""
        super().__init__(body.constants)
        self.flow, self.loop = flow, loop
        self.blocks = [*flow.blocks]  # since the body's own list will change
        self.nest = Nest(flow, loop)
        self.head = flow.blocks[loop.head]
        self.eliminated: set[Operation] = set()
        """The checks that the copy omits."""
        self.objects: dict[Value, HeapObject] = {}
        """By their references."""
        self.accesses: dict[Operation, tuple[Value, AccessRange]] = {}
        """Reference and range of each load and store."""
        self.limit: Value | None = None
        """The end of the heap in use."""
        self.first: dict[Value, None] = {}
        """Addresses that have to be below `LARGEST_BASE`."""
        self.small: dict[Value, None] = {}
        """Numbers of either sign that have to be within `LARGEST_BASE` of zero."""
        self.doubts: dict[Value, VersioningReason] = {}
        """Conditions that hold if a check may fail; computed before any load."""
        self.late: dict[tuple[Value, Value], int] = {}
        """Largest indices, with the addresses of the lengths that they have to be below; the pc of
        the first check of each."""
        self._refuse(largest)
        self.home: dict[Value, int] = {}
        self.order: dict[Value, int] = {}
        """The position of each value in the order of definitions."""
        for place, block in enumerate(flow.blocks):
            for value in (*block.parameters, *block.operations):
                self.home[value] = place
                self.order[value] = len(self.order)
        self.open(Block("ask", self.head.pc))
        self.zero = self.constant(I64, 0)
        self.references = self._references()
        """References of vectors, recognised by loads of their lengths."""
        self.loops = [each for each in loops if each.blocks <= loop.blocks]
        if any(len(self._entries(each)) != 1 for each in self.loops):
            raise UnfitError("a loop has more than one entry")  # nothing can be put in front
        if not any(self._stores(each) for each in self.loops if self._is_innermost(each)):
            raise NoNestError("its inner loops do not store")  # `range` does for those
        self.variables: dict[Value, tuple[InductionVariable, Loop]] = {}
        self.intervals: dict[Value, Interval] = {}
        """The values of induction variables while they are below their bounds."""
        self.checked: set[Value] = set()
        """Induction variables whose runtime checks exist."""
        self.expressions = AffineAnalysis(self, self.variables, self.is_outside)
        for each in reversed(self.loops):
            self._find_induction_variable(each)
        for place in self.nest.numbers:
            for operation in flow.blocks[place].operations:
                self._operation(operation, place)
        if self.limit is None:
            raise NoNestError("no check of the heap's bounds could be eliminated")
        if len(self.loops) == 1 and len(self.objects) < FEWEST_OBJECTS:
            raise NoNestError("it accesses one object only, so that runtime checks would not pay")
        if len(self.objects) > MOST_OBJECTS:
            raise UnfitError(f"it accesses more than {MOST_OBJECTS} objects")
        for one in self.objects.values():
            self._bound(one)
        for doubt, reason in self.doubts.items():
            if isinstance(doubt, Constant) and doubt.bits:
                raise UnfitError(reason.text, *reason.pcs)

    def may_be_accessed(self, reference: Value, part: AccessRange) -> bool:
        """True if a range belongs to an object, and so is covered by the runtime checks."""
        return reference in self.objects and part in self.objects[reference].parts

    def footprint(self, access: Operation) -> Footprint | None:
        """The footprint of a load or store; None if it is in no object."""
        if access not in self.accesses:
            return None
        reference, part = self.accesses[access]
        if not self.may_be_accessed(reference, part):
            return None
        scales = [scale.bits for _, scale in part.terms if isinstance(scale, Constant)]
        stride = math.gcd(*scales) if len(scales) == len(part.terms) else None
        if part.more is not self.zero:
            stride = None
        return Footprint(self.head, reference, part.offset, stride, part.bytes)

    def is_outside(self, value: Value) -> bool:
        """True if a value is invariant in the nest."""
        return self.home.get(value) not in self.loop.blocks

    def _refuse(self, largest: int) -> None:
        """Raise UnfitError for a nest that can be rejected without further analysis."""
        operations = [o for block in self.nest.blocks for o in block.operations]
        names = {operation.name for operation in operations}
        if not names >= {"heap_store", "trap_if"}:
            raise NoNestError("it does not store, or checks nothing")
        if not names.isdisjoint(_CALLS):
            call = next(each for each in operations if each.name in _CALLS)
            raise UnfitError("it calls a function", call.pc)
        if not self.nest.has_one_exit:
            raise UnfitError("it has more than one exit")
        if len(operations) > largest:
            raise UnfitError(f"it has more than {largest} operations")

    def _references(self) -> set[Value]:
        found = set()
        for block in self.nest.blocks:
            for check in block.operations:
                p = check.arguments[0] if check.name == "trap_if" else None
                if isinstance(p, Operation) and p.static == (I64, Condition.GE_U):
                    length = p.arguments[1]
                    if isinstance(length, Operation) and length.name == "heap_load":
                        reference, offset = _split(length.arguments[0])
                        if not offset and self.is_outside(reference):
                            found.add(reference)
        return found

    def _is_innermost(self, loop: Loop) -> bool:
        return not any(each.blocks < loop.blocks for each in self.loops)

    def _stores(self, loop: Loop) -> bool:
        blocks = (self.flow.blocks[place] for place in loop.blocks)
        return any(each.name == "heap_store" for block in blocks for each in block.operations)

    # --- induction variables and affine expressions -------------------------------------------------------------------

    def _find_induction_variable(self, loop: Loop) -> None:
        count = find_induction_variable(self.flow, loop, self.is_outside)
        if count is None:
            return
        start = self._affine_at(count.start, self.front(loop))
        if start is not None:
            self.variables[count.value] = count, loop
            low = self.expressions.ends(start, self.intervals).low
            self.intervals[count.value] = Interval(low, self._top(count))

    def _top(self, count: InductionVariable) -> Value:
        """An upper bound of an induction variable while it is below its loop's bound."""
        one = self.constant(I64, 1)
        top = self.sub(I64, count.bound, one)
        step = count.step
        if step is one or not self.is_outside(count.start):
            return top
        distance = self.sub(I64, top, count.start)
        if not isinstance(step, Constant):  # it may be zero; then a check fails
            step = self.select(self.compare(I64, Condition.EQ, step, self.zero), one, step)
        if isinstance(step, Constant) and not step.bits & (step.bits - 1):
            rest = self.bit_and(I64, distance, self.constant(I64, step.bits - 1 & I64.mask))
        else:
            rest = self.rem_u(I64, distance, step)
        return self.sub(I64, top, rest)

    def front(self, loop: Loop) -> int:
        """The number of the block from which a loop is entered."""
        (source,) = self._entries(loop)
        return source

    def _entries(self, loop: Loop) -> list[int]:
        return [s for s, _ in self.flow.incoming[loop.head] if s not in loop.blocks]

    def _affine_at(self, value: Value, place: int) -> AffineExpression | None:
        """The affine expression of a value in a block where its variables are below their bounds;
        None if there is none that can be checked."""
        line = self.expressions.line(value)
        if line is None or len(line.terms) > MOST_TERMS or not self.holds(line.terms, place):
            return None
        if not _is_within(line.base, LARGEST_BASE - 1):
            return None
        if not all(_is_within(scale, LARGEST_SCALE) for _, scale in line.terms):
            return None
        return line

    def holds(self, terms: tuple[tuple[Parameter, Value], ...], place: int) -> bool:
        """True if the induction variables of some terms are below their bounds in a block."""
        for count, _ in terms:
            _, loop = self.variables[count]
            if place not in loop.blocks or place == loop.head:
                return False
        return True

    def _check_expression(self, line: AffineExpression, pc: int) -> None:
        """Add the checks that an expression does not wrap for any values of its variables."""
        if line.base is not self.zero:
            self.small[line.base] = None
        for value, scale in line.terms:
            reason = VersioningReason("a number that an address is made of is too large", (pc,))
            if looks_negative(scale):
                scale = self.sub(I64, self.zero, scale)
            self._doubt_above(scale, LARGEST_SCALE, reason)
            if value not in self.checked:
                self.checked.add(value)
                self._check_variable(value)

    def _check_variable(self, value: Value) -> None:
        """Add the checks that a variable rises monotonically through its interval."""
        count, loop = self.variables[value]
        pc = self.flow.blocks[loop.head].pc
        for end in self.intervals[value]:
            moved = self.add(I64, end, self.constant(I64, LARGEST_COUNT))
            self._doubt_above(
                moved, 2 * LARGEST_COUNT, VersioningReason("a bound is too large", (pc,))
            )
        less = self.sub(I64, count.step, self.constant(I64, 1))
        self._doubt_above(
            less, LARGEST_COUNT - 1, VersioningReason("a step is not above zero", (pc,))
        )
        start = self.expressions.line(count.start)
        assert start is not None
        self._check_expression(start, pc)

    def _doubt_above(self, value: Value, most: int, reason: VersioningReason) -> None:
        self._doubt(self.compare(I64, Condition.GT_U, value, self.constant(I64, most)), reason)

    def _doubt_below(self, value: Value, least: Value, reason: VersioningReason) -> None:
        self._doubt(self.compare(I64, Condition.LT_S, value, least), reason)

    def _doubt(self, doubt: Value, reason: VersioningReason) -> None:
        if not isinstance(doubt, Constant) or doubt.bits:
            self.doubts.setdefault(doubt, reason)

    # --- checks and accesses ----------------------------------------------------------------

    def _operation(self, operation: Operation, place: int) -> None:
        if operation.name == "trap_if":
            self._check(operation, place)
        elif operation.name in ("heap_load", "heap_store"):
            found = self._range_of(operation.arguments[0], operation.fact(0, int), place)
            if found is not None:
                self.accesses[operation] = found
            if operation.name == "heap_store":
                if found is None:
                    raise UnfitError("a store may go anywhere", operation.pc)
                self._add_access(*found, operation.pc).stored[found[1]] = None

    def _check(self, check: Operation, place: int) -> None:
        """Eliminate a check if runtime checks can establish that it always passes."""
        p = check.arguments[0]
        is_range = isinstance(p, Operation) and p.static == (I64, Condition.GE_U)
        if is_range and check.fact(0, Trap) is Trap.MEMORY_OUT_OF_BOUNDS:
            assert isinstance(p, Operation)
            limit, reach = headroom(p.arguments[1])
            found = self._range_of(p.arguments[0], reach + 1, place)
            if found is None or not self.is_outside(limit) or self.limit not in (None, limit):
                return
            self.limit = limit
            self._add_access(*found, check.pc)
        elif self.is_outside(p):
            self._doubt(p, VersioningReason("a check fails", (check.pc,)))
        elif not (is_range and isinstance(p, Operation) and self._index(check, p, place)):
            return
        self.eliminated.add(check)

    def _index(self, check: Operation, p: Operation, place: int) -> bool:
        """True if runtime checks can establish that an index is below a limit; adds them."""
        value, limit = p.arguments
        line = self._affine_at(value, place)
        if line is None:
            return False
        if not self.is_outside(limit):
            if not isinstance(limit, Operation) or limit.name != "heap_load":
                return False
            address = limit.arguments[0]
            found = self._range_of(address, WORD_BYTES, place)
            if found is None or found[1].terms or limit.fact(0, int) != WORD_BYTES:
                return False
            self._add_access(*found, check.pc).lengths[found[1]] = None
        self._check_expression(line, check.pc)
        low, high = self.expressions.ends(line, self.intervals)
        self._doubt_below(low, self.zero, VersioningReason("an index may be negative", (check.pc,)))
        if self.is_outside(limit):
            over = self.compare(I64, Condition.GE_U, high, limit)
            self._doubt(over, VersioningReason(TOO_LARGE, (check.pc,)))
        else:
            self.late.setdefault((high, address), check.pc)
        return True

    def _range_of(self, address: Value, size: int, place: int) -> tuple[Value, AccessRange] | None:
        """The reference and range of an address; None if it is not affine."""
        line = self._affine_at(address, place)
        if line is None:
            return None
        reference, offset = _split(line.base)
        more: Value = self.zero
        if reference not in self.references and isinstance(reference, Operation):
            reference, offset, more = self._vector(reference, offset)
        return reference, AccessRange(offset, line.terms, size, more)

    def _vector(self, base: Operation, offset: int) -> tuple[Value, int, Value]:
        """The reference of the vector that a base points into, with the constant and the value
        added to it; the base itself, if it is no sum with a vector's reference."""
        if base.name in ("add", "sub"):
            a, b = base.arguments
            for one, other in ((a, b), (b, a)) if base.name == "add" else ((a, b),):
                reference, by = _split(one)
                if reference in self.references and abs(offset + by) < LARGEST_OFFSET:
                    more = other if base.name == "add" else self.sub(I64, self.zero, other)
                    return reference, offset + by, more
        return base, offset, self.zero

    def _add_access(self, reference: Value, part: AccessRange, pc: int) -> HeapObject:
        """The object of an accessed range; the range is added to it, with its checks."""
        found = self.objects.setdefault(reference, HeapObject(reference, pc))
        if part not in found.parts:
            found.parts[part] = None
            self._check_expression(AffineExpression(part.more, part.terms), pc)
        return found

    # --- extents of objects --------------------------------------------------------------------

    def _bound(self, each: HeapObject) -> None:
        """Compute the extent of an object; add the checks that it begins in the heap, and that
        stores into it do not change its lengths."""
        low = self._lowest(each)
        each.extent = Interval(low, self._highest(each))
        first = self.add(I64, each.reference, low)
        if isinstance(low, Constant):
            self.first[first] = None
        else:
            self.small[each.reference] = None
            self._doubt_below(first, self.zero, VersioningReason(OUTSIDE, (each.pc,)))
        for length in each.lengths:
            for stored in each.stored:
                self._protect(length, stored, each.pc)

    def _ends(self, part: AccessRange) -> Interval:
        low, high = self.expressions.ends(AffineExpression(part.more, part.terms), self.intervals)
        first, last = self._number(part.offset), self._number(part.offset + part.bytes)
        return Interval(self.add(I64, low, first), self.add(I64, high, last))

    def _lowest(self, each: HeapObject) -> Value:
        """The offset of the first byte. If it is constant for one range, checks establish that no
        other range begins before it: a vector's length is its first range."""
        lows = dict.fromkeys(self._ends(part).low for part in each.parts)
        fixed = [signed(I64, low.bits) for low in lows if isinstance(low, Constant)]
        others = [low for low in lows if not isinstance(low, Constant)]
        if fixed:
            lowest: Value = self._number(min(fixed))
            for low in others:
                self._doubt_below(low, lowest, VersioningReason(OUTSIDE, (each.pc,)))
            return lowest
        lowest, *others = others
        for low in others:
            is_less = self.compare(I64, Condition.LT_S, low, lowest)
            lowest = self.select(is_less, low, lowest)
        return lowest

    def _highest(self, each: HeapObject) -> Value:
        """The offset behind the last byte."""
        highs = dict.fromkeys(self._ends(part).high for part in each.parts)
        fixed = [signed(I64, high.bits) for high in highs if isinstance(high, Constant)]
        others = [high for high in highs if not isinstance(high, Constant)]
        highest: Value = self._number(max(fixed)) if fixed else others.pop()
        for high in others:
            is_more = self.compare(I64, Condition.GT_S, high, highest)
            highest = self.select(is_more, high, highest)
        return highest

    def _protect(self, length: AccessRange, stored: AccessRange, pc: int) -> None:
        """Add the check that a store through the reference does not change a length."""
        end = self._number(length.offset + length.bytes)
        low, high = self._ends(stored)
        if isinstance(high, Constant) and signed(I64, high.bits) <= length.offset:
            return
        reason = VersioningReason("a store may change the length of a vector", (pc,))
        self._doubt_below(low, end, reason)

    def _number(self, value: int) -> Constant:
        return self.constant(I64, value & I64.mask)


def _split(address: Value) -> tuple[Value, int]:
    """The base of an address, and the small constant that is added to it."""
    if isinstance(address, Operation) and address.name == "add":
        base, more = address.arguments
        if isinstance(more, Constant) and abs(signed(I64, more.bits)) < LARGEST_OFFSET:
            return base, signed(I64, more.bits)
    return address, 0


def _is_within(value: Value, most: int) -> bool:
    """False if a value is known to be further from zero than a number."""
    return not isinstance(value, Constant) or abs(signed(I64, value.bits)) <= most
