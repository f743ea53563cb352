# SPDX-License-Identifier: Apache-2.0
"""Loops that terminate: each counts, by a local, a static or an operand, and the counter is written
by the loop alone, whatever its body does."""

from __future__ import annotations

from ferryvm.testing.generate.body import (
    DROP,
    DUP,
    GET,
    JUMP,
    JUMP_IF,
    JUMP_UNLESS,
    SET,
    STATIC_GET,
    STATIC_SET,
    Label,
)
from ferryvm.testing.generate.catalogue import OPCODE, eqz
from ferryvm.testing.generate.literal import I32, I64, MASK, TYPES
from ferryvm.testing.generate.object_trap import ObjectTraps

_ADD = (OPCODE["i32.add"], OPCODE["i64.add"])
_SUB = (OPCODE["i32.sub"], OPCODE["i64.sub"])
_BELOW = tuple(tuple(OPCODE[f"{t}.{name}"] for name in ("lt_s", "lt_u", "ne")) for t in TYPES[:2])
"""Comparisons that hold while an induction variable with step 1 is below its bound."""
_ABOVE = tuple(OPCODE[f"{t}.gt_s"] for t in TYPES[:2])
_REACHED = tuple(tuple(OPCODE[f"{t}.{name}"] for name in ("ge_s", "ge_u", "eq")) for t in TYPES[:2])
_HOT_TRIPS = 1100
_ITERATION_COST = 25
"""Instructions that one iteration of a loop is estimated at before its body exists."""


