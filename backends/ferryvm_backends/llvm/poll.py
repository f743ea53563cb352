# SPDX-License-Identifier: Apache-2.0
"""Looks at the interrupt flag: in loops, now and then, and where functions begin."""

from __future__ import annotations

import functools

from ferryvm.ir.graph import FrameState, Operation
from ferryvm.ir.loop.poll import poll_costs, short_loops
from ferryvm.ir.operation import POLL_BUDGET
from ferryvm.machine.control import ControlBlock, Status
from ferryvm_backends._llvm import ir
from ferryvm_backends._llvm.arithmetic import stack_register
from ferryvm_backends.llvm.context import HOST_STACK_LIMIT, INT32, status_constant
from ferryvm_backends.llvm.function import FunctionContext
from ferryvm_backends.llvm.side_exit import SideExits


class Polls:
    """Lowers polls, and checks of entries."""

    def __init__(self, function: FunctionContext, exits: SideExits) -> None:
        self.function, self.exits = function, exits
        self.builder, self.storage = function.builder, function.storage
        self._short = short_loops(function.body, function.shared.lengthy)
        self.spared: set[Operation] = {*self._short.polls}
        """Polls of loops that end soon, and of those that are run in strips, which look at the end
        of each."""

    @functools.cached_property
    def _costs(self) -> dict[Operation, int]:
        return poll_costs(self.function.body, self.function.shared.lengthy, self._short.times)

    @functools.cached_property
    def budget(self) -> ir.Value:
        """The counter of polls until the flag is read next.

        The first poll reads it if the flag is set: otherwise short runs of the code, or short calls
        of a function in a loop, would never read it.
        """
        with self.builder.goto_block(
            self.function.native.blocks[0]
        ):  # the only place where LLVM makes a value of it
            budget = self.builder.alloca(INT32)
            nothing, all_of_it = ir.Constant(INT32, 1), ir.Constant(INT32, POLL_BUDGET)
            first = self.builder.select(self._interrupted(), nothing, all_of_it)
            self.builder.store(first, budget)
        return budget

    def _interrupted(self) -> ir.Value:
        offset = ControlBlock.interrupt.offset  # type: ignore[attr-defined]  # a ctypes field
        where = self.storage.offset(self.function.control, offset)
        flag = self.builder.load_atomic(where, "monotonic", 4, typ=INT32)
        return self.builder.icmp_unsigned("!=", flag, ir.Constant(INT32, 0))

    def do_poll(self, operation: Operation) -> None:
        if not self.function.shared.polls or operation in self.spared:
            return
        builder = self.builder
        cost = self._costs[operation]
        # There is always some budget, so it does not wrap.
        budget = builder.load(self.budget, typ=INT32)
        rest = builder.sub(budget, ir.Constant(INT32, cost), flags=["nsw"])
        builder.store(rest, self.budget)
        # One that takes more than 1 may pass 0, and then it is the one that looks.
        is_spent = "==" if cost == 1 else "<="
        spent = builder.icmp_signed(is_spent, rest, ir.Constant(INT32, 0))
        with self.function.rarely(spent, "look") as onward:
            self.look(self.exits.exit_state(operation), onward)

    def look(self, state: FrameState, onward: ir.Block) -> None:
        """Terminate the block with a check of the flag: leave, or continue in `onward` with a new
        budget."""
        self.builder.store(ir.Constant(INT32, POLL_BUDGET), self.budget)
        here = self.builder.block
        with self.function.rarely(self._interrupted(), "exit", onward):
            self.exits.leave(state, status_constant(Status.INTERRUPTED))
        self.builder.position_at_end(here)

    def do_bounded(self, operation: Operation) -> None:
        """In the place of a poll of a loop that ends soon."""

    def do_check_entry(self, operation: Operation) -> None:
        if self.function.variant.is_inner:
            return
        if operation.fact(0, bool):
            where = self.storage.offset(self.function.control, HOST_STACK_LIMIT)
            limit = self.storage.load(where, "control")
            deep = self.builder.icmp_unsigned("<", stack_register(self.builder), limit)
            self.exits.leave_if(deep, self.exits.exit_state(operation), Status.LEAVE)
        if self.function.shared.polls:
            self.exits.leave_if(
                self._interrupted(), self.exits.exit_state(operation), Status.INTERRUPTED
            )
