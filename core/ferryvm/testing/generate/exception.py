# SPDX-License-Identifier: Apache-2.0
"""Exceptions: statements that throw, and statements with handlers around them.

A throw is inside a statement of its own function that catches it, or in a function whose callers
catch it or pass it on to theirs. Where traps are allowed it may be uncaught. The number of operands
below a statement is known once the program is verified, which gives clauses their depths.
"""

from __future__ import annotations

from collections.abc import Callable

from ferryvm.program import MAX_TAG_VALUES, Clause
from ferryvm.testing.generate.body import (
    DROP,
    GET,
    JUMP,
    JUMP_IF,
    JUMP_UNLESS,
    SET,
    Callee,
    Corner,
    Label,
)
from ferryvm.testing.generate.catalogue import OPCODE
from ferryvm.testing.generate.chance import Chance
from ferryvm.testing.generate.corner import Corners
from ferryvm.testing.generate.literal import F32, F64, I32, I64
from ferryvm.testing.generate.object_type import ANY, FIRST, ObjectTypes

TAGS: tuple[tuple[int, ...], ...] = ((), (I64,), (F64, I32), (I32, F32, I64, F64))
"""The values of each tag of a random program without objects, by type."""
_WITH_REFERENCES = 0.6
"""Programs with objects in which tags with references come after these."""

_DEEPEST = 3
"""Statements around a statement with handlers, which are long."""

_HELD = 20
"""Instructions that statements may take while a record waits."""

_THROW, _THROW_RECORD = OPCODE["throw"], OPCODE["throw_record"]


def tags(chance: Chance, objects: ObjectTypes | None) -> tuple[tuple[int, ...], ...]:
    """The values of each tag of a program, by type."""
    if objects is None or not chance.flip(_WITH_REFERENCES):
        return TAGS
    more = []
    for _ in range(chance.between(1, 2)):
        types = [chance.pick(objects.usual)]
        for _ in range(chance.below(MAX_TAG_VALUES)):
            types.append(chance.pick(objects.usual) if chance.flip(0.5) else chance.below(FIRST))
        more.append(tuple(types))
    return (*TAGS, *more)


