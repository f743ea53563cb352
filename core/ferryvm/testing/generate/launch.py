# SPDX-License-Identifier: Apache-2.0
"""Launches of functions from `item`: the arrays that their items write, the loop, what is left.

    arrays of the items ─> locals       arguments … │ number ─> launch.begin ─> loop
                             └─ known after the launch, not before

A launch gets arrays that nothing else refers to, and a place in each for every item. So whatever
its items read, no other one writes.
"""

from __future__ import annotations

from ferryvm.isa.type import WORD_BYTES
from ferryvm.testing.generate.body import (
    DROP,
    DUP,
    GET,
    JUMP,
    JUMP_UNLESS,
    SET,
    Corner,
    ItemFunction,
    Label,
    ObjectLocal,
)
from ferryvm.testing.generate.catalogue import OPCODE
from ferryvm.testing.generate.exception import Exceptions
from ferryvm.testing.generate.literal import I64, MASK

_BEGIN, _TEST, _ITEM = (OPCODE[f"launch.{name}"] for name in ("begin", "test", "item"))
_CALL, _ALLOC, _LENGTH = OPCODE["call"], OPCODE["heap.alloc"], OPCODE["array.length"]

_AROUND = 20
"""Instructions of a launch besides its items."""
_STEP = 8
"""Instructions for an item besides those of its function."""
_NEGATIVE = (MASK[I64], MASK[I64], MASK[I64] - 7, 1 << 63)
_MISSING = (1, 1, 2, 5)

Places = dict[int, tuple[int, int]]
"""By parameter a local with an array, or with the address of words; and how many places it has."""


class Launches(Exceptions):
    """Launches, in any function."""

    def statement_launch(self) -> None:
        """A launch of any of the functions for items."""
        found = [one for one in self.plan.items if self.can_launch(one)]
        if not found or not self.launch(self.chance.pick(found)):
            self.statement_update()

    def can_launch(self, function: ItemFunction) -> bool:
        """True if the items may have here what they write."""
        return True

    def launch(self, function: ItemFunction) -> bool:
        """Append a launch, with handlers for the exceptions of items that nothing around catches;
        False if there may be none here."""
        callee, chance = function.callee, self.chance
        tags = self._left_to(callee)
        if self.nesting >= 4 or not (tags or self._is_welcome(callee)):
            return False
        count = chance.weighted(self.tables.items)
        while not self._affords_items(function, count):
            if not count:
                return False
            count //= 3
        self.plan.occurred[Corner.LAUNCH] += 1
        written = self._places(function, count)
        if tags:
            self.catch(tags, lambda: self._loop(function, count, written))
        else:
            self._loop(function, count, written)
        for number, (local, places) in written.items():
            self._offer_places(callee.parameters[number], local, places)
        return True

    def trap_negative_items(self) -> int | None:
        """A launch of a negative number of items."""
        found = [one for one in self.plan.items if self.can_launch(one)]
        if not found or not self._affords_items(found[0], 1):
            return self.trap_unreachable()
        function = self.chance.pick(found)
        self._loop(function, self.chance.pick(_NEGATIVE), self._places(function, 0))
        return None

    def _affords_items(self, function: ItemFunction, count: int) -> bool:
        callee = function.callee
        words = WORD_BYTES * (count + 1) * len(function.written)
        words += WORD_BYTES * sum(function.shared.values())
        return self.affords(count * (callee.cost + _STEP) + _AROUND, count * callee.heap + words)

    def _places(self, function: ItemFunction, count: int) -> Places:
        """Append code that makes what the items write; where risk is on it may be too small."""
        found = {}
        for number in sorted({*function.written, *function.shared}):
            t = function.callee.parameters[number]
            places = function.shared.get(number)
            is_shared = places is not None
            if places is None:
                places = count + self.chance.pick((0, 0, 0, 1, 3))
            if t == I64:
                self.charge(0, WORD_BYTES * (places + 1))
                self.const(I64, WORD_BYTES * places)
                self.put(_ALLOC)
            else:
                if self.is_risky and self.chance.flip(self.tables.chance["missing_places"]):
                    wanted = places if is_shared else count
                    places = max(0, wanted - self.chance.pick(_MISSING))
                self.make(t, 1, places)
            local = self.new_local(t)
            self.put(SET, local)
            found[number] = local, places
        return found

    def _loop(self, function: ItemFunction, count: int, written: Places) -> None:
        """Append the launch."""
        callee, chance = function.callee, self.chance
        exits, self.exits = self.exits, []
        for number, t in enumerate(callee.parameters[1:], 1):
            if number in written:
                self.put(GET, written[number][0])
            else:
                self.value(t, chance.below(3))
        self.exits = exits
        self.const(I64, count)
        self.put(_BEGIN)
        items = count if count < 1 << 63 else 0
        self.charge(items * callee.cost, items * callee.heap)
        top = len(self.ops)
        over: Label = []
        with self.repeated(items + 1):
            self.put(_TEST)
            self.jump(JUMP_UNLESS, over)
            self.put(_ITEM, callee.number)
            self.put(_CALL, callee.number)
            self.put(JUMP, top)
        self.place(over)
        self.put(DROP)
        for t in (I64, I64):  # the next item and the limit, which are equal
            self._leave_or_store(t)
        for number in range(len(callee.parameters) - 1, 0, -1):
            if number in written:
                self.put(DROP)
            else:
                self._leave_or_store(callee.parameters[number])

    def _leave_or_store(self, t: int) -> None:
        """Append code that takes an operand of the launch away."""
        if self.chance.flip(0.25):
            self.store_result(t)
        else:
            self.put(DROP)

    def _offer_places(self, t: int, local: int, places: int) -> None:
        """Append code that lets others refer to what items have written."""
        self.readable[t].append(local)
        if t == I64:
            self.blocks.append((local, WORD_BYTES * places))
            return
        self.put(GET, local)
        if self.chance.flip(0.5):
            self.put(DUP)
            self.put(_LENGTH)
            self.store_result(I64)
        self.store_result(self.chance.pick(self.types.above[t]))
        self.objects.append(ObjectLocal(local, t, places))
