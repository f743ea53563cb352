# SPDX-License-Identifier: Apache-2.0
"""Intentional traps: each method whose name starts with `trap_` generates one."""

from __future__ import annotations

from ferryvm.machine.memory import Limits
from ferryvm.testing.generate import literal
from ferryvm.testing.generate.body import GET, JUMP_IF, JUMP_UNLESS, Label
from ferryvm.testing.generate.catalogue import (
    CONST,
    LOADS,
    OPCODE,
    OPERATORS,
    STORES,
    Guard,
)
from ferryvm.testing.generate.flow import ControlFlow
from ferryvm.testing.generate.literal import BITS, EDGES, I32, I64, MASK, TYPES

LIMITS = Limits(stack=16 << 10, heap=36_000, first_heap=1 << 12, objects=72_000)
"""Under which random programs run: small, so that heaps grow and run out and stacks overflow."""

OBJECT_LIMITS = (LIMITS.objects, 45_000, 900)
"""Bytes of object memory that a campaign gives its programs in turn: two arrays whose elements are
outside, one, or none; with the last one many programs that make objects are collected in the
middle, and many end for want of memory."""

KERNEL_LIMITS = (LIMITS.objects, 45_000, 9_000)
"""The same for programs with kernels, whose items that wait are objects."""

_TRUNCATIONS = tuple(o for o in OPERATORS.values() if o.guard is Guard.RANGE)
_NANS = tuple(
    tuple(bits for bits in EDGES[t] if TYPES[t].is_float and literal.is_nan(t, bits))
    for t in range(4)
)
_SIZE = OPCODE["heap.size"]
_CALL, _CALL_INDIRECT = OPCODE["call"], OPCODE["call_indirect"]
_STATIC_LOAD, _STATIC_STORE = OPCODE["static.load"], OPCODE["static.store"]
_HUGE = (
    LIMITS.heap + 1, 1 << 20, 1 << 32, (1 << 45) - 1, 1 << 45, (1 << 48) - 8, 1 << 48, (1 << 48) + 1,
    1 << 60, 1 << 61, (1 << 61) + 1, 1 << 63, (1 << 64) - 8, (1 << 64) - 1,
)  # fmt: skip
"""Sizes that no heap of a random program has, among them those at which arithmetic would wrap."""


_DEAREST = 10_000
"""Instructions within which main must be done after a recursion that is too deep."""


