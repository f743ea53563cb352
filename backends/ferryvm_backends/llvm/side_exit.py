# SPDX-License-Identifier: Apache-2.0
"""Operations that may leave: checks, polls, guards, payments."""

from __future__ import annotations

import functools

from ferryvm.ir.graph import Constant, FrameState, Operation, Terminator, Value, Virtual
from ferryvm.ir.headroom import frame_headroom
from ferryvm.ir.passes.pipeline import has_groups
from ferryvm.isa.emitter import Condition
from ferryvm.isa.numeric import canonical
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import WORD_BYTES, Type
from ferryvm.machine.control import Status
from ferryvm_backends._llvm import ir
from ferryvm_backends._llvm.arithmetic import WORD, word
from ferryvm_backends._llvm.handler import POINTER
from ferryvm_backends.llvm.context import (
    FIRST_TAG,
    FORCED_IN,
    INT32,
    LEFT,
    THROWN,
    result_type,
    status_constant,
)
from ferryvm_backends.llvm.early_store import MANY_IN_GROUPS, MANY_WORDS, runs
from ferryvm_backends.llvm.exit_stub import layout_of
from ferryvm_backends.llvm.function import FunctionContext
from ferryvm_backends.llvm.group_record import GroupRecords
from ferryvm_backends.llvm.group_store import GroupStores
from ferryvm_backends.llvm.symbol import FAILURES, FAST, NEST_WORDS, REASON, SLOW


