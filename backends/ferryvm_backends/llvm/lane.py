# SPDX-License-Identifier: Apache-2.0
"""A body of lanes as a native function, which runs a range of items, a vector of them at a time.

    next f(control, first, limit, buffer)     buffer: suspended lanes │ their states

It stops in front of a vector that is not full, after one in which lanes were suspended, and when
the interrupt flag is set. A state is a column of the buffer, whose rows have a word for each lane:
`ferryvm.machine.lane` describes it.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from ferryvm.ir.graph import (
    Block,
    Body,
    Constant,
    Edge,
    FrameState,
    Module,
    Operation,
    Value,
    Virtual,
)
from ferryvm.ir.operation import POLL_BUDGET, PURE
from ferryvm.ir.rule import Rules
from ferryvm.isa.emitter import Condition
from ferryvm.isa.launch import LAUNCH_WORDS
from ferryvm.isa.numeric import canonical
from ferryvm.isa.type import I64, WORD_BYTES
from ferryvm.machine.control import ControlBlock
from ferryvm.machine.lane import FRAME, LENGTH, PC, STOPS, WORDS
from ferryvm_backends._llvm import ir
from ferryvm_backends._llvm.arithmetic import I1, WORD, stack_register, word
from ferryvm_backends._llvm.handler import POINTER
from ferryvm_backends.llvm.access import Access
from ferryvm_backends.llvm.context import INT32, LoweringContext, at_start, llvm_type
from ferryvm_backends.llvm.function import FunctionContext
from ferryvm_backends.llvm.lane_access import LaneAccess
from ferryvm_backends.llvm.lane_arithmetic import LaneArithmetic
from ferryvm_backends.llvm.lane_division import Divisions
from ferryvm_backends.llvm.lane_update import LaneUpdates
from ferryvm_backends.llvm.lane_value import LaneValues
from ferryvm_backends.llvm.object import Objects
from ferryvm_backends.llvm.symbol import LANES, STACK
from ferryvm_backends.llvm.variant import Variant

_OPERATIONS_A_POLL = 32
"""As for polls of scalar code: operations for each unit of the budget."""


def lower_lanes(shared: LoweringContext, module: Module, lanes: int) -> None:
    """Emit the function `LANES` of a module's body of lanes."""
    assert module.lanes is not None
    _LaneLowering(shared, module, module.lanes, lanes).run()


def rows_of(body: Body) -> int:
    """Rows of the buffer that a body of lanes needs."""
    states = (o.state for block in body.blocks for o in block.operations)
    return WORDS + max((len(s.words) for s in states if s is not None), default=0)


def _is_of_consecutive(p: Operation, varying: AbstractSet[Value]) -> bool:
    """True for comparisons of consecutive indices with a length, `index >= length`."""
    if p.name != "compare" or p.static != (I64, Condition.GE_U):
        return False
    index, length = p.arguments
    if length in varying or not isinstance(index, Operation) or index.name != "ramp":
        return False
    stride = index.arguments[1]
    return isinstance(stride, Constant) and stride.bits == 1


def _only_of_exits(body: Body) -> set[Operation]:
    """Numbers of items, and their comparisons with lengths, that nothing but exits uses. Where no
    lane leaves nobody needs them, and LLVM does not move them from there."""
    assert body.varying is not None
    needed: set[Value] = set()
    found: set[Operation] = set()
    for block in body.blocks:
        needed.update(block.end.arguments)
        for edge in block.end.edges:
            needed.update(edge.arguments)
    for block in reversed(body.blocks):
        for operation in reversed(block.operations):
            used = operation.arguments
            if operation.name == "suspend":
                mask, p = used
                is_late = isinstance(p, Operation) and _is_of_consecutive(p, body.varying)
                used = (mask,) if is_late else used
            elif operation not in needed and (
                operation.name == "ramp" or _is_of_consecutive(operation, body.varying)
            ):
                found.add(operation)
                continue
            needed.update(used)
    return found


