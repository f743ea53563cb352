# SPDX-License-Identifier: Apache-2.0
"""From the region IR to code of the machine.

Blocks with one way in are joined to where it comes from, so that the others are entered at their top
alone and left by exits in the middle: extended blocks. What an exit needs to say of the machine's
state, it says in a block of its own, out of the way.

The machine's float operations yield the one NaN, so most of `canonical` is nothing here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from ferryvm.ir import touch
from ferryvm.ir.graph import (
    TRUTH,
    Block,
    Body,
    Constant,
    Edge,
    Module,
    Operation,
    State,
    Value,
    Virtual,
)
from ferryvm.ir.operation import PURE
from ferryvm.ir.passes.address import accessed
from ferryvm.ir.passes.prune import edges_to
from ferryvm.isa.emitter import Condition
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import CANONICAL_NAN, I64, WORD_BYTES, Type, signed, to_float
from ferryvm.machine.control import DESCRIPTOR_WORDS, ControlBlock, Status
from ferryvm_backends.vliw.code.across import live_across_calls
from ferryvm_backends.vliw.code.convert import Predicates
from ferryvm_backends.vliw.code.move import moves
from ferryvm_backends.vliw.code.operation import (
    Code,
    MachineBlock,
    MachineOperation,
    Operand,
    Place,
    Register,
    Segment,
    canonical_type,
)
from ferryvm_backends.vliw.machine.model import FileKind

_STATUS = {
    "leave": Status.LEAVE,
    "trap": Status.TRAP,
    "halt": Status.HALT,
    "host": Status.HOST,
}
_NEVER_RAW = frozenset({"canonical", "to_float_s", "to_float_u"})
"""Operations of the region IR that yield no NaN but the canonical one."""
_SAME = frozenset({"extend_u", "reinterpret", "to_slot", "from_slot"})
"""Operations whose result has the bits of their operand, as registers hold words."""
_LARGEST_OFFSET = 1 << 31
"""Of what is added to an address by an access, either way: two accesses on one base whose offsets
are apart are apart, then."""
_CALLS_BYTES = 64 << 10
"""Bytes that recursion may take for what its calls note."""


def lower(module: Module, predicates: Predicates) -> Code:
    """The code of a region; `predicates`: of some of its stores."""
    code = Code(module.name, [], tuple(module.guards))
    calling = Calling(module, code)
    bodies: list[tuple[int | None, Body]] = [(None, module.root), *module.functions.items()]
    lowerings = [_Lowering(b, code, calling, n, module.places, predicates) for n, b in bodies]
    for each in lowerings:
        each.run()
    for each in lowerings:
        each.finish()
    code.call_bytes = _CALLS_BYTES + calling.size
    return code


class Calling:
    """How functions call each other: what they have in common.

    Nothing is kept in registers across a call: the caller stores what it needs later, and loads it
    again. The callee's parameters are registers that the caller sets.
    """

    def __init__(self, module: Module, code: Code) -> None:
        word, truth = FileKind.INTEGER, FileKind.BOOLEAN
        self.frame = code.register(word)
        """Address of the running frame on the program's stack."""
        self.base = code.register(word)
        """Address of what the running function notes."""
        self.result = code.register(word)
        self.has_left = code.register(truth)
        """Whether the callee has left, and its caller has to."""
        self.entries = {number: MachineBlock(f"f{number}") for number in module.functions}
        self.parameters = {
            number: [code.register(word) for _ in body.blocks[0].parameters]
            for number, body in module.functions.items()
        }
        self.returns: dict[int, list[MachineBlock]] = {number: [] for number in module.functions}
        """Where each function may return to."""
        self.size = 0
        """Bytes that all functions note, each once."""


