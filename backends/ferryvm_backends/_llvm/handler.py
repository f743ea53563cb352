# SPDX-License-Identifier: Apache-2.0
"""Building interpreter handlers from the instruction table's meanings.

The builder owns the stack: meanings get their operands as arguments and return the values to push;
the builder adds the pops and pushes. A handler can contain several instructions; a value that one
pushes and the next pops then never reaches memory. An exit in the middle (a trap, say) first writes
the operand stack as it was before the instruction that leaves.

    cell at ip:  │ operation: 8 bytes │ immediate: 8 bytes │     one cell an instruction

Only the dispatch to the next handler depends on the strategy: see `switch` (a loop around one
switch) and `threaded` (handlers that tail-call each other).
"""

from __future__ import annotations

import abc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ferryvm import record
from ferryvm.isa import Immediate, Instruction, Trap, Type
from ferryvm.isa.emitter import Emitter, FunctionField
from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine.control import DESCRIPTOR_WORDS, ControlBlock, Status
from ferryvm.machine.native import NATIVE_WORDS, NativeField
from ferryvm.program import RECORD_BYTES
from ferryvm_backends._llvm import ir
from ferryvm_backends._llvm.arithmetic import WORD, Arithmetic, word

CELL_BYTES = RECORD_BYTES
BYTE = ir.IntType(8)
POINTER = ir.PointerType()
INT32 = ir.IntType(32)
NATIVE_CALLER = ir.FunctionType(ir.VoidType(), [WORD, POINTER])
"""A caller of native functions: of a function's address, and of its first argument's."""


@record.dataclass
class Registers:
    """The machine registers that handlers pass along; all are byte pointers."""

    ip: ir.Value
    sp: ir.Value
    fp: ir.Value
    control: ir.Value
    statics: ir.Value
    heap: ir.Value


