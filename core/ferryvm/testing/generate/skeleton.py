# SPDX-License-Identifier: Apache-2.0
"""Calls of maps, reductions and scans: the arrays that they get, and what is left.

Arrays for results, and those that are read and written at once, are new ones that nothing else
refers to before the call. So whatever the items read, no other one writes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from ferryvm.skeleton.scan import BLOCK
from ferryvm.testing.generate.body import GET, SET, Corner, ObjectLocal, SkeletonFunction
from ferryvm.testing.generate.catalogue import OPCODE
from ferryvm.testing.generate.launch import Launches
from ferryvm.testing.generate.literal import I64
from ferryvm.testing.generate.object_type import FIRST, Family

_CALL = OPCODE["call"]

_LENGTHS = (0, 1, 1, 2, 3, 5, 8, 15, 16, 17, 20, 33, 48, 64, 100, BLOCK, BLOCK + 1, BLOCK + 40)
_FILL_COST = 25
"""Instructions for an element that a loop computes."""
_AROUND = 60
"""Instructions of a call besides those of its function and of loops."""


class Skeletons(Launches):
    """Calls of maps, reductions and scans, in any function."""

    def any_skeleton(self) -> None:
        """A map, a reduction or a scan."""
        found = self.plan.skeletons
        if not found or not self.skeleton(self.chance.pick(found)):
            self.statement_update()

    def skeleton(self, of: SkeletonFunction) -> bool:
        """Append a call over arrays of one length; False if there may be none here."""
        callee, chance = of.callee, self.chance
        if self.nesting >= 4 or not self._is_welcome(callee):
            return False
        known = [one for one in self.objects if one.type in {callee.parameters[n] for n in of.read}]
        length = chance.pick(known).length if known and chance.flip(0.4) else chance.pick(_LENGTHS)
        while not self._affords_elements(of, length):
            if not length:
                return False
            length //= 2
        self.plan.occurred[Corner.SKELETON] += 1
        arrays = self._arrays(of, length)
        exits, self.exits = self.exits, []
        for number, t in enumerate(callee.parameters):
            if number in arrays:
                self.put(GET, arrays[number])
            else:
                self.value(t, chance.below(3))
        self.exits = exits
        self.charge(callee.cost + length * of.each, length * callee.heap)
        self.put(_CALL, callee.number)
        self.take(callee.more)
        if callee.result is not None:
            self._take_result(callee.result, length)
        for number in of.written:
            self._offer(arrays[number], callee.parameters[number], length)
        return True

    def _affords_elements(self, of: SkeletonFunction, length: int) -> bool:
        callee, count = of.callee, len(of.read) + len(of.written)
        cost = callee.cost + length * (of.each + _FILL_COST * count)
        return self.affords(cost + _AROUND, length * callee.heap)

    def _arrays(self, of: SkeletonFunction, length: int) -> dict[int, int]:
        """Append code that makes the arrays; their locals, by parameter. What is written is new,
        and may be what is read, too."""
        callee, chance = of.callee, self.chance
        found: dict[int, int] = {}
        for number in of.written:
            found[number] = self._array(callee.parameters[number], length)
        for number in of.read:
            t = callee.parameters[number]
            written = [found[n] for n in of.written if callee.parameters[n] == t]
            known = [one.local for one in self.objects if (one.type, one.length) == (t, length)]
            if written and chance.flip(0.3):
                found[number] = chance.pick(written)
            elif known and length and chance.flip(0.6):
                found[number] = chance.pick(known)
            else:
                is_wrong = self.is_risky and number and chance.flip(self.tables.chance["unequal"])
                found[number] = self._array(t, length + is_wrong)
        return found

    def _array(self, t: int, length: int) -> int:
        """Append code that makes an array; its local, which nothing else knows."""
        chance, family = self.chance, self.types.families[t]
        self.make(t, 1, length)
        local = self.new_local(t)
        self.put(SET, local)
        if length and chance.flip(0.6) and self.affords(length * _FILL_COST):
            with self.counted(length) as counter:
                self._store(family, local, functools.partial(self.put, GET, counter))
        else:
            for _ in range(min(length, 3)):
                index = functools.partial(self.const, I64, chance.below(length))
                self._store(family, local, index)
        return local

    def _store(self, family: Family, local: int, index: Callable[[], None]) -> None:
        """Append code that stores a value in an element."""
        self.put(GET, local)
        index()
        self.value(family.element, 1)
        self.put(family.opcode("set"), family.immediate)

    def _take_result(self, t: int, length: int) -> None:
        """Append code that takes a value, or an array of that length, from the stack."""
        if t < FIRST or t not in self.types.families:
            self.store_result(t)
        else:
            self.hold(t, length)

    def _offer(self, local: int, t: int, length: int) -> None:
        """Let the following code refer to an array that items have written."""
        self.readable[t].append(local)
        self.objects.append(ObjectLocal(local, t, length))
