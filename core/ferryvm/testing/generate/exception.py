# SPDX-License-Identifier: Apache-2.0
"""Exceptions: statements that throw, and statements with handlers around them.

A throw stands inside a statement of its own function that catches it, or where traps are welcome:
then it may go through any number of frames, or be caught by nobody. How many operands wait below a
statement is known once the program is verified, which gives clauses their depths.
"""

from __future__ import annotations

from ferryvm.isa import Type
from ferryvm.program import MAX_TAG_VALUES, Clause, Tag
from ferryvm.testing.generate.body import DROP, JUMP, JUMP_IF, JUMP_UNLESS, Label
from ferryvm.testing.generate.catalogue import OPCODE
from ferryvm.testing.generate.corner import Corners
from ferryvm.testing.generate.literal import I64, NUMBER

TAGS = (
    Tag("nothing"),
    Tag("number", (Type.I64,)),
    Tag("pair", (Type.F64, Type.I32)),
    Tag("each", (Type.I32, Type.F32, Type.I64, Type.F64)),
)
"""The tags of random programs."""

_DEEPEST = 3
"""Statements around a statement with handlers, which are long."""

_THROW, _THROW_RECORD = OPCODE["throw"], OPCODE["throw_record"]


class Exceptions(Corners):
    """Each method whose name starts with `statement_` is a kind of statement."""

    def statement_update(self) -> None:
        """A variable changed by an operation."""
        raise NotImplementedError

    def trap_record(self) -> int | None:
        """A throw of a record: of no tag, or of one, which is caught or not."""
        chance = self.chance
        none = (len(TAGS), (1 << 64) - 1, (1 << 64) - 2, 1 << 63, 1 << 32)
        self.const(I64, chance.below(len(TAGS)) if chance.flip(0.4) else chance.pick(none))
        for _ in range(MAX_TAG_VALUES):
            self.leaf(I64)
        self.put(_THROW_RECORD)
        return None

    def statement_throw(self) -> None:
        """A throw under a condition."""
        chance = self.chance
        tags = range(len(TAGS)) if self.is_risky else sorted(self.caught)
        if not tags:
            self.statement_try()
            return
        stay: Label = []
        self.condition(1)
        self.jump(JUMP_UNLESS if chance.flip(0.5) else JUMP_IF, stay)
        tag = chance.pick(tags)
        for t in TAGS[tag].parameters:
            self.value(NUMBER[t], 1)
        self.put(_THROW, tag)
        self.place(stay)

    def statement_try(self) -> None:
        """Statements with handlers for some tags, for all, or for all with a record."""
        chance = self.chance
        if not self.has_capacity or self.nesting > _DEEPEST:
            self.statement_update()
            return
        tags: list[int | None] = [n for n in range(len(TAGS)) if chance.flip(0.3)]
        if not tags or chance.flip(0.3):
            tags.append(None)
        known = set(range(len(TAGS))) if None in tags else {n for n in tags if n is not None}
        around, self.caught = self.caught, self.caught | known
        start = len(self.ops)
        self.block(2)
        self.statement_throw()  # without one, nothing would get to the handlers
        self.caught = around
        end = len(self.ops)
        done: Label = []
        self.jump(JUMP, done)
        clauses = []
        for tag in tags:
            is_record = tag is None and chance.flip(0.5)
            clauses.append(Clause(start, end, len(self.ops), 0, tag, is_record))
            if tag is not None:
                for t in reversed(TAGS[tag].parameters):
                    self.store_result(NUMBER[t])
            elif is_record and (self.is_risky or len(around) == len(TAGS)) and chance.flip(0.7):
                self.put(_THROW_RECORD)
                continue
            elif is_record:
                for _ in range(MAX_TAG_VALUES):
                    self.put(DROP)
                self.store_result(I64)
            if self.has_capacity and chance.flip(0.4):
                self.block(1)
            self.jump(JUMP, done)
        self.place(done)
        self.plan.clauses += clauses
