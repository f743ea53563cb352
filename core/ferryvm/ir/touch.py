# SPDX-License-Identifier: Apache-2.0
"""What a loop nest touches in the heap, and what has to be asked for its checks to pass each time.

What is touched are *objects*: a reference with the bytes from it on. Each access names a *part* of
one, whose offset rises in a line with the counts of loops; so the part of the largest counts is the
last one. A check is *spared* if it passes wherever the object is in bounds, or wherever its largest
index is below a length that nothing in the nest changes.

Numbers are asked to be so small that nothing wraps: a line stays below 2^60 + 4 * 2^59 < 2^62, and
differences of two are exact. Making a plan changes nothing in the body.
"""

from __future__ import annotations

import dataclasses
import math
from typing import NamedTuple

from ferryvm.ir.build import Builder
from ferryvm.ir.duplicate import Nest
from ferryvm.ir.flow import Flow, Loop
from ferryvm.ir.graph import Block, Body, Constant, Operation, Parameter, Value
from ferryvm.ir.line import Count, Line, Lines, find_count
from ferryvm.ir.room import room
from ferryvm.isa.emitter import Condition
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import I64, WORD_BYTES

LARGEST_BASE = 1 << 60
"""Of references and other bases of lines, exclusive."""

LARGEST_COUNT = 1 << 32
LARGEST_SCALE = 1 << 27
MOST_TERMS = 4

LARGEST_OFFSET = 1 << 31
"""Of an address from its reference; one that is further off is a reference itself."""

LARGEST_NEST = 1000
"""Operations of a nest that gets a copy, at most, if nothing else is said."""

MOST_OBJECTS = 16
FEWEST_OBJECTS = 2
"""With one alone, asking was measured to cost more than it saves."""

_CALLS = frozenset({"call", "call_indirect"})


class Part(NamedTuple):
    """Bytes of an object: which, as a line over its reference, and how many."""

    offset: int
    terms: tuple[tuple[Parameter, Value], ...]
    bytes: int


class Place(NamedTuple):
    """What an access touches in a version of a nest where nothing that is stored into overlaps
    another object, however often its loops go round."""

    nest: Block
    """The head of the nest as it was: of accesses in two nests nothing is known."""
    reference: Value
    offset: int
    stride: int | None
    """Whatever is added to the offset is a multiple of it; 0: nothing is; None: that is not known."""
    bytes: int

    def is_apart(self, other: Place) -> bool:
        """Whether two accesses, one of which stores, have no bytes in common, in whichever rounds
        of the nest's loops they are made."""
        return self.nest is other.nest and self.reference is not other.reference

    def is_in_step(self, other: Place) -> bool:
        """Whether two accesses in one object touch the same bytes or none in common."""
        if self.nest is not other.nest or self.reference is not other.reference:
            return False
        if self.stride is None or other.stride is None:
            return False
        distances = self.offset - other.offset, self.stride, other.stride
        return self.bytes == other.bytes and not any(d % self.bytes for d in distances)


@dataclasses.dataclass(eq=False)
class Object:
    """What is touched from one reference on."""

    reference: Value
    parts: dict[Part, None] = dataclasses.field(default_factory=dict)
    stored: dict[Part, None] = dataclasses.field(default_factory=dict)
    """Parts that are stored into."""
    lengths: dict[Part, None] = dataclasses.field(default_factory=dict)
    """Parts that must not change."""


class UnfitError(Exception):
    """The nest is left alone."""


