# SPDX-License-Identifier: Apache-2.0
"""The region IR to LLVM IR.

Arithmetic is lowered by calling, for each operation, the emitter method of its name. A VM function
becomes a native one, `{result, i32 left} f(control, frame address, parameters)`: frames are written
only when something leaves, each by its own function as the native stack unwinds.
"""

from __future__ import annotations

import itertools
import platform

from llvmlite import ir

from ferryvm.backend import Forcing, Options
from ferryvm.ir.graph import (
    Block,
    Body,
    Constant,
    Edge,
    Module,
    Operation,
    State,
    Terminator,
    Truth,
    Value,
    ValueType,
)
from ferryvm.isa import Trap
from ferryvm.isa.numeric import canonical
from ferryvm.isa.type import WORD_BYTES, Type
from ferryvm.machine.control import DESCRIPTOR_WORDS, ControlBlock, Status
from ferryvm_backends._llvm.arithmetic import I1, LLVM_TYPE, WORD, Arithmetic, word
from ferryvm_backends._llvm.weaver import POINTER
from ferryvm_backends.llvm.exit import (
    frame_writer,
    is_virtual,
    register_writer,
    returner,
    types_of,
)
from ferryvm_backends.llvm.storage import Storage
from ferryvm_backends.llvm.symbol import (
    ACTIVITY,
    CYCLES,
    ENTRIES,
    ENTRY,
    FAILURES,
    INSTRUCTIONS,
)

POLL_EVERY = 4096
"""Back edges between two looks at the interrupt flag."""

HOST_STACK_BYTES = 512 << 10
"""Bytes of the host's stack that native recursion may use."""

DEEPEST = 8
"""Copies of itself that are inlined into a function, at most."""

LARGEST = {0: 0, 1: 0, 2: 800, 3: 3200}
"""Operations of a function with all copies of itself, at most, by optimisation level."""

INT32 = ir.IntType(32)
SCRATCH = ControlBlock.scratch.offset  # type: ignore[attr-defined]  # a ctypes field
HOST_STACK_LIMIT = SCRATCH + WORD_BYTES
"""Where in the control block the lowest address is kept that recursion may use."""
_SAFEPOINTS = frozenset({"trap_if", "grow_if", "guard", "poll", "check_entry", "pay"})
"""Operations whose state is one that an interpreter can go on from."""
_RARELY = (1, 1 << 20)
"""Branch weights of a check that fails."""


def llvm_type(t: ValueType) -> ir.Type:
    """The LLVM type of values of a type."""
    return I1 if isinstance(t, Truth) else LLVM_TYPE[t]


def guards_of(module: Module) -> list[int]:
    """pcs of all guards, in the order in which their failures are counted."""
    return sorted(
        {
            int(str(operation.static[0]))
            for body in module.bodies
            for block in body.blocks
            for operation in block.operations
            if operation.name == "guard"
        }
    )


def lower(module: Module, options: Options, polls: bool = True) -> ir.Module:
    """The LLVM module of a region; its visible symbols are `ENTRY` and `ACTIVITY`.

    `polls`: look at the interrupt flag in loops.
    """
    native = ir.Module(module.name)
    plan = _Plan(native, options, polls, guards_of(module))
    for number, body in module.functions.items():
        parameters = [llvm_type(p.type) for p in body.blocks[0].parameters]
        signature = ir.FunctionType(_result_type(body), [POINTER, WORD, *parameters])
        plan.functions[number] = _internal(native, signature, f"f{number}")
    root = ir.Function(native, ir.FunctionType(INT32, [POINTER]), "region")
    root.linkage = "internal"
    root.attributes.add("nounwind")
    _Lowering(plan, module.root, root).run()
    for number, body in module.functions.items():
        _lower_function(plan, number, body)
    _lower_entry(plan, root, any(body_recurs(body) for body in module.bodies))
    return native


def body_recurs(body: Body) -> bool:
    """Whether a body belongs to a function that can come to call itself."""
    return any(o.name == "check_entry" and o.static[0] for o in body.blocks[0].operations)


