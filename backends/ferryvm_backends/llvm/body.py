# SPDX-License-Identifier: Apache-2.0
"""A body as the blocks of a native function."""

from __future__ import annotations

import dataclasses
from collections.abc import Set as AbstractSet

from ferryvm.ir.graph import Block, Body, Edge, Operation, Terminator, Value
from ferryvm.ir.operation import PURE, SAFEPOINTS
from ferryvm.ir.passes.overflow_check import RARE
from ferryvm.ir.rule import Rules
from ferryvm.ir.use import users_of
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import F64, Type
from ferryvm.machine.control import Status
from ferryvm_backends._llvm import ir
from ferryvm_backends._llvm.arithmetic import WORD, word
from ferryvm_backends.llvm.access import Access
from ferryvm_backends.llvm.accumulator import left_accumulators
from ferryvm_backends.llvm.call import Calls
from ferryvm_backends.llvm.context import (
    INT32,
    RETURNED,
    LoweringContext,
    llvm_type,
    status_constant,
)
from ferryvm_backends.llvm.function import RARELY, FunctionContext
from ferryvm_backends.llvm.host_call import HostCalls
from ferryvm_backends.llvm.lane_access import LaneAccess
from ferryvm_backends.llvm.lane_arithmetic import LaneArithmetic
from ferryvm_backends.llvm.lane_update import LaneUpdates
from ferryvm_backends.llvm.lane_value import LaneValues
from ferryvm_backends.llvm.object import Objects
from ferryvm_backends.llvm.poll import Polls
from ferryvm_backends.llvm.side_exit import SideExits
from ferryvm_backends.llvm.streaming import LINE
from ferryvm_backends.llvm.strip_mining import StripMinedLoop, strip_mined_loops
from ferryvm_backends.llvm.variant import Variant

_LEAVING = {
    "leave": Status.LEAVE,
    "trap": Status.TRAP,
    "halt": Status.HALT,
    "host": Status.HOST,
}
"""Statuses of the terminators that leave."""


@dataclasses.dataclass(frozen=True, eq=False)
class _Strip:
    """A loop that runs in strips, and the block where each strip begins."""

    loop: StripMinedLoop
    block: ir.Block
    initial: list[ir.PhiInstr]
    """The block's arguments for the parameters of the head."""
    stream: Operation | None
    """A streaming store: each strip begins and ends at a line of the cache."""


def lower_body(shared: LoweringContext, variant: Variant, builder: ir.IRBuilder) -> None:
    """Emit a body at a builder, which is in a block of its native function."""
    _BodyLowering(FunctionContext(shared, variant, builder)).run()


