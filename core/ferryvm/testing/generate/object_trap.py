# SPDX-License-Identifier: Apache-2.0
"""Intentional traps of accesses to objects, and of what makes them: each method whose name starts
with `trap_` generates one."""

from __future__ import annotations

from ferryvm.testing.generate.literal import I32, I64, MASK
from ferryvm.testing.generate.object import OUTSIDE, Objects
from ferryvm.testing.generate.object_type import ANY, ARRAY, FIRST, I31
from ferryvm.testing.generate.reference import CAST, FIELD_GET, FROM_I31, LENGTH, NULL

_HUGE = (
    (1 << 40) - 1, 1 << 40, (1 << 40) + 1, 1 << 61, (1 << 61) + 1, 1 << 63, MASK[I64],
    100_000, 1 << 20,
)  # fmt: skip
"""Lengths of arrays that no random program has memory for."""


class ObjectTraps(Objects):
    """The values that they leave are not stored."""

    def trap_null(self) -> int | None:
        """An access to an object that there is not."""
        chance, types = self.chance, self.types
        choice = chance.random()
        fields = [field for every in types.structs.values() for field in every]
        if choice < 0.4 and fields:
            field = chance.pick(fields)
            self.put(NULL, field.struct - FIRST)
            self.put(FIELD_GET, field.immediate)
            return field.type
        if choice < 0.6:
            self.put(NULL, ARRAY - FIRST)
            self.put(LENGTH)
            return I64
        if choice < 0.75:
            self.put(NULL, I31 - FIRST)
            self.put(chance.pick(FROM_I31))
            return I32
        family = chance.pick((*types.families.values(),))
        self.put(NULL, family.array - FIRST)
        self.value(I64, 1)
        self.put(family.opcode("get"), family.immediate)
        return family.element

    def trap_cast(self) -> int | None:
        """A cast to a type that the object may not be of."""
        chance, types = self.chance, self.types
        t = chance.pick(types.usual)
        self.make(chance.pick(types.makers[ANY]), 1)
        self.put(CAST, t - FIRST)
        return t

    def trap_element(self) -> int | None:
        """An index past the end of an array."""
        chance = self.chance
        family = chance.pick((*self.types.families.values(),))
        length = self.make(family.array, 1)
        past = (0, 0, 1, 1 << 32, 1 << 61, (1 << 63) - length, MASK[I64] - length)
        self.const(I64, length + chance.pick(past))
        self.put(family.opcode("get"), family.immediate)
        return family.element

    def trap_length(self) -> int | None:
        """An array for which there is no memory."""
        chance = self.chance
        family = chance.pick((*self.types.families.values(),))
        self.const(I64, chance.pick(_HUGE))
        self.put(family.opcode("new_default"), family.immediate)
        return family.array

    def trap_objects_exhausted(self) -> int | None:
        """Arrays that stay alive, until there is no memory for another one, or just not."""
        chance, types = self.chance, self.types
        if not types.keepers or self.weight > 1 or not self.affords(60 * 12):
            return self.trap_length()
        self.hoard(chance.pick((5, 30, 60)), (100, 400, 1000, OUTSIDE))
        return None