class _Plan:
    """What the lowerings of a module's bodies share."""

    def __init__(self, native: ir.Module, options: Options, polls: bool, guards: list[int]) -> None:
        self.native, self.options, self.polls, self.guards = native, options, polls, guards
        self.functions: dict[int, ir.Function] = {}
        self.is_forced = Forcing.DEOPT in options.forcing
        words = ir.ArrayType(WORD, FAILURES + len(guards))
        self.activity = ir.GlobalVariable(native, words, ACTIVITY)
        self.activity.initializer = ir.Constant(words, None)

    def count(self, storage: Storage, place: int, more: ir.Value) -> ir.Value:
        """Add to a word of `ACTIVITY`; its new value."""
        builder = storage.builder
        where = builder.gep(self.activity, [word(0), word(place)])
        total = builder.add(storage.load(where, "activity"), more)
        storage.store(total, where, "activity")
        return total


def _internal(native: ir.Module, signature: ir.FunctionType, name: str) -> ir.Function:
    function = ir.Function(native, signature, name)
    function.linkage = "internal"
    function.calling_convention = "fastcc"
    function.attributes.add("nounwind")
    return function


def _lower_entry(plan: _Plan, root: ir.Function, recurs: bool) -> None:
    """The function that others call: it counts, then enters the region."""
    function = ir.Function(plan.native, root.function_type, ENTRY)
    function.attributes.add("nounwind")
    builder = ir.IRBuilder(function.append_basic_block())
    storage = Storage(builder)
    (control,) = function.args

    entries = plan.count(storage, ENTRIES, word(1))
    if plan.is_forced:
        rest = builder.add(builder.urem(entries, word(7)), word(1))
        storage.store(rest, storage.offset(control, SCRATCH), "control")
    if recurs:
        limit = builder.sub(stack_register(builder), word(HOST_STACK_BYTES))
        storage.store(limit, storage.offset(control, HOST_STACK_LIMIT), "control")
    if not plan.options.observe:
        builder.ret(builder.call(root, [control]))
        return
    clock = ir.Function(plan.native, ir.FunctionType(WORD, []), "llvm.readcyclecounter")
    began, fuel = builder.call(clock, []), storage.field(control, "fuel")
    status = builder.call(root, [control])
    plan.count(storage, CYCLES, builder.sub(builder.call(clock, []), began))
    if plan.options.counting:
        plan.count(storage, INSTRUCTIONS, builder.sub(fuel, storage.field(control, "fuel")))
    builder.ret(status)


def stack_register(builder: ir.IRBuilder) -> ir.Value:
    """The host's stack pointer."""
    module = builder.module
    name = "llvm.read_register.i64"
    function = module.globals.get(name)
    if function is None:
        function = ir.Function(module, ir.FunctionType(WORD, [ir.MetaDataType()]), name)
    register = "rsp" if platform.machine().lower() in ("x86_64", "amd64") else "sp"
    return builder.call(function, [module.add_metadata([ir.MetaDataString(module, register)])])


def _lower_function(plan: _Plan, number: int, body: Body) -> None:
    """A function; one that calls itself with copies of itself inlined.

    Where the stack has room for all of them, the copies check no limit; where it has not, a version
    without copies runs.
    """
    function = plan.functions[number]
    copies = [] if plan.is_forced else _copies(plan, number, body, function)
    chain = [function, *copies, function]
    for place, (own, callee) in enumerate(itertools.pairwise(chain)):
        lowering = _Lowering(plan, body, own, {number: callee})
        lowering.is_copy, lowering.has_room = place > 0, bool(copies)
        if copies and not place:
            plain = _internal(plan.native, function.function_type, f"{function.name}.plain")
            plain.attributes.add("noinline")
            other = _Lowering(plan, body, plain, {})
            other.is_copy = True
            other.run()
            operations = [o for block in body.blocks for o in block.operations]
            base = max(int(str(o.static[1])) for o in operations if o.name == "call")
            reach = max(_reach(o) for o in operations)
            lowering.plain = plain, WORD_BYTES * base * len(copies) + reach
        lowering.run()