class Loops(ObjectTraps):
    """Forms of loops."""

    def statement_loop(self) -> None:
        """A loop; one of several forms."""
        trips = self.chance.weighted(self.tables.trips)
        while trips > 2 and not self.affords(trips * _ITERATION_COST):
            trips //= 3
        if self.is_main and self.weight == 1 and self.affords(_HOT_TRIPS * 13):
            self._loop_hot()
        elif self.nesting >= 4 or not self.affords(trips * _ITERATION_COST):
            self.statement_update()
        else:
            self._any_loop(trips)

    def _any_loop(self, trips: int) -> None:
        choice = self.chance.random()
        if choice < 0.3:
            self._loop_up(trips)
        elif choice < 0.45:
            self._loop_down(trips)
        elif choice < 0.65:
            self._loop_while(trips)
        elif choice < 0.8:
            self._loop_on_stack(trips)
        elif self.is_main and self.weight == 1:
            self._loop_static(trips)
        else:
            self._loop_vector()

    def _body(
        self,
        trips: int,
        next_iteration: Label,
        end: Label,
        on_stack: bool = False,
        statements: int = 3,
    ) -> None:
        exits = self.exits
        self.exits = [(end, next_iteration)] if on_stack else [*exits, (end, next_iteration)]
        with self.repeated(trips):
            self.block(statements)
            self.place(next_iteration)
        self.exits = exits

    def statement_long_loop(self) -> None:
        """A loop of few iterations with a large body."""
        if self.nesting or not self.affords(2 * 10 * _ITERATION_COST):
            self.statement_update()
        else:
            self._loop_while(2, 30)

    def _count(self, get: int, set_: int, number: int, t: int, step: int, trips: int) -> None:
        with self.repeated(trips):
            self.put(get, number)
            self.const(t, step & MASK[t])
            self.put(_ADD[t])
            self.put(set_, number)

    def _loop_up(self, trips: int, bound: int | None = None) -> None:
        """From a start to a bound; the test comes after the body."""
        chance = self.chance
        t = I64 if bound or chance.flip(0.6) else I32
        trips = max(1, trips)
        counter = self.take_counter(t)
        start = (
            0 if bound or chance.flip(0.7) else chance.pick((1, -1, -trips, 1 << 31, -(1 << 31)))
        )
        step = 1 if bound or chance.flip(0.7) else chance.pick((2, 3, -1, 1 << 20))
        self.const(t, start & MASK[t])
        self.put(SET, counter)
        if start == 0 and step == 1 and t == I64:
            self.indexes.append((counter, trips))
        top = len(self.ops)
        next_iteration: Label = []
        end: Label = []
        self._body(trips, next_iteration, end)
        if start == 0 and step == 1 and t == I64:
            self.indexes.pop()
        self._count(GET, SET, counter, t, step, trips)
        with self.repeated(trips):
            self._test(counter, t, (start + trips * step) & MASK[t], start == 0 and step == 1)
            self.put(JUMP_IF, top)
        self.place(end)
        self.give_counter(counter)

    def _test(self, counter: int, t: int, bound: int, is_plain: bool) -> None:
        """Append whether a counter has not reached the bound; `is_plain`: it rises by 1 from 0."""
        chance = self.chance
        if is_plain and chance.flip(0.2):
            self.const(t, bound)
            self.put(GET, counter)
            self.put(_ABOVE[t])
            return
        self.put(GET, counter)
        self.const(t, bound)
        self.put(chance.pick(_BELOW[t]) if is_plain else _BELOW[t][2])

    def _loop_down(self, trips: int) -> None:
        """From a trip count down to 0."""
        t = I32 if self.chance.flip(0.5) else I64
        trips = max(1, trips)
        counter = self.take_counter(t)
        self.const(t, trips)
        self.put(SET, counter)
        top = len(self.ops)
        next_iteration: Label = []
        end: Label = []
        self._body(trips, next_iteration, end)
        with self.repeated(trips):
            self.put(GET, counter)
            self.const(t, 1)
            self.put(_SUB[t])
            self.put(SET, counter)
            self.put(GET, counter)
            if t == I64:
                self.put(eqz(t))
            self.put(JUMP_UNLESS if t == I64 else JUMP_IF, top)
        self.place(end)
        self.give_counter(counter)

    def _loop_while(self, trips: int, statements: int = 3) -> None:
        """The test comes before the body, so there may be no iteration."""
        t = I64 if self.chance.flip(0.6) else I32
        counter = self.take_counter(t)
        self.const(t, 0)
        self.put(SET, counter)
        top = len(self.ops)
        end: Label = []
        next_iteration: Label = []
        with self.repeated(trips + 1):
            self.put(GET, counter)
            self.const(t, trips)
            reached = self.chance.flip(0.6)
            self.put(self.chance.pick((_REACHED if reached else _BELOW)[t]))
            self.jump(JUMP_IF if reached else JUMP_UNLESS, end)
        if t == I64:
            self.indexes.append((counter, trips))
        self._body(trips, next_iteration, end, statements=statements)
        if t == I64:
            self.indexes.pop()
        self._count(GET, SET, counter, t, 1, trips)
        with self.repeated(trips):
            self.put(JUMP, top)
        self.place(end)
        self.give_counter(counter)

    def _loop_on_stack(self, trips: int) -> None:
        """The induction variable is an operand, which is on the stack during the body."""
        t = I32 if self.chance.flip(0.5) else I64
        trips = max(1, trips)
        self.const(t, trips)
        top = len(self.ops)
        next_iteration: Label = []
        end: Label = []
        self._body(trips, next_iteration, end, on_stack=True)
        with self.repeated(trips):
            self.const(t, 1)
            self.put(_SUB[t])
            self.put(DUP)
            if t == I64:
                self.put(eqz(t))
            self.put(JUMP_UNLESS if t == I64 else JUMP_IF, top)
        self.place(end)
        self.put(DROP)

    def _loop_static(self, trips: int) -> None:
        """The induction variable is a static that no other code uses."""
        trips = max(1, trips)
        plan = self.plan
        counter = plan.static_count + plan.counters
        plan.counters += 1
        self.const(I64, 0)
        self.put(STATIC_SET, counter)
        top = len(self.ops)
        next_iteration: Label = []
        end: Label = []
        self._body(trips, next_iteration, end)
        self._count(STATIC_GET, STATIC_SET, counter, I64, 1, trips)
        with self.repeated(trips):
            self.put(STATIC_GET, counter)
            self.const(I64, trips)
            self.put(self.chance.pick(_BELOW[I64]))
            self.put(JUMP_IF, top)
        self.place(end)

    def _loop_hot(self) -> None:
        """So many iterations that the loop gets hot."""
        counter = self.take_counter(I64)
        self.const(I64, 0)
        self.put(SET, counter)
        top = len(self.ops)
        with self.repeated(_HOT_TRIPS):
            local = self.chance.pick(self.writable[I64])
            self.put(GET, local)
            self.leaf(I64)
            self.put(self.chance.weighted(self.catalogue.binary[I64]).opcode)
            self.put(SET, local)
        self._count(GET, SET, counter, I64, 1, _HOT_TRIPS)
        with self.repeated(_HOT_TRIPS):
            self.put(GET, counter)
            self.const(I64, _HOT_TRIPS)
            self.put(_BELOW[I64][0])
            self.put(JUMP_IF, top)
        self.give_counter(counter)

    def _loop_vector(self) -> None:
        """Through all the elements of a vector."""
        vector = self.chance.pick(self.plan.vectors)
        if not self.affords(vector.length * _ITERATION_COST):
            self.statement_element_store()
            return
        self._loop_up(vector.length, vector.length)

    def statement_update(self) -> None:
        """Change a variable by an operation on its value."""
        raise NotImplementedError
