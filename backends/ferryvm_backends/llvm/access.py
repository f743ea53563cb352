# SPDX-License-Identifier: Apache-2.0
"""Operations that read or change the machine's state without leaving."""

from __future__ import annotations

from ferryvm.ir.graph import Constant, Operation
from ferryvm.isa.emitter import FunctionField
from ferryvm.isa.numeric import canonical
from ferryvm.isa.type import WORD_BYTES, Type
from ferryvm.machine.control import DESCRIPTOR_WORDS
from ferryvm_backends._llvm import ir
from ferryvm_backends._llvm.arithmetic import LLVM_TYPE, WORD, word
from ferryvm_backends.llvm.function import FunctionContext


class Access:
    """Lowers operations that affect memory only."""

    def __init__(self, function: FunctionContext) -> None:
        self.function, self.builder, self.storage = function, function.builder, function.storage

    def do_add(self, operation: Operation, a: ir.Value, b: ir.Value) -> ir.Value:
        # Addresses of frames do not wrap: so one check of the stack limit can make others needless.
        base = operation.arguments[0]
        is_address = isinstance(base, Operation) and base.name == "frame"
        return self.builder.add(a, b, flags=("nuw",) if is_address else ())

    def do_canonical(self, operation: Operation, a: ir.Value) -> ir.Value:
        return canonical(self.function.arithmetic, operation.fact(0, Type), a)

    def do_word(self, operation: Operation) -> ir.Value:
        where = self.function.frame_word(operation.fact(0, int))
        slot = self.storage.load(where, "stack")
        return self.function.arithmetic.from_slot(operation.word_type, slot)

    def do_result(self, operation: Operation) -> ir.Value:
        return self.do_word(operation)

    def do_frame(self, operation: Operation) -> ir.Value:
        return self.function.frame

    def do_stack_limit(self, operation: Operation) -> ir.Value:
        return self.storage.field(self.function.control, "stack_end")

    def do_heap_capacity(self, operation: Operation) -> ir.Value:
        return self.storage.field(self.function.control, "heap_capacity")

    def do_heap_pointer(self, operation: Operation) -> ir.Value:
        return self.storage.field(self.function.control, "hp")

    def do_set_heap_pointer(self, operation: Operation, value: ir.Value) -> None:
        self.storage.set_field(self.function.control, "hp", value)

    def do_function_field(self, operation: Operation, function: ir.Value) -> ir.Value:
        descriptors = self.storage.pointer(self.storage.field(self.function.control, "functions"))
        size = (WORD_BYTES * DESCRIPTOR_WORDS).bit_length() - 1
        descriptor = self.storage.offset(descriptors, self.builder.shl(function, word(size)))
        where = self.storage.offset(descriptor, WORD_BYTES * operation.fact(0, FunctionField))
        return self.storage.load(where, "functions", fixed=True)

    def do_table_function(self, operation: Operation, index: ir.Value) -> ir.Value:
        table = self.storage.pointer(self.storage.field(self.function.control, "table"))
        where = self.storage.offset(table, self.builder.shl(index, word(3)))
        return self.storage.load(where, "table", fixed=True)

    def do_launch_word(self, operation: Operation) -> ir.Value:
        words = self.storage.pointer(self.storage.field(self.function.control, "launches"))
        where = self.storage.offset(words, WORD_BYTES * operation.fact(0, int))
        return self.storage.load(where, "launches")  # the engine changes it, now and then

    # --- context arrays of groups -----------------------------------------------------------

    def element(self, operation: Operation, array: ir.Value, index: ir.Value) -> ir.Value:
        """The address of an element. Where arrays are at constant distances it is one from a pointer that they
        share: then LLVM knows that they do not overlap, and compares no addresses in front of a loop."""
        shift = (operation.fact(0, Type).bits // 8).bit_length() - 1
        pointer = self.storage.pointer(array)
        match operation.arguments[0]:
            case Operation(name="add", arguments=(base, Constant() as distance)):
                pointer = self.storage.pointer(self.function.value(base))
                pointer = self.storage.offset(pointer, distance.bits)
        return self.storage.offset(pointer, self.builder.shl(index, word(shift)))

    def do_context_load(self, operation: Operation, array: ir.Value, index: ir.Value) -> ir.Value:
        t = operation.fact(0, Type)
        where = self.element(operation, array, index)
        return self.storage.load(where, "context", LLVM_TYPE[t], t.bits // 8)

    def do_context_store(
        self, operation: Operation, array: ir.Value, index: ir.Value, value: ir.Value
    ) -> None:
        where = self.element(operation, array, index)
        self.storage.store(value, where, "context", operation.fact(0, Type).bits // 8)

    # --- statics and heap -------------------------------------------------------------------

    def do_static(self, operation: Operation) -> ir.Value:
        slot = self.storage.load(self.function.static(operation.fact(0, int)), "statics")
        return self.function.arithmetic.from_slot(operation.word_type, slot)

    def do_set_static(self, operation: Operation, value: ir.Value) -> None:
        slot = self.function.arithmetic.to_slot(operation.arguments[0].word_type, value)
        self.storage.store(slot, self.function.static(operation.fact(0, int)), "statics")

    def _static_at(self, index: ir.Value) -> ir.Value:
        return self.storage.offset(self.function.statics, self.builder.shl(index, word(3)))

    def do_static_at(self, operation: Operation, index: ir.Value) -> ir.Value:
        return self.storage.load(self._static_at(index), "statics")

    def do_set_static_at(self, operation: Operation, index: ir.Value, slot: ir.Value) -> None:
        self.storage.store(slot, self._static_at(index), "statics")

    def do_heap_load(self, operation: Operation, address: ir.Value) -> ir.Value:
        bits = 8 * operation.fact(0, int)
        where = self.storage.offset(self.function.heap, address)
        loaded = self.storage.load(where, "heap", ir.IntType(bits), 1)
        return self.builder.zext(loaded, WORD) if bits < WORD.width else loaded

    def do_heap_store(self, operation: Operation, address: ir.Value, value: ir.Value) -> None:
        bits = 8 * operation.fact(0, int)
        narrow = self.builder.trunc(value, ir.IntType(bits)) if bits < WORD.width else value
        self.storage.store(narrow, self.storage.offset(self.function.heap, address), "heap", 1)