def _reach(operation: Operation) -> int:
    """Bytes from the frame up to where a check of the stack limit wants room; 0 for others."""
    if operation.name != "trap_if" or operation.static[0] is not Trap.STACK_OVERFLOW:
        return 0
    (overflow,) = operation.arguments
    if not isinstance(overflow, Operation) or overflow.name != "compare":
        return 0
    end = overflow.arguments[0]
    if not isinstance(end, Operation) or end.name != "add":
        return 0
    base, offset = end.arguments
    is_frame = isinstance(base, Operation) and base.name == "frame"
    return offset.bits if is_frame and isinstance(offset, Constant) else 0


def _copies(plan: _Plan, number: int, body: Body, function: ir.Function) -> list[ir.Function]:
    """Copies of a function that calls itself, for each to be inlined into the one before."""
    sites = [o for block in body.blocks for o in block.operations if o.name == "call"]
    calls = sum(o.static[0] == number for o in sites)
    size = sum(len(block.operations) + 1 for block in body.blocks)
    copies: list[ir.Function] = []
    largest = LARGEST[plan.options.optimize]
    total = size
    while calls and len(copies) < DEEPEST and total * calls + size <= largest:
        total = total * calls + size
        copy = _internal(plan.native, function.function_type, f"{function.name}.{len(copies) + 1}")
        copy.attributes.add("alwaysinline")
        copies.append(copy)
    return copies


def _result_type(body: Body) -> ir.Type:
    return ir.LiteralStructType([LLVM_TYPE[body.result], INT32]) if body.result else INT32