class Exceptions(Corners):
    """Each method whose name starts with `statement_` is a kind of statement."""

    def statement_update(self) -> None:
        """A variable changed by an operation."""
        raise NotImplementedError

    def trap_record(self) -> int | None:
        """A throw of a record: of no tag, or of one, which is caught or not."""
        chance = self.chance
        for _ in range(self.plan.record_references):
            self.value(ANY, 1)
        count = len(self.plan.tags)
        none = (count, (1 << 64) - 1, (1 << 64) - 2, 1 << 63, 1 << 32)
        self.const(I64, chance.below(count) if chance.flip(0.4) else chance.pick(none))
        for _ in range(MAX_TAG_VALUES):
            self.leaf(I64)
        self.put(_THROW_RECORD)
        return None

    def statement_throw(self) -> None:
        """A throw under a condition."""
        chance = self.chance
        tags = range(len(self.plan.tags)) if self.is_risky else sorted(self.caught)
        if not tags:
            self.statement_try()
            return
        past: Label = []
        self.condition(1)
        self.jump(JUMP_UNLESS if chance.flip(0.5) else JUMP_IF, past)
        tag = chance.pick(tags)
        for t in self.plan.tags[tag]:
            self.value(t, 1)
        self.put(_THROW, tag)
        self.place(past)

    def statement_try(self) -> None:
        """Statements with handlers for some tags, for all, or for all with a record."""
        chance = self.chance
        if not self.has_capacity or self.nesting > _DEEPEST:
            self.statement_update()
            return
        if self.plan.record_references and chance.flip(0.5):
            # Inside of handlers for all tags, where a record may be thrown again.
            every: list[int | None] = [*range(len(self.plan.tags))]
            self.catch(
                every if chance.flip(0.7) else [None],
                lambda: self.catch([None], self._throwing_block, records=0.9),
            )
            return
        tags: list[int | None] = [n for n in range(len(self.plan.tags)) if chance.flip(0.3)]
        if not tags or chance.flip(0.3):
            tags.append(None)
        self.catch(tags, self._throwing_block)

    def _throwing_block(self) -> None:
        self.block(2)
        self.statement_throw()  # without one, the handlers would be unreachable

    def perform(self, callee: Callee) -> bool:
        """Append a call for its effects, with handlers for the exceptions that nothing around
        catches."""
        tags = self._left_to(callee)
        if not tags:
            return super().perform(callee)
        self.catch(tags, lambda: super(Exceptions, self).perform(callee))
        return True

    def evaluate(self, callee: Callee, depth: int) -> bool:
        """Append a call for its result, with handlers for the exceptions that nothing around
        catches."""
        tags = self._left_to(callee)
        if not tags:
            return super().evaluate(callee, depth)
        exits, self.exits = self.exits, []  # operands may be on the stack
        self.catch(
            tags, lambda: super(Exceptions, self).evaluate(callee, depth), result=callee.result
        )
        self.exits = exits
        return True

    def _left_to(self, callee: Callee) -> list[int | None]:
        """Tags for the handlers of a call; none if it needs none, or cannot be made."""
        chance, thrown = self.chance, callee.throws - self.caught
        is_impossible = callee.is_risky and not self.is_risky
        if not thrown or is_impossible or not self.affords(callee.cost + 8, callee.heap):
            return []
        if self.is_risky and chance.flip(0.3):
            return []
        tags: list[int | None] = [*sorted(thrown)]
        if chance.flip(0.3):
            tags = [None] if chance.flip(0.5) else [*tags, None]
        return tags

    def catch(
        self,
        tags: list[int | None],
        inside: Callable[[], object],
        result: int | None = None,
        records: float = 0.5,
    ) -> None:
        """Append the code of `inside`, with handlers for these tags; None is one for all.

        `result`: the type of the value that `inside` and each handler leave; `records`: the
        probability with which a handler for all gets a record.
        """
        chance = self.chance
        count = len(self.plan.tags)
        known = frozenset(range(count) if None in tags else (n for n in tags if n is not None))
        around, self.caught = self.caught, self.caught | known
        start = len(self.ops)
        inside()
        self.caught = around
        end = len(self.ops)
        done: Label = []
        self.jump(JUMP, done)
        clauses = []
        for tag in tags:
            is_record = tag is None and chance.flip(records)
            clauses.append(Clause(start, end, len(self.ops), 0, tag, is_record))
            if tag is not None:
                for t in reversed(self.plan.tags[tag]):
                    self.store_result(t)
                if any(t >= FIRST for t in self.plan.tags[tag]):
                    self.plan.occurred[Corner.CAUGHT] += 1
            elif is_record and (self.is_risky or len(around) == count) and chance.flip(0.7):
                self._throw_again()
                continue
            elif is_record:
                for _ in range(MAX_TAG_VALUES):
                    self.put(DROP)
                self.store_result(I64)
                for _ in range(self.plan.record_references):
                    self.store_result(ANY)
            if self.has_capacity and chance.flip(0.4):
                self.block(1)
            if result is not None:
                self.leaf(result)
            self.jump(JUMP, done)
        self.place(done)
        self.limit += len(self.ops) - end  # handlers, which rarely run, take nothing from the rest
        self.plan.clauses += clauses

    def _throw_again(self) -> None:
        """Append a throw of the record on the stack; in a program with references perhaps after
        statements, while the record waits there or in locals."""
        references = self.plan.record_references
        if references and self.chance.flip(0.7):
            self.plan.occurred[Corner.RECORD] += 1
            types = [ANY] * references + [I64] * (1 + MAX_TAG_VALUES)
            held = [self.new_local(t) for t in types] if self.chance.flip(0.5) else []
            for local in reversed(held):
                self.put(SET, local)
            exits, self.exits = self.exits, []  # operands may be on the stack
            self.limit += _HELD
            self.block(1)
            self.exits = exits
            for local in held:
                self.put(GET, local)
        self.put(_THROW_RECORD)