class _LaneLowering:
    """Lowers the blocks of a body of lanes."""

    def __init__(self, shared: LoweringContext, module: Module, body: Body, lanes: int) -> None:
        assert body.varying is not None
        self.shared, self.module, self.body, self.lanes = shared, module, body, lanes
        self.varying = body.varying
        self.late = _only_of_exits(body)
        """Operations that are computed where lanes leave, and nowhere else."""
        self.computed: dict[tuple[ir.Block, Value], ir.Value] = {}
        """Their results in a block."""
        parameters = [POINTER, WORD, WORD, POINTER]
        native = ir.Function(shared.native, ir.FunctionType(WORD, parameters), LANES)
        native.attributes |= {"nounwind", '"stackrealign"'}
        for argument in (native.args[0], native.args[3]):
            argument.add_attribute("noalias")
        self.native = native
        _, self.first, self.limit, self.buffer = native.args
        self.function = FunctionContext(shared, Variant(body, {}), at_start(native))
        self.builder, self.storage = self.function.builder, self.function.storage
        self.arithmetic = LaneArithmetic(self.builder, lanes)
        self.function.arithmetic = self.arithmetic
        self.divisions = Divisions(self.function, self.arithmetic)
        self.masks = ir.VectorType(I1, lanes)
        self.bits = ir.IntType(lanes)
        access = LaneAccess(self.function, self.arithmetic)
        self.rules = Rules(
            Access(self.function),
            Objects(self.function),
            access,
            LaneUpdates(self.function, access, body),
            LaneValues(self.function, self.arithmetic),
            self,
        )
        operations = sum(len(block.operations) for block in body.blocks)
        self.cost = max(1, operations // _OPERATIONS_A_POLL) * max(1, lanes // 4)
        self.suspended = self.builder.alloca(self.bits)
        self.budget = self.builder.alloca(INT32)
        self.builder.store(ir.Constant(INT32, POLL_BUDGET), self.budget)
        self.phis: dict[Value, ir.PhiInstr] = {}

    def run(self) -> None:
        """Emit the function."""
        builder = self.builder
        start, head = builder.block, self.function.block("head")
        stopped, vector = self.function.block("stopped"), self.function.block("vector")
        self.done = self.function.block("done")
        self.blocks: dict[Block, ir.Block] = {
            block: self.function.block(block.label) for block in self.body.blocks
        }
        entry, *others = self.body.blocks
        self._arguments(entry)
        begin = self.function.block("begin")
        builder.cbranch(self._has_headroom(), begin, stopped)
        # Addresses that the code uses are found where the function starts.
        builder.position_at_end(begin)
        self.full = self._full()
        builder.branch(head)
        builder.position_at_end(head)
        next_ = builder.phi(WORD)
        next_.add_incoming(self.first, begin)
        self.function.values[entry.parameters[0]] = next_
        builder.store(ir.Constant(self.bits, 0), self.suspended)
        rest = builder.sub(self.limit, next_)
        is_full = builder.icmp_signed(">=", rest, word(self.lanes))
        goes_on = builder.and_(is_full, builder.not_(self._interrupted()))
        builder.cbranch(goes_on, vector, stopped)
        builder.position_at_end(vector)
        builder.branch(self.blocks[entry])
        for block in others:
            builder.position_at_end(self.blocks[block])
            for parameter in block.parameters:
                self.phis[parameter] = builder.phi(self._type(parameter))
        self.function.values.update(self.phis)
        for block in self.body.blocks:
            builder.position_at_end(self.blocks[block])
            for operation in block.operations:
                self._operation(operation)
            self._terminator(block)
        self._finish(next_, head, stopped, start)

    def _full(self) -> ir.Value:
        """The mask of all lanes, which LLVM does not know.

        For a constant it has an instruction in the loop, `kxnor` of a register with itself, that
        processors run only when they have the last value of that register: vectors wait for each
        other.
        """
        is_item = self.builder.icmp_signed(">=", self.first, word(0))  # it is one
        return self.builder.bitcast(self.builder.sext(is_item, self.bits), self.masks)

    def _arguments(self, entry: Block) -> None:
        """Load what the items share from the operands of the launch."""
        storage, control, builder = self.storage, self.function.control, self.builder
        sp, stack = storage.field(control, "sp"), storage.field(control, "stack")
        end = builder.add(stack, builder.shl(sp, word(3)))
        self.function.frame = end  # of an item, if it had one
        shared = entry.parameters[1:]
        for place, parameter in enumerate(shared):
            distance = -WORD_BYTES * (LAUNCH_WORDS + len(shared) - place)
            where = storage.offset(storage.pointer(end), distance)
            slot = storage.load(where, "stack")
            t = parameter.word_type
            self.function.values[parameter] = self.arithmetic.from_slot(t, slot)

    def _has_headroom(self) -> ir.Value:
        """True if both stacks have headroom for an item."""
        storage, control, builder = self.storage, self.function.control, self.builder
        needed = storage.load(self.shared.activity_word(storage, STACK), "activity")
        lowest = builder.add(storage.field(control, "host_stack"), needed)
        has_host = builder.icmp_unsigned(">=", stack_register(builder), lowest)
        first = builder.sub(storage.field(control, "fp"), word(self.module.root.parameters))
        frame = builder.add(storage.field(control, "stack"), builder.shl(first, word(3)))
        end = builder.add(frame, word(self.module.headroom))
        has_own = builder.icmp_unsigned("<=", end, storage.field(control, "stack_end"))
        return builder.and_(has_host, has_own)

    def _finish(
        self,
        next_: ir.Value,
        head: ir.Block,
        stopped: ir.Block,
        start: ir.Block,
    ) -> None:
        """Emit the end of a vector, and of the function."""
        builder = self.builder
        builder.position_at_end(self.done)
        following = builder.add(next_, word(self.lanes))
        suspended = builder.load(self.suspended, typ=self.bits)
        is_any = builder.icmp_unsigned("!=", suspended, ir.Constant(self.bits, 0))
        left = self.function.block("left")
        builder.cbranch(is_any, left, head, (1, 1 << 20))
        assert isinstance(next_, ir.PhiInstr)
        next_.add_incoming(following, self.done)
        builder.position_at_end(left)
        builder.store(self._word(suspended), self.buffer, 8)
        builder.ret(following)
        builder.position_at_end(stopped)
        reached = builder.phi(WORD)
        reached.add_incoming(self.first, start)
        reached.add_incoming(next_, head)
        builder.store(word(0), self.buffer, 8)
        builder.ret(reached)

    def _word(self, bits: ir.Value) -> ir.Value:
        return self.builder.zext(bits, WORD) if self.lanes < WORD.width else bits

    # --- operations -------------------------------------------------------------------------

    def _type(self, value: Value) -> ir.Type:
        scalar = llvm_type(value.type)
        return ir.VectorType(scalar, self.lanes) if value in self.varying else scalar

    def _value(self, value: Value, *, is_vector: bool) -> ir.Value:
        found = self._found(value)
        return self.arithmetic.vector(found) if is_vector else found

    def _found(self, value: Value) -> ir.Value:
        """The LLVM value of a value; one that only exits use is computed here."""
        if not isinstance(value, Operation) or value not in self.late:
            return self.function.value(value)
        place = self.builder.block, value
        if place not in self.computed:
            self.computed[place] = self._result(value)
        return self.computed[place]

    def _operation(self, operation: Operation) -> None:
        if operation in self.late:
            return
        result = self._result(operation)
        if operation.type is not None:
            self.function.values[operation] = result

    def _result(self, operation: Operation) -> ir.Value:
        is_vector = operation in self.varying and operation.name in PURE
        is_exit = operation.name == "suspend"
        arguments = [
            self._value(a, is_vector=is_vector)
            for a in operation.arguments
            if not (is_exit and a in self.late)
        ]
        rule = self.rules.get(operation.name)
        quotient = self.divisions.result(operation) if is_vector else None
        if quotient is not None:
            return quotient
        found: ir.Value = (
            getattr(self.arithmetic, operation.name)(*operation.static, *arguments)
            if rule is None
            else rule(operation, *arguments)
        )
        return found

    def _any(self, mask: ir.Value) -> ir.Value:
        return self.arithmetic.any_bit(mask)

    # --- leaving ----------------------------------------------------------------------------

    def do_suspend(
        self, operation: Operation, mask: ir.Value, p: ir.Value | None = None
    ) -> ir.Value:
        """`p`: None if it is computed where a lane may leave."""
        stops, last = operation.static
        builder, mask = self.builder, self.arithmetic.vector(mask)
        is_uniform = p is not None and not isinstance(p.type, ir.VectorType)
        quick = None if is_uniform else self._quick_test(operation.arguments[1])
        leaving = mask if is_uniform or p is None else builder.and_(mask, p)
        # All lanes that come to an exit leave, but mostly none comes.
        is_certain = isinstance(operation.arguments[1], Constant)
        is_any = quick or (p if is_uniform and not is_certain else self._any(leaving))
        assert is_any is not None
        before = builder.block
        with self.function.rarely(is_any, "suspend") as onward:
            if p is None:
                leaving = builder.and_(mask, self._value(operation.arguments[1], is_vector=True))
            self._suspend(operation.exit, leaving, int(bool(stops)))
            if is_uniform:
                rest: ir.Value = ir.Constant(self.masks, None)
            else:
                rest = builder.and_(mask, builder.not_(leaving))
            after = self._onward(onward, rest, is_last=bool(last))
        return self._rest(mask, before, rest, after)

    def _quick_test(self, p: Value) -> ir.Value | None:
        """True if a check may fail in a lane, where that is found in fewer operations than the
        lanes in which it does; None for other checks."""
        if not isinstance(p, Operation):
            return None
        if p.name == "mul_overflows" and p.static == (I64,):
            return self._is_factor_large(p)
        return self._may_be_beyond(p) if p.static == (I64, Condition.GE_U) else None

    def _is_factor_large(self, p: Operation) -> ir.Value:
        """True if a factor of a product does not fit into 32 bits in a lane."""
        builder, half = self.builder, ir.Constant(WORD, 1 << 31)
        a, b = (
            builder.add(self._value(each, is_vector=True), self.arithmetic.vector(half))
            for each in p.arguments
        )
        high = builder.lshr(builder.or_(a, b), self.arithmetic.vector(word(32)))
        return self._any(builder.icmp_unsigned("!=", high, self.arithmetic.vector(word(0))))

    def _may_be_beyond(self, p: Operation) -> ir.Value | None:
        """For a check of consecutive indices against a length, `index >= length`: true if the last
        index fails it. That is one comparison of words, where one in each lane takes the place of
        the items' own arithmetic. None for any other check."""
        index, length = p.arguments
        if not _is_of_consecutive(p, self.varying):
            return None
        assert isinstance(index, Operation)
        first, _ = index.arguments
        types = [WORD, WORD]
        less = self.builder.module.intrinsic("llvm.usub.sat.i64", WORD, types)
        found = self.builder.call(less, [self.function.value(length), word(self.lanes - 1)])
        return self.builder.icmp_unsigned(">=", self.function.value(first), found)

    def do_poll_lanes(self, operation: Operation, mask: ir.Value) -> ir.Value:
        (last,) = operation.static
        builder, mask = self.builder, self.arithmetic.vector(mask)
        budget = builder.load(self.budget, typ=INT32)
        rest = builder.sub(budget, ir.Constant(INT32, self.cost), flags=["nsw"])
        builder.store(rest, self.budget)
        before = builder.block
        none = ir.Constant(self.masks, None)
        with self.function.rarely(
            builder.icmp_signed("<=", rest, ir.Constant(INT32, 0)), "look"
        ) as onward:
            builder.store(ir.Constant(INT32, POLL_BUDGET), self.budget)
            look = builder.block
            with self.function.rarely(self._interrupted(), "suspend", onward):
                self._suspend(operation.exit, mask, 1)
                after = self._onward(onward, none, is_last=bool(last))
            builder.position_at_end(look)
        found = self._rest(mask, before, none, after)
        if after is not None:
            assert isinstance(found, ir.PhiInstr)
            found.add_incoming(mask, look)
        return found

    def _onward(self, onward: ir.Block, rest: ir.Value, *, is_last: bool) -> ir.Block | None:
        """Go on with the rest of a mask; the block from which that is. None: with no lane."""
        if not is_last:
            self.builder.branch(onward)
        elif rest.reference == "zeroinitializer":
            self.builder.branch(self.done)
            return None
        else:
            self.builder.cbranch(self._any(rest), onward, self.done)
        return self.builder.block

    def _rest(
        self, mask: ir.Value, before: ir.Block, rest: ir.Value, after: ir.Block | None
    ) -> ir.Value:
        """The lanes that go on, at a join of those paths."""
        if after is None:
            return mask
        found = self.builder.phi(self.masks)
        found.add_incoming(self.full if isinstance(mask, ir.Constant) else mask, before)
        found.add_incoming(rest, after)
        return found

    def _interrupted(self) -> ir.Value:
        offset = ControlBlock.interrupt.offset  # type: ignore[attr-defined]  # a ctypes field
        where = self.storage.offset(self.function.control, offset)
        flag = self.builder.load_atomic(where, "monotonic", 4, typ=INT32)
        return self.builder.icmp_unsigned("!=", flag, ir.Constant(INT32, 0))

    def _suspend(self, state: FrameState, leaving: ir.Value, stops: int) -> None:
        """Store the states of lanes."""
        builder = self.builder
        bits = builder.bitcast(leaving, self.bits)
        suspended = builder.load(self.suspended, typ=self.bits)
        builder.store(builder.or_(suspended, bits), self.suspended)
        frame = self.body.header_of(state)
        facts = {PC: state.pc, FRAME: frame, LENGTH: len(state.words), STOPS: stops}
        for row, number in facts.items():
            self._store_row(row, word(number), leaving)
        for place, value in enumerate(state.words):
            assert value is not None
            self._store_row(WORDS + place, self._slot(value), leaving)

    def _slot(self, value: Value) -> ir.Value:
        """A value of a state as words."""
        if isinstance(value, Virtual):
            t = value.word_type
            found = canonical(self.arithmetic, t, self._found(value.raw))
        else:
            found = self._found(value)
        return self.arithmetic.to_slot(value.word_type, found)

    def _store_row(self, row: int, value: ir.Value, leaving: ir.Value) -> None:
        where = self.storage.offset(self.buffer, WORD_BYTES * self.lanes * row)
        kind = ir.VectorType(WORD, self.lanes)
        name, module = f"llvm.masked.store.v{self.lanes}i64.p0", self.builder.module
        parameters = [kind, POINTER, INT32, self.masks]
        store = module.intrinsic(name, ir.VoidType(), parameters)
        align = ir.Constant(INT32, WORD_BYTES)
        self.builder.call(store, [self.arithmetic.vector(value), where, align, leaving])

    # --- ends -------------------------------------------------------------------------------

    def _terminator(self, block: Block) -> None:
        end, builder = block.end, self.builder
        arguments = [self.function.value(a) for a in end.arguments]
        match end.name:
            case "jump":
                builder.branch(self._target(end.edges[0]))
            case "branch":
                yes, no = (self._target(edge) for edge in end.edges)
                builder.cbranch(arguments[0], yes, no)
            case "switch":
                *targets, last = (self._target(edge) for edge in end.edges)
                switch = builder.switch(arguments[0], last)
                for number, target in enumerate(targets):
                    switch.add_case(word(number), target)
            case _:
                builder.branch(self.done)

    def _target(self, edge: Edge) -> ir.Block:
        for parameter, argument in zip(edge.block.parameters, edge.arguments, strict=True):
            is_vector = parameter in self.varying
            passed = self._value(argument, is_vector=is_vector)
            self.phis[parameter].add_incoming(passed, self.builder.block)
        return self.blocks[edge.block]
