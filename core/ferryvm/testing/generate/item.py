# SPDX-License-Identifier: Apache-2.0
"""Functions for the items of launches, independent by construction, and what they call.

An item reads the statics, the bytes of the heap below `first_hp` and all objects it can reach; it
writes objects that it has made itself, and its own place in what its launch has made for it: an
element of an array, or a word. It updates elements of arrays that all items share, by updates that
commute. Nobody but the launch refers to these. It prints, throws, traps,
allocates objects, and launches items in its turn.

The sections [item…] of the weights list the statements that may be in these functions: what is not
listed there, because it writes statics or the heap, is not.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

from ferryvm.isa.atomic import Update
from ferryvm.isa.type import WORD_BYTES
from ferryvm.testing.generate.body import (
    DROP,
    GET,
    JUMP_UNLESS,
    SET,
    Callee,
    ItemFunction,
    Label,
    ProgramContext,
)
from ferryvm.testing.generate.catalogue import LOADS, OPCODE, STORES
from ferryvm.testing.generate.function import Functions, Made
from ferryvm.testing.generate.literal import I64
from ferryvm.testing.generate.object_type import Family
from ferryvm.testing.generate.reference import FIELD_SET
from ferryvm.testing.generate.statement import Statements
from ferryvm.testing.generate.tables import CodeKind

_ITEM = 0
"""The parameter that is the item."""
_ADD, _SHL, _AND = OPCODE["i64.add"], OPCODE["i64.shl"], OPCODE["i64.and"]
_COMPARISONS = tuple(OPCODE[f"i64.{name}"] for name in ("eq", "eq", "ne", "lt_s", "ge_u"))
_COMMUTING = tuple(update for update in Update if update is not Update.EXCHANGE)
_LENGTHS = (1, 1, 2, 4, 8)
_SOME_ITEMS = (0, 0, 1, 2, 3, 5, 7, 16)


class SharedArray(NamedTuple):
    """An array whose elements all items of a launch update in one way."""

    parameter: int
    family: Family
    update: Update
    length: int
    """A power of two."""


class ItemStatements(Statements):
    """Code of items, and of functions that they call. Each method whose name starts with `item_` is
    a kind of statement."""

    written: tuple[tuple[int, int], ...] = ()
    """Parameters that hold places of the items, and their types: an array, or I64 for words."""
    shared: tuple[SharedArray, ...] = ()
    """Arrays whose elements all items update."""
    is_item = False
    """True if parameter 0 is an item."""

    def condition(self, depth: int) -> None:
        """Now and then a condition that holds for some items and not for others."""
        chance = self.chance
        if not self.is_item or chance.flip(0.6):
            super().condition(depth)
            return
        self.put(GET, _ITEM)
        if chance.flip(0.4):
            self.const(I64, chance.pick((1, 3, 7)))
            self.put(_AND)
        self.const(I64, chance.pick(_SOME_ITEMS))
        self.put(chance.pick(_COMPARISONS))

    # --- places of the items ------------------------------------------------------------------

    def item_put(self) -> None:
        """A value into the item's place."""
        chance = self.chance
        if not self.written:
            self.statement_update()
            return
        parameter, t = chance.pick(self.written)
        if t == I64:
            access = chance.pick(STORES[chance.below(4)])
            self._address(parameter)
            self.value(access.type, chance.between(1, 3))
            self.put(access.opcode, chance.below(WORD_BYTES - access.bytes + 1))
            return
        family = self.types.families[t]
        self.put(GET, parameter)
        self.put(GET, _ITEM)
        self.value(family.element, chance.between(1, 3))
        self.put(family.opcode("set"), family.immediate)

    def item_get(self) -> None:
        """The content of the item's place into a variable."""
        chance = self.chance
        if not self.written:
            self.statement_move()
            return
        parameter, t = chance.pick(self.written)
        if t == I64:
            access = chance.pick(LOADS[chance.below(4)])
            self._address(parameter)
            self.put(access.opcode, chance.below(WORD_BYTES - access.bytes + 1))
            self.store_result(access.type)
            return
        family = self.types.families[t]
        self.put(GET, parameter)
        self.put(GET, _ITEM)
        self.put(family.opcode("get"), family.immediate)
        self.store_result(family.element)

    def item_update(self) -> None:
        """An element updated that other items may update, too."""
        chance = self.chance
        if not self.shared:
            self.item_put()
            return
        array = chance.pick(self.shared)
        self.put(GET, array.parameter)
        if chance.flip(0.6):
            self.put(GET, _ITEM)
        else:
            self.value(I64, 1)
        self.const(I64, array.length - 1)
        self.put(_AND)
        self.value(array.family.element, chance.between(0, 2))
        self.put(array.family.opcode(f"atomic_{array.update.value}"))
        self.put(DROP)

    def item_field(self) -> None:
        """A new struct with a field that is set after it was made."""
        structs = [] if self.plan.objects is None else [*self.types.structs.items()]
        structs = [(t, fields) for t, fields in structs if fields]
        if not structs:
            self.item_put()
            return
        t, fields = self.chance.pick(structs)
        field = self.chance.pick(fields)
        with self.temporary(t) as made:
            self.make(t, 1)
            self.put(SET, made)
            self.put(GET, made)
            self.value(field.type, 1)
            self.put(FIELD_SET, field.immediate)
            self.put(GET, made)
            self.store_result(t)

    def _address(self, parameter: int) -> None:
        """Append the address of the item's word."""
        self.put(GET, parameter)
        self.put(GET, _ITEM)
        self.const(I64, 3)
        self.put(_SHL)
        self.put(_ADD)

    # --- what items leave alone ---------------------------------------------------------------

    def can_launch(self, function: ItemFunction) -> bool:
        """True unless the launch would allocate words of the heap."""
        return all(function.callee.parameters[number] != I64 for number in function.written)

    def value_load(self, t: int, depth: int) -> None:
        """The value at an address where nobody writes while items run."""
        access = self.chance.pick(LOADS[t])
        self.const(I64, self.chance.below(self.plan.first_hp - access.bytes + 1))
        self.put(access.opcode)

    def value_element_load(self, t: int, depth: int) -> None:
        """As `value_load`."""
        self.value_load(t, depth)

    def value_new_block(self, t: int, depth: int) -> None:
        """A variable: items do not allocate on the heap."""
        self.leaf(t)

    def statement_store(self) -> None:
        """A value into the item's place."""
        self.item_put()

    def statement_element_store(self) -> None:
        """A value into the item's place."""
        self.item_put()

    def object_set_field(self) -> None:
        """A value into a new struct."""
        self.item_field()

    def object_set_element(self) -> None:
        """A value into the item's place."""
        self.item_put()

    def trap_load_outside(self) -> int | None:
        """The instruction for unreachable code: bytes past the end may be those of other items."""
        return self.trap_unreachable()

    def trap_signature_mismatch(self) -> int | None:
        """A call of a function that is in the table now, so that it is one for items."""
        if not self.plan.table_size:
            return self.trap_unreachable()
        return super().trap_signature_mismatch()


