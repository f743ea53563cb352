# SPDX-License-Identifier: Apache-2.0
"""The functions of a random program except main.

They are generated before their callers, so that their costs are known. A recursive function first
reduces its first argument to a few bits, and passes on one less.
"""

from __future__ import annotations

import functools

from ferryvm.isa.frame import HEADER_WORDS
from ferryvm.isa.type import WORD_BYTES
from ferryvm.testing.generate.body import (
    GET,
    JUMP_IF,
    JUMP_UNLESS,
    SET,
    STATIC_SET,
    Callee,
    Label,
    ProgramContext,
)
from ferryvm.testing.generate.catalogue import OPCODE, eqz
from ferryvm.testing.generate.corner import MANY_LOCALS
from ferryvm.testing.generate.literal import I32, I64
from ferryvm.testing.generate.object_type import FIRST
from ferryvm.testing.generate.statement import Statements
from ferryvm.testing.generate.trap import LIMITS

_SUB, _AND = (OPCODE["i32.sub"], OPCODE["i64.sub"]), (OPCODE["i32.and"], OPCODE["i64.and"])
_CALL = OPCODE["call"]
_RUNAWAY_FRAME = 32
"""Words of the runaway function's frame, at least: they bound how deep it gets."""

Shape = tuple[tuple[int, ...], int | None, tuple[int, ...]]
"""Parameters, the result on top, and those below it."""


Made = tuple[int, int, list[int], int]
"""Of a function: entry, signature, types of parameters and locals, number of parameters."""


