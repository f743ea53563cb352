# SPDX-License-Identifier: Apache-2.0
"""Control flow except loops: branches, jump tables, exits, calls."""

from __future__ import annotations

from ferryvm.isa.frame import return_immediate
from ferryvm.program import HostImport
from ferryvm.testing.generate.body import (
    DROP,
    JUMP,
    JUMP_IF,
    JUMP_UNLESS,
    SWAP,
    Callee,
    Label,
)
from ferryvm.testing.generate.catalogue import OPCODE
from ferryvm.testing.generate.literal import I32, NUMBER
from ferryvm.testing.generate.loop import Loops

_CALL, _CALL_INDIRECT = OPCODE["call"], OPCODE["call_indirect"]
_RETURN, _SELECT = OPCODE["return"], OPCODE["select"]
_HOST = OPCODE["host"]
_ENTER_JIT, _LEAVE_JIT = OPCODE["enter_jit"], OPCODE["leave_jit"]


class ControlFlow(Loops):
    """Each method whose name starts with `statement_` is a kind of statement."""

    # --- branches ---------------------------------------------------------------------------

    def statement_branch(self) -> None:
        """Statements under a condition, or one of two groups."""
        otherwise: Label = []
        self.condition(self.chance.below(3))
        self.jump(JUMP_IF if self.chance.flip(0.5) else JUMP_UNLESS, otherwise)
        self.block(2)
        if self.chance.flip(0.4):
            end: Label = []
            self.jump(JUMP, end)
            self.place(otherwise)
            self.block(2)
            self.place(end)
        else:
            self.place(otherwise)

    def statement_table(self) -> None:
        """One of several groups of statements, by a jump table."""
        self.arms(lambda: self.block(1))

    def statement_detour(self) -> None:
        """A jump over code that nothing reaches."""
        end: Label = []
        self.jump(JUMP, end)
        for _ in range(self.chance.between(1, 4) if self.chance.flip(0.9) else 140):
            self.put(self.chance.weighted(self.catalogue.producers[self.chance.below(4)]).opcode)
        self.place(end)

    def statement_scope(self) -> None:
        """Statements that are marked as worth compiling."""
        self.put(_ENTER_JIT)
        self.block(2)
        self.put(_LEAVE_JIT)

    def statement_leave(self) -> None:
        """Under a condition, out of a loop, on to its next iteration, or out of the function."""
        chance = self.chance
        if self.exits and chance.flip(0.8):
            self.condition(1)
            self.jump(
                JUMP_IF if chance.flip(0.6) else JUMP_UNLESS, chance.pick(chance.pick(self.exits))
            )
        elif not self.is_main:
            past: Label = []
            self.condition(1)
            self.jump(JUMP_UNLESS if chance.flip(0.5) else JUMP_IF, past)
            self.finish()
            self.place(past)
        else:
            self.statement_branch()

    def finish(self) -> None:
        """Append the function's result and its return."""
        if self.chance.flip(0.2):
            self.leaf(self.plan.any_type())  # operands below the result are dropped
        for t in self.more:
            self.leaf(t)
        if self.result is not None:
            self.value(self.result, 2)
        results = len(self.more) + (self.result is not None)
        self.put(_RETURN, return_immediate(self.parameter_count, results))

    def take(self, more: tuple[int, ...]) -> None:
        """Append code that stores or drops the values of these types below the topmost one."""
        for t in reversed(more):
            self.put(SWAP)
            if self.chance.flip(0.6):
                self.store_result(t)
            else:
                self.put(DROP)

    # --- calls ------------------------------------------------------------------------------

    def _can_call(self, callee: Callee) -> bool:
        """True if a function may be called here."""
        return self._is_welcome(callee) and self.affords(callee.cost + 8, callee.heap)

    def _is_welcome(self, callee: Callee) -> bool:
        """True if the traps and the exceptions of a function are allowed here."""
        return self.is_risky or (not callee.is_risky and callee.throws <= self.caught)

    def call(self, callee: Callee, depth: int) -> None:
        """Append a call with its arguments."""
        exits, self.exits = self.exits, []
        for t in callee.parameters:
            self.value(t, depth - self.chance.below(2))
        self.exits = exits
        place = self.plan.table.get(callee.number)
        if place is None or self.chance.flip(0.6):
            self.charge(callee.cost, callee.heap)
            self.put(_CALL, callee.number)
            self.take(callee.more)
            return
        self.const(I32, place)
        other = self._alternative(callee)
        self.charge(max(callee.cost, other.cost), max(callee.heap, other.heap))
        if other is not callee:
            self.const(I32, self.plan.table[other.number])
            self.condition(1)
            self.put(_SELECT)
        self.put(_CALL_INDIRECT, callee.signature)
        self.take(callee.more)

    def _alternative(self, callee: Callee) -> Callee:
        """Another function that an indirect call could reach as well, or the same one."""
        other = self.chance.pick(self.plan.callees)
        fits = (
            other.signature == callee.signature
            and other.number in self.plan.table
            and self._is_welcome(other)
            and self.affords(other.cost + 8, other.heap)
        )
        return other if fits else callee

    def value_call(self, t: int, depth: int) -> None:
        """The result of a call."""
        found = [
            callee
            for callee in self.plan.callees
            if callee.result is not None and self.plan.fits(callee.result, t)
        ]
        if not found or not self.evaluate(self.chance.pick(found), min(depth, 1)):
            self.value_numeric(t, depth)

    def evaluate(self, callee: Callee, depth: int) -> bool:
        """Append a call of that function for its result; False if it may not be called here."""
        if not self._can_call(callee):
            return False
        self.call(callee, depth)
        return True

    def statement_call(self) -> None:
        """A call for its effects; a result is stored in a variable."""
        found = self.plan.callees
        if not found or not self.perform(self.chance.pick(found)):
            self.statement_update()

    def perform(self, callee: Callee) -> bool:
        """Append a call of that function for its effects; False if it may not be called here."""
        if not self._can_call(callee):
            return False
        self.call(callee, self.chance.below(3))
        if callee.result is not None:
            self.store_result(callee.result)
        return True

    def statement_print(self) -> None:
        """A host call; in no loop of many iterations, since each is slow."""
        if not self.plan.hosts or not self.affords(60) or self.weight > 4:
            self.statement_update()
            return
        self.charge(50)
        if self.plan.own_hosts and self.chance.flip(0.7):
            self._call_host(*self.chance.pick(self.plan.own_hosts))
            return
        number, t = self.chance.pick(self.plan.hosts)
        self.value(t, 2)
        self.put(_HOST, number)

    def _call_host(self, number: int, host: HostImport) -> None:
        """Append a call of a host function; a result is stored in a variable."""
        exits, self.exits = self.exits, []
        for t in host.signature.parameters:
            self.value(NUMBER[t], 2)
        self.exits = exits
        self.put(_HOST, number)
        for t in reversed(host.signature.results):
            self.store_result(NUMBER[t])

    # --- methods of other parts of this class ------------------------------------------------

    def store_result(self, t: int) -> None:
        """Append code that takes a value from the stack into a variable."""
        raise NotImplementedError