class _BodyLowering:
    """Lowers blocks and their terminators: a parameter becomes a phi, an edge its incoming
    values."""

    def __init__(self, function: FunctionContext) -> None:
        self.function, self.shared, self.body = function, function.shared, function.body
        self.builder, self.values = function.builder, function.values
        self.varying: AbstractSet[Value] = self.body.varying or frozenset()
        self.lanes: LaneArithmetic | None = None
        if self.body.lanes:
            function.arithmetic = self.lanes = LaneArithmetic(function.builder, self.body.lanes)
        self.exits = SideExits(function)
        self.polls = Polls(function, self.exits)
        calls = Calls(function, self.exits)
        self.objects = Objects(function)
        self.rules = Rules(
            Access(function),
            self.objects,
            self.exits,
            self.polls,
            calls,
            HostCalls(function, self.exits),
            *self._lane_parts(),
        )
        entry, *others = self.body.blocks
        if not self.body.is_root:
            arguments = function.native.args[2:]  # after control block and frame
            self.values.update(zip(entry.parameters, arguments, strict=True))
        self._roots = _bare_roots(self.body)
        self._fenced = left_accumulators(self.body)
        self.blocks: dict[Block, ir.Block] = {
            block: function.block(block.label) for block in self.body.blocks
        }
        self.builder.branch(self.blocks[entry])
        self._phis: dict[Value, ir.PhiInstr] = {}
        """The phi functions of the parameters of blocks."""
        for block in others:
            self.builder.position_at_end(self.blocks[block])
            for parameter in block.parameters:
                self._phis[parameter] = self.builder.phi(self._type(parameter))
        self.values.update(self._phis)
        self._strips: dict[Block, _Strip] = {}
        """Loops that are run in strips, by head."""
        if self.shared.polls and not self.shared.is_forced:
            for strip in strip_mined_loops(self.body):
                if strip.poll in self.polls.spared:
                    continue
                strip_entry = function.block(f"{strip.head.label}.strip")
                self.builder.position_at_end(strip_entry)
                initial = [self.builder.phi(llvm_type(each.type)) for each in strip.head.parameters]
                stream = next(filter(self.shared.streams.__contains__, strip.operations), None)
                self._strips[strip.head] = _Strip(strip, strip_entry, initial, stream)
                self.polls.spared.add(strip.poll)

    def _lane_parts(self) -> list[object]:
        """The parts that lower operations of loops in lanes."""
        if self.lanes is None:
            return []
        access = LaneAccess(self.function, self.lanes)
        updates = LaneUpdates(self.function, access, self.body)
        return [access, updates, LaneValues(self.function, self.lanes)]

    def _type(self, value: Value) -> ir.Type:
        scalar = llvm_type(value.type)
        return ir.VectorType(scalar, self.body.lanes) if value in self.varying else scalar

    def run(self) -> None:
        """Emit all blocks."""
        for block in self.body.blocks:
            strip = self._strips.get(block)
            limit = None if strip is None else self._enter_strip(strip)
            self.builder.position_at_end(self.blocks[block])
            for parameter in block.parameters if strip is None else ():
                if parameter in self._fenced:
                    fenced = self.function.arithmetic.fence(F64, self._phis[parameter])
                    self.values[parameter] = fenced
            for operation in block.operations:
                self._operation(operation)
            if strip is None or limit is None:
                self._terminator(block.end)
            else:
                self._end_head(strip, limit)

    def _operation(self, operation: Operation) -> None:
        self.exits.store_early(operation)
        if self.shared.is_forced and operation.name in SAFEPOINTS:
            self.exits.give_up(self.exits.exit_state(operation))
        arguments = [self.function.value(a) for a in operation.arguments]
        rule = self.rules.get(operation.name)
        if self.lanes is not None and operation in self.varying and operation.name in PURE:
            arguments = [self.lanes.vector(a) for a in arguments]
        if rule is not None:
            result = rule(operation, *arguments)
        elif operation in self._roots:
            result = self.function.arithmetic.bare_root(operation.fact(0, Type), *arguments)
        else:
            emit = getattr(self.function.arithmetic, operation.name)
            result = emit(*operation.static, *arguments)
        if operation.type is not None:
            self.values[operation] = result

    # --- ends -------------------------------------------------------------------------------

    def _terminator(self, end: Terminator) -> None:
        self.exits.store_early(end)
        arguments = [self.function.value(a) for a in end.arguments]
        match end.name:
            case "jump":
                self.builder.branch(self._target(end.edges[0]))
            case "branch":
                yes, no = self._targets(end.edges)
                is_rare = end.edges[0].block.label.startswith(RARE)
                self.builder.cbranch(arguments[0], yes, no, RARELY if is_rare else None)
            case "switch":
                *targets, last = self._targets(end.edges)
                switch = self.builder.switch(arguments[0], last)
                for number, target in enumerate(targets):
                    switch.add_case(word(number), target)
            case "return":
                self._return(end, arguments)
            case "throw":
                self.exits.throw(end)
            case _:
                fields = {}
                if end.name == "trap":
                    fields["trap"] = ir.Constant(INT32, int(end.fact(0, Trap)))
                if end.name == "host":
                    fields["exit_id"] = ir.Constant(INT32, end.fact(0, int))
                self.exits.leave(
                    self.exits.exit_state(end), status_constant(_LEAVING[end.name]), **fields
                )

    def _return(self, end: Terminator, results: list[ir.Value]) -> None:
        body = self.body
        slots = [
            self.function.arithmetic.to_slot(a.word_type, value)
            for a, value in zip(end.arguments, results, strict=True)
        ]
        if body.is_root:
            where = self.function.control, self.function.frame
            self.shared.writers.go_back(self.builder, where, body.parameters, slots)
        for number, slot in enumerate(slots[1:], 1):
            place = number if body.is_root else body.place_of(number)
            self.function.storage.store(slot, self.function.frame_word(place), "stack")
        if body.is_root:
            self.builder.ret(status_constant(Status.LEAVE))
        else:
            how = ir.Constant(INT32, RETURNED)
            self.exits.return_(results[0] if results else None, how)

    def _targets(self, edges: tuple[Edge, ...]) -> list[ir.Block]:
        """The targets of edges; a block of its own where two go to the same block."""
        targets, taken = [], set()
        for edge in edges:
            if edge.block in taken and edge.arguments:
                between = self.function.block("edge")
                here = self.builder.block
                self.builder.position_at_end(between)
                self.builder.branch(self._target(edge))
                self.builder.position_at_end(here)
                targets.append(between)
            else:
                taken.add(edge.block)
                targets.append(self._target(edge))
        return targets

    # --- strips -----------------------------------------------------------------------------

    def _enter_strip(self, strip: _Strip) -> ir.Value:
        """Emit the preheader of a strip; the limit of the induction variable in the strip."""
        builder, head, count = self.builder, strip.loop.head, strip.loop.count
        builder.position_at_end(strip.block)
        value = strip.initial[head.parameters.index(count.value)]
        bound = self.function.value(count.bound)
        budget = builder.load(self.polls.budget, typ=INT32)
        rest, most = builder.sub(bound, value), builder.zext(budget, WORD)
        if strip.stream is not None:
            base = self.function.value(self.shared.streams[strip.stream])
            number = self._phis[count.value]
            self.objects.begin_stream(strip.stream, base, value, number)
            most = builder.and_(builder.add(most, word(LINE)), word(-LINE))
        length = builder.select(builder.icmp_unsigned("<", rest, most), rest, most)
        goes_on = builder.icmp_signed("<", value, bound)
        length = builder.select(goes_on, length, word(0))
        # Others rely on it that there is always some budget.
        remaining = builder.sub(budget, builder.trunc(length, INT32))
        is_spent = builder.icmp_signed("<=", remaining, ir.Constant(INT32, 0))
        builder.store(builder.select(is_spent, ir.Constant(INT32, 1), remaining), self.polls.budget)
        limit = builder.add(value, length)
        builder.branch(self.blocks[head])
        for parameter, initial in zip(head.parameters, strip.initial, strict=True):
            self._phis[parameter].add_incoming(initial, strip.block)
        return limit

    def _end_head(self, strip: _Strip, limit: ir.Value) -> None:
        """Terminate the head of a loop: continue the strip, start the next one, or exit."""
        builder, count = self.builder, strip.loop.count
        value = self.function.value(count.value)
        done = self.function.block(f"{strip.loop.head.label}.done")
        continues = builder.icmp_signed("<", value, limit)
        builder.cbranch(continues, self._target(strip.loop.onward), done)
        builder.position_at_end(done)
        goes_on = builder.icmp_signed("<", value, self.function.value(count.bound))
        with self.function.rarely(goes_on, "look"):
            for operation in strip.loop.recomputed:
                self._operation(operation)
            self.polls.look(self.exits.trimmed(strip.loop.state), strip.block)
            for initial, parameter in zip(strip.initial, strip.loop.head.parameters, strict=True):
                initial.add_incoming(self.function.value(parameter), self.builder.block)
        builder.branch(self._target(strip.loop.out))

    def _target(self, edge: Edge) -> ir.Block:
        """The block of an edge, after recording the values that this block passes to it."""
        strip = None if edge.is_back else self._strips.get(edge.block)
        phis = [self._phis[each] for each in edge.block.parameters]
        for phi, argument in zip(strip.initial if strip else phis, edge.arguments, strict=True):
            value = self.function.value(argument)
            if self.lanes is not None and isinstance(phi.type, ir.VectorType):
                value = self.lanes.vector(value)
            phi.add_incoming(value, self.builder.block)
        return strip.block if strip else self.blocks[edge.block]


_ARITHMETIC = frozenset({"fadd", "fsub", "fmul", "fdiv", "ffma"})


def _bare_roots(body: Body) -> set[Operation]:
    """The square roots of which nothing but arithmetic uses the result: no test for NaN is folded
    with them."""
    found = {operation for operation in body.operations if operation.name == "fsqrt"}
    if not found:
        return found
    users = users_of(body)
    return {
        root
        for root in found
        if all(user is not None and user.name in _ARITHMETIC for user in users.get(root, ()))
    }
