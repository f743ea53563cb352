# SPDX-License-Identifier: Apache-2.0
"""Runtime checks before a loop nest that imply the checks in it.

A check is *eliminated* if it passes wherever the objects that the nest accesses are in bounds
(`ferryvm.ir.loop.access`), or if its smallest index is not negative and its largest is below a
limit that is invariant in the nest. Lengths of arrays are, and two arrays are one or do not
overlap; so of arrays it only matters, for loads that a copy is to hoist, which are stored into. A
test of overflow is eliminated if its operands are so small that none can happen. An index that
counts from the end where it is negative is found not to be, and the copy uses it as it is. First
and last byte of an access are found at the extremes of each induction variable
(`ferryvm.ir.loop.iteration_space`). Building the checks changes nothing in the body.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ferryvm.ir.address import split
from ferryvm.ir.footprint import Footprint
from ferryvm.ir.graph import BOOLEAN, Block, Body, Constant, Operation, Terminator, Value
from ferryvm.ir.headroom import headroom
from ferryvm.ir.index import plain_index
from ferryvm.ir.loop.access import LARGEST_OFFSET, AccessRange, HeapObject
from ferryvm.ir.loop.affine import AffineExpression, Interval
from ferryvm.ir.loop.iteration_space import FailureConditions, IterationSpace
from ferryvm.ir.loop.natural import Loop
from ferryvm.ir.operation import CALLS, ELEMENT_CHANGES, PLACE, element_bytes
from ferryvm.ir.versioned_nest import VersioningReason
from ferryvm.isa.element import Element
from ferryvm.isa.emitter import Condition
from ferryvm.isa.overflow import EXPANSIONS
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import F64, I64, signed

LARGEST_NEST = 1000
"""The default limit of operations of a nest that is versioned."""

MOST_OBJECTS = 16
FEWEST_OBJECTS = 2
"""The minimum of objects, arrays included, of a loop without inner loops: with one, runtime checks
were measured to cost more than they save."""

LARGEST_FACTOR = 1 << 31
"""The limit of the magnitudes of two factors whose product is to fit."""

OUTSIDE = "an address may be outside of the heap or of its object"
TOO_LARGE = "an index may be past the last element"


_STORES = frozenset({"heap_store", "element_store"})


class ArrayAccess(NamedTuple):
    """A load or store of an element of an array."""

    place: Value
    array: Value
    """The reference; the place itself if that is no word of a header."""
    at: Value
    """The index."""


class UnfitError(Exception):
    """The nest cannot be versioned."""

    def __init__(self, text: str, *pcs: int) -> None:
        super().__init__(text)
        self.reason = VersioningReason(text, pcs)


class NoNestError(UnfitError):
    """The loop is no candidate for versioning, or does not profit from it."""


class RuntimeChecks:
    """The runtime checks before one nest, and the checks that they eliminate."""

    def __init__(
        self,
        body: Body,
        nest: Loop,
        loops: list[Loop],
        largest: int = LARGEST_NEST,
        *,
        apart: bool = False,
    ) -> None:
        """Raises UnfitError for a nest that cannot be versioned. `apart`: arrays that are stored
        into are to be other ones than those that are loaded from; `loops`: those of the body;
        `largest`: the largest number of operations of the nest."""
        self.nest = nest
        self.eliminated: set[Operation] = set()
        """The checks that the versioned copy omits."""
        self.replaced: dict[Operation, Value] = {}
        """Values in whose place the versioned copy uses others."""
        self.objects: dict[Value, HeapObject] = {}
        """The objects by their references."""
        self.accesses: dict[Operation, tuple[Value, AccessRange]] = {}
        """Reference and range of each load and store."""
        self.limit: Value | None = None
        """The end of the heap in use."""
        self.array_accesses: dict[Operation, ArrayAccess] = {}
        """The loads and stores of elements of arrays."""
        self._checked_indices: set[tuple[Value, Value]] = set()
        """Arrays with indices that are in bounds where their variables are below their bounds."""
        self._refuse(largest)
        self.conditions = FailureConditions(body.constants)
        self.conditions.open(Block("check", nest.header.pc))
        self.loops = [each for each in loops if nest.contains(each)]
        if any(each.entry is None for each in self.loops):
            raise UnfitError("a loop has more than one entry")  # the loop has no preheader
        if not any(_stores(each) for each in self.loops if each.is_innermost):
            raise NoNestError("its inner loops do not store")  # `range_check` handles those
        self.space = IterationSpace(nest, self.loops, self.conditions)
        for place, block in zip(nest.places, nest.members, strict=True):
            for operation in block.operations:
                self._operation(operation, place)
            if block.end.name == "branch":
                self._exit(block.end, place)
        if self.limit is None and not self._checked_indices:
            raise NoNestError("no check of the heap's bounds could be eliminated")
        self.array_pairs = self._array_pairs() if apart else {}
        """The places of arrays of one type, one of which is stored into, that are different values
        and invariant in the nest, each pair with the pc of an access; none if there are many."""
        arrays = {array for array, _ in self._checked_indices}
        if len(self.loops) == 1 and len(self.objects) + len(arrays) < FEWEST_OBJECTS:
            raise NoNestError("it accesses one object only, so that runtime checks would not pay")
        if len(self.objects) > MOST_OBJECTS:
            raise UnfitError(f"it accesses more than {MOST_OBJECTS} objects")
        for one in self.objects.values():
            self._bound(one)
        for doubt, reason in self.conditions.doubts.items():
            if isinstance(doubt, Constant) and doubt.bits:
                raise UnfitError(reason.text, *reason.pcs)

    def may_be_accessed(self, reference: Value, part: AccessRange) -> bool:
        """True if a range belongs to an object, and so is covered by the runtime checks."""
        return reference in self.objects and part in self.objects[reference].parts

    def hoistable(self, load: Operation, place: int, loop: Loop) -> list[Value] | None:
        """The places of other arrays that a load of an element must be apart from to be hoisted
        from a block out of a loop; None if it cannot be hoisted."""
        access, preheader = self.array_accesses[load], loop.entries[0].source
        key = access.array, access.at
        if place not in loop.blocks or key not in self._checked_indices:
            return None
        if not all(map(loop.is_invariant, load.arguments)):
            return None
        expression = self.space.expression_at(plain_index(access.at), place)
        if expression is None:  # an invariant check of an index far out of bounds
            return None
        if loop is not self.nest and not self.space.holds(expression.terms, preheader):
            return None
        others: dict[Value, None] = {}
        for operation in loop.operations:
            if operation.name in ELEMENT_CHANGES and operation.static[:1] == load.static:
                target = operation.arguments[0]
                is_other = target is not access.place and self.nest.is_invariant(target)
                if operation.name != "element_store" or not is_other:
                    return None
                others[target] = None
        return [*others]

    def _array_pairs(self) -> dict[tuple[Value, Value], int]:
        known: dict[object, dict[Value, int]] = {}
        stored: dict[Value, None] = {}
        for operation, access in self.array_accesses.items():
            if self.nest.is_invariant(access.place):
                known.setdefault(operation.static, {}).setdefault(access.place, operation.pc)
                if operation.name == "element_store":
                    stored[access.place] = None
        found = {
            (one, other): pc
            for places in known.values()
            for number, (one, pc) in enumerate(places.items())
            for other in [*places][number + 1 :]
            if one in stored or other in stored
        }
        return found if len(found) <= MOST_OBJECTS else {}

    def array_footprint(self, access: Operation) -> Footprint | None:
        """The footprint of a load or store of an element where all arrays of `array_pairs` are
        apart; None if its array may be another one in each iteration."""
        place = self.array_accesses[access].place
        if not self.nest.is_invariant(place):
            return None
        return Footprint(self.nest.header, place, 0, None, _bytes(access))

    def footprint(self, access: Operation) -> Footprint | None:
        """The footprint of a load or store; None if it is in no object."""
        if access not in self.accesses:
            return None
        reference, part = self.accesses[access]
        if not self.may_be_accessed(reference, part):
            return None
        scales = [scale.bits for _, scale in part.terms if isinstance(scale, Constant)]
        stride = math.gcd(*scales) if len(scales) == len(part.terms) else None
        return Footprint(self.nest.header, reference, part.offset, stride, part.bytes)

    def _refuse(self, largest: int) -> None:
        """Raise UnfitError for a nest that can be rejected without further analysis."""
        operations = [o for block in self.nest.extent for o in block.operations]
        names = {operation.name for operation in operations}
        if "trap_if" not in names or names.isdisjoint(_STORES):
            raise NoNestError("it does not store, or checks nothing")
        if not names.isdisjoint(CALLS):
            call = next(each for each in operations if each.name in CALLS)
            raise UnfitError("it calls a function", call.pc)
        if not self.nest.has_one_exit:
            raise UnfitError("it has more than one exit")
        if len(operations) > largest:
            raise UnfitError(f"it has more than {largest} operations")

    def _array_access(self, operation: Operation) -> ArrayAccess:
        place, offset = operation.arguments[:2]
        index = offset
        if isinstance(offset, Operation) and offset.name == "shl":
            index = offset.arguments[0]
        elif isinstance(offset, Constant):
            index = self.conditions.constant(I64, offset.bits // _bytes(operation))
        array = place  # of a group, it may be
        if isinstance(place, Operation) and (place.name, place.static) == ("header_word", (PLACE,)):
            array = place.arguments[0]
        return ArrayAccess(place, array, index)

    # --- checks and accesses ----------------------------------------------------------------

    def _operation(self, operation: Operation, place: int) -> None:
        if operation.name == "trap_if":
            self._check(operation, place)
        elif operation.name == "guard":
            p = operation.arguments[0]
            if isinstance(p, Operation) and self._is_never_zero(p, operation.pc, place):
                self.eliminated.add(operation)
        elif operation.name in ("heap_load", "heap_store"):
            found = self._range_of(operation.arguments[0], operation.fact(0, int), place)
            if found is not None:
                self.accesses[operation] = found
            if operation.name == "heap_store":
                if found is None:
                    raise UnfitError("a store may go anywhere", operation.pc)
                self._add_access(*found, operation.pc).stored[found[1]] = None
        elif operation.name in ("element_load", "element_store"):
            self.array_accesses[operation] = self._array_access(operation)

    def _check(self, check: Operation, place: int) -> None:
        """Eliminate a check if runtime checks can prove that it always passes."""
        p = check.arguments[0]
        is_range = isinstance(p, Operation) and p.static == (I64, Condition.GE_U)
        if is_range and check.fact(0, Trap) is Trap.MEMORY_OUT_OF_BOUNDS:
            assert isinstance(p, Operation)
            limit, reach = headroom(p.arguments[1])
            found = self._range_of(p.arguments[0], reach + 1, place)
            if (
                found is None
                or not self.nest.is_invariant(limit)
                or self.limit not in (None, limit)
            ):
                return
            self.limit = limit
            self._add_access(*found, check.pc)
        elif self.nest.is_invariant(p):
            if is_range and isinstance(p, Operation):
                self._note_index(*p.arguments)
            self.conditions.doubt(p, VersioningReason("a check fails", (check.pc,)))
        elif not isinstance(p, Operation):
            return
        elif p.name in EXPANSIONS:
            if not self._is_exact(check, p, place):
                return
        elif not is_range or not self._index(check, p, place):
            return
        self.eliminated.add(check)

    def _is_exact(self, check: Operation, p: Operation, place: int) -> bool:
        """True if runtime checks can prove that an operation does not overflow; adds them."""
        if p.static != (I64,):
            return False
        found = [self.space.expression_at(each, place) for each in p.arguments]
        a, b = found
        if a is None or b is None:
            return False
        if p.name != "mul_overflows":  # both are within 2^62 of zero if they do not wrap
            self.space.check(a, check.pc)
            self.space.check(b, check.pc)
            return True
        if a.terms and b.terms:
            return False
        if b.terms:
            a, b = b, a
        self.space.check(a, check.pc)
        self.space.check(b, check.pc)
        reason = VersioningReason("a factor is too large", (check.pc,))
        m = self.conditions
        for value in (*self.space.extremes(a), b.base):
            moved = m.add(I64, value, m.constant(I64, LARGEST_FACTOR))
            m.doubt_above(moved, 2 * LARGEST_FACTOR, reason)
        return True

    def _exit(self, end: Operation, place: int) -> None:
        """Replace the condition of a branch that leaves if a number is zero, if runtime checks can
        prove that it never is; adds them."""
        p, graph = end.arguments[0], self.nest.graph
        if isinstance(p, Operation) and p.name == "none":
            (p,) = p.arguments
        tails = {graph.blocks[tail] for tail in self.nest.tails}
        assert isinstance(end, Terminator)
        if not isinstance(p, Operation) or tails.isdisjoint(edge.block for edge in end.edges):
            return
        if self._is_never_zero(p, end.pc, place):
            self.replaced[p] = self.conditions.constant(BOOLEAN, 0)

    def _is_never_zero(self, p: Operation, pc: int, place: int) -> bool:
        """True if a condition holds where a number is zero, and runtime checks can prove that it
        never is; adds them."""
        number = _tested_for_zero(p)
        expression = None if number is None else self.space.expression_at(number, place)
        if expression is None or not expression.terms:
            return False
        m = self.conditions
        self.space.check(expression, pc)
        low, high = self.space.extremes(expression)
        is_below = m.compare(I64, Condition.LE_S, low, m.zero)
        is_around = m.all(is_below, m.compare(I64, Condition.GE_S, high, m.zero))
        m.doubt(is_around, VersioningReason("a number may be zero", (pc,)))
        return True

    def _note_index(self, value: Value, limit: Value) -> None:
        """Note an index that runtime checks prove to be below a limit, which may be a length."""
        if isinstance(limit, Operation) and limit.name == "header_word":
            self._checked_indices.add((limit.arguments[0], value))

    def _index(self, check: Operation, p: Operation, place: int) -> bool:
        """True if runtime checks can prove that an index is below a limit; adds them."""
        value, limit = p.arguments
        index = plain_index(value)
        expression = self.space.expression_at(index, place)
        if expression is None or not self.nest.is_invariant(limit):
            return False
        self.space.check(expression, check.pc)
        low, high = self.space.extremes(expression)
        self.conditions.doubt_below(
            low, self.conditions.zero, VersioningReason("an index may be negative", (check.pc,))
        )
        if index is not value:
            assert isinstance(value, Operation)
            self.replaced[value] = index
        self._note_index(value, limit)
        over = self.conditions.compare(I64, Condition.GE_U, high, limit)
        self.conditions.doubt(over, VersioningReason(TOO_LARGE, (check.pc,)))
        return True

    def _range_of(self, address: Value, size: int, place: int) -> tuple[Value, AccessRange] | None:
        """The reference and range of an address; None if it is not affine."""
        expression = self.space.expression_at(address, place)
        if expression is None:
            return None
        reference, offset = _split(expression.base)
        return reference, AccessRange(offset, expression.terms, size)

    def _add_access(self, reference: Value, part: AccessRange, pc: int) -> HeapObject:
        """The object of an accessed range; the range is added to it, with its checks."""
        found = self.objects.setdefault(reference, HeapObject(reference, pc))
        if part not in found.parts:
            found.parts[part] = None
            self.space.check(AffineExpression(self.conditions.zero, part.terms), pc)
        return found

    # --- extents of objects --------------------------------------------------------------------

    def _bound(self, each: HeapObject) -> None:
        """Compute the extent of an object; add the check that it begins in the heap."""
        m, low = self.conditions, self._lowest(each)
        each.known_extent = Interval(low, self._highest(each))
        first = m.add(I64, each.reference, low)
        if isinstance(low, Constant):
            m.addresses[first] = None
        else:
            m.small[each.reference] = None
            m.doubt_below(first, m.zero, VersioningReason(OUTSIDE, (each.pc,)))

    def _ends(self, part: AccessRange) -> Interval:
        low, high = self.space.extremes(AffineExpression(self.conditions.zero, part.terms))
        first, last = self._number(part.offset), self._number(part.offset + part.bytes)
        return Interval(self.conditions.add(I64, low, first), self.conditions.add(I64, high, last))

    def _lowest(self, each: HeapObject) -> Value:
        """The offset of the first byte. If it is constant for one range, checks prove that no other
        range begins before it: an object's header is its first range."""
        lows = dict.fromkeys(self._ends(part).low for part in each.parts)
        fixed = [signed(I64, low.bits) for low in lows if isinstance(low, Constant)]
        others = [low for low in lows if not isinstance(low, Constant)]
        if fixed:
            lowest: Value = self._number(min(fixed))
            for low in others:
                self.conditions.doubt_below(low, lowest, VersioningReason(OUTSIDE, (each.pc,)))
            return lowest
        lowest, *others = others
        for low in others:
            is_less = self.conditions.compare(I64, Condition.LT_S, low, lowest)
            lowest = self.conditions.select(is_less, low, lowest)
        return lowest

    def _highest(self, each: HeapObject) -> Value:
        """The offset past the last byte."""
        highs = dict.fromkeys(self._ends(part).high for part in each.parts)
        fixed = [signed(I64, high.bits) for high in highs if isinstance(high, Constant)]
        others = [high for high in highs if not isinstance(high, Constant)]
        highest: Value = self._number(max(fixed)) if fixed else others.pop()
        for high in others:
            is_more = self.conditions.compare(I64, Condition.GT_S, high, highest)
            highest = self.conditions.select(is_more, high, highest)
        return highest

    def _number(self, value: int) -> Constant:
        return self.conditions.constant(I64, value & I64.mask)


def _tested_for_zero(p: Operation) -> Value | None:
    """The i64 that is zero where a condition holds, also one that is converted to f64; None for
    other conditions."""
    if p.name != "compare" or p.static not in ((I64, Condition.EQ), (F64, Condition.EQ)):
        return None
    number, zero = p.arguments
    if not isinstance(zero, Constant) or zero.bits:
        return None
    if p.static[0] is I64:
        return number
    if isinstance(number, Operation) and number.name == "to_float_s":
        return number.arguments[0] if number.static == (F64, I64) else None
    return None


def _stores(loop: Loop) -> bool:
    return any(operation.name in _STORES for operation in loop.operations)


def _bytes(access: Operation) -> int:
    """Bytes of the element that is accessed."""
    elements = access.static[0]
    assert isinstance(elements, Element | int)
    return element_bytes(elements)


def _split(address: Value) -> tuple[Value, int]:
    """The base of an address, and the small constant that is added to it."""
    base, offset = split(address)
    if base is None or abs(offset) >= LARGEST_OFFSET:
        return address, 0
    return base, offset