class ItemFunctions(Functions):
    """The functions for items, and those that they call, which others may call too."""

    body_type = ItemStatements

    def __init__(self, plan: ProgramContext, made: list[Made]) -> None:
        """`plan`: the program's; it gets the functions when they are made."""
        own = dataclasses.replace(
            plan,
            statics=[[] for _ in plan.types],
            callees=[],
            kind=CodeKind.ITEM,
            is_crowded=False,
        )
        super().__init__(own, made)
        self._program = plan

    def make(self, size: int, work: int) -> None:
        """Functions of about so many instructions in all; `work`: instructions of main."""
        chance, plan = self.chance, self.plan
        count = chance.between(1, 3)
        limit = max(12, size // (3 * count))
        if chance.flip(0.6):
            if chance.flip(self.tables.chance["recursive"]):
                self.recursive(1 + chance.below(2), limit)
            else:
                self.plain(limit, max(20, work // 30))
            self.enter_in_table()
        for left in range(count, 0, -1):
            self._item(limit, max(30, work // (8 * left)))  # the later ones may launch others
        self._program.callees += plan.callees
        self._program.table_size = plan.table_size

    def _item(self, limit: int, budget: int) -> None:
        """A function for items."""
        chance, plan = self.chance, self.plan
        parameters, written = [I64], []
        for _ in range(chance.pick((1, 1, 2))):
            written.append((len(parameters), self._written_type()))
            parameters.append(written[-1][1])
        shared = self._shared(len(parameters))
        parameters += (array.family.array for array in shared)
        parameters += (plan.any_type() for _ in range(chance.below(4)))
        shape = tuple(parameters), None, ()
        entry, throws = len(plan.ops), self._throws()
        body = self._function(shape, limit, budget, throws)
        assert isinstance(body, ItemStatements)
        body.is_item, body.written, body.shared = True, tuple(written), shared
        body.writable[I64].remove(_ITEM)
        for number, t in (*written, *((one.parameter, one.family.array) for one in shared)):
            body.readable[t].remove(number)
            body.writable[t].remove(number)
        if plan.items and chance.flip(self.tables.chance["nested_launch"]):
            body.statement_launch()
        if plan.skeletons and chance.flip(self.tables.chance["nested_skeleton"]):
            body.any_skeleton()
        while body.has_capacity:
            body.statement()
        if throws:
            body.statement_throw()
        if body.is_risky and chance.flip(self.tables.chance["trapping_items"]):
            around: Label = []
            body.condition(1)
            body.jump(JUMP_UNLESS, around)
            body.statement_trap()
            body.place(around)
        body.item_put()
        self._leave(body)
        body.settle()
        self._add(entry, shape, body)
        callee = Callee(
            len(self.made),
            self.signature(*shape),
            *shape,
            body.cost,
            body.heap,
            body.is_risky,
            throws,
        )
        lengths = {array.parameter: array.length for array in shared}
        plan.items.append(ItemFunction(callee, frozenset(number for number, _ in written), lengths))

    def _shared(self, first: int) -> tuple[SharedArray, ...]:
        """Arrays for the parameters from a number on."""
        types, chance = self.plan.objects, self.chance
        if types is None or not types.updated or not chance.flip(self.tables.chance["shared"]):
            return ()
        return tuple(
            SharedArray(
                first + number,
                chance.pick(types.updated),
                chance.pick(_COMMUTING),
                chance.pick(_LENGTHS),
            )
            for number in range(chance.pick((1, 1, 2)))
        )

    def _written_type(self) -> int:
        """The type of the places that items write: arrays mostly, words of the heap."""
        types, chance = self.plan.objects, self.chance
        if types is None or chance.flip(self.tables.chance["items_in_words"]):
            return I64
        return chance.pick((*types.families,))