class Functions:
    """The functions so far, numbered from 1; main is number 0."""

    body_type = Statements

    def __init__(self, plan: ProgramContext, made: list[Made]) -> None:
        """`made`: those there are, which further ones are appended to."""
        self.plan, self.chance, self.tables = plan, plan.chance, plan.tables
        self.made = made

    def signature(
        self, parameters: tuple[int, ...], result: int | None, more: tuple[int, ...] = ()
    ) -> int:
        """The signature's number."""
        known = self.plan.signatures
        results = more if result is None else (*more, result)
        return known.setdefault((parameters, results), len(known))

    def _shape(self, first: int | None = None) -> Shape:
        """Parameters and result; an earlier function's now and then."""
        chance = self.chance
        if self.plan.callees and first is None and chance.flip(0.4):
            earlier = chance.pick(self.plan.callees)
            return earlier.parameters, earlier.result, earlier.more
        head = () if first is None else (first,)
        plan = self.plan
        parameters = tuple(plan.any_type() for _ in range(chance.between(0, 3)))
        result = plan.any_type() if chance.flip(0.8) else None
        more: tuple[int, ...] = ()
        if result is not None and chance.flip(self.tables.chance["several_results"]):
            more = tuple(plan.any_type() for _ in range(chance.between(1, 3)))
        return head + parameters, result, more

    def enter_in_table(self) -> None:
        """Give most functions that have none a place in the function table."""
        plan = self.plan
        for number in range(1, len(self.made) + 1):
            if number not in plan.table and self.chance.flip(0.8):
                plan.table[number] = plan.table_size
                plan.table_size += 1

    # --- functions ----------------------------------------------------------------------------

    def _throws(self) -> frozenset[int]:
        """Tags that a function leaves to its callers: mostly none."""
        chance = self.chance
        if not chance.flip(self.tables.chance["throwing_function"]):
            return frozenset()
        if chance.flip(0.2):
            return frozenset(range(len(self.plan.tags)))
        return frozenset(chance.below(len(self.plan.tags)) for _ in range(2))

    def _function(
        self, shape: Shape, limit: int, budget: int, throws: frozenset[int] = frozenset()
    ) -> Statements:
        plan, chance = self.plan, self.chance
        parameters, result, more = shape
        risky = plan.is_risky and chance.flip(self.tables.chance["risky_function"])
        body = self.body_type(plan, parameters, result, len(plan.ops) + limit, budget, risky)
        body.more, body.caught = more, throws
        for _ in range(chance.between(0, 3)):
            body.new_local(plan.any_type(), is_writable=True)
        for vector in plan.vectors:
            if chance.flip(self.tables.chance["vector_local"] / 2):
                self.cache_address(body, vector.address)
        return body

    @staticmethod
    def cache_address(body: Statements, address: int) -> None:
        """Append code that stores the address in a local of the function."""
        local = body.new_local(I64)
        body.vector_locals[address] = local
        body.const(I64, address)
        body.put(SET, local)

    def plain(self, limit: int, budget: int) -> None:
        """A function that calls only earlier ones."""
        shape = self._shape()
        entry, throws = len(self.plan.ops), self._throws()
        body = self._function(shape, limit, budget, throws)
        body.is_large = True
        if self.plan.is_crowded and self.chance.flip(0.5):
            self.plan.is_crowded = False
            body.many_locals()
        throws_at = entry + int(limit * self.chance.random())
        while body.has_capacity:
            if throws and len(self.plan.ops) >= throws_at:
                body.statement_throw()
                throws_at = body.limit
            body.statement()
        self._leave(body)
        body.settle()
        self._add(entry, shape, body)
        self._offer(len(self.made), shape, body, body.cost, body.heap, throws)

    def _leave(self, body: Statements) -> None:
        """Save some locals in statics, where they are seen at the end, and return."""
        statics = self.plan.statics
        is_crowded = len(body.locals) >= MANY_LOCALS
        for number in range(body.parameter_count, len(body.locals)):
            t = body.locals[number]
            if is_crowded and number not in body.readable[t]:
                continue
            if statics[t] and self.chance.flip(self.tables.chance["save_local"]):
                body.put(GET, number)
                body.put(STATIC_SET, self.chance.pick(statics[t]))
        body.finish()

    def _add(self, entry: int, shape: Shape, body: Statements) -> None:
        self.made.append((entry, self.signature(*shape), body.locals, len(shape[0])))

    def _offer(
        self,
        number: int,
        shape: Shape,
        body: Statements,
        cost: int,
        heap: int,
        throws: frozenset[int],
    ) -> None:
        signature = self.signature(*shape)
        callee = Callee(number, signature, *shape, cost, heap, body.is_risky, throws)
        self.plan.callees.append(callee)

    def recursive(self, group: int, limit: int) -> None:
        """A cycle of `group` functions, each of which calls the next."""
        chance = self.chance
        twice = chance.flip(0.3)
        depth_mask = 3 if twice else chance.pick((3, 7, 7, 15))
        calls = 2 if twice else 1
        levels = (1 << (depth_mask + 1)) - 1 if twice else depth_mask + 1
        first = len(self.made) + 1
        shapes = [self._shape(chance.below(2)) for _ in range(group)]
        throws, bodies = self._throws(), []
        for index, shape in enumerate(shapes):
            following = (index + 1) % group
            entry = len(self.plan.ops)
            body = self._function(shape, limit, 40, throws)
            bodies.append(body)
            counter = shape[0][0]
            body.writable[counter].remove(0)
            self._descend(body, counter, depth_mask)
            for number in range(calls):
                body.limit = len(self.plan.ops) + limit // (2 * calls)
                while body.has_capacity and (number or chance.flip(0.7)):
                    body.statement()
                deeper = functools.partial(
                    self._recur, body, counter, first + following, shapes[following]
                )
                if throws and chance.flip(self.tables.chance["caught_recursion"]):
                    body.catch([*sorted(throws)], deeper)
                else:
                    deeper()
            body.limit = len(self.plan.ops) + limit // 3
            if chance.flip(0.6):
                body.statement()
            self._leave(body)
            body.settle()
            self._add(entry, shape, body)
        cost = max(body.cost for body in bodies) * levels
        heap = max(body.heap for body in bodies) * levels
        risky = any(body.is_risky for body in bodies)
        for index, shape in enumerate(shapes):
            bodies[index].is_risky = risky
            self._offer(first + index, shape, bodies[index], cost, heap, throws)

    def _descend(self, body: Statements, t: int, mask: int) -> None:
        """Append the cut of the counter, which is parameter 0, and the end of the recursion."""
        body.put(GET, 0)
        body.const(t, mask)
        body.put(_AND[t])
        body.put(SET, 0)
        go_on: Label = []
        body.put(GET, 0)
        if self.chance.flip(0.5):
            body.jump(JUMP_IF, go_on) if t == I32 else self._test(body, t, go_on)
        else:
            self._test(body, t, go_on)
        if body.caught and self.chance.flip(0.5):
            body.statement_throw()
        body.finish()
        body.place(go_on)

    def _test(self, body: Statements, t: int, go_on: Label) -> None:
        body.put(eqz(t))
        body.jump(JUMP_UNLESS, go_on)

    def _recur(
        self,
        body: Statements,
        t: int,
        number: int,
        shape: Shape,
    ) -> None:
        """Append the call one level further down, perhaps as an operand."""
        chance = self.chance
        parameters, result, more = shape
        combines = result is not None and chance.flip(0.6) and result < FIRST
        if result is not None and combines:
            body.leaf(result)
        body.put(GET, 0)
        body.const(t, 1)
        body.put(_SUB[t])
        if parameters[0] != t:
            body.put(OPCODE["i32.wrap_i64" if t == I64 else "i64.extend_i32_u"])
        for parameter in parameters[1:]:
            body.value(parameter, chance.below(2))
        body.put(_CALL, number)
        body.take(more)
        if result is not None:
            if combines:
                body.put(chance.weighted(body.catalogue.binary[result]).opcode)
            body.store_result(result)

    def runaway(self) -> None:
        """A function that recurses as deep as its first argument states."""
        chance = self.chance
        shape = self._shape(I32)
        entry = len(self.plan.ops)
        body = self._function(shape, 25, 20)
        body.is_risky = False
        body.writable[I32].remove(0)
        # Frames of all sizes, so that the last one misses the end of the stack by any number of
        # words.
        words = _RUNAWAY_FRAME + chance.below(_RUNAWAY_FRAME)
        while len(body.locals) + HEADER_WORDS < words:
            body.new_local(chance.below(4), is_writable=True)
        go_on: Label = []
        body.put(GET, 0)
        body.jump(JUMP_IF, go_on)
        body.finish()
        body.place(go_on)
        body.statement_update()
        self._recur(body, I32, len(self.made) + 1, shape)
        self._leave(body)
        body.settle()
        self._add(entry, shape, body)
        levels = LIMITS.stack // WORD_BYTES // _RUNAWAY_FRAME + 1
        self.plan.runaway = Callee(
            len(self.made),
            self.signature(*shape),
            *shape,
            body.cost * levels,
            body.heap * levels,
        )