class _Lowering:
    def __init__(
        self,
        body: Body,
        code: Code,
        calling: Calling,
        number: int | None,
        places: Mapping[Operation, touch.Place],
        predicates: Predicates,
    ) -> None:
        """`number`: of the function; None for the region's own body."""
        self.body, self.code, self.calling, self.number = body, code, calling, number
        self.places, self.predicates = places, predicates
        self.frame = calling.frame
        self.across = live_across_calls(body)
        self.slots: dict[Value, int] = {}
        """Words in which values are kept during calls; the first is the return address's."""
        for values in self.across.values():
            for value in values:
                self.slots.setdefault(value, len(self.slots) + 1)
        self.size = WORD_BYTES * (len(self.slots) + 1)
        calling.size += self.size
        self.ends: list[MachineOperation] = []
        """Jumps to the caller."""
        self.incoming = edges_to(body)
        self.values: dict[Value, Operand] = {}
        self.blocks: dict[Block, MachineBlock] = {}
        """Those that have a block of their own."""
        self.block = MachineBlock("")
        self.pc = -1
        self.offsets = {
            value: signed(I64, bits)
            for value in accessed(body)
            if (bits := _added(value)) is not None
        }
        """Addresses that are a value and a constant, and needed only for accesses: they are never
        computed, for the machine adds the constant itself."""
        self.reached: set[Block] = set()
        """Those of them that something leads to, decided branches considered."""
        self.cold: list[MachineBlock] = []
        self.waiting: list[tuple[MachineBlock, Block]] = []
        """Blocks that nothing but an exit leads to, and where they go."""

    def run(self) -> None:
        entry = self.body.blocks[0]
        self.reached.add(entry)
        self.blocks[entry] = MachineBlock(entry.label)
        if self.number is not None:
            self.blocks[entry] = self.calling.entries[self.number]
        # Values are defined before they are used in the order of the body's blocks.
        for block in self.body.blocks:
            if len(self.incoming[block]) > 1 or any(e.is_back for e in self.incoming[block]):
                self.blocks[block] = MachineBlock(block.label)
        for block in self.body.blocks:
            if block is entry and self.number is not None:
                given = self.calling.parameters[self.number]
                self.values.update(zip(block.parameters, given, strict=True))
            elif block in self.blocks:
                for parameter in block.parameters:
                    self.values[parameter] = self._register(parameter)
        for block in self.body.blocks:
            found = self.blocks.get(block)
            if block in self.reached:
                assert found is not None
                self._open(found)
                if block is entry and self.number is None:
                    self._set(self.frame, "shl", (I64,), (self._read_field("fp"), 3))
                    self._set(self.calling.base, "move", (), (0,))
                self._inline(block)
                while self.waiting:
                    at, onward = self.waiting.pop()
                    self._open(at)
                    self._inline(onward)
        self.code.blocks += self.cold

    def finish(self) -> None:
        """Say where the function may return to, when all calls are known."""
        for operation in self.ends:
            assert self.number is not None
            operation.others = tuple(self.calling.returns[self.number])

    def _open(self, block: MachineBlock) -> None:
        self.block = block
        (self.cold if block.is_cold else self.code.blocks).append(block)

    def _inline(self, block: Block | None) -> None:
        """A block, and those that nothing else leads to behind it."""
        while block is not None:
            for operation in block.operations:
                self.pc = operation.pc
                self._operation(operation)
            block = self._end(block)

    # --- small things -----------------------------------------------------------------------

    def _register(self, value: Value) -> Register:
        return self.code.register(FileKind.BOOLEAN if value.type is TRUTH else FileKind.INTEGER)

    def _value(self, value: Value) -> Operand:
        if isinstance(value, Constant):
            return value.bits
        return self.values[value]

    def _emit(self, operation: MachineOperation) -> None:
        operation.pc = self.pc
        self.block.operations.append(operation)

    def _do(self, name: str, static: tuple[object, ...], operands: tuple[Operand, ...]) -> Register:
        kind = FileKind.BOOLEAN if name in ("compare", "all", "any", "none") else None
        result = self.code.register(kind or FileKind.INTEGER)
        self._emit(MachineOperation(name, static, operands, result))
        return result

    def _set(
        self, result: Register, name: str, static: tuple[object, ...], operands: tuple[Operand, ...]
    ) -> None:
        self._emit(MachineOperation(name, static, operands, result))

    def _load(
        self,
        segment: Segment,
        address: Operand,
        offset: int,
        size: int = 8,
        known: touch.Place | None = None,
    ) -> Register:
        result = self.code.register(FileKind.INTEGER)
        place = Place(segment, offset, size, known)
        self._emit(MachineOperation("load", (), (address,), result, place))
        return result

    def _store(
        self,
        segment: Segment,
        address: Operand,
        offset: int,
        value: Operand,
        size: int = 8,
        known: touch.Place | None = None,
    ) -> None:
        place = Place(segment, offset, size, known)
        self._emit(MachineOperation("store", (), (address, value), None, place))

    def _read_field(self, name: str) -> Register:
        where = getattr(ControlBlock, name)
        return self._load(Segment.CONTROL, 0, where.offset, where.size)

    def _write_field(self, name: str, value: Operand) -> None:
        where = getattr(ControlBlock, name)
        self._store(Segment.CONTROL, 0, where.offset, value, where.size)

    # --- operations -------------------------------------------------------------------------

    def _operation(self, operation: Operation) -> None:
        if operation in self.offsets:
            self.values[operation] = self._value(operation.arguments[0])  # what it is added to
            return
        operands = tuple(self._value(a) for a in operation.arguments)
        begin = len(self.block.operations)
        special = getattr(self, f"_do_{operation.name}", None)
        if special is not None:
            result = special(operation, *operands)
        elif operation.name in _SAME:
            result = operands[0]
        else:
            assert operation.name in PURE, operation.name
            result = self._do(operation.name, operation.static, operands)
        if operation.type is not None:
            self.values[operation] = result
        if operation in self.predicates:
            self._depend(begin, *self.predicates[operation])

    def _depend(self, begin: int, truth: Value, holds: bool) -> None:
        """Have the stores of one operation be done only if a truth is so."""
        p = self._value(truth)
        assert isinstance(p, Register)
        for each in self.block.operations[begin:]:
            if each.name == "store":
                each.operands, each.holds = (*each.operands, p), holds

    def _do_wrap(self, operation: Operation, a: Operand) -> Operand:
        value = operation.arguments[0]
        if isinstance(value, Operation) and value.name == "heap_load" and value.fact(0, int) <= 4:
            return a  # a register has zeros above it already
        return self._do("wrap", (), (a,))

    def _do_truth_to_i32(self, operation: Operation, p: Operand) -> Operand:
        return self._do("select", (), (p, 1, 0))

    def _do_canonical(self, operation: Operation, a: Operand) -> Operand:
        return self._canonical(operation.fact(0, Type), operation.arguments[0], a)

    def _canonical(self, t: Type, value: Value, a: Operand) -> Operand:
        """The canonical bits of a float."""
        if isinstance(value, Operation) and (
            value.name in _NEVER_RAW or canonical_type(value.name, value.static) is not None
        ):
            return a
        if isinstance(a, int):
            return CANONICAL_NAN[t] if math.isnan(to_float(t, a)) else a
        is_nan_ = self._do("compare", (t, Condition.NE), (a, a))
        return self._do("select", (), (is_nan_, CANONICAL_NAN[t], a))

    def _do_canonicalise(self, operation: Operation, *operands: Operand) -> None:
        t = operation.fact(0, Type)
        given = operation.arguments
        pairs = zip(given[::2], operands[::2], given[1::2], operands[1::2], strict=True)
        for where, address, value, bits in pairs:
            seen = self._canonical(t, value, bits)
            if seen is not bits:
                self._store(Segment.HEAP, address, self._offset(where), seen, t.bits // 8)

    def _do_word(self, operation: Operation) -> Operand:
        return self._load(Segment.STACK, self.frame, WORD_BYTES * operation.fact(0, int))

    def _do_static(self, operation: Operation) -> Operand:
        return self._load(Segment.STATICS, 0, WORD_BYTES * operation.fact(0, int))

    def _do_set_static(self, operation: Operation, value: Operand) -> None:
        self._store(Segment.STATICS, 0, WORD_BYTES * operation.fact(0, int), value)

    def _do_static_at(self, operation: Operation, index: Operand) -> Operand:
        return self._load(Segment.STATICS, self._do("shl", (I64,), (index, 3)), 0)

    def _do_set_static_at(self, operation: Operation, index: Operand, value: Operand) -> None:
        self._store(Segment.STATICS, self._do("shl", (I64,), (index, 3)), 0, value)

    def _do_heap_load(self, operation: Operation, address: Operand) -> Operand:
        offset, size = self._offset(operation.arguments[0]), operation.fact(0, int)
        return self._load(Segment.HEAP, address, offset, size, self.places.get(operation))

    def _do_heap_store(self, operation: Operation, address: Operand, value: Operand) -> None:
        offset, size = self._offset(operation.arguments[0]), operation.fact(0, int)
        self._store(Segment.HEAP, address, offset, value, size, self.places.get(operation))

    def _offset(self, address: Value) -> int:
        """What is added to an address where it is accessed."""
        return self.offsets.get(address, 0)

    def _do_heap_pointer(self, operation: Operation) -> Operand:
        return self._read_field("hp")

    def _do_set_heap_pointer(self, operation: Operation, value: Operand) -> None:
        self._write_field("hp", value)

    def _do_heap_capacity(self, operation: Operation) -> Operand:
        return self._read_field("heap_capacity")

    def _do_frame(self, operation: Operation) -> Operand:
        return self.frame

    def _do_stack_limit(self, operation: Operation) -> Operand:
        end, begin = self._read_field("stack_end"), self._read_field("stack")
        return self._do("sub", (I64,), (end, begin))

    def _do_function_field(self, operation: Operation, number: Operand) -> Operand:
        address = self._do("mul", (I64,), (number, WORD_BYTES * DESCRIPTOR_WORDS))
        return self._load(Segment.FUNCTIONS, address, WORD_BYTES * operation.fact(0, int))

    def _do_table_function(self, operation: Operation, index: Operand) -> Operand:
        return self._load(Segment.TABLE, self._do("shl", (I64,), (index, 3)), 0)

    # --- leaving ----------------------------------------------------------------------------

    def _do_trap_if(self, operation: Operation, p: Operand) -> None:
        trap = int(operation.fact(0, Trap))
        self._leave_if(operation, p, Status.TRAP, trap=trap)

    def _do_grow_if(self, operation: Operation, p: Operand, wanted: Operand) -> None:
        self._leave_if(operation, p, Status.GROW, wanted=wanted)

    def _do_guard(self, operation: Operation, p: Operand) -> None:
        number = self.code.guards.index(operation.fact(0, int))
        self._leave_if(operation, p, Status.GUARD, exit_id=number)

    def _do_poll(self, operation: Operation) -> None:
        self._leave_on(operation, "exit_expired", (), Status.INTERRUPTED)

    def _do_check_entry(self, operation: Operation) -> None:
        self._do_poll(operation)
        if operation.fact(0, bool):
            limit = (I64, Condition.GT_U)
            is_full = self._do("compare", limit, (self.calling.base, _CALLS_BYTES))
            self._leave_if(operation, is_full, Status.LEAVE)

    # --- calls ------------------------------------------------------------------------------

    def _do_call(self, operation: Operation, *given: Operand) -> Operand:
        return self._call(operation, [(None, operation.fact(0, int))], given)

    def _do_call_indirect(self, operation: Operation, number: Operand, *given: Operand) -> Operand:
        candidates = operation.fact(0, tuple)
        return self._call(operation, [(number, each) for each in candidates], given)

    def _call(
        self,
        operation: Operation,
        candidates: list[tuple[Operand | None, int]],
        given: tuple[Operand, ...],
    ) -> Operand:
        """Call one of some functions: which one the number in front of it says."""
        calling, words = self.calling, WORD_BYTES * operation.fact(1, int)
        back = MachineBlock(f"{self.block.label}.back{self.code.registers}")
        kept = [v for v in self.across[operation] if isinstance(self.values[v], Register)]
        for value in kept:
            self._store_kept(value)
        self._store(Segment.CALLS, calling.base, self.size, back)
        if words:
            self._set(self.frame, "add", (I64,), (self.frame, words))
        self._set(calling.base, "add", (I64,), (calling.base, self.size))
        if not candidates:  # the check in front of the call leaves
            self._emit(MachineOperation("stop"))
        for place, (number, callee) in enumerate(candidates):
            calling.returns[callee].append(back)
            to = calling.entries[callee]
            wanted = list(zip(calling.parameters[callee], given, strict=True))
            if place + 1 < len(candidates):
                assert number is not None
                is_it = self._do("compare", (I64, Condition.EQ), (number, callee))
                here, way = self.block, MachineBlock(f"{back.label}.to{callee}")
                self._emit(MachineOperation("exit", (), (is_it,), target=way))
                self._open(way)
                self._move(wanted)
                self._emit(MachineOperation("jump", target=to))
                self.block = here
            else:
                self._move(wanted)
                self._emit(MachineOperation("jump", target=to))
        self._open(back)
        self._set(calling.base, "sub", (I64,), (calling.base, self.size))
        if words:
            self._set(self.frame, "sub", (I64,), (self.frame, words))
        result = self.code.register(FileKind.INTEGER)
        self._set(result, "move", (), (calling.result,))
        for value in kept:
            self._load_kept(value)
        self._unwind_if_left(operation)
        return result

    def _store_kept(self, value: Value) -> None:
        operand = self._value(value)
        if value.type is TRUTH:
            operand = self._do("select", (), (operand, 1, 0))
        self._store(Segment.CALLS, self.calling.base, WORD_BYTES * self.slots[value], operand)

    def _load_kept(self, value: Value) -> None:
        register = self.values[value]
        assert isinstance(register, Register)
        place = Place(Segment.CALLS, WORD_BYTES * self.slots[value])
        if value.type is TRUTH:
            word = self.code.register(FileKind.INTEGER)
            self._emit(MachineOperation("load", (), (self.calling.base,), word, place))
            self._set(register, "compare", (I64, Condition.NE), (word, 0))
        else:
            self._emit(MachineOperation("load", (), (self.calling.base,), register, place))

    def _unwind_if_left(self, operation: Operation) -> None:
        """If the callee has left write the frame, and have the caller do so, too."""
        assert operation.state is not None
        here = self.block
        cold = MachineBlock(f"unwind{self.code.registers}", is_cold=True)
        self._emit(MachineOperation("exit", (), (self.calling.has_left,), target=cold))
        self._open(cold)
        self._write(operation.state)
        self._stop()
        self.block = here

    def _stop(self) -> None:
        """Give control back, or to the caller, which does so."""
        if self.number is None:
            self._emit(MachineOperation("stop"))
        else:
            self._to_caller(has_left=True)

    def _to_caller(self, has_left: bool) -> None:
        self._set(self.calling.has_left, "any", (), (int(has_left), 0))
        back = self._load(Segment.CALLS, self.calling.base, 0)
        self.ends.append(MachineOperation("jump_to", (), (back,)))
        self._emit(self.ends[-1])

    def _do_pay(self, operation: Operation) -> None:
        paid, wanted = operation.fact(0, int), operation.fact(1, int)
        fuel = self._read_field("fuel")
        is_short = self._do("compare", (I64, Condition.LT_S), (fuel, wanted))
        self._leave_if(operation, is_short, Status.LEAVE)
        if paid:
            self._write_field("fuel", self._do("sub", (I64,), (fuel, paid)))

    def _leave_if(
        self, operation: Operation, p: Operand, status: Status, **fields: Operand
    ) -> None:
        if p != 0:
            self._leave_on(operation, "exit", (p,), status, **fields)

    def _leave_on(
        self,
        operation: Operation,
        name: str,
        operands: tuple[Operand, ...],
        status: Status,
        **fields: Operand,
    ) -> None:
        """Leave by way of a block of its own."""
        assert operation.state is not None
        here = self.block
        cold = MachineBlock(f"leave{len(self.cold)}", is_cold=True)
        self._emit(MachineOperation(name, (), operands, None, None, cold))
        self._open(cold)
        self._leave(operation.state, status, fields)
        self.block = here

    def _leave(self, state: State, status: Status, fields: dict[str, Operand]) -> None:
        """Have memory and registers as a state says, and give control back."""
        self._write(state)
        if state.unpaid:
            more = self._do("add", (I64,), (self._read_field("fuel"), state.unpaid))
            self._write_field("fuel", more)
        at = self._do("shr_u", (I64,), (self.frame, 3))
        sp = self._do("add", (I64,), (at, len(state.words)))
        everything: dict[str, Operand] = {
            "pc": state.pc,
            "sp": sp,
            "fp": at,
            "status": int(status),
        }
        for name, operand in {**everything, **fields}.items():
            self._write_field(name, operand)
        self._stop()

    def _write(self, state: State) -> None:
        """Have memory as a state says."""
        for place, word in enumerate(state.words):
            if word is not None:
                self._store(Segment.STACK, self.frame, WORD_BYTES * place, self._in_state(word))
        for number, value in state.statics:
            self._store(Segment.STATICS, 0, WORD_BYTES * number, self._in_state(value))
        if state.heap_pointer is not None:
            self._write_field("hp", self._value(state.heap_pointer))

    def _in_state(self, value: Value) -> Operand:
        if isinstance(value, Virtual):
            assert isinstance(value.type, Type)
            return self._canonical(value.type, value.raw, self._value(value.raw))
        return self._value(value)

    # --- ends of blocks ---------------------------------------------------------------------

    def _end(self, block: Block) -> Block | None:
        """The end of a block; the block to go on with, if nothing else leads there."""
        end = block.end
        self.pc = end.pc
        operands = [self._value(a) for a in end.arguments]
        if end.name == "branch":
            return self._branch(operands[0], *end.edges)
        if end.name == "switch":
            for number, edge in enumerate(end.edges[:-1]):
                p = self._do("compare", (I64, Condition.EQ), (operands[0], number))
                self._exit("exit", p, edge)
            return self._go(end.edges[-1])
        if end.name == "jump":
            return self._go(end.edges[0])
        if end.name == "return":
            self._return(operands)
            return None
        fields: dict[str, Operand] = {}
        if end.name == "trap":
            fields["trap"] = int(end.fact(0, Trap))
        if end.name == "host":
            fields["exit_id"] = end.fact(0, int)
        assert end.state is not None
        self._leave(end.state, _STATUS[end.name], fields)
        return None

    def _branch(self, p: Operand, yes: Edge, no: Edge) -> Block | None:
        # What is joined to this block, or goes round a loop, is not left for.
        if (yes.block in self.blocks) > (no.block in self.blocks) and not yes.is_back:
            self._exit("exit", p, yes)
            return self._go(no)
        if isinstance(p, int):
            return self._go(yes if p else no)
        self._exit("exit_unless", p, no)
        return self._go(yes)

    def _exit(self, name: str, p: Operand, edge: Edge) -> None:
        """Go along an edge if a truth holds, or does not: by way of a block of its own."""
        here = self.block
        block = MachineBlock(f"{here.label}.{edge.block.label}.{self.code.registers}")
        self._emit(MachineOperation(name, (), (p,), None, None, block))
        self._open(block)
        onward = self._go(edge)
        if onward is not None:
            self.code.blocks.remove(block)
            self.waiting.append((block, onward))
        self.block = here

    def _go(self, edge: Edge) -> Block | None:
        pairs = zip(edge.block.parameters, edge.arguments, strict=True)
        if edge.block not in self.blocks:
            for parameter, argument in pairs:
                self.values[parameter] = self._value(argument)
            return edge.block
        wanted = []
        for parameter, argument in pairs:
            to = self.values[parameter]
            assert isinstance(to, Register)
            wanted.append((to, self._value(argument)))
        self._move(wanted)
        self.reached.add(edge.block)
        self._emit(MachineOperation("jump", target=self.blocks[edge.block]))
        return None

    def _move(self, wanted: Iterable[tuple[Register, Operand]]) -> None:
        """Set registers, all at once."""
        for operation in moves(self.code, wanted):
            self._emit(operation)

    def _return(self, operands: list[Operand]) -> None:
        if self.number is not None:
            for operand in operands:
                self._set(self.calling.result, "move", (), (operand,))
            self._to_caller(has_left=False)
            return
        pc = self._load(Segment.STACK, self.frame, 0)
        distance = self._load(Segment.STACK, self.frame, WORD_BYTES)
        self._store(Segment.STACK, self.frame, 0, operands[0] if operands else 0)
        at = self._do("shr_u", (I64,), (self.frame, 3))
        self._write_field("pc", pc)
        self._write_field("fp", self._do("sub", (I64,), (at, distance)))
        self._write_field("sp", self._do("add", (I64,), (at, len(operands))))
        self._write_field("status", int(Status.LEAVE))
        self._emit(MachineOperation("stop"))


def _added(value: Value) -> int | None:
    """The constant that is added to make a value, if it is so made and the constant is small."""
    if not isinstance(value, Operation) or value.name != "add" or value.static != (I64,):
        return None
    more = value.arguments[1]
    if not isinstance(more, Constant) or abs(signed(I64, more.bits)) > _LARGEST_OFFSET:
        return None
    return more.bits
