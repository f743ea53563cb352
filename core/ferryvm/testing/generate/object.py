# SPDX-License-Identifier: Apache-2.0
"""Statements on objects: they are made, shared, linked, dropped, copied and tested, and become
garbage."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from ferryvm.isa.atomic import Update
from ferryvm.isa.object import LARGEST_INLINE
from ferryvm.testing.generate.body import (
    DROP,
    DUP,
    GET,
    JUMP,
    JUMP_IF,
    JUMP_UNLESS,
    SET,
    Corner,
    Label,
    ObjectLocal,
)
from ferryvm.testing.generate.catalogue import OPCODE
from ferryvm.testing.generate.literal import I32, I64, MASK
from ferryvm.testing.generate.object_type import ANY, ARRAY, FIRST, I31, Family, FieldPlace
from ferryvm.testing.generate.reference import (
    CAST,
    FIELD_GET,
    FIELD_SET,
    FROM_I31,
    LENGTH,
    NEW_STRUCT,
    NULL,
    TEST,
    References,
)

_ADD, _SUB = OPCODE["i64.add"], OPCODE["i64.sub"]
_BELOW = tuple(OPCODE[f"i64.{name}"] for name in ("lt_s", "lt_u", "ne"))
_IS_NULL = OPCODE["ref.is_null"]
_SIZE = OPCODE["heap.size"]

_COMPARED = "compare_exchange"
_UPDATES = (*(update.value for update in Update), _COMPARED)

_TRIPS = (1, 2, 3, 4, 6, 9, 17)
_MANY = (8, 20, 50, 100)
OUTSIDE = LARGEST_INLINE // 8 + 4
"""Words of elements that are outside of the object space."""
_HOARDED = 4000
"""Words of elements that one statement keeps alive, at most."""
_ITERATION_COST = 25


class Objects(References):
    """Each method whose name starts with `object_` is a kind of statement."""

    @contextlib.contextmanager
    def counted(self, trips: int, array: int | None = None) -> Iterator[int]:
        """Context whose code is executed that often, at least once; a local that counts from 0.

        `array`: a local with an array of that length, which is then the bound."""
        counter = self.take_counter(I64)
        self.const(I64, 0)
        self.put(SET, counter)
        top = len(self.ops)
        self.indexes.append((counter, trips))
        with self.repeated(trips):
            yield counter
            self.put(GET, counter)
            self.const(I64, 1)
            self.put(_ADD)
            self.put(SET, counter)
            self.put(GET, counter)
            if array is None:
                self.const(I64, trips)
            else:
                self.put(GET, array)
                self.put(LENGTH)
            self.put(self.chance.pick(_BELOW))
            self.put(JUMP_IF, top)
        self.indexes.pop()
        self.give_counter(counter)

    def _trips(self, most: tuple[int, ...] = _TRIPS) -> int:
        """Iterations that can be paid for; 0 for none."""
        trips = self.chance.pick(most)
        while trips and not self._can_repeat(trips):
            trips //= 3
        return trips

    def _can_repeat(self, trips: int) -> bool:
        return self.nesting < 4 and self.affords(trips * _ITERATION_COST)

    def hold(self, t: int, length: int = 0) -> None:
        """Append code that takes an object from the stack into a local, known from here on."""
        local = self.new_local(t)
        self.readable[t].append(local)
        self.put(SET, local)
        self.objects.append(ObjectLocal(local, t, length))

    # --- making and dropping --------------------------------------------------------------------

    def object_make(self) -> None:
        """A new object, which the following code knows."""
        chance, types = self.chance, self.types
        t = chance.pick((*types.structs, *types.families))
        length = self.make(t, chance.between(1, 2))
        if chance.flip(0.5):
            self.put(DUP)
            self.store_result(chance.pick(types.above[t]))
        self.hold(t, length)

    def object_assign(self) -> None:
        """A reference into a variable, or into two."""
        chance, types = self.chance, self.types
        t = chance.pick(types.usual)
        self.value(t, chance.between(1, 3))
        if chance.flip(0.3):
            self.put(DUP)
            self.store_result(chance.pick(types.above[t]))
        self.store_result(chance.pick(types.above[t]) if chance.flip(0.3) else t)

    def object_drop(self) -> None:
        """Null into a variable, or a reference that nothing uses."""
        t = self.chance.pick(self.types.usual)
        if self.chance.flip(0.3):
            self.value(t, 2)
            self.put(DROP)
        else:
            self.put(NULL, t - FIRST)
            self.store_result(t)

    def object_garbage(self) -> None:
        """A loop whose objects are garbage, nearly all, so that collections become due."""
        chance, types = self.chance, self.types
        trips = self._trips(_MANY)
        if not trips:
            self.object_make()
            return
        self.plan.occurred[Corner.GARBAGE] += 1
        t = chance.pick((*types.structs, *types.families))
        family = types.families.get(t)
        length = None
        if family is not None and chance.flip(0.7):
            length = chance.pick((100, 500, 1000, OUTSIDE, OUTSIDE)) * 8 // family.bytes
        with self.counted(trips):
            if length is not None:
                self.make(t, 0, length)
            else:
                self.make(t, 1)
            if chance.flip(0.3):
                self.store_result(chance.pick(types.above[t]))
            else:
                self.put(DROP)

    def object_hoard(self) -> None:
        """Objects that an array keeps alive: more than a small limit has memory for, less than the
        largest one."""
        trips = self._trips((3, 9, 20, 40))
        if not trips or not self.types.keepers:
            self.object_list()
            return
        self.plan.occurred[Corner.HOARD] += 1
        sizes = [words for words in (2, 8, 30, 100, 500) if trips * words <= _HOARDED]
        self.hoard(trips, (*sizes,))

    def hoard(self, trips: int, words: tuple[int, ...]) -> None:
        """Append a loop that makes objects, each alive in an array; arrays of numbers have elements
        of so many words."""
        chance, types = self.chance, self.types
        holder = chance.pick(types.keepers)
        self.make(holder.array, 1, trips)
        self.hold(holder.array, trips)
        array = self.objects[-1].local
        t = chance.pick(types.makers[holder.element])
        family = types.families.get(t)
        with self.counted(trips) as counter:
            self.put(GET, array)
            self.put(GET, counter)
            if family is None:
                self.make(t, 1)
            else:
                self.make(t, 0, chance.pick(words) * 8 // family.bytes)
            self.put(holder.opcode("set"), holder.immediate)

    # --- linking and reading --------------------------------------------------------------------

    def object_set_field(self) -> None:
        """A value into a field."""
        chance = self.chance
        structs = [fields for fields in self.types.structs.values() if fields]
        if not structs:
            self.object_set_element()
            return
        field = chance.pick(chance.pick(structs))

        def store() -> None:
            self.value(field.type, chance.between(0, 2))
            self.put(FIELD_SET, field.immediate)

        self.present(field.struct, chance.between(0, 2), store)

    def object_set_element(self) -> None:
        """A value into an element."""
        chance = self.chance
        family = chance.pick((*self.types.families.values(),))

        def store() -> None:
            self.value(family.element, chance.between(0, 2))
            self.put(family.opcode("set"), family.immediate)

        self.at_element(family, chance.between(0, 2), store)

    def object_update(self) -> None:
        """Atomic updates of elements, whose former values are dropped or kept."""
        chance = self.chance
        if not self.types.updated:
            self.object_set_element()
            return
        family = chance.pick(self.types.updated)
        for _ in range(chance.between(1, 4)):
            self._update(family, chance.pick(_UPDATES))

    def _update(self, family: Family, name: str) -> None:
        def update() -> None:
            for _ in range(2 if name == _COMPARED else 1):
                self.value(family.element, self.chance.below(3))
            self.put(family.opcode(f"atomic_{name}"))
            if self.chance.flip(0.4):
                self.put(DROP)
            else:
                self.store_result(family.element)

        self.at_element(family, self.chance.below(3), update)

    def object_list(self) -> None:
        """A list, linked in a loop, into a variable."""
        chance, types = self.chance, self.types
        trips = self._trips()
        if not trips or not types.links:
            self.object_set_field()
            return
        self.plan.occurred[Corner.LINKED] += 1
        struct, link = chance.pick(types.links)
        with self.temporary(struct) as head:
            self.put(NULL, struct - FIRST)
            self.put(SET, head)
            with self.counted(trips):
                for field in types.structs[struct]:
                    if field is link:
                        self.put(GET, head)
                    else:
                        self.value(field.type, chance.below(2))
                self.put(NEW_STRUCT, struct - FIRST)
                self.put(SET, head)
            self.put(GET, head)
            if chance.flip(0.5):
                self.put(DUP)
                self.store_result(chance.pick(types.above[struct]))
        self.hold(struct)

    def object_walk(self) -> None:
        """Along a list, which may be a cycle, with a number read or written at each step."""
        chance, types = self.chance, self.types
        trips = self._trips()
        if not trips or not types.links:
            self.object_set_field()
            return
        struct, link = chance.pick(types.links)
        end: Label = []
        with self.temporary(struct) as place:
            self.value(struct, 1)
            self.put(SET, place)
            with self.counted(trips):
                self.put(GET, place)
                self.put(_IS_NULL)
                self.jump(JUMP_IF, end)
                self._visit(place, chance.pick(types.structs[struct]))
                self._advance(place, link, end)
            self.place(end)

    def _visit(self, place: int, field: FieldPlace) -> None:
        """Read or write a field of the struct in a local."""
        self.put(GET, place)
        if self.chance.flip(0.3):
            self.value(field.type, 1)
            self.put(FIELD_SET, field.immediate)
        else:
            self.put(FIELD_GET, field.immediate)
            self.store_result(field.type)

    def _advance(self, place: int, link: FieldPlace, end: Label) -> None:
        """The next struct into the local; to `end` where there is none of its type."""
        self.put(GET, place)
        self.put(FIELD_GET, link.immediate)
        if link.type != link.struct:
            with self.temporary(link.type) as found:
                self.put(SET, found)
                self.put(GET, found)
                self.put(TEST, link.struct - FIRST)
                self.jump(JUMP_UNLESS, end)
                self.put(GET, found)
            self.put(CAST, link.struct - FIRST)
        self.put(SET, place)

    def object_table(self) -> None:
        """An array whose elements a loop sets to new values, then statements that know it."""
        chance = self.chance
        family = chance.pick((*self.types.families.values(),))
        trips = self._trips((2, 3, 5, 8, 17))
        if not trips:
            self.object_set_element()
            return
        self.make(family.array, 1, trips + chance.below(3))
        self.hold(family.array, trips)
        array = self.objects[-1].local
        with self.counted(trips) as counter:
            self.put(GET, array)
            self.put(GET, counter)
            self.value(family.element, 2)
            self.put(family.opcode("set"), family.immediate)

    def object_sweep(self) -> None:
        """A loop through an array of numbers that reads elements, and stores into arrays."""
        chance = self.chance
        of_numbers = [t for t, family in self.types.families.items() if family.element < FIRST]
        one, family = self._known_array(of_numbers, chance.pick(_TRIPS))
        if not one.length or not self._can_repeat(one.length):
            self.object_set_element()
            return
        others = [
            other
            for other in self.objects
            if other.type in of_numbers and other.length >= one.length
        ]
        other = chance.pick(others)
        target = self.types.families[other.type]
        with self.counted(one.length, one.local if chance.flip(0.5) else None) as counter:
            if chance.flip(0.7):
                self._swept(one, counter, family.opcode("get"))
                self.store_result(family.element)
            if chance.flip(0.6):
                self.put(GET, other.local)
                self._index(counter, one.length)
                if target.element == family.element and chance.flip(0.7):
                    self._swept(one, counter, family.opcode("get"))
                    self.leaf(family.element)
                    self.put(chance.weighted(self.catalogue.usual[family.element]).opcode)
                else:
                    self.value(target.element, 1)
                self.put(target.opcode("set"))

    def _swept(self, one: ObjectLocal, counter: int, opcode: int) -> None:
        self.put(GET, one.local)
        self._index(counter, one.length)
        self.put(opcode)

    def _index(self, counter: int, length: int) -> None:
        """Append the counter of a loop of so many iterations, or its distance from the last one;
        where risk is on one of these that leaves the array."""
        if self.is_wild():
            self.put(GET, counter)
            self.const(I64, 1)
            self.put(self.chance.pick((_ADD, _SUB)))
        elif self.chance.flip(0.3):
            self.const(I64, length - 1)
            self.put(GET, counter)
            self.put(_SUB)
        else:
            self.put(GET, counter)

    # --- many elements at once ------------------------------------------------------------------

    def object_fill(self) -> None:
        """A value into a range of elements."""
        one, family = self._known_array([*self.types.families])
        first, count = self._range(one.length)
        self.put(GET, one.local)
        self._bound(first)
        self.value(family.element, 1)
        self._bound(count)
        self.put(family.opcode("fill"), family.immediate)

    def object_copy(self) -> None:
        """A range of elements to another array of the type, or within one array, overlapping."""
        target, family = self._known_array([*self.types.families])
        if self.chance.flip(0.3):
            self.make(family.array, 1, target.length)
            self.hold(family.array, target.length)
        alike = [one for one in self.objects if one.type == target.type]
        source = target if self.chance.flip(0.4) else self.chance.pick(alike)
        least = min(target.length, source.length)
        _, count = self._range(least)
        self.put(GET, target.local)
        self._bound(self.chance.below(target.length - count + 1))
        self.put(GET, source.local)
        self._bound(self.chance.below(source.length - count + 1))
        self._bound(count)
        self.put(family.opcode("copy"), family.immediate)

    def object_transfer(self) -> None:
        """Elements from or to the bytes of the heap."""
        of_numbers = [t for t, family in self.types.families.items() if family.element < FIRST]
        one, family = self._known_array(of_numbers)
        is_load = self.chance.flip(0.5)
        end = self.plan.first_hp if is_load else self.plan.scratch
        _, count = self._range(min(one.length, end // family.bytes))
        self.put(GET, one.local)
        self._bound(self.chance.below(one.length - count + 1))
        if self.is_wild():
            self.put(_SIZE)
            self.const(I64, self.chance.pick((0, 1, count * family.bytes, 8)))
            self.put(_SUB)
        else:
            self.const(I64, self.chance.below(end - count * family.bytes + 1))
        self._bound(count)
        self.put(family.opcode("load" if is_load else "store"))

    def _known_array(
        self, wanted: list[int], length: int | None = None
    ) -> tuple[ObjectLocal, Family]:
        """A local with an array of one of the types, made here where there is none, of that length
        or of any."""
        found = [one for one in self.objects if one.type in wanted]
        if not found:
            t = self.chance.pick(wanted)
            self.hold(t, self.make(t, 1, length))
            found = self.objects[-1:]
        one = self.chance.pick(found)
        return one, self.types.families[one.type]

    def _range(self, length: int) -> tuple[int, int]:
        """The first element and the number of a range in a length."""
        count = self.chance.pick((0, 1, length, self.chance.below(length + 1)))
        count = min(count, length)
        return self.chance.below(length - count + 1), count

    def _bound(self, number: int) -> None:
        """Append an index or a number of elements; where risk is on one that may be too large."""
        if self.is_wild():
            number += self.chance.pick((1, 1, 17, 1 << 32, 1 << 61, MASK[I64] - number))
        self.const(I64, number)

    # --- types ----------------------------------------------------------------------------------

    def object_dispatch(self) -> None:
        """Statements by the type of a reference, as a dynamic language makes them."""
        chance, types = self.chance, self.types
        source = chance.pick((ANY, ANY, ARRAY, *types.structs))
        cases = [t for t in types.below[source] if t not in (ANY, ARRAY)]
        if not cases or self.nesting >= 4:
            self.object_assign()
            return
        end: Label = []
        known = len(self.objects)
        with self.temporary(source) as held:
            self.value(source, 2)
            self.put(SET, held)
            for _ in range(chance.between(1, 4)):
                t = chance.pick(cases)
                following: Label = []
                self.put(GET, held)
                self.put(TEST, t - FIRST)
                self.jump(JUMP_UNLESS, following)
                self.put(GET, held)
                self.put(CAST, t - FIRST)
                if t == I31:
                    self.put(chance.pick(FROM_I31))
                    self.store_result(I32)
                else:
                    self.hold(t)
                    self.block(1)
                    del self.objects[known:]
                self.jump(JUMP, end)
                self.place(following)
        self.place(end)