class _Lowering(Arithmetic):
    """Lowers one body."""

    def __init__(
        self,
        plan: _Plan,
        body: Body,
        function: ir.Function,
        instead: dict[int, ir.Function] | None = None,
    ) -> None:
        """`instead`: functions to be called instead of those of the plan."""
        self.plan, self.module, self.body, self.function = plan, plan.native, body, function
        self.functions = plan.functions | (instead or {})
        self.polls = plan.polls
        self.is_copy = False
        """Whether it is inlined into what has looked at the flag and the host's stack."""
        self.has_room = False
        """Whether the stack is known to have room for the frames of calls."""
        self.plain: tuple[ir.Function, int] | None = None
        """What runs instead where the stack has not that many bytes left."""
        self.values: dict[Value, ir.Value] = {}
        self.blocks: dict[Block, ir.Block] = {}
        function.args[0].add_attribute("noalias")
        self.control = function.args[0]

    def run(self) -> None:
        """Emit the whole function."""
        start = self.function.append_basic_block("start")
        self.builder = ir.IRBuilder(start)
        self.storage = Storage(self.builder)
        if self.body.is_root:
            fp = self.storage.field(self.control, "fp")
            stack = self.storage.field(self.control, "stack")
            self.frame = self.builder.add(stack, self.builder.shl(fp, word(3)))
        else:
            self.frame = self.function.args[1]
            arguments = self.function.args[2:]
            for parameter, argument in zip(self.body.blocks[0].parameters, arguments, strict=True):
                self.values[parameter] = argument
        if self.plain is not None:
            plain, bytes_ = self.plain
            reach = self.builder.add(self.frame, word(bytes_), flags=("nuw",))
            deep = self.builder.icmp_unsigned(
                ">", reach, self.storage.field(self.control, "stack_end")
            )
            with self.builder.if_then(deep, likely=False):
                self.builder.ret(self.builder.call(plain, list(self.function.args), cconv="fastcc"))
        self.heap = self.storage.pointer(self.storage.field(self.control, "heap"))
        self.statics = self.storage.pointer(self.storage.field(self.control, "statics"))
        self.budget = self.builder.alloca(INT32)
        self.builder.store(ir.Constant(INT32, POLL_EVERY), self.budget)
        for block in self.body.blocks:
            self.blocks[block] = self.function.append_basic_block(block.label)
        self.builder.branch(self.blocks[self.body.blocks[0]])
        for block in self.body.blocks[1:]:
            for parameter in block.parameters:
                self.builder.position_at_end(self.blocks[block])
                self.values[parameter] = self.builder.phi(llvm_type(parameter.type))
        for block in self.body.blocks:
            self.builder.position_at_end(self.blocks[block])
            for operation in block.operations:
                self._operation(operation)
            self._terminator(block.end)

    # --- values -----------------------------------------------------------------------------

    def _value(self, value: Value) -> ir.Value:
        if isinstance(value, Constant):
            if isinstance(value.type, Truth):
                return ir.Constant(I1, value.bits)
            return self.constant(value.type, value.bits)
        return self.values[value]

    def _operation(self, operation: Operation) -> None:
        if self.plan.is_forced and operation.name in _SAFEPOINTS:
            assert operation.state is not None
            self._give_up(operation.state)
        special = getattr(self, f"_do_{operation.name}", None)
        if special is not None:
            result = special(operation, *(self._value(a) for a in operation.arguments))
        else:
            method = getattr(self, operation.name)
            result = method(*operation.static, *(self._value(a) for a in operation.arguments))
        if operation.type is not None:
            self.values[operation] = result

    def _do_add(self, operation: Operation, a: ir.Value, b: ir.Value) -> ir.Value:
        # Addresses of frames do not wrap: so one check of the stack limit can make others needless.
        is_address = getattr(operation.arguments[0], "name", None) == "frame"
        return self.builder.add(a, b, flags=("nuw",) if is_address else ())

    def _do_canonical(self, operation: Operation, a: ir.Value) -> ir.Value:
        t = operation.static[0]
        assert isinstance(t, Type)
        return canonical(self, t, a)

    def _do_word(self, operation: Operation) -> ir.Value:
        (index,), t = operation.static, operation.type
        assert isinstance(index, int)
        assert isinstance(t, Type)
        where = self.builder.add(self.frame, word(WORD_BYTES * index))
        return self.from_slot(t, self.storage.load(self.storage.pointer(where), "stack"))

    def _do_frame(self, operation: Operation) -> ir.Value:
        return self.frame

    def _do_stack_limit(self, operation: Operation) -> ir.Value:
        return self.storage.field(self.control, "stack_end")

    def _do_heap_capacity(self, operation: Operation) -> ir.Value:
        return self.storage.field(self.control, "heap_capacity")

    def _do_heap_pointer(self, operation: Operation) -> ir.Value:
        return self.storage.field(self.control, "hp")

    def _do_set_heap_pointer(self, operation: Operation, value: ir.Value) -> None:
        self.storage.set_field(self.control, "hp", value)

    def _do_function_field(self, operation: Operation, function: ir.Value) -> ir.Value:
        descriptors = self.storage.pointer(self.storage.field(self.control, "functions"))
        size = (WORD_BYTES * DESCRIPTOR_WORDS).bit_length() - 1
        descriptor = self.storage.offset(descriptors, self.builder.shl(function, word(size)))
        field = operation.static[0]
        assert isinstance(field, int)
        where = self.storage.offset(descriptor, WORD_BYTES * field)
        return self.storage.load(where, "functions", fixed=True)

    def _do_table_function(self, operation: Operation, index: ir.Value) -> ir.Value:
        table = self.storage.pointer(self.storage.field(self.control, "table"))
        where = self.storage.offset(table, self.builder.shl(index, word(3)))
        return self.storage.load(where, "table", fixed=True)

    # --- statics and heap -------------------------------------------------------------------

    def _static_at(self, index: ir.Value) -> ir.Value:
        return self.storage.offset(self.statics, self.builder.shl(index, word(3)))

    def _do_static(self, operation: Operation) -> ir.Value:
        (number,), t = operation.static, operation.type
        assert isinstance(number, int)
        assert isinstance(t, Type)
        where = self.storage.offset(self.statics, WORD_BYTES * number)
        return self.from_slot(t, self.storage.load(where, "statics"))

    def _do_set_static(self, operation: Operation, value: ir.Value) -> None:
        (number,), t = operation.static, operation.arguments[0].type
        assert isinstance(number, int)
        assert isinstance(t, Type)
        where = self.storage.offset(self.statics, WORD_BYTES * number)
        self.storage.store(self.to_slot(t, value), where, "statics")

    def _do_static_at(self, operation: Operation, index: ir.Value) -> ir.Value:
        return self.storage.load(self._static_at(index), "statics")

    def _do_set_static_at(self, operation: Operation, index: ir.Value, slot: ir.Value) -> None:
        self.storage.store(slot, self._static_at(index), "statics")

    def _do_heap_load(self, operation: Operation, address: ir.Value) -> ir.Value:
        (bytes_,) = operation.static
        assert isinstance(bytes_, int)
        where = self.storage.offset(self.heap, address)
        loaded = self.storage.load(where, "heap", ir.IntType(8 * bytes_), 1)
        return self.builder.zext(loaded, WORD) if bytes_ < 8 else loaded

    def _do_heap_store(self, operation: Operation, address: ir.Value, value: ir.Value) -> None:
        (bytes_,) = operation.static
        assert isinstance(bytes_, int)
        narrow = self.builder.trunc(value, ir.IntType(8 * bytes_)) if bytes_ < 8 else value
        self.storage.store(narrow, self.storage.offset(self.heap, address), "heap", 1)

    # --- leaving ----------------------------------------------------------------------------

    def _leave_if(self, p: ir.Value, state: State, status: Status, **fields: ir.Value) -> None:
        """Go on only if `p` does not hold; else leave with a status."""
        exit_ = self.function.append_basic_block("exit")
        onward = self.function.append_basic_block("on")
        self.builder.cbranch(p, exit_, onward).set_weights(list(_RARELY))
        self.builder.position_at_end(exit_)
        self._leave(state, _status(status), **fields)
        self.builder.position_at_end(onward)

    def _leave(self, state: State, status: ir.Value, **fields: ir.Value) -> None:
        """End the block by leaving in a state."""
        for name, value in fields.items():
            self.storage.set_field(self.control, name, value)
        self._write(state)
        if state.unpaid:
            fuel = self.builder.add(self.storage.field(self.control, "fuel"), word(state.unpaid))
            self.storage.set_field(self.control, "fuel", fuel)
        arguments = [self.control, self.frame, word(len(state.words)), word(state.pc)]
        self.builder.call(register_writer(self.module), [*arguments, status])
        self._left(status)

    def _write(self, state: State) -> None:
        """Write what a state says that memory does not have."""
        for number, value in state.statics:
            where = self.storage.offset(self.statics, WORD_BYTES * number)
            assert isinstance(value.type, Type)
            slot = self.to_slot(value.type, self._in_state(value))
            self.storage.store(slot, where, "statics")
        if state.heap_pointer is not None:
            self.storage.set_field(self.control, "hp", self._value(state.heap_pointer))
        words = [self._in_state(w) for w in state.words if w is not None]
        if words:
            writer = frame_writer(self.module, types_of(state))
            self.builder.call(writer, [self.frame, *words])

    def _in_state(self, value: Value) -> ir.Value:
        if is_virtual(value) and value not in self.values:
            assert isinstance(value, Operation)
            return self._do_canonical(value, self._value(value.arguments[0]))
        return self._value(value)

    def _left(self, status: ir.Value) -> None:
        """Return, having left."""
        if self.body.is_root:
            self.builder.ret(status)
        else:
            self._return(None, 1)

    def _return(self, value: ir.Value | None, left: int) -> None:
        flag = ir.Constant(INT32, left)
        if self.body.result is None:
            self.builder.ret(flag)
            return
        pair = ir.Constant(_result_type(self.body), ir.Undefined)
        if value is not None:
            pair = self.builder.insert_value(pair, value, 0)
        self.builder.ret(self.builder.insert_value(pair, flag, 1))

    def _do_trap_if(self, operation: Operation, p: ir.Value) -> None:
        kind = operation.static[0]
        assert isinstance(kind, int)
        assert operation.state is not None
        if self.has_room and _reach(operation):
            return
        self._leave_if(p, operation.state, Status.TRAP, trap=ir.Constant(INT32, int(kind)))

    def _do_grow_if(self, operation: Operation, p: ir.Value, wanted: ir.Value) -> None:
        assert operation.state is not None
        self._leave_if(p, operation.state, Status.GROW, wanted=wanted)

    def _interrupted(self) -> ir.Value:
        offset = ControlBlock.interrupt.offset  # type: ignore[attr-defined]  # a ctypes field
        where = self.storage.offset(self.control, offset)
        flag = self.builder.load_atomic(where, "monotonic", 4, typ=INT32)
        return self.builder.icmp_unsigned("!=", flag, ir.Constant(INT32, 0))

    def _do_poll(self, operation: Operation) -> None:
        if not self.polls:
            return
        assert operation.state is not None
        rest = self.builder.sub(self.builder.load(self.budget, typ=INT32), ir.Constant(INT32, 1))
        self.builder.store(rest, self.budget)
        look = self.function.append_basic_block("look")
        onward = self.function.append_basic_block("on")
        spent = self.builder.icmp_signed("==", rest, ir.Constant(INT32, 0))
        self.builder.cbranch(spent, look, onward).set_weights(list(_RARELY))
        self.builder.position_at_end(look)
        self.builder.store(ir.Constant(INT32, POLL_EVERY), self.budget)
        self._leave_if(self._interrupted(), operation.state, Status.INTERRUPTED)
        self.builder.branch(onward)
        self.builder.position_at_end(onward)

    def _do_check_entry(self, operation: Operation) -> None:
        assert operation.state is not None
        if self.is_copy:
            return  # inlined into what has looked
        if operation.static[0]:
            depth = stack_register(self.builder)
            where = self.storage.offset(self.control, HOST_STACK_LIMIT)
            limit = self.storage.load(where, "control")
            deep = self.builder.icmp_unsigned("<", depth, limit)
            self._leave_if(deep, operation.state, Status.LEAVE)
        if self.polls:
            self._leave_if(self._interrupted(), operation.state, Status.INTERRUPTED)

    def _do_guard(self, operation: Operation, fails: ir.Value) -> None:
        assert operation.state is not None
        exit_ = self.function.append_basic_block("guard")
        onward = self.function.append_basic_block("on")
        self.builder.cbranch(fails, exit_, onward).set_weights(list(_RARELY))
        self.builder.position_at_end(exit_)
        number = self.plan.guards.index(int(str(operation.static[0])))
        failures = self.plan.count(self.storage, FAILURES + number, word(1))
        limit = word(self.plan.options.guard_limit)
        is_often = self.builder.icmp_unsigned(">=", failures, limit)
        status = self.builder.select(is_often, _status(Status.GUARD), _status(Status.LEAVE))
        self._leave(operation.state, status)
        self.builder.position_at_end(onward)

    def _give_up(self, state: State) -> None:
        """Leave at the n-th such place since the region was entered, for tests."""
        where = self.storage.offset(self.control, SCRATCH)
        rest = self.builder.sub(self.storage.load(where, "control"), word(1))
        self.storage.store(rest, where, "control")
        self._leave_if(self.builder.icmp_signed("==", rest, word(0)), state, Status.LEAVE)

    def _do_pay(self, operation: Operation) -> None:
        count, wanted = operation.static
        assert isinstance(count, int)
        assert isinstance(wanted, int)
        assert operation.state is not None
        fuel = self.storage.field(self.control, "fuel")
        short = self.builder.icmp_signed("<", fuel, word(wanted))
        self._leave_if(short, operation.state, Status.LEAVE)
        self.storage.set_field(self.control, "fuel", self.builder.sub(fuel, word(count)))

    # --- calls ------------------------------------------------------------------------------

    def _do_call(self, operation: Operation, *arguments: ir.Value) -> ir.Value | None:
        number, base = operation.static
        assert isinstance(number, int)
        assert isinstance(base, int)
        return self._unwind(operation, self._call(number, base, arguments))

    def _call(self, number: int, base: int, arguments: tuple[ir.Value, ...]) -> ir.Value:
        frame = self.builder.add(self.frame, word(WORD_BYTES * base), flags=("nuw",))
        return self.builder.call(
            self.functions[number], [self.control, frame, *arguments], cconv="fastcc"
        )

    def _unwind(self, operation: Operation, returned: ir.Value) -> ir.Value | None:
        """The result of a call that returned; where it left, leave too."""
        left = self.builder.extract_value(returned, 1) if operation.type else returned
        assert operation.state is not None
        exit_ = self.function.append_basic_block("unwind")
        onward = self.function.append_basic_block("on")
        has_left = self.builder.icmp_unsigned("!=", left, ir.Constant(INT32, 0))
        self.builder.cbranch(has_left, exit_, onward).set_weights(list(_RARELY))
        self.builder.position_at_end(exit_)
        self._write(operation.state)
        self._left(self.storage.field(self.control, "status"))
        self.builder.position_at_end(onward)
        return self.builder.extract_value(returned, 0) if operation.type else None

    def _do_call_indirect(
        self, operation: Operation, function: ir.Value, *arguments: ir.Value
    ) -> ir.Value | None:
        candidates, base = operation.static
        assert isinstance(candidates, tuple)
        assert isinstance(base, int)
        if not candidates:  # the check of the signature has trapped
            return ir.Constant(llvm_type(operation.type), ir.Undefined) if operation.type else None
        none = self.function.append_basic_block("no.such.function")
        joined = self.function.append_basic_block("called")
        switch = self.builder.switch(function, none)
        self.builder.position_at_end(none)
        self.builder.unreachable()
        found = []
        for number in candidates:
            block = self.function.append_basic_block(f"call.f{number}")
            switch.add_case(word(number), block)
            self.builder.position_at_end(block)
            found.append((self._call(number, base, arguments), block))
            self.builder.branch(joined)
        self.builder.position_at_end(joined)
        returned = self.builder.phi(found[0][0].type)
        for value, block in found:
            returned.add_incoming(value, block)
        return self._unwind(operation, returned)

    # --- terminators ------------------------------------------------------------------------

    def _terminator(self, end: Terminator) -> None:
        arguments = [self._value(a) for a in end.arguments]
        match end.name:
            case "jump":
                self.builder.branch(self._target(end.edges[0]))
            case "branch":
                yes, no = self._targets(end.edges)
                self.builder.cbranch(arguments[0], yes, no)
            case "switch":
                *targets, last = self._targets(end.edges)
                switch = self.builder.switch(arguments[0], last)
                for number, target in enumerate(targets):
                    switch.add_case(word(number), target)
            case "return":
                self._do_return(end, arguments)
            case _:
                assert end.state is not None
                status, fields = _LEAVING[end.name], {}
                if end.name == "trap":
                    fields["trap"] = ir.Constant(INT32, int(end.static[0]))  # type: ignore[call-overload]
                if end.name == "host":
                    fields["exit_id"] = ir.Constant(INT32, end.static[0])
                self._leave(end.state, _status(status), **fields)

    def _do_return(self, end: Terminator, values: list[ir.Value]) -> None:
        if not self.body.is_root:
            self._return(values[0] if values else None, 0)
            return
        slot = word(0)
        if values:
            t = end.arguments[0].type
            assert isinstance(t, Type)
            slot = self.to_slot(t, values[0])
        arguments = [self.control, self.frame, slot, word(len(values))]
        self.builder.call(returner(self.module), arguments)
        self.builder.ret(_status(Status.LEAVE))

    def _targets(self, edges: tuple[Edge, ...]) -> list[ir.Block]:
        """Where edges go; through a block of its own where two go to the same block."""
        targets, taken = [], set()
        for edge in edges:
            if edge.block in taken and edge.arguments:
                between = self.function.append_basic_block("edge")
                here = self.builder.block
                self.builder.position_at_end(between)
                self.builder.branch(self._target(edge))
                self.builder.position_at_end(here)
                targets.append(between)
            else:
                taken.add(edge.block)
                targets.append(self._target(edge))
        return targets

    def _target(self, edge: Edge) -> ir.Block:
        """The block of an edge, told what this block passes to it."""
        for parameter, argument in zip(edge.block.parameters, edge.arguments, strict=True):
            phi = self.values[parameter]
            phi.add_incoming(self._value(argument), self.builder.block)
        return self.blocks[edge.block]


def _status(status: Status) -> ir.Constant:
    return ir.Constant(INT32, int(status))


_LEAVING = {
    "leave": Status.LEAVE,
    "trap": Status.TRAP,
    "halt": Status.HALT,
    "host": Status.HOST,
}