class Plan(Builder):
    """What is asked in front of one nest so that its checks can be spared."""

    def __init__(
        self,
        body: Body,
        flow: Flow,
        loop: Loop,
        loops: list[Loop],
        largest: int = LARGEST_NEST,
    ) -> None:
        """Raises UnfitError for a nest that is left alone. `largest`: operations that it may have."""
        super().__init__(body.constants)
        self.flow, self.loop = flow, loop
        self.blocks = [*flow.blocks]  # since the body's own list will change
        self.nest = Nest(flow, loop)
        self.head = flow.blocks[loop.head]
        self.spared: set[Operation] = set()
        """Checks that the copy does without."""
        self.objects: dict[Value, Object] = {}
        """By their references."""
        self.places: dict[Operation, tuple[Value, Part]] = {}
        """What loads and stores touch, by reference."""
        self.limit: Value | None = None
        """Where the heap in use ends."""
        self.small: dict[Value, None] = {}
        """Values that have to be below `LARGEST_BASE`."""
        self.doubts: dict[Value, None] = {}
        """Each holds if something may fail; known before anything is loaded."""
        self.late: dict[tuple[Value, Value], None] = {}
        """Largest indices, and the addresses of the lengths that they are to be below."""
        if not self._is_simple(largest):
            raise UnfitError
        self.home: dict[Value, int] = {}
        self.order: dict[Value, int] = {}
        """Values by how early they are defined."""
        for place, block in enumerate(flow.blocks):
            for value in (*block.parameters, *block.operations):
                self.home[value] = place
                self.order[value] = len(self.order)
        self.open(Block("ask", self.head.pc))
        self.loops = [each for each in loops if each.blocks <= loop.blocks]
        if any(len(self._entries(each)) != 1 for each in self.loops):
            raise UnfitError  # nothing can be put in front
        if not any(self._stores(each) for each in self.loops if self._is_innermost(each)):
            raise UnfitError  # `range` does for the loops that take the time
        self.counts: dict[Value, tuple[Count, Loop]] = {}
        self.tops: dict[Value, Value] = {}
        self.asked: set[Value] = set()
        """Counts of which everything has been asked."""
        self.lines = Lines(self, self.counts, self.is_outside)
        for each in reversed(self.loops):
            self._find_count(each)
        for place in self.nest.places:
            for operation in flow.blocks[place].operations:
                self._operation(operation, place)
        if self.limit is None or not FEWEST_OBJECTS <= len(self.objects) <= MOST_OBJECTS:
            raise UnfitError
        if any(isinstance(doubt, Constant) and doubt.bits for doubt in self.doubts):
            raise UnfitError
        self._keep_lengths()

    def is_touched(self, reference: Value, part: Part) -> bool:
        """Whether a part belongs to an object, so that it is asked about."""
        return reference in self.objects and part in self.objects[reference].parts

    def place(self, access: Operation) -> Place | None:
        """Where a load or store goes, if that is in an object."""
        if access not in self.places:
            return None
        reference, part = self.places[access]
        if not self.is_touched(reference, part):
            return None
        scales = [scale.bits for _, scale in part.terms if isinstance(scale, Constant)]
        stride = math.gcd(*scales) if len(scales) == len(part.terms) else None
        return Place(self.head, reference, part.offset, stride, part.bytes)

    def is_outside(self, value: Value) -> bool:
        """Whether a value does not vary in the nest."""
        return self.home.get(value) not in self.loop.blocks

    def _is_simple(self, largest: int) -> bool:
        operations = [o for block in self.nest.blocks for o in block.operations]
        names = {operation.name for operation in operations}
        return (
            self.nest.has_one_way_out
            and len(operations) <= largest
            and names.isdisjoint(_CALLS)
            and names >= {"heap_store", "trap_if"}
        )

    def _is_innermost(self, loop: Loop) -> bool:
        return not any(each.blocks < loop.blocks for each in self.loops)

    def _stores(self, loop: Loop) -> bool:
        blocks = (self.flow.blocks[place] for place in loop.blocks)
        return any(each.name == "heap_store" for block in blocks for each in block.operations)

    # --- counts and lines -------------------------------------------------------------------

    def _find_count(self, loop: Loop) -> None:
        count = find_count(self.flow, loop, self.is_outside)
        if count is None:
            return
        if self._line_at(count.start, self.front(loop)) is not None:
            self.counts[count.value] = count, loop
            self.tops[count.value] = self._top(count)

    def _top(self, count: Count) -> Value:
        """The largest value that a count has where it is below its bound, or more than that."""
        top = self.sub(I64, count.bound, self.constant(I64, 1))
        step = count.step
        if not isinstance(step, Constant) or not 1 < step.bits < LARGEST_COUNT:
            return top
        if not self.is_outside(count.start):
            return top
        distance = self.sub(I64, top, count.start)
        if step.bits & (step.bits - 1):
            rest = self.rem_u(I64, distance, step)
        else:
            rest = self.bit_and(I64, distance, self.constant(I64, step.bits - 1))
        return self.sub(I64, top, rest)

    def front(self, loop: Loop) -> int:
        """The place from which a loop is entered."""
        (source,) = self._entries(loop)
        return source

    def _entries(self, loop: Loop) -> list[int]:
        return [s for s, _ in self.flow.incoming[loop.head] if s not in loop.blocks]

    def _line_at(self, value: Value, place: int) -> Line | None:
        """A value as a line that can be asked about, at a place where its counts are in bounds."""
        line = self.lines.line(value)
        if line is None or len(line.terms) > MOST_TERMS or not self.holds(line.terms, place):
            return None
        if isinstance(line.base, Constant) and line.base.bits >= LARGEST_BASE:
            return None
        if any(isinstance(s, Constant) and s.bits > LARGEST_SCALE for _, s in line.terms):
            return None
        return line

    def holds(self, terms: tuple[tuple[Parameter, Value], ...], place: int) -> bool:
        """Whether the counts of a line are known to be below their bounds at a place."""
        for count, _ in terms:
            _, loop = self.counts[count]
            if place not in loop.blocks or place == loop.head:
                return False
        return True

    def _ask_terms(self, terms: tuple[tuple[Parameter, Value], ...]) -> None:
        """Have it asked whether a line without its base rises, and by less than 2^61."""
        for value, scale in terms:
            self._doubt_above(scale, LARGEST_SCALE)
            if value in self.asked:
                continue
            self.asked.add(value)
            count, _ = self.counts[value]
            self._doubt_above(self.tops[value], LARGEST_COUNT - 1)
            one = self.constant(I64, 1)
            self._doubt_above(self.sub(I64, count.step, one), LARGEST_COUNT - 1)
            start = self.lines.line(count.start)
            assert start is not None
            self.small[start.base] = None
            self._ask_terms(start.terms)

    def _doubt_above(self, value: Value, most: int) -> None:
        above = self.compare(I64, Condition.GT_U, value, self.constant(I64, most))
        self.doubts[above] = None

    # --- checks and accesses ----------------------------------------------------------------

    def _operation(self, operation: Operation, place: int) -> None:
        if operation.name == "trap_if":
            self._check(operation, place)
        elif operation.name in ("heap_load", "heap_store"):
            found = self._part(operation.arguments[0], operation.fact(0, int), place)
            if found is not None:
                self.places[operation] = found
            if operation.name == "heap_store":
                if found is None:
                    raise UnfitError  # it may hit a length
                self._touch(*found).stored[found[1]] = None

    def _check(self, check: Operation, place: int) -> None:
        """Spare a check if it can be asked whether it passes each time."""
        p = check.arguments[0]
        is_range = isinstance(p, Operation) and p.static == (I64, Condition.GE_U)
        if is_range and check.fact(0, Trap) is Trap.MEMORY_OUT_OF_BOUNDS:
            assert isinstance(p, Operation)
            limit, reach = room(p.arguments[1])
            found = self._part(p.arguments[0], reach + 1, place)
            if found is None or not self.is_outside(limit) or self.limit not in (None, limit):
                return
            self.limit = limit
            self._touch(*found)
        elif self.is_outside(p):
            self.doubts[p] = None
        elif not (is_range and isinstance(p, Operation) and self._index(p.arguments, place)):
            return
        self.spared.add(check)

    def _index(self, operands: tuple[Value, ...], place: int) -> bool:
        """Whether it can be asked if an index is always below a limit; then it will be."""
        value, limit = operands
        line = self._line_at(value, place)
        if line is None:
            return False
        if not self.is_outside(limit):
            if not isinstance(limit, Operation) or limit.name != "heap_load":
                return False
            address = limit.arguments[0]
            found = self._part(address, WORD_BYTES, place)
            if found is None or found[1].terms or limit.fact(0, int) != WORD_BYTES:
                return False
            self._touch(*found).lengths[found[1]] = None
        self.small[line.base] = None
        self._ask_terms(line.terms)
        largest = self.lines.largest(line, self.tops)
        if self.is_outside(limit):
            self.doubts[self.compare(I64, Condition.GE_U, largest, limit)] = None
        else:
            self.late[largest, address] = None
        return True

    def _part(self, address: Value, size: int, place: int) -> tuple[Value, Part] | None:
        """The reference and the bytes that an address names; None if it is no line."""
        line = self._line_at(address, place)
        if line is None:
            return None
        reference, offset = line.base, 0
        if isinstance(reference, Operation) and reference.name == "add":
            base, more = reference.arguments
            if isinstance(more, Constant) and more.bits < LARGEST_OFFSET:
                reference, offset = base, more.bits
        return reference, Part(offset, line.terms, size)

    def _touch(self, reference: Value, part: Part) -> Object:
        """The object, which will be asked about, of a part that is touched in the nest."""
        found = self.objects.setdefault(reference, Object(reference))
        if part not in found.parts:
            found.parts[part] = None
            self.small[reference] = None
            self._ask_terms(part.terms)
        return found

    def _keep_lengths(self) -> None:
        """Give up if a length may be stored into through its own reference."""
        for each in self.objects.values():
            for length in each.lengths:
                for stored in each.stored:
                    is_behind = stored.offset >= length.offset + length.bytes
                    is_before = stored.offset + stored.bytes <= length.offset
                    if not (is_behind or (is_before and not stored.terms)):
                        raise UnfitError
