# SPDX-License-Identifier: Apache-2.0
"""Situations that are hard for compilers: irreducible loops, lengths that change
under a loop, induction variables that wrap, operand stacks of hundreds of words.

Each counts in `Plan.occurred`, so that a campaign can say how many of its programs had it.
"""

from __future__ import annotations

from collections.abc import Callable

from ferryvm.isa.type import WORD_BYTES
from ferryvm.testing.generate.body import (
    DROP,
    GET,
    JUMP,
    JUMP_IF,
    JUMP_UNLESS,
    SET,
    Corner,
    Label,
)
from ferryvm.testing.generate.catalogue import CONST, LOADS, OPCODE, STORES, eqz
from ferryvm.testing.generate.literal import BITS, I32, I64, MASK, TYPES
from ferryvm.testing.generate.object_type import FIRST
from ferryvm.testing.generate.trap import Traps

_ADD = (OPCODE["i32.add"], OPCODE["i64.add"])
_SUB = (OPCODE["i32.sub"], OPCODE["i64.sub"])
_AND, _STORE, _LOAD = OPCODE["i64.and"], OPCODE["i64.store"], OPCODE["i64.load"]
_ITERATION_COST = 25
"""Instructions that one iteration of a loop is estimated at before its body exists."""

_SEARCHES = 40
"""Loops that are tried until one wraps."""

_MOST_TRIPS = 40
MANY_LOCALS = 1000
_FORGED = (0, 1, 2, 7, 1 << 31, 1 << 32, (1 << 61) - 1, 1 << 61, 1 << 62, (1 << 63) - 1)
"""Lengths: small ones, and those at which a product with the element's width may wrap."""

_NEGATIVE = (1 << 63, (1 << 64) - 1, (1 << 64) - 8)
"""Lengths that are negative as signed numbers."""

_STEPS = (1, 1, 2, 3, 7, 8, 1 << 20, 1 << 29, 1 << 30, (1 << 31) - 1)
_RELATIONS = ("lt_s", "lt_u", "le_s", "le_u", "gt_s", "gt_u", "ge_s", "ge_u", "ne")


