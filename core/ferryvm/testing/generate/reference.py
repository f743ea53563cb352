# SPDX-License-Identifier: Apache-2.0
"""Values of references, and numbers out of objects.

A reference may be null and an array may be of any length, so most accesses stand behind a test, or
go to an object that the function has just made: `objects` has the locals with those.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from ferryvm.isa.object import LARGEST_INLINE
from ferryvm.testing.generate.body import (
    DROP,
    DUP,
    GET,
    JUMP,
    JUMP_IF,
    JUMP_UNLESS,
    SET,
    STATIC_GET,
    SWAP,
    Label,
    ObjectLocal,
)
from ferryvm.testing.generate.catalogue import OPCODE, eqz
from ferryvm.testing.generate.heap import HeapTraffic
from ferryvm.testing.generate.literal import I32, I64, MASK
from ferryvm.testing.generate.object_type import (
    ANY,
    ARRAY,
    FIRST,
    I31,
    Family,
    FieldPlace,
    ObjectTypes,
)

NULL, _IS_NULL, _EQ = OPCODE["ref.null"], OPCODE["ref.is_null"], OPCODE["ref.eq"]
TEST, CAST = OPCODE["ref.test"], OPCODE["ref.cast"]
_TO_I31 = OPCODE["ref.i31"]
FROM_I31 = (OPCODE["i31.get_s"], OPCODE["i31.get_u"])
NEW_STRUCT, NEW_ZEROS = OPCODE["struct.new"], OPCODE["struct.new_default"]
FIELD_GET, FIELD_SET = OPCODE["struct.get"], OPCODE["struct.set"]
LENGTH, CHECKED = OPCODE["array.length"], OPCODE["array.index"]
_REMAINDER = OPCODE["i64.rem_u"]

LENGTHS = (0, 1, 1, 2, 3, 3, 4, 5, 7, 8, 8, 9, 16, 17, 33)
_LARGE = 0.06
"""Arrays whose elements stand outside of the object space, or just not."""


class References(HeapTraffic):
    """Each method whose name starts with `reference_` generates a value of a reference type; each
    one that starts with `value_` a number, or gives way where there is none of the type."""

    @property
    def types(self) -> ObjectTypes:
        """The reference types of the program, which has objects."""
        found = self.plan.objects
        assert found is not None
        return found

    def value(self, t: int, depth: int) -> None:
        if t < FIRST:
            super().value(t, depth)
        elif depth <= 0 or not self.has_capacity:
            self.leaf(t)
        else:
            self.chance.weighted(self.tables.references)(self, t, depth - 1)

    def leaf(self, t: int) -> None:
        if t < FIRST:
            super().leaf(t)
            return
        chance, plan = self.chance, self.plan
        choice = chance.random()
        if choice < 0.7:
            found = [local for u in self.types.below[t] for local in self.readable[u]]
            if found:
                self.put(GET, chance.pick(found))
                return
        if choice < 0.95:
            statics = [number for u in self.types.below[t] for number in plan.readable_statics[u]]
            if statics:
                self.put(STATIC_GET, chance.pick(statics))
                return
        structs = [u for u in self.types.makers[t] if u in self.types.structs]
        if structs and choice > 0.4:
            self.put(NEW_ZEROS, chance.pick(structs) - FIRST)
        elif t in (ANY, I31) and choice > 0.3:
            self.const(I32, self.literal(I32))
            self.put(_TO_I31)
        else:
            self.put(NULL, t - FIRST)

    def value_numeric(self, t: int, depth: int) -> None:
        """A computed number; a new object for a reference, which no operator yields."""
        if t < FIRST:
            super().value_numeric(t, depth)
        else:
            self.reference_new(t, depth)

    # --- tests ----------------------------------------------------------------------------------

    @contextlib.contextmanager
    def temporary(self, t: int) -> Iterator[int]:
        """A local of the type that nothing else uses meanwhile."""
        idle = self.idle_references.setdefault(t, [])
        local = idle.pop() if idle else self.new_local(t)
        yield local
        idle.append(local)

    def known(self, t: int) -> list[ObjectLocal]:
        """The locals that hold an object of the type here."""
        return [one for one in self.objects if self.types.fits(one.type, t)]

    def present(
        self,
        t: int,
        depth: int,
        inside: Callable[[], None],
        otherwise: Callable[[], None] | None = None,
    ) -> None:
        """Append a reference and the code of `inside`, which takes it; where it is null, that of
        `otherwise` instead."""
        chance, found = self.chance, self.known(t)
        if found and chance.flip(0.6):
            self.put(GET, chance.pick(found).local)
            inside()
            return
        self.value(t, depth)
        if self.is_wild():
            inside()
            return
        null: Label = []
        end: Label = []
        self.put(DUP)
        self.put(_IS_NULL)
        self.jump(JUMP_IF, null)
        inside()
        self.jump(JUMP, end)
        self.place(null)
        self.put(DROP)
        if otherwise is not None:
            otherwise()
        self.place(end)

    def at_element(
        self,
        family: Family,
        depth: int,
        inside: Callable[[], None],
        otherwise: Callable[[], None] | None = None,
    ) -> None:
        """Append an array and an index, and the code of `inside`, which takes both; where the array
        is null or empty, that of `otherwise` instead."""
        chance, t = self.chance, family.array
        found = [one for one in self.known(t) if one.length]
        if found and chance.flip(0.7):
            one = chance.pick(found)
            self.put(GET, one.local)
            if self.is_wild():
                self.value(I64, 1)
            else:
                self.index(one.length)
            inside()
            return
        end: Label = []
        none: Label = []
        with self.temporary(t) as array:
            self.value(t, depth)
            self.put(SET, array)
            if not self.is_wild():
                self.put(GET, array)
                self.put(_IS_NULL)
                self.jump(JUMP_IF, none)
                self.put(GET, array)
                self.put(LENGTH)
                self.put(eqz(I64))
                self.jump(JUMP_IF, none)
            self.put(GET, array)
            self.value(I64, 1)
            if not self.is_wild():
                self.put(GET, array)
                self.put(LENGTH)
                self.put(_REMAINDER)
                if chance.flip(0.4):
                    self.put(GET, array)
                    self.put(LENGTH)
                    self.put(CHECKED)
        inside()
        self.jump(JUMP, end)
        self.place(none)
        if otherwise is not None:
            otherwise()
        self.place(end)

    # --- making ---------------------------------------------------------------------------------

    def make(self, t: int, depth: int, length: int | None = None) -> int:
        """Append a new object of a type that objects have, or an i31; its length. `length`: of an
        array; None for any."""
        chance, types = self.chance, self.types
        if t == I31:
            self.value(I32, min(depth, 2))
            self.put(_TO_I31)
            return 0
        if t in types.structs:
            if chance.flip(0.3):
                self.put(NEW_ZEROS, t - FIRST)
                return 0
            for field in types.structs[t]:
                self.value(field.type, depth - 1 - chance.below(2))
            self.put(NEW_STRUCT, t - FIRST)
            return 0
        if t not in types.families:  # arrayref in a program that uses no array
            self.put(NULL, t - FIRST)
            return 0
        family = types.families[t]
        if length is None:
            length = self.any_length(family)
        is_filled = chance.flip(0.5)
        if is_filled:
            self.value(family.element, min(depth, 1))
        self.const(I64, length)
        self.put(family.opcode("new" if is_filled else "new_default"), family.immediate)
        return length

    def any_length(self, family: Family) -> int:
        """The length of a new array: mostly small, now and then around the largest one whose
        elements are inside of the object space."""
        chance = self.chance
        if self.weight == 1 and chance.flip(_LARGE):
            most = LARGEST_INLINE // family.bytes
            return most + chance.pick((-1, 0, 1, 1, 8, 40))
        return chance.pick(LENGTHS)

    # --- kinds of references --------------------------------------------------------------------

    def reference_leaf(self, t: int, depth: int) -> None:
        """A variable, null, or an object without content."""
        self.leaf(t)

    def reference_new(self, t: int, depth: int) -> None:
        """A new object."""
        self.make(self.chance.pick(self.types.makers[t]), depth)

    def reference_field(self, t: int, depth: int) -> None:
        """A field of a struct."""
        fields = self.types.fields[t]
        if fields:
            self._from_field(self.chance.pick(fields), t, depth)
        else:
            self.reference_new(t, depth)

    def _from_field(self, field: FieldPlace, t: int, depth: int) -> None:
        self.present(
            field.struct,
            depth,
            lambda: self.put(FIELD_GET, field.immediate),
            lambda: self.leaf(t),
        )

    def reference_element(self, t: int, depth: int) -> None:
        """An element of an array."""
        holders = self.types.holders[t]
        if holders:
            self._from_element(self.chance.pick(holders), t, depth)
        else:
            self.reference_leaf(t, depth)

    def _from_element(self, family: Family, t: int, depth: int) -> None:
        self.at_element(
            family,
            depth,
            lambda: self.put(family.opcode("get"), family.immediate),
            lambda: self.leaf(t),
        )

    def reference_cast(self, t: int, depth: int) -> None:
        """A reference of a supertype, cast; mostly behind a test."""
        chance = self.chance
        source = chance.pick(self.types.above[t])
        self.value(source, depth)
        if source == t or self.is_wild():
            self.put(CAST, t - FIRST)
            return
        other: Label = []
        end: Label = []
        self.put(DUP)
        self.put(TEST, t - FIRST)
        self.jump(JUMP_UNLESS, other)
        self.put(CAST, t - FIRST)
        self.jump(JUMP, end)
        self.place(other)
        self.put(DROP)
        self.leaf(t)
        self.place(end)

    def reference_block(self, t: int, depth: int) -> None:
        """A reference with statements before it, while another one is on the stack."""
        if self.nesting >= 3:
            self.leaf(t)
            return
        exits, self.exits = self.exits, []
        other = self.chance.pick(self.types.usual)
        self.value(other, depth)
        self.block(1)
        self.value(t, depth)
        self.put(SWAP)
        self.store_result(other)
        self.exits = exits

    def reference_select(self, t: int, depth: int) -> None:
        """One of two."""
        self.value_select(t, depth)

    def reference_conditional(self, t: int, depth: int) -> None:
        """One of two, of types whose join the verifier finds."""
        self.value_conditional(t, depth)

    def reference_table(self, t: int, depth: int) -> None:
        """One of several."""
        self.value_table(t, depth)

    def reference_call(self, t: int, depth: int) -> None:
        """The result of a function."""
        self.value_call(t, depth)

    # --- numbers out of objects -----------------------------------------------------------------

    def value_field(self, t: int, depth: int) -> None:
        """A field of a struct."""
        fields = self.types.fields[t]
        if fields:
            self._from_field(self.chance.pick(fields), t, depth)
        else:
            self.value_numeric(t, depth)

    def value_array_element(self, t: int, depth: int) -> None:
        """An element of an array."""
        holders = self.types.holders[t]
        if holders:
            self._from_element(self.chance.pick(holders), t, depth)
        else:
            self.value_numeric(t, depth)

    def value_length(self, t: int, depth: int) -> None:
        """The length of an array."""
        if t != I64:
            self.value_array_element(t, depth)
            return
        array = self.chance.pick((ARRAY, *self.types.families))
        self.present(array, depth, lambda: self.put(LENGTH), lambda: self.const(I64, MASK[I64]))

    def value_identity(self, t: int, depth: int) -> None:
        """A comparison, or a test for null or for a type."""
        if t != I32:
            self.value_field(t, depth)
            return
        chance, types = self.chance, self.types
        of = chance.pick(types.usual)
        self.value(of, depth)
        choice = chance.random()
        if choice < 0.35:
            self.value(chance.pick(types.below[of] if chance.flip(0.6) else types.usual), depth)
            self.put(_EQ)
        elif choice < 0.5:
            self.put(_IS_NULL)
        else:
            self.put(TEST, chance.pick(types.usual) - FIRST)

    def value_i31(self, t: int, depth: int) -> None:
        """The integer of a reference without memory."""
        if t != I32:
            self.value_length(t, depth)
            return
        get = self.chance.pick(FROM_I31)
        self.present(I31, depth, lambda: self.put(get), lambda: self.leaf(t))

    # --- methods of other parts of this class ---------------------------------------------------

    def store_result(self, t: int) -> None:
        """Append code that takes a value from the stack into a variable."""
        raise NotImplementedError

    def value_call(self, t: int, depth: int) -> None:
        """The result of a call."""
        raise NotImplementedError
