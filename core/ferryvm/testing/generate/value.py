# SPDX-License-Identifier: Apache-2.0
"""Code that yields a value: literals, variables, operators, selects, arms that join."""

from __future__ import annotations

from collections.abc import Callable

from ferryvm.isa.type import from_float
from ferryvm.testing.generate import literal
from ferryvm.testing.generate.body import (
    DUP,
    GET,
    JUMP,
    JUMP_IF,
    JUMP_UNLESS,
    STATIC_GET,
    SWAP,
    Body,
    Label,
)
from ferryvm.testing.generate.catalogue import OPCODE, Guard, Operator, eqz
from ferryvm.testing.generate.literal import BITS, F32, I32, I64, MASK

_SELECT, _NOP, _TABLE = OPCODE["select"], OPCODE["nop"], OPCODE["jump_table"]
_AND = (OPCODE["i32.and"], OPCODE["i64.and"])
_REMAINDER = (OPCODE["i32.rem_s"], OPCODE["i64.rem_s"])
_OR = (OPCODE["i32.or"], OPCODE["i64.or"])
_BITS = (OPCODE["i32.reinterpret_f32"], OPCODE["i64.reinterpret_f64"])
_STATIC_LOAD = OPCODE["static.load"]
_FROM_UNSIGNED = {t: OPCODE[f"{literal.TYPES[t]}.convert_i32_u"] for t in (F32, literal.F64)}
_ADD_FLOAT = {t: OPCODE[f"{literal.TYPES[t]}.add"] for t in (F32, literal.F64)}