class Corners(Traps):
    """Each method whose name starts with `statement_` is a kind of statement."""

    is_large = False
    """True if the frame may be large: it is that of no recursion."""

    def _occurs(self, corner: Corner) -> None:
        self.plan.occurred[corner] += 1

    # --- cycles with several entries ----------------------------------------------------------

    def statement_irreducible(self) -> None:
        """A cycle of two to four parts with an entry to each of them; each part continues at
        another one as long as the counter, which every part decrements, is above 0."""
        chance = self.chance
        parts = chance.pick((2, 2, 2, 3, 4))
        trips = chance.between(1, 6)
        if self.nesting >= 4 or not self.affords(trips * parts * 2 * _ITERATION_COST):
            self.statement_update()
            return
        self._occurs(Corner.IRREDUCIBLE)
        t = I32 if chance.flip(0.3) else I64
        counter = self.take_counter(t)
        self.const(t, trips)
        self.put(SET, counter)
        is_laden = chance.flip(0.3)
        exits = self.exits
        if is_laden:
            self.leaf(self.plan.any_type())
        entries: list[Label] = [[] for _ in range(parts)]
        tops = [0] * parts
        end: Label = []
        for entry in entries[1:]:
            self.condition(1)
            self.jump(JUMP_IF if chance.flip(0.5) else JUMP_UNLESS, entry)
        for number in range(parts):
            self.place(entries[number])
            entries[number] = []
            tops[number] = len(self.ops)
            next_part: Label = []
            self.exits = [(end, next_part)] if is_laden else [*exits, (end, next_part)]
            with self.repeated(trips):
                if chance.flip(0.8):
                    self.block(2)
                self.place(next_part)
                self._take_down(counter, t, end)
                self._go_on(number, tops, entries)
        self.exits = exits
        self.place(end)
        if is_laden:
            self.put(DROP)
        self.give_counter(counter)

    def _take_down(self, counter: int, t: int, end: Label) -> None:
        """Append code that decrements the counter, and leaves the cycle at 0."""
        self.put(GET, counter)
        self.const(t, 1)
        self.put(_SUB[t])
        self.put(SET, counter)
        self.put(GET, counter)
        self.put(eqz(t))
        self.jump(JUMP_IF, end)

    def _go_on(self, number: int, tops: list[int], entries: list[Label]) -> None:
        """Append code that continues at another part, or falls through to the next one."""
        chance, parts = self.chance, len(tops)
        if number < parts - 1 and chance.flip(0.4):
            return
        targets = [other for other in range(parts) if other != number]
        if chance.flip(0.6):
            self.condition(1)
            self._jump_to(JUMP_IF, chance.pick((*targets, number)), number, tops, entries)
        if number < parts - 1 and chance.flip(0.4):
            return
        # The following code is still reachable, through the entries before the cycle.
        self._jump_to(JUMP, chance.pick(targets), number, tops, entries)

    def _jump_to(
        self, opcode: int, target: int, number: int, tops: list[int], entries: list[Label]
    ) -> None:
        if target <= number:
            self.put(opcode, tops[target])
        else:
            self.jump(opcode, entries[target])

    # --- vectors that are none ----------------------------------------------------------------

    def statement_forge(self) -> None:
        """Vectors whose length words are stored by hand, overlapping each other; where risk is on,
        a loop through one that may overwrite the length of the other, or of a real one."""
        if not self.affords(12 * _ITERATION_COST):
            self.statement_update()
            return
        self._occurs(Corner.FORGED)
        if self.is_risky and self.chance.flip(0.6):
            self._forge_in_loop()
        else:
            for _ in range(self.chance.between(1, 3)):
                self._forge_carefully()

    def _forge_carefully(self) -> None:
        """A length word somewhere in the scratch, aligned or not, and an element within it."""
        chance = self.chance
        t = chance.below(4)
        access = chance.pick((STORES if chance.flip(0.6) else LOADS)[t])
        last = (self.plan.scratch - 8 - access.bytes) // access.bytes
        index = chance.below(min(last, 4) + 1)
        base = chance.below(self.plan.scratch - 8 - access.bytes * (index + 1) + 1)
        lengths = [length for length in (*_FORGED, *_NEGATIVE) if length > index]
        self._set_length(base, chance.pick(lengths))
        self.const(I64, base)
        self.const(I64, index)
        self.scaled((CONST[I64], base), access.bytes)
        if access in STORES[t]:
            self.leaf(t)
            self.put(access.opcode, WORD_BYTES)
        else:
            self.put(access.opcode, WORD_BYTES)
            self.store_result(t)

    def _forge_in_loop(self) -> None:
        """Store through one vector, load through another that overlaps it, in each iteration."""
        chance, plan = self.chance, self.plan
        trips = chance.between(2, 9)
        first = chance.below(max(1, plan.scratch - 16))
        second = max(0, first + chance.pick((-8, -4, -1, 1, 4, 8, 8, 16, 24)))
        if chance.flip(0.3):
            second = chance.pick(plan.vectors).address
        self._set_length(first, chance.pick((*_FORGED, *_NEGATIVE, trips, trips)))
        if chance.flip(0.6):
            self._set_length(second, chance.pick((*_FORGED, *_NEGATIVE, trips, trips)))
        store, load = chance.pick(STORES[I64]), chance.pick(LOADS[I64])
        counter = self.take_counter(I64)
        self.const(I64, 0)
        self.put(SET, counter)
        top = len(self.ops)
        with self.repeated(trips):
            self._element(first, counter, store.bytes)
            if chance.flip(0.5):
                self.put(GET, counter)
            else:
                self.const(I64, chance.pick((0, 1, 3, trips, MASK[I64])))
            self.put(store.opcode, WORD_BYTES)
            self._element(second, counter, load.bytes)
            self.put(load.opcode, WORD_BYTES)
            self.store_result(I64)
            self.put(GET, counter)
            self.const(I64, 1)
            self.put(_ADD[I64])
            self.put(SET, counter)
            self.put(GET, counter)
            self.const(I64, trips)
            self.put(OPCODE[chance.pick(("i64.lt_s", "i64.lt_u", "i64.ne"))])
            self.put(JUMP_IF, top)
        self.give_counter(counter)

    def _set_length(self, base: int, length: int) -> None:
        self.const(I64, base)
        self.const(I64, length)
        self.put(_STORE)

    def _element(self, base: int, index: int, width: int) -> None:
        self.const(I64, base)
        self.put(GET, index)
        self.scaled((CONST[I64], base), width)

    # --- induction variables that wrap ----------------------------------------------------------

    def statement_wrap(self) -> None:
        """A loop whose induction variable starts near a limit of its type, and mostly wraps."""
        chance = self.chance
        t = I64 if chance.flip(0.6) else I32
        found = self._wrapping(t)
        if found is None or self.nesting >= 4 or not self.affords(found[4] * _ITERATION_COST):
            self.statement_update()
            return
        self._occurs(Corner.WRAPPING)
        start, step, relation, bound, trips = found
        counter = self.take_counter(t)
        self.const(t, start)
        self.put(SET, counter)
        exits, end, next_iteration = self.exits, list[int](), list[int]()
        self.exits = [*exits, (end, next_iteration)]
        top = len(self.ops)
        with self.repeated(trips):
            if t == I64:
                self._load_by(counter, start)
            self.block(1)
            self.place(next_iteration)
            self.put(GET, counter)
            self.const(t, step & MASK[t])
            self.put(_ADD[t])
            self.put(SET, counter)
            self.put(GET, counter)
            self.const(t, bound)
            self.put(OPCODE[f"{TYPES[t]}.{relation}"])
            self.put(JUMP_IF, top)
        self.exits = exits
        self.place(end)
        self.give_counter(counter)

    def _load_by(self, counter: int, start: int) -> None:
        """Append a load at an address that moves with the counter, perhaps."""
        if self.chance.flip(0.5):
            return
        self.put(GET, counter)
        if not (self.is_risky and self.chance.flip(0.3)):
            self.const(I64, start)
            self.put(_SUB[I64])
            self.const(I64, 15)
            self.put(_AND)
        self.put(_LOAD, self.chance.pick((0, 0, 1, 8)))
        self.store_result(I64)

    def _wrapping(self, t: int) -> tuple[int, int, str, int, int] | None:
        """Start, step, relation, bound and trips of a loop that ends soon, found by trying; one
        that wraps if there is one."""
        chance, bits = self.chance, BITS[t]
        limits = (0, 1 << (bits - 1), (1 << bits) - 1)
        best = None
        for _ in range(_SEARCHES):
            start = (chance.pick(limits) + chance.between(-9, 9)) & MASK[t]
            step = chance.pick(_STEPS) << (32 if bits == 64 and chance.flip(0.2) else 0)
            step = -step if chance.flip(0.4) else step
            relation = chance.pick(_RELATIONS)
            bound = (chance.pick((start, *limits)) + chance.between(-9, 9)) & MASK[t]
            trips, wraps = _trip_count(t, start, step, relation, bound)
            if trips is not None:
                best = start, step, relation, bound, trips
                if wraps:
                    break
        return best

    # --- large frames: many locals, many operands --------------------------------------------

    def many_locals(self) -> None:
        """Give the function a thousand locals more, of which code uses some here and there."""
        self._occurs(Corner.LOCALS)
        for number in range(MANY_LOCALS):
            self.new_local(self.chance.below(4), is_writable=number % 37 == 0)

    def statement_deep(self) -> None:
        """Hundreds of operands on the stack while control splits and joins, calls and returns."""
        chance = self.chance
        count = chance.pick((100, 130, 200, 257, 400))
        if (
            not self.is_large
            or self.weight > 1
            or not self.affords(3 * count + 6 * _ITERATION_COST)
        ):
            self.statement_update()
            return
        self._occurs(Corner.DEEP)
        exits, self.exits = self.exits, []
        self.limit += 3 * count  # the rest of the function should not become smaller
        types = []
        for _ in range(count):
            t = self.plan.any_type()
            self.leaf(t)
            types.append(t)
            if chance.flip(0.01):
                self.block(1)
        self.block(2)
        if self.plan.callees:
            callee = chance.pick(self.plan.callees)
            if self._can_call(callee):
                self.perform(callee)
        while types:
            t = types.pop()
            if t < FIRST and types and types[-1] == t and chance.flip(0.7):
                self.put(chance.weighted(self.catalogue.binary[t]).opcode)
            elif chance.flip(0.3):
                self.store_result(t)
            else:
                self.put(DROP)
            if chance.flip(0.01):
                self.block(1)
        self.exits = exits


_HOLDS: dict[str, Callable[[int, int], bool]] = {
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


def _trip_count(
    t: int, start: int, step: int, relation: str, bound: int
) -> tuple[int | None, bool]:
    """Turns of a loop that tests after its body, None if they are too many; and whether the
    variable passes the end of the range in which it is compared."""
    bits, mask = BITS[t], MASK[t]
    is_signed = relation.endswith("_s")

    def number(value: int) -> int:
        return value - (1 << bits) if is_signed and value >> (bits - 1) else value

    value, wraps = start, False
    for trip in range(1, _MOST_TRIPS + 1):
        following = (value + step) & mask
        wraps = wraps or number(following) != number(value) + step
        value = following
        a, b = number(value), number(bound)
        holds = a != b if relation == "ne" else _HOLDS[relation[:2]](a, b)
        if not holds:
            return trip, wraps
    return None, wraps