class Traps(ControlFlow):
    """Causes of traps; the values that they leave are not stored."""

    def statement_trap(self) -> None:
        """A trap, perhaps under a condition."""
        if not self.is_risky:
            self.statement_update()
            return
        around: Label = []
        if not self.is_main or self.chance.flip(self.tables.chance["conditional_trap"]):
            self.condition(1)
            self.jump(JUMP_UNLESS if self.chance.flip(0.5) else JUMP_IF, around)
        result = self.chance.weighted(self.plan.choices.traps)(self)
        if result is not None:
            self.store_result(result)
        self.place(around)

    def trap_divide_by_zero(self) -> int | None:
        """By a zero that may be computed."""
        operator = self.chance.pick(self.catalogue.divisions)
        t = operator.result
        self.value(t, 2)
        if self.chance.flip(0.6):
            self.const(t, 0)
        else:
            self.masked(t, 1)
        self.put(operator.opcode)
        return t

    def trap_divide_overflow(self) -> int | None:
        """The smallest integer by -1, which traps for a signed quotient only."""
        operator = self.chance.pick(self.catalogue.divisions)
        t = operator.result
        self.const(t, 1 << (BITS[t] - 1))
        self.const(t, MASK[t])
        self.put(operator.opcode)
        return t

    def trap_truncate_nan(self) -> int | None:
        """A NaN to an integer."""
        operator = self.chance.pick(_TRUNCATIONS)
        self.const(operator.pops[0], self.chance.pick(_NANS[operator.pops[0]]))
        self.put(operator.opcode)
        return operator.result

    def trap_truncate_overflow(self) -> int | None:
        """A float to an integer that cannot hold it, or just can."""
        operator = self.chance.pick(_TRUNCATIONS)
        past = [bits for bits in operator.bounds if bits not in operator.fitting]
        bits = self.chance.pick(past) if self.chance.flip(0.7) else self._edge(operator)
        self.const(operator.pops[0], bits)
        self.put(operator.opcode)
        return operator.result

    def trap_load_outside(self) -> int | None:
        """From around or past the end of the heap."""
        access = self.chance.pick(LOADS[self.chance.below(4)])
        offset = self.wild_address(access.bytes)
        self.put(access.opcode, offset)
        return access.type

    def trap_store_outside(self) -> int | None:
        """To around or past the end of the heap."""
        access = self.chance.pick(STORES[self.chance.below(4)])
        offset = self.wild_address(access.bytes)
        self.value(access.type, 2)
        self.put(access.opcode, offset)
        return None

    def trap_element_outside(self) -> int | None:
        """At an index that is the length, or past it."""
        chance = self.chance
        vector = chance.pick(self.plan.vectors)
        self.const(I64, vector.address)
        past = (0, 0, 1, 8, 1 << 32, 1 << 61, 1 << 63, -1 - vector.length)
        self.const(I64, (vector.length + chance.pick(past)) & MASK[I64])
        self.scaled((CONST[I64], vector.address), vector.width)
        return I64

    def trap_static_outside(self) -> int | None:
        """A static with a number that there is not."""
        if not self.plan.all_i64:
            return self.trap_load_outside()
        chance = self.chance
        number = chance.pick((0, 0, 0, 1 << 32, 1 << 61, 1 << 63, (1 << 64) - 1))
        is_load = chance.flip(0.5)
        if not is_load:
            self.value(I64, 1)
        if not number:
            self.plan.static_counts.append(len(self.ops))
        self.const(I64, number)
        self.put(_STATIC_LOAD if is_load else _STATIC_STORE)
        return I64 if is_load else None

    def trap_undefined_element(self) -> int | None:
        """A call of the function table's entry that there is not."""
        past = (self.plan.table_size, 1 << 31, MASK[I32], 1 << 16)
        return self._call_entry(self.chance.pick(past))

    def trap_signature_mismatch(self) -> int | None:
        """A call of an entry that may have another signature."""
        return self._call_entry(self.chance.below(max(1, self.plan.table_size)))

    def _call_entry(self, place: int) -> int | None:
        """Append an indirect call with any of the signatures that callees have, or main's."""
        chance = self.chance
        parameters: tuple[int, ...] = ()
        more: tuple[int, ...] = ()
        result, number = None, 0
        if self.plan.callees:
            callee = chance.pick(self.plan.callees)
            if not self.affords(callee.cost + 8, callee.heap):
                return self.trap_load_outside()
            # Should the signature be right after all, the call is paid for.
            dearest = max(self.plan.callees, key=lambda other: other.cost)
            self.charge(dearest.cost, dearest.heap)
            parameters, result, number = callee.parameters, callee.result, callee.signature
            more = callee.more
        for t in parameters:
            self.leaf(t)
        self.const(I32, place)
        self.put(_CALL_INDIRECT, number)
        self.take(more)
        return result

    def trap_unreachable(self) -> int | None:
        """The instruction for unreachable code."""
        self.put(OPCODE["trap"])
        return None

    def trap_halt(self) -> int | None:
        """An end in the middle, with some operands on the stack."""
        for _ in range(self.chance.below(3)):
            self.leaf(self.plan.any_type())
        self.put(OPCODE["halt"])
        return None

    def trap_heap_exhausted(self) -> int | None:
        """An allocation of more than there is, at once or by and by."""
        chance = self.chance
        alloc = OPCODE["heap.alloc"]
        choice = chance.random()
        if choice < 0.5:
            self.const(I64, chance.pick(_HUGE))
            self.put(alloc)
            return I64
        if choice < 0.8:  # exactly as much as there is left, or a little more
            self.const(I64, LIMITS.heap + chance.pick((0, 0, 1, 8)))
            self.put(_SIZE)
            self.put(OPCODE["i64.sub"])
            self.put(alloc)
            return I64
        counter = self.take_counter(I32)
        top = len(self.ops)
        self.const(I64, chance.pick((1000, 2000, 4000)))
        self.put(alloc)
        self.store_result(I64)
        self.put(GET, counter)
        self.const(I32, 1)
        self.put(OPCODE["i32.add"])
        self.put(OPCODE["local.set"], counter)
        self.put(GET, counter)
        self.const(I32, 40)
        self.put(OPCODE["i32.lt_s"])
        self.put(JUMP_IF, top)
        self.charge(40 * 12)
        return None

    def trap_stack_overflow(self) -> int | None:
        """A recursion too deep, or just not."""
        runaway = self.plan.runaway
        is_once = self.is_main and self.weight == 1
        self.settle()
        if runaway is None or not is_once or self.cost + runaway.cost > _DEAREST:
            return self.trap_load_outside()
        self.charge(runaway.cost, runaway.heap)
        self.const(I32, self.chance.pick((20, 50, 100, 1 << 20)))
        for t in runaway.parameters[1:]:
            self.leaf(t)
        self.put(_CALL, runaway.number)
        self.take(runaway.more)
        return runaway.result
