# SPDX-License-Identifier: Apache-2.0
"""Plain statements: computed values are stored in variables, where a fault in them is
observable."""

from __future__ import annotations

from ferryvm.testing.generate.body import DROP, DUP, GET, SET, STATIC_GET, STATIC_SET, SWAP
from ferryvm.testing.generate.catalogue import OPCODE, Guard
from ferryvm.testing.generate.literal import I64
from ferryvm.testing.generate.skeleton import Skeletons

_STATIC_STORE, _NOP = OPCODE["static.store"], OPCODE["nop"]
_LONGEST_SOUP = 14
_DEEPEST = 8
"""The largest depth of nested statements; weights alone would not bound it."""


class Statements(Skeletons):
    """Each method whose name starts with `statement_` is a kind of statement."""

    def block(self, statements: int) -> None:
        if self.nesting >= _DEEPEST:
            self.statement_update()
            return
        known, known_objects = len(self.blocks), len(self.objects)
        self.nesting += 1
        for _ in range(self.chance.between(1, statements)):
            if not self.has_capacity:
                break
            self.statement()
        self.nesting -= 1
        del self.blocks[known:]
        del self.objects[known_objects:]

    def statement(self) -> None:
        """Append a statement of any kind."""
        self.chance.weighted(self.plan.choices.statements)(self)

    # --- where values go --------------------------------------------------------------------

    def store_result(self, t: int) -> None:
        chance = self.chance
        statics = self.plan.statics[t]
        if self.writable[t] and not (statics and chance.flip(0.3)):
            self.put(SET, chance.pick(self.writable[t]))
        elif statics:
            self.put(STATIC_SET, chance.pick(statics))
        else:
            self.put(SET, self.new_local(t, is_writable=True))

    # --- statements -------------------------------------------------------------------------

    def _type(self) -> int:
        """A type, i64 more often than others."""
        choice = int(self.chance.random() * 5)
        return choice if choice < 4 else I64

    def statement_update(self) -> None:
        chance = self.chance
        t = self._type()
        get, set_, places = GET, SET, self.writable[t]
        if self.plan.statics[t] and (not places or chance.flip(0.25)):
            get, set_, places = STATIC_GET, STATIC_SET, self.plan.statics[t]
        if not places:
            self.leaf(t)
            self.store_result(t)
            return
        place = chance.pick(places)
        self.put(get, place)
        operators = self.catalogue.usual if chance.flip(0.6) else self.catalogue.binary
        for _ in range(chance.between(1, 2)):
            operator = chance.weighted(operators[t])
            if chance.flip(0.75):
                self.leaf(t)
            else:
                self.value(t, 2)
            self.put(operator.opcode)
        self.put(set_, place if chance.flip(0.8) else chance.pick(places))

    def statement_set_local(self) -> None:
        """A value into a local."""
        t = self._type()
        self.value(t, self.chance.between(1, 4))
        self.store_result(t)

    def statement_set_static(self) -> None:
        """A value into a static."""
        t = self._type()
        statics = self.plan.statics[t]
        self.value(t, self.chance.between(1, 3))
        if statics:
            self.put(STATIC_SET, self.chance.pick(statics))
        else:
            self.store_result(t)

    def statement_move(self) -> None:
        """One variable into another."""
        t = self._type()
        self.leaf(t)
        self.store_result(t)

    def statement_convert(self) -> None:
        """An operand of one type into a variable of another."""
        operator = self.chance.weighted(self.catalogue.unary[self.chance.below(4)])
        self.operate(operator, 1)
        self.store_result(operator.result)

    def statement_static_store(self) -> None:
        """A value into the static with a number that is computed."""
        if not self.plan.all_i64:
            self.statement_set_static()
            return
        self.value(I64, self.chance.below(3))
        if self.chance.flip(0.3):
            self.const(I64, self.chance.below(self.plan.free_statics))
        else:
            self.masked(I64, self.plan.free_statics - 1)
        self.put(_STATIC_STORE)

    def statement_share(self) -> None:
        """One value into two variables."""
        t = self._type()
        self.value(t, 2)
        self.put(DUP)
        self.store_result(t)
        self.store_result(t)

    def statement_drop(self) -> None:
        """A value that nothing uses."""
        self.value(self._type(), 2)
        self.put(DROP)

    def statement_nop(self) -> None:
        """Nothing."""
        self.put(_NOP)

    def statement_soup(self) -> None:
        """Instructions in no order but that their operands are there; all results are stored."""
        chance, by_operands = self.chance, self.catalogue.by_operands
        stack: list[int] = []
        for _ in range(chance.between(5, _LONGEST_SOUP)):
            choice = chance.random()
            if not stack or choice < 0.42:
                t = self._type() if not stack or chance.flip(0.4) else stack[-1]
                self.leaf(t)
                stack.append(t)
            elif choice < 0.5:
                self.put(DUP)
                stack.append(stack[-1])
            elif choice < 0.56 and len(stack) >= 2:
                self.put(SWAP)
                stack[-2:] = stack[:-3:-1]
            else:
                count = 2 if len(stack) >= 2 and stack[-1] == stack[-2] and choice < 0.85 else 1
                operator = chance.weighted(by_operands[tuple(stack[-count:])])
                if operator.guard is Guard.NONE or self.is_wild():
                    self.put(operator.opcode)
                    stack[-count:] = [operator.result]
        while stack:
            self.store_result(stack.pop())