class SideExits:
    """Lowers operations that may leave, and emits exits for other parts."""

    def __init__(self, function: FunctionContext) -> None:
        self.function, self.shared, self.body = function, function.shared, function.body
        self.builder, self.storage = function.builder, function.storage
        self.control = function.control
        self.records = GroupRecords(function)
        self._groups = GroupStores(self.body)
        many = MANY_IN_GROUPS if has_groups(self.body) else MANY_WORDS
        is_short = self._groups.words(self.body) <= many
        self.early = None if is_short else self.shared.early(self.body)
        """The early stores of the body; None: there are none."""

    def leave_if(self, p: ir.Value, state: FrameState, status: Status, **fields: ir.Value) -> None:
        """Go on only if `p` does not hold; else leave with a status."""
        with self.function.rarely(p, "exit"):
            self.leave(state, status_constant(status), **fields)

    def throw(self, end: Terminator) -> None:
        """End the block by leaving where something is thrown: a caller may catch it."""
        tag, place = end.fact(0, int), end.fact(1, int)
        how = LEFT
        if self.shared.catches:
            how = FIRST_TAG + tag
            where = self.builder.add(self.function.frame, word(WORD_BYTES * place))
            self.storage.store(where, self.storage.offset(self.control, THROWN), "control")
        self._leave(self.exit_state(end), status_constant(Status.LEAVE), how)

    def leave(self, state: FrameState, status: ir.Value, **fields: ir.Value) -> None:
        """End the block by leaving in a state."""
        for name, value in fields.items():
            self.storage.set_field(self.control, name, value)
        self._leave(state, status, LEFT)

    def _leave(self, state: FrameState, status: ir.Value, how: int) -> None:
        self._write_values(state)
        if state.unpaid:
            fuel = self.builder.add(self.storage.field(self.control, "fuel"), word(state.unpaid))
            self.storage.set_field(self.control, "fuel", fuel)
        where = self.control, self.function.frame
        if self.early is not None:
            self._store_words(state)
            length = len(state.words)
            parameters = self.body.header_of(state)
            self.shared.writers.leave_bare(
                self.builder, where, parameters, state.pc, status, length
            )
        else:
            words = self._words(state)
            layout, parameters = layout_of(state), self.body.header_of(state)
            writers = self.shared.writers
            writers.leave(self.builder, where, parameters, state.pc, status, layout, words)
        finish = functools.partial(self._return_status, how=ir.Constant(INT32, how))
        if state.phase is None:
            finish(status)
        else:
            values = [self._in_state(value) for value in state.phase.values]
            self.records.leave(state.phase, values, status, finish)

    def do_begin_group(self, operation: Operation) -> None:
        """Words are stored in front of it, as of others."""

    def leave_with_callee(self, state: FrameState, how: ir.Value) -> None:
        """End the block after a call that has left, in the state of that call; `how` it did."""
        self._write_values(state)
        words = self._words(state) if self.early is None else []
        if self.early is not None:
            self._store_words(state)
        elif words:
            self.shared.writers.write_frame(
                self.builder, self.function.frame, layout_of(state), words
            )
        if not self.shared.catches:
            how = ir.Constant(INT32, LEFT)
        self._return_status(self.storage.field(self.control, "status"), how)

    def exit_state(self, operation: Operation) -> FrameState:
        """The state in which an operation leaves, without words that have been stored before."""
        if self.early is None:
            return self._groups.exit_state(operation)
        return self.early.states.get(operation, operation.exit)

    def trimmed(self, state: FrameState) -> FrameState:
        """A state that is no operation's, without words that memory has."""
        return state if self.early is not None else self._groups.trimmed(state)

    def store_early(self, operation: Operation) -> None:
        """Store the words that are stored early, before an operation."""
        if self.early is not None and operation in self.early.stores:
            self._store_words(self.early.stores[operation])
        elif self.early is None and operation in self._groups.stores:
            for place, value in self._groups.stores[operation].items():
                slot = self.function.arithmetic.to_slot(value.word_type, self.function.value(value))
                self.storage.store(slot, self.function.frame_word(place), "stack")

    def _store_words(self, state: FrameState) -> None:
        """Store the words of a state, here."""
        for place, length in runs(state.words):
            where = self.function.frame_word(place)
            if length > 1:
                self._clear(where, length)
                continue
            value = state.words[place]
            assert value is not None
            slot = self.function.arithmetic.to_slot(value.word_type, self._in_state(value))
            self.storage.store(slot, where, "stack")

    def _clear(self, where: ir.Value, length: int) -> None:
        """Store so many zero words."""
        parameters = [POINTER, ir.IntType(8), WORD, ir.IntType(1)]
        name, module = "llvm.memset.p0.i64", self.builder.module
        clear = module.intrinsic(name, ir.VoidType(), parameters)
        zero, flag = ir.Constant(ir.IntType(8), 0), ir.Constant(ir.IntType(1), 0)
        self.builder.call(clear, [where, zero, word(WORD_BYTES * length), flag])

    def _write_values(self, state: FrameState) -> None:
        """Write the statics and the heap pointer of a state."""
        for number, value in state.statics:
            slot = self.function.arithmetic.to_slot(value.word_type, self._in_state(value))
            self.storage.store(slot, self.function.static(number), "statics")
        if state.heap_pointer is not None:
            self.storage.set_field(self.control, "hp", self.function.value(state.heap_pointer))

    def _words(self, state: FrameState) -> list[ir.Value]:
        return [self._in_state(w) for w in state.words if w is not None]

    def _in_state(self, value: Value) -> ir.Value:
        """A value of a state; one that has no place in a block is computed here."""
        if isinstance(value, Virtual):
            return self._canonical(value, self.function.value(value.raw))
        return self.function.value(value)

    def _canonical(self, value: Virtual, raw: ir.Value) -> ir.Value:
        return canonical(self.function.arithmetic, value.fact(0, Type), raw)

    def do_canonicalise(self, operation: Operation, *operands: ir.Value) -> None:
        t, arithmetic = operation.fact(0, Type), self.function.arithmetic
        values = operands[1::2]
        nans = [arithmetic.compare(t, Condition.NE, value, value) for value in values]
        with self.function.rarely(functools.reduce(arithmetic.any, nans), "nan") as onward:
            for address, value in zip(operands[::2], values, strict=True):
                where = self.storage.offset(self.function.heap, address)
                self.storage.store(canonical(arithmetic, t, value), where, "heap", 1)
            self.builder.branch(onward)

    def _return_status(self, status: ir.Value, how: ir.Value) -> None:
        """Return, having left."""
        if self.body.is_root:
            self.builder.ret(status)
        else:
            self.return_(None, how)

    def return_(self, value: ir.Value | None, how: ir.Value) -> None:
        """Return from a function, with its result unless it has left."""
        if self.body.result is None:
            self.builder.ret(how)
            return
        pair: ir.Value = ir.Constant(result_type(self.body), ir.Undefined)
        if value is not None:
            pair = self.builder.insert_value(pair, value, 0)
        self.builder.ret(self.builder.insert_value(pair, how, 1))

    # --- checks -----------------------------------------------------------------------------

    def do_trap_if(self, operation: Operation, p: ir.Value) -> None:
        if self.function.variant.has_headroom and frame_headroom(operation):
            return
        trap = ir.Constant(INT32, int(operation.fact(0, Trap)))
        self.leave_if(p, self.exit_state(operation), Status.TRAP, trap=trap)

    def do_grow_if(self, operation: Operation, p: ir.Value, wanted: ir.Value) -> None:
        self.leave_if(p, self.exit_state(operation), Status.GROW, wanted=wanted)

    def do_allocate_if(
        self, operation: Operation, p: ir.Value, wanted: ir.Value, type_: ir.Value
    ) -> None:
        fields = {"wanted": wanted, "wanted_type": type_}
        self.leave_if(p, self.exit_state(operation), Status.ALLOCATE, **fields)

    def do_continue_launch_if(self, operation: Operation, p: ir.Value) -> None:
        self.leave_if(p, self.exit_state(operation), Status.LAUNCH)

    def do_parallel_if(self, operation: Operation, p: ir.Value) -> None:
        self.leave_if(p, self.exit_state(operation), Status.PARALLEL)

    def do_guard(self, operation: Operation, fails: ir.Value) -> None:
        shared = self.shared
        with self.function.rarely(fails, "guard"):
            number = shared.guards.index(operation.fact(0, int))
            failures = shared.count(self.storage, FAILURES + number, word(1))
            limit = word(shared.options.guard_limit)
            is_often = self.builder.icmp_unsigned(">=", failures, limit)
            status = self.builder.select(
                is_often, status_constant(Status.GUARD), status_constant(Status.LEAVE)
            )
            self.leave(self.exit_state(operation), status)

    def do_report_version(self, operation: Operation, reason: ir.Value) -> None:
        first = self.shared.nests + NEST_WORDS * operation.fact(0, int)
        is_fast = isinstance(operation.arguments[0], Constant)
        self.shared.count(self.storage, first + (FAST if is_fast else SLOW), word(1))
        if not is_fast:
            where = self.shared.activity_word(self.storage, first + REASON)
            self.storage.store(reason, where, "activity")

    def do_pay(self, operation: Operation) -> None:
        paid, wanted = operation.fact(0, int), operation.fact(1, int)
        fuel = self.storage.field(self.control, "fuel")
        short = self.builder.icmp_signed("<", fuel, word(wanted))
        self.leave_if(short, self.exit_state(operation), Status.LEAVE)
        self.storage.set_field(self.control, "fuel", self.builder.sub(fuel, word(paid)))

    def give_up(self, state: FrameState) -> None:
        """Leave at the n-th such place since the region was entered, for tests."""
        where = self.storage.offset(self.control, FORCED_IN)
        rest = self.builder.sub(self.storage.load(where, "control"), word(1))
        self.storage.store(rest, where, "control")
        self.leave_if(self.builder.icmp_signed("==", rest, word(0)), state, Status.LEAVE)