class HandlerBuilder(Arithmetic, Emitter[ir.Value]):
    """The storage half of the emitter protocol, over an operand stack that is partly in values."""

    registers: Registers
    counting: bool
    """True if each instruction checks and pays fuel."""

    _pushed: list[ir.Value]
    """Values above memory's part of the operand stack, deepest first."""
    _popped: int
    """Words of memory's part that are popped but still below `registers.sp`."""
    _ip: ir.Value
    """Cell of the instruction being woven."""
    _before: tuple[ir.Value, list[ir.Value], int]
    """`registers.sp`, `_pushed` and `_popped` as they were before it."""
    _open: bool
    """True if control still reaches the end of the code built so far."""

    # --- strategy ---------------------------------------------------------------------------

    @abc.abstractmethod
    def _dispatch(self, registers: Registers) -> None:
        """End the block by going on at `registers.ip`."""

    @abc.abstractmethod
    def _exit(self, registers: Registers, status: Status) -> None:
        """End the block by giving control back with `status` at `registers.ip`."""

    @abc.abstractmethod
    def _target_cell(self, target: ir.Value) -> ir.Value:
        """Cell of a target immediate."""

    def _function_immediate(self, raw: ir.Value) -> ir.Value:
        """The function that an immediate denotes: here its number."""
        return raw

    # --- weaving ----------------------------------------------------------------------------

    def _stand_at(self, registers: Registers) -> None:
        """Start before the instruction at `registers.ip`, with the whole stack in memory."""
        self.registers = registers
        self._pushed, self._popped, self._open = [], 0, True
        self._ip, self._before = registers.ip, (registers.sp, [], 0)

    def build_handler(self, group: Sequence[Instruction], registers: Registers) -> None:
        """Emit the handler of `group`, from the builder's position; ends the block."""
        self._stand_at(registers)
        for position, row in enumerate(group):
            self._ip = self._offset(registers.ip, CELL_BYTES * position)
            self._before = (self.registers.sp, list(self._pushed), self._popped)
            if self.counting:
                self._check_fuel()
            arguments = self._immediate(row)
            operands = [self._pop(t) for t in reversed(row.pops)]
            result = row.meaning(self, *arguments, *reversed(operands))
            if not self._open:
                if position + 1 != len(group):
                    raise ValueError(f"{row.mnemonic} can only end a fused group")
                return
            results = result if isinstance(result, tuple) else (result,)
            if result is not None:
                self._pushed += [
                    self.to_slot(t, value) if isinstance(t, Type) else value
                    for t, value in zip(row.pushes, results, strict=True)
                ]
        following = self._offset(registers.ip, CELL_BYTES * len(group))
        self._go_on(following)

    def _immediate(self, row: Instruction) -> list[ir.Value]:
        if row.immediate is Immediate.NONE:
            return []
        raw = self._load(self._offset(self._ip, WORD_BYTES), invariant=True)
        if row.immediate is Immediate.FUNCTION:
            return [self._function_immediate(raw)]
        literal = row.immediate.literal
        return [self.from_slot(literal, raw) if literal else raw]

    def _pop(self, t: object) -> ir.Value:
        if self._pushed:
            slot = self._pushed.pop()
        else:
            self._popped += 1
            slot = self._load(self._offset(self.registers.sp, -WORD_BYTES * self._popped))
        return self.from_slot(t, slot) if isinstance(t, Type) else slot

    def _spill(self, sp: ir.Value, pushed: list[ir.Value], popped: int) -> ir.Value:
        """Write an operand stack to memory; its stack pointer."""
        base = self._offset(sp, -WORD_BYTES * popped)
        for depth, slot in enumerate(pushed):
            self._store(slot, self._offset(base, WORD_BYTES * depth))
        return self._offset(base, WORD_BYTES * len(pushed))

    def _flush(self) -> None:
        sp = self._spill(self.registers.sp, self._pushed, self._popped)
        self.registers = record.replace(self.registers, sp=sp)
        self._pushed, self._popped = [], 0

    def _go_on(self, ip: ir.Value, taken: bool = False) -> None:
        """End the block at an instruction boundary; a `taken` jump looks at the interrupt flag."""
        self._flush()
        self._open = False
        registers = record.replace(self.registers, ip=ip)
        if self.counting:
            fuel = self._control_field("fuel")
            self._set_control_field("fuel", self.builder.sub(fuel, word(1)))
        if taken:
            self._exit_if_interrupted(registers)
        self._dispatch(registers)

    def _exit_if_interrupted(self, registers: Registers) -> None:
        address = self._control_address("interrupt")
        flag = self.builder.load_atomic(address, "monotonic", 4, typ=INT32)
        wanted = self.builder.icmp_unsigned("!=", flag, ir.Constant(INT32, 0))
        with self.builder.if_then(wanted, likely=False):
            self._exit(registers, Status.INTERRUPTED)

    def _check_fuel(self) -> None:
        empty = self.builder.icmp_signed("<=", self._control_field("fuel"), word(0))
        self._leave_if(empty, Status.FUEL)

    def _leave_if(self, p: ir.Value, status: Status, **fields: ir.Value) -> None:
        with self.builder.if_then(p, likely=False):
            self._leave(status, **fields)

    def _leave(self, status: Status, **fields: ir.Value) -> None:
        """End the block by leaving in the state before the instruction being woven."""
        for name, value in fields.items():
            self._set_control_field(name, value)
        sp = self._spill(*self._before)
        self._exit(record.replace(self.registers, ip=self._ip, sp=sp), status)

    # --- addresses --------------------------------------------------------------------------

    def _offset(self, pointer: ir.Value, bytes_: int | ir.Value) -> ir.Value:
        if isinstance(bytes_, int):
            if bytes_ == 0:
                return pointer
            bytes_ = word(bytes_)
        return self.builder.gep(pointer, [bytes_], source_etype=BYTE)

    def _load(self, address: ir.Value, invariant: bool = False, t: ir.Type = WORD) -> ir.Value:
        metadata = f"!invariant.load {self.builder.module.add_metadata('')}" if invariant else ""
        return self.builder.load(address, align=WORD_BYTES, typ=t, metadata=metadata)

    def _store(self, value: ir.Value, address: ir.Value) -> None:
        self.builder.store(value, address, align=value.type.width // 8)

    def _control_address(self, name: str) -> ir.Value:
        return self._offset(self.registers.control, getattr(ControlBlock, name).offset)

    def _control_field(self, name: str) -> ir.Value:
        return self._load(self._control_address(name))

    def _set_control_field(self, name: str, value: ir.Value) -> None:
        size = getattr(ControlBlock, name).size
        if size == 4:
            value = self.builder.trunc(value, INT32)
        self._store(value, self._control_address(name))

    def _pointer(self, address: ir.Value) -> ir.Value:
        return self.builder.inttoptr(address, POINTER)

    def _address(self, pointer: ir.Value) -> ir.Value:
        return self.builder.ptrtoint(pointer, WORD)

    # --- leaving ----------------------------------------------------------------------------

    def trap_if(self, p: ir.Value, kind: Trap) -> None:
        self._leave_if(p, Status.TRAP, trap=word(kind))

    def trap(self, kind: Trap) -> None:
        self._leave(Status.TRAP, trap=word(kind))
        self._open = False

    def grow_if(self, p: ir.Value, wanted: ir.Value) -> None:
        self._leave_if(p, Status.GROW, wanted=wanted)

    def continue_launch_if(self, p: ir.Value) -> None:
        self._leave_if(p, Status.LAUNCH)

    def halt(self) -> None:
        self._leave(Status.HALT)
        self._open = False

    def host(self, number: ir.Value) -> None:
        rows = self._pointer(self._control_field("natives"))
        size = (WORD_BYTES * NATIVE_WORDS).bit_length() - 1
        row = self._offset(rows, self.builder.shl(number, word(size)))
        caller = self._load(self._offset(row, WORD_BYTES * NativeField.CALLER))
        with self.builder.if_then(self.builder.icmp_unsigned("!=", caller, word(0))):
            self._call_native(row, caller)
        self._leave(Status.HOST, exit_id=number)
        self._open = False

    def _call_native(self, row: ir.Value, caller: ir.Value) -> None:
        """End the block by calling the function of a row of `control.natives`, and going on."""
        builder = self.builder

        def field(which: NativeField) -> ir.Value:
            return self._load(self._offset(row, WORD_BYTES * which))

        def words(which: NativeField) -> ir.Value:
            return builder.shl(field(which), word(3))

        end = self._spill(*self._before)
        first = self._offset(end, builder.sub(word(0), words(NativeField.PARAMETERS)))
        # Not the status of an earlier host call, in which the program could be called again.
        self._set_control_field("status", word(Status.RUNNING))
        function = field(NativeField.FUNCTION)
        builder.call(ir.Callee(self._pointer(caller), NATIVE_CALLER), [function, first])
        if self.counting:
            self._set_control_field("fuel", builder.sub(self._control_field("fuel"), word(1)))
        after = self._offset(first, words(NativeField.RESULTS))
        following = self._offset(self._ip, CELL_BYTES)
        self._dispatch(record.replace(self.registers, ip=following, sp=after))

    def throw(self) -> None:
        self._leave(Status.THROW)
        self._open = False

    # --- storage ----------------------------------------------------------------------------

    def _local_address(self, index: ir.Value) -> ir.Value:
        return self._offset(self.registers.fp, self.builder.shl(index, word(3)))

    def _static_address(self, index: ir.Value) -> ir.Value:
        return self._offset(self.registers.statics, self.builder.shl(index, word(3)))

    def local(self, index: ir.Value) -> ir.Value:
        return self._load(self._local_address(index))

    def set_local(self, index: ir.Value, slot: ir.Value) -> None:
        self._store(slot, self._local_address(index))

    def static(self, index: ir.Value) -> ir.Value:
        return self._load(self._static_address(index))

    def set_static(self, index: ir.Value, slot: ir.Value) -> None:
        self._store(slot, self._static_address(index))

    def static_count(self) -> ir.Value:
        return self._control_field("static_count")

    def heap_load(self, bytes_: int, address: ir.Value) -> ir.Value:
        where = self._offset(self.registers.heap, address)
        loaded = self.builder.load(where, align=1, typ=ir.IntType(8 * bytes_))
        return self.builder.zext(loaded, WORD) if bytes_ < 8 else loaded

    def heap_store(self, bytes_: int, address: ir.Value, value: ir.Value) -> None:
        narrow = self.builder.trunc(value, ir.IntType(8 * bytes_)) if bytes_ < 8 else value
        self.builder.store(narrow, self._offset(self.registers.heap, address), align=1)

    def heap_pointer(self) -> ir.Value:
        return self._control_field("hp")

    def set_heap_pointer(self, value: ir.Value) -> None:
        self._set_control_field("hp", value)

    def heap_capacity(self) -> ir.Value:
        return self._control_field("heap_capacity")

    # --- control ----------------------------------------------------------------------------

    def jump(self, target: ir.Value) -> None:
        self._go_on(self._target_cell(target), taken=True)

    def jump_if(self, p: ir.Value, target: ir.Value) -> None:
        self._flush()
        following = self._offset(self._ip, CELL_BYTES)
        with self.builder.if_then(p):
            self._go_on(self._target_cell(target), taken=True)
        self._go_on(following)

    def skip(self, count: ir.Value) -> None:
        following = self._offset(self._ip, CELL_BYTES)
        self._go_on(self._offset(following, self.builder.shl(count, word(4))))

    # --- frames -----------------------------------------------------------------------------

    def frame_pointer(self) -> ir.Value:
        return self._address(self.registers.fp)

    def stack_pointer(self) -> ir.Value:
        self._flush()
        return self._address(self.registers.sp)

    def stack_limit(self) -> ir.Value:
        return self._control_field("stack_end")

    def word(self, address: ir.Value) -> ir.Value:
        return self._load(self._pointer(address))

    def set_word(self, address: ir.Value, slot: ir.Value) -> None:
        self._store(slot, self._pointer(address))

    def clear_words(self, address: ir.Value, count: ir.Value) -> None:
        with self._words(count, "clear") as offset:
            self._store(word(0), self._pointer(self.builder.add(address, offset)))

    def move_results(self, to: ir.Value, end: ir.Value, count: ir.Value) -> None:
        builder = self.builder
        # One word is moved even where there is none: a dead one, which costs less than a choice.
        self.set_word(to, self.word(builder.sub(end, word(WORD_BYTES))))
        with builder.if_then(builder.icmp_unsigned(">", count, word(1)), likely=False):
            first = builder.sub(end, builder.shl(count, word(3)))
            with self._words(count, "move") as offset:
                self.set_word(builder.add(to, offset), self.word(builder.add(first, offset)))

    @contextmanager
    def _words(self, count: ir.Value, name: str) -> Iterator[ir.Value]:
        """A loop over so many words: the offset of each in bytes, from 0 up."""
        with self._iterations(count, name) as index:
            yield self.builder.shl(index, word(3))

    @contextmanager
    def _iterations(self, count: ir.Value, name: str) -> Iterator[ir.Value]:
        """A loop of so many iterations: the number of each, from 0 up."""
        builder = self.builder
        start = builder.block
        head = builder.function.append_basic_block(name)
        body = builder.function.append_basic_block(f"{name}.word")
        done = builder.function.append_basic_block(f"{name}.done")
        builder.branch(head)
        builder.position_at_end(head)
        index = builder.phi(WORD)
        index.add_incoming(word(0), start)
        builder.cbranch(builder.icmp_unsigned("<", index, count), body, done)
        builder.position_at_end(body)
        yield index
        index.add_incoming(builder.add(index, word(1)), builder.block)
        builder.branch(head)
        builder.position_at_end(done)

    def push_words(self, slot: ir.Value, address: ir.Value, count: ir.Value) -> None:
        self._flush()
        self._store(slot, self.registers.sp)
        first = self._offset(self.registers.sp, WORD_BYTES)
        with self._words(count, "push") as offset:
            value = self.word(self.builder.add(address, offset))
            self._store(value, self._offset(first, offset))
        sp = self._offset(first, self.builder.shl(count, word(3)))
        self.registers = record.replace(self.registers, sp=sp)

    def next_pc(self) -> ir.Value:
        code = self._control_field("code")
        following = self._address(self._offset(self._ip, CELL_BYTES))
        return self.builder.lshr(self.builder.sub(following, code), word(4))

    def function(self, function: ir.Value, field: FunctionField) -> ir.Value:
        descriptor = self._descriptor(function)
        return self._load(self._offset(descriptor, WORD_BYTES * field), invariant=True)

    def _descriptor(self, function: ir.Value) -> ir.Value:
        descriptors = self._pointer(self._control_field("functions"))
        size = (WORD_BYTES * DESCRIPTOR_WORDS).bit_length() - 1
        return self._offset(descriptors, self.builder.shl(function, word(size)))

    def table_size(self) -> ir.Value:
        return self._control_field("table_size")

    def table_function(self, index: ir.Value) -> ir.Value:
        table = self._pointer(self._control_field("table"))
        return self._load(self._offset(table, self.builder.shl(index, word(3))))

    def enter(self, function: ir.Value, frame: ir.Value, stack: ir.Value) -> None:
        self._transfer(self.function(function, FunctionField.ENTRY), frame, stack)

    def resume(self, pc: ir.Value, frame: ir.Value, stack: ir.Value) -> None:
        self._transfer(pc, frame, stack)

    def _transfer(self, pc: ir.Value, frame: ir.Value, stack: ir.Value) -> None:
        code = self._pointer(self._control_field("code"))
        self._continue_at(self._offset(code, self.builder.shl(pc, word(4))), frame, stack)

    def _continue_at(self, cell: ir.Value, frame: ir.Value, stack: ir.Value) -> None:
        """End the block by going on in another frame."""
        self.registers = record.replace(
            self.registers, fp=self._pointer(frame), sp=self._pointer(stack)
        )
        self._go_on(cell, taken=True)