class Values(Body):
    """Each method whose name starts with `value_` generates a value of a type."""

    def value(self, t: int, depth: int) -> None:
        if depth <= 0 or not self.has_capacity:
            self.leaf(t)
        else:
            self.chance.weighted(self.plan.choices.values)(self, t, depth - 1)

    def leaf(self, t: int) -> None:
        kind = self.chance.weighted(self.tables.leaf)
        if kind == "local" and self.readable[t]:
            self.put(GET, self.chance.pick(self.readable[t]))
        elif kind == "static" and self.plan.readable_statics[t]:
            self.put(STATIC_GET, self.chance.pick(self.plan.readable_statics[t]))
        else:
            self.const(t, self.literal(t))

    def literal(self, t: int) -> int:
        """Bits of a literal of the type."""
        if t >= F32 and self.chance.flip(0.3):  # edges alone end in NaN, where nothing shows
            return literal.ordinary(self.chance, t)
        return self.chance.weighted(self.tables.literal)(self.chance, t)

    def masked(self, t: int, mask: int, depth: int = 1) -> None:
        """Append code that yields an integer from 0 to `mask`, which is all ones."""
        self.value(t, depth)
        self.const(t, mask)
        self.put(_AND[t])

    def condition(self, depth: int) -> None:
        chance = self.chance
        choice = chance.random()
        if choice < 0.6:
            t = chance.below(4)
            self.related_or_not(chance.weighted(self.catalogue.comparisons[t]), depth)
        elif choice < 0.8:  # some bits, or a remainder
            t = I64 if chance.flip(0.6) else I32
            self.value(t, depth)
            self.const(t, chance.pick((1, 3, 7, 10, 1 << (BITS[t] - 1))))
            self.put(chance.pick((_AND, _AND, _REMAINDER))[t])
            if chance.flip(0.4):
                self.const(t, chance.below(3))
                self.put(chance.weighted(self.catalogue.comparisons[t]).opcode)
            elif t == I64 or chance.flip(0.5):
                self.put(eqz(t))
        else:
            self.value(I32, depth)

    # --- kinds of values --------------------------------------------------------------------

    def value_leaf(self, t: int, depth: int) -> None:
        """A literal or a variable."""
        self.leaf(t)

    def value_numeric(self, t: int, depth: int) -> None:
        """Any instruction of the table that computes one."""
        self.operate(self.chance.weighted(self.catalogue.producers[t]), depth)

    def operate(self, operator: Operator, depth: int) -> None:
        """Append an operator with operands, prevented from trapping unless risk is on."""
        guard = operator.guard
        if guard is not Guard.NONE and not self.is_wild():
            self._guarded(operator, depth)
            return
        # The deeper operand comes first; either may be the larger tree.
        for t in operator.pops[:-1]:
            self.value(t, depth - int(self.chance.random() * 3))
        if operator.is_shift and self.chance.flip(0.5):
            self.const(operator.pops[1], self.chance.pick(literal.SHIFTS[operator.pops[1]]))
        else:
            self.value(operator.pops[-1], depth - int(self.chance.random() * 3))
        self.put(operator.opcode)

    def _guarded(self, operator: Operator, depth: int) -> None:
        chance = self.chance
        if operator.guard is Guard.DIVISOR:
            self._guarded_division(operator, depth)
        elif operator.guard is Guard.RANGE:
            (t,) = operator.pops
            if chance.flip(0.5):
                self.const(t, chance.pick(operator.fitting))
            else:
                self.masked(I32, 0x7F_FFFF if chance.flip(0.5) else 0x7F, depth)
                self.put(_FROM_UNSIGNED[t])
                fraction = chance.pick((0.0, 0.5, 0.25, -0.75, 0.875))
                self.const(t, from_float(literal.TYPES[t], fraction))
                self.put(_ADD_FLOAT[t])
            self.put(operator.opcode)
        elif operator.guard is Guard.OVERFLOW:
            t = operator.result
            half = MASK[t] >> (BITS[t] // 2 + 1)  # the product of two of them fits
            self.masked(t, half, depth)
            self.masked(t, half, depth - 1)
            self.put(operator.opcode)
        else:
            self.leaf(operator.result)

    def _guarded_division(self, operator: Operator, depth: int) -> None:
        chance, t = self.chance, operator.result
        if not operator.overflows and chance.flip(0.15):
            self.const(t, 1 << (BITS[t] - 1))  # by -1 it has a remainder, but no quotient
            self.const(t, chance.pick((MASK[t], MASK[t], 1, MASK[t] - 1)))
            self.put(operator.opcode)
            return
        self.value(t, depth)
        choice = chance.random()
        if choice < 0.25:
            # An odd dividend is not the smallest integer, the one that -1 does not divide.
            self.const(t, 1)
            self.put(_OR[t])
            self.const(t, MASK[t])
        elif choice < 0.7:
            bits = 1 << chance.below(BITS[t]) if chance.flip(0.4) else self.literal(t)
            self.const(t, bits if bits not in (0, MASK[t]) else 1 << (BITS[t] - 1))
        else:
            self.value(t, depth - 1)
            self.const(t, 1)
            self.put(_OR[t])
            self.const(t, MASK[t] >> 1)
            self.put(_AND[t])
        self.put(operator.opcode)

    def value_related(self, t: int, depth: int) -> None:
        """An operator on operands that lie close together."""
        self.related(self.chance.pick(self.catalogue.any_binary[t]))

    def value_bits(self, t: int, depth: int) -> None:
        """The bits of a float as an integer: only there is one NaN another than the next."""
        if t >= F32:
            self.value_numeric(t, depth)
            return
        if self.chance.flip(0.4):
            self.value_edge(t + F32, depth)
        else:
            self.value(t + F32, depth)
        self.put(_BITS[t])

    def value_edge(self, t: int, depth: int) -> None:
        """An operator on literals at which its behaviour may change."""
        chance = self.chance
        operator = chance.pick(self.catalogue.any_unary[t])
        bits = self._edge(operator)
        if operator.guard is Guard.RANGE and not self.is_wild() and bits not in operator.fitting:
            bits = chance.pick(operator.fitting)
        elif operator.guard is Guard.UNKNOWN and not self.is_wild():
            self.leaf(t)
            return
        self.const(operator.pops[0], bits)
        self.put(operator.opcode)

    def _edge(self, operator: Operator) -> int:
        """Bits of an operand for a unary operator."""
        if operator.edges and self.chance.flip(0.7):
            return self.chance.pick(operator.edges)
        return literal.edge(self.chance, operator.pops[0])

    def is_wild(self) -> bool:
        """True if an instruction that could trap is left unguarded."""
        return self.is_risky and not self.chance.flip(self.tables.chance["guarded"])

    def related_or_not(self, operator: Operator, depth: int) -> None:
        """Append an operator, its operands close together now and then."""
        if self.chance.flip(0.3):
            self.related(operator)
        else:
            self.operate(operator, depth)

    def related(self, operator: Operator) -> None:
        """Append a binary operator that cannot trap, with operands that lie close together."""
        chance, t = self.chance, operator.pops[0]
        if operator.is_shift:
            self.leaf(t)
            self.const(t, chance.pick(literal.SHIFTS[t]))
        elif chance.flip(0.35):
            self.leaf(t)
            self.put(DUP)
        elif t >= F32 and chance.flip(0.3):
            zeros = literal.ZEROS[t]
            self.const(t, chance.pick(zeros))
            self.const(t, chance.pick(zeros if chance.flip(0.6) else literal.NANS[t]))
        else:
            bits = literal.edge(chance, t)
            self.const(t, bits)
            self.const(t, literal.near(chance, t, bits))
        self.put(operator.opcode)

    def value_double(self, t: int, depth: int) -> None:
        """One value, as both operands."""
        self.value(t, depth)
        self.put(DUP)
        self.put(self.chance.weighted(self.catalogue.binary[t]).opcode)

    def value_exchange(self, t: int, depth: int) -> None:
        """An operator whose operands were computed in the opposite order."""
        operator = self.chance.weighted(self.catalogue.binary[t])
        self.value(t, depth)
        self.value(t, depth - 1)
        self.put(SWAP)
        self.put(operator.opcode)

    def value_select(self, t: int, depth: int) -> None:
        """One of two."""
        self.value(t, depth - 1)
        self.value(t, depth - 1)
        self.condition(depth - 1)
        self.put(_SELECT)

    def value_conditional(self, t: int, depth: int) -> None:
        """One of two, by a branch: both arms come together with the value on the stack."""
        otherwise: Label = []
        end: Label = []
        self.condition(depth - 1)
        self.jump(JUMP_IF if self.chance.flip(0.5) else JUMP_UNLESS, otherwise)
        self.value(t, depth)
        self.jump(JUMP, end)
        self.place(otherwise)
        self.value(t, depth - 1)
        self.place(end)

    def value_table(self, t: int, depth: int) -> None:
        """One of several, by a jump table."""
        self.arms(lambda: self.value(t, depth - 1))

    def arms(self, arm: Callable[[], None]) -> None:
        """Append a jump table with an arm at each label, generated by `arm`."""
        chance = self.chance
        count = chance.between(0, 4)
        if chance.flip(0.7):
            self.masked(I32, 7 if count > 2 else 3)
        else:
            self.value(I32, 1)
        self.put(_TABLE, count)
        places: list[Label] = [[] for _ in range(chance.between(1, count + 1))]
        for number in range(count + 1):
            self.jump(JUMP, places[number] if number < len(places) else chance.pick(places))
        end: Label = []
        for place in places:
            self.place(place)
            arm()
            if place is not places[-1]:
                self.jump(JUMP, end)
        self.place(end)

    def value_block(self, t: int, depth: int) -> None:
        """A value with statements before it, while other operands are on the stack."""
        if self.nesting >= 3:
            self.leaf(t)
            return
        exits, self.exits = self.exits, []  # the stack differs from that at those points
        if depth > 0 and self.chance.flip(0.5):
            operator = self.chance.weighted(self.catalogue.binary[t])
            self.leaf(t)
            self.block(1)
            self.value(t, depth)
            self.put(operator.opcode)
        else:
            self.block(1)
            self.value(t, depth)
        self.exits = exits

    def value_static_load(self, t: int, depth: int) -> None:
        """The static with a number that is computed."""
        if t != I64 or not self.plan.all_i64:
            self.leaf(t)
            return
        if self.chance.flip(0.3):
            self.const(I64, self.chance.below(self.plan.static_count))
        else:
            self.masked(I64, self.plan.free_statics - 1)
        self.put(_STATIC_LOAD)

    def value_nop(self, t: int, depth: int) -> None:
        """A value, with nothing in between."""
        self.put(_NOP)
        self.value(t, depth)
        self.put(_NOP)
