# SPDX-License-Identifier: Apache-2.0
"""Operations that may leave: checks, polls, guards, payments."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager

from ferryvm.ir.graph import Constant, FrameState, Operation, Value, Virtual
from ferryvm.ir.headroom import frame_headroom
from ferryvm.ir.loop.poll import poll_costs
from ferryvm.ir.operation import POLL_BUDGET
from ferryvm.isa.emitter import Condition
from ferryvm.isa.numeric import canonical
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import WORD_BYTES, Type
from ferryvm.machine.control import ControlBlock, Status
from ferryvm_backends._llvm import ir
from ferryvm_backends._llvm.arithmetic import WORD, stack_register, word
from ferryvm_backends._llvm.handler import POINTER
from ferryvm_backends.llvm.access import Access
from ferryvm_backends.llvm.context import (
    FORCED_IN,
    HOST_STACK_LIMIT,
    INT32,
    LoweringContext,
    result_type,
    status_constant,
)
from ferryvm_backends.llvm.early_store import runs
from ferryvm_backends.llvm.exit_stub import layout_of
from ferryvm_backends.llvm.symbol import FAILURES, FAST, NEST_WORDS, REASON, SLOW
from ferryvm_backends.llvm.variant import Variant

_RARELY = (1, 1 << 20)
"""Branch weights of a check that fails."""


class SideExits(Access):
    """Lowers what may leave."""

    def __init__(self, shared: LoweringContext, variant: Variant, builder: ir.IRBuilder) -> None:
        super().__init__(shared, variant.body, builder)
        self.variant = variant
        self.early = shared.early(variant.body)
        """The early stores of the body; None: there are none."""

    @contextmanager
    def _rarely(self, p: ir.Value, name: str, onward: ir.Block | None = None) -> Iterator[ir.Block]:
        """A block for what is done only if `p` holds, which is rare, and which has to end it.

        Yields the block where control is otherwise, which is `onward` if that is given; it is also
        where lowering goes on.
        """
        rare = self.function.append_basic_block(name)
        if onward is None:
            onward = self.function.append_basic_block("on")
        self.builder.cbranch(p, rare, onward, _RARELY)
        self.builder.position_at_end(rare)
        yield onward
        self.builder.position_at_end(onward)

    def _leave_if(self, p: ir.Value, state: FrameState, status: Status, **fields: ir.Value) -> None:
        """Go on only if `p` does not hold; else leave with a status."""
        with self._rarely(p, "exit"):
            self._leave(state, status_constant(status), **fields)

    def _leave(self, state: FrameState, status: ir.Value, **fields: ir.Value) -> None:
        """End the block by leaving in a state."""
        for name, value in fields.items():
            self.storage.set_field(self.control, name, value)
        self._write_values(state)
        if state.unpaid:
            fuel = self.builder.add(self.storage.field(self.control, "fuel"), word(state.unpaid))
            self.storage.set_field(self.control, "fuel", fuel)
        where = self.control, self.frame
        if self.early is not None:
            self._store_words(state)
            length = len(state.words)
            parameters = self.body.parameters
            self.shared.writers.leave_bare(
                self.builder, where, parameters, state.pc, status, length
            )
            self._left(status)
            return
        words = self._words(state)
        layout, parameters = layout_of(state), self.body.parameters
        self.shared.writers.leave(self.builder, where, parameters, state.pc, status, layout, words)
        self._left(status)

    def _leave_with_callee(self, state: FrameState) -> None:
        """End the block after a call that has left, in the state of that call."""
        self._write_values(state)
        words = self._words(state) if self.early is None else []
        if self.early is not None:
            self._store_words(state)
        elif words:
            self.shared.writers.write_frame(self.builder, self.frame, layout_of(state), words)
        self._left(self.storage.field(self.control, "status"))

    def _exit_state(self, operation: Operation) -> FrameState:
        """The state that an operation leaves in, without what has been stored before."""
        if self.early is None:
            return operation.exit
        return self.early.states.get(operation, operation.exit)

    def _store_early(self, operation: Operation) -> None:
        """Store the words that are stored in front of an operation."""
        if self.early is not None and operation in self.early.stores:
            self._store_words(self.early.stores[operation])

    def _store_words(self, state: FrameState) -> None:
        """Store the words of a state, here."""
        for place, length in runs(state.words):
            where = self.storage.pointer(self.builder.add(self.frame, word(WORD_BYTES * place)))
            if length > 1:
                self._clear(where, length)
                continue
            value = state.words[place]
            assert value is not None
            slot = self.to_slot(value.word_type, self._in_state(value))
            self.storage.store(slot, where, "stack")

    def _clear(self, where: ir.Value, length: int) -> None:
        """Store so many zero words."""
        parameters = [POINTER, ir.IntType(8), WORD, ir.IntType(1)]
        name, module = "llvm.memset.p0.i64", self.builder.module
        clear = module.intrinsic(name, ir.VoidType(), parameters)
        zero, flag = ir.Constant(ir.IntType(8), 0), ir.Constant(ir.IntType(1), 0)
        self.builder.call(clear, [where, zero, word(WORD_BYTES * length), flag])

    def _write_values(self, state: FrameState) -> None:
        """Write what a state says of statics and heap pointer."""
        for number, value in state.statics:
            slot = self.to_slot(value.word_type, self._in_state(value))
            self.storage.store(slot, self._static(number), "statics")
        if state.heap_pointer is not None:
            self.storage.set_field(self.control, "hp", self._value(state.heap_pointer))

    def _words(self, state: FrameState) -> list[ir.Value]:
        return [self._in_state(w) for w in state.words if w is not None]

    def _in_state(self, value: Value) -> ir.Value:
        """A value of a state; one that has no place in a block is computed here."""
        if isinstance(value, Virtual):
            return self._do_canonical(value, self._value(value.raw))
        return self._value(value)

    def _do_canonicalise(self, operation: Operation, *operands: ir.Value) -> None:
        t = operation.fact(0, Type)
        values = operands[1::2]
        nans = [self.compare(t, Condition.NE, value, value) for value in values]
        with self._rarely(functools.reduce(self.any, nans), "nan") as onward:
            for address, value in zip(operands[::2], values, strict=True):
                where = self.storage.offset(self.heap, address)
                self.storage.store(canonical(self, t, value), where, "heap", 1)
            self.builder.branch(onward)

    def _left(self, status: ir.Value) -> None:
        """Return, having left."""
        if self.body.is_root:
            self.builder.ret(status)
        else:
            self._return(None, has_left=True)

    def _return(self, value: ir.Value | None, has_left: bool) -> None:
        """Return from a function, with its result unless it has left."""
        flag = ir.Constant(INT32, int(has_left))
        if self.body.result is None:
            self.builder.ret(flag)
            return
        pair: ir.Value = ir.Constant(result_type(self.body), ir.Undefined)
        if value is not None:
            pair = self.builder.insert_value(pair, value, 0)
        self.builder.ret(self.builder.insert_value(pair, flag, 1))

    # --- checks -----------------------------------------------------------------------------

    def _do_trap_if(self, operation: Operation, p: ir.Value) -> None:
        if self.variant.has_room and frame_headroom(operation):
            return
        trap = ir.Constant(INT32, int(operation.fact(0, Trap)))
        self._leave_if(p, self._exit_state(operation), Status.TRAP, trap=trap)

    def _do_grow_if(self, operation: Operation, p: ir.Value, wanted: ir.Value) -> None:
        self._leave_if(p, self._exit_state(operation), Status.GROW, wanted=wanted)

    def _do_guard(self, operation: Operation, fails: ir.Value) -> None:
        shared = self.shared
        with self._rarely(fails, "guard"):
            number = shared.guards.index(operation.fact(0, int))
            failures = shared.count(self.storage, FAILURES + number, word(1))
            limit = word(shared.options.guard_limit)
            is_often = self.builder.icmp_unsigned(">=", failures, limit)
            status = self.builder.select(
                is_often, status_constant(Status.GUARD), status_constant(Status.LEAVE)
            )
            self._leave(self._exit_state(operation), status)

    def _do_tell(self, operation: Operation, reason: ir.Value) -> None:
        first = self.shared.nests + NEST_WORDS * operation.fact(0, int)
        is_fast = isinstance(operation.arguments[0], Constant)
        self.shared.count(self.storage, first + (FAST if is_fast else SLOW), word(1))
        if not is_fast:
            where = self.shared.activity_word(self.storage, first + REASON)
            self.storage.store(reason, where, "activity")

    def _do_pay(self, operation: Operation) -> None:
        paid, wanted = operation.fact(0, int), operation.fact(1, int)
        fuel = self.storage.field(self.control, "fuel")
        short = self.builder.icmp_signed("<", fuel, word(wanted))
        self._leave_if(short, self._exit_state(operation), Status.LEAVE)
        self.storage.set_field(self.control, "fuel", self.builder.sub(fuel, word(paid)))

    def _give_up(self, state: FrameState) -> None:
        """Leave at the n-th such place since the region was entered, for tests."""
        where = self.storage.offset(self.control, FORCED_IN)
        rest = self.builder.sub(self.storage.load(where, "control"), word(1))
        self.storage.store(rest, where, "control")
        self._leave_if(self.builder.icmp_signed("==", rest, word(0)), state, Status.LEAVE)

    # --- polls ------------------------------------------------------------------------------

    @functools.cached_property
    def _costs(self) -> dict[Operation, int]:
        return poll_costs(self.body)

    @functools.cached_property
    def _budget(self) -> ir.Value:
        """Where polls are counted down to the next look at the flag.

        That is the first one if the flag is set: else nobody would look where each stay in the code
        is short, or each call of a function in a loop.
        """
        with self.builder.goto_block(
            self.function.blocks[0]
        ):  # the only place where LLVM makes a value of it
            budget = self.builder.alloca(INT32)
            nothing, all_of_it = ir.Constant(INT32, 1), ir.Constant(INT32, POLL_BUDGET)
            first = self.builder.select(self._interrupted(), nothing, all_of_it)
            self.builder.store(first, budget)
        return budget

    def _interrupted(self) -> ir.Value:
        offset = ControlBlock.interrupt.offset  # type: ignore[attr-defined]  # a ctypes field
        where = self.storage.offset(self.control, offset)
        flag = self.builder.load_atomic(where, "monotonic", 4, typ=INT32)
        return self.builder.icmp_unsigned("!=", flag, ir.Constant(INT32, 0))

    def _do_poll(self, operation: Operation) -> None:
        if not self.shared.polls:
            return
        builder = self.builder
        cost = self._costs[operation]
        # There is always some budget, so it does not wrap.
        budget = builder.load(self._budget, typ=INT32)
        rest = builder.sub(budget, ir.Constant(INT32, cost), flags=["nsw"])
        builder.store(rest, self._budget)
        # One that takes more than 1 may pass 0, and then it is the one that looks.
        is_spent = "==" if cost == 1 else "<="
        spent = builder.icmp_signed(is_spent, rest, ir.Constant(INT32, 0))
        with self._rarely(spent, "look") as onward:
            self._look(self._exit_state(operation), onward)

    def _look(self, state: FrameState, onward: ir.Block) -> None:
        """End the block by a look at the flag: leave, or go on elsewhere with a new budget."""
        self.builder.store(ir.Constant(INT32, POLL_BUDGET), self._budget)
        here = self.builder.block
        with self._rarely(self._interrupted(), "exit", onward):
            self._leave(state, status_constant(Status.INTERRUPTED))
        self.builder.position_at_end(here)

    def _do_check_entry(self, operation: Operation) -> None:
        if self.variant.is_inner:
            return
        if operation.fact(0, bool):
            where = self.storage.offset(self.control, HOST_STACK_LIMIT)
            limit = self.storage.load(where, "control")
            deep = self.builder.icmp_unsigned("<", stack_register(self.builder), limit)
            self._leave_if(deep, self._exit_state(operation), Status.LEAVE)
        if self.shared.polls:
            self._leave_if(self._interrupted(), self._exit_state(operation), Status.INTERRUPTED)
