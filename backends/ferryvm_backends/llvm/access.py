# SPDX-License-Identifier: Apache-2.0
"""Values of a body, and what reads or changes the machine's state without leaving."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager

from ferryvm.ir.graph import Body, Boolean, Constant, Operation, Value
from ferryvm.isa.emitter import FunctionField
from ferryvm.isa.numeric import canonical
from ferryvm.isa.type import WORD_BYTES, Type
from ferryvm.machine.control import DESCRIPTOR_WORDS
from ferryvm_backends._llvm import ir
from ferryvm_backends._llvm.arithmetic import I1, WORD, Arithmetic, word
from ferryvm_backends.llvm.context import LoweringContext
from ferryvm_backends.llvm.storage import Storage


class Access(Arithmetic):
    """Lowers, in one native function, what a body has besides arithmetic: here, its accesses.

    The method `_do_NAME` lowers the operation of that name, given it and the values of its
    operands; operations without one are lowered by the emitter's method of their name.
    """

    def __init__(self, shared: LoweringContext, body: Body, builder: ir.IRBuilder) -> None:
        """`builder`: in the block of a native function where the body starts."""
        self.shared, self.body, self.builder = shared, body, builder
        self.function = builder.function
        self.storage = Storage(builder)
        self.control = self.function.args[0]
        self.values: dict[Value, ir.Value] = {}
        """The values lowered so far."""
        self._start = builder.block

    def _value(self, value: Value) -> ir.Value:
        if isinstance(value, Constant):
            if isinstance(value.type, Boolean):
                return ir.Constant(I1, value.bits)
            return self.constant(value.type, value.bits)
        return self.values[value]

    # --- addresses, found where the body starts if it uses them at all ----------------------

    @contextmanager
    def _at_start(self) -> Iterator[None]:
        with self.builder.goto_block(self._start):
            yield

    @functools.cached_property
    def frame(self) -> ir.Value:
        """Address of the frame's first parameter."""
        if not self.body.is_root:
            return self.function.args[1]
        with self._at_start():
            fp = self.storage.field(self.control, "fp")
            stack = self.storage.field(self.control, "stack")
            first = self.builder.sub(fp, word(self.body.parameters))
            return self.builder.add(stack, self.builder.shl(first, word(3)))

    @functools.cached_property
    def heap(self) -> ir.Value:
        """Pointer to the heap."""
        with self._at_start():
            return self.storage.pointer(self.storage.field(self.control, "heap"))

    @functools.cached_property
    def statics(self) -> ir.Value:
        """Pointer to the statics."""
        with self._at_start():
            return self.storage.pointer(self.storage.field(self.control, "statics"))

    def _static(self, number: int) -> ir.Value:
        return self.storage.offset(self.statics, WORD_BYTES * number)

    def _static_at(self, index: ir.Value) -> ir.Value:
        return self.storage.offset(self.statics, self.builder.shl(index, word(3)))

    # --- values -----------------------------------------------------------------------------

    def _do_add(self, operation: Operation, a: ir.Value, b: ir.Value) -> ir.Value:
        # Addresses of frames do not wrap: so one check of the stack limit can make others needless.
        base = operation.arguments[0]
        is_address = isinstance(base, Operation) and base.name == "frame"
        return self.builder.add(a, b, flags=("nuw",) if is_address else ())

    def _do_canonical(self, operation: Operation, a: ir.Value) -> ir.Value:
        return canonical(self, operation.fact(0, Type), a)

    def _do_word(self, operation: Operation) -> ir.Value:
        offset = WORD_BYTES * operation.fact(0, int)
        where = self.storage.pointer(self.builder.add(self.frame, word(offset)))
        return self.from_slot(operation.word_type, self.storage.load(where, "stack"))

    def _do_result(self, operation: Operation) -> ir.Value:
        return self._do_word(operation)

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
        where = self.storage.offset(descriptor, WORD_BYTES * operation.fact(0, FunctionField))
        return self.storage.load(where, "functions", fixed=True)

    def _do_table_function(self, operation: Operation, index: ir.Value) -> ir.Value:
        table = self.storage.pointer(self.storage.field(self.control, "table"))
        where = self.storage.offset(table, self.builder.shl(index, word(3)))
        return self.storage.load(where, "table", fixed=True)

    # --- statics and heap -------------------------------------------------------------------

    def _do_static(self, operation: Operation) -> ir.Value:
        slot = self.storage.load(self._static(operation.fact(0, int)), "statics")
        return self.from_slot(operation.word_type, slot)

    def _do_set_static(self, operation: Operation, value: ir.Value) -> None:
        slot = self.to_slot(operation.arguments[0].word_type, value)
        self.storage.store(slot, self._static(operation.fact(0, int)), "statics")

    def _do_static_at(self, operation: Operation, index: ir.Value) -> ir.Value:
        return self.storage.load(self._static_at(index), "statics")

    def _do_set_static_at(self, operation: Operation, index: ir.Value, slot: ir.Value) -> None:
        self.storage.store(slot, self._static_at(index), "statics")

    def _do_heap_load(self, operation: Operation, address: ir.Value) -> ir.Value:
        bits = 8 * operation.fact(0, int)
        where = self.storage.offset(self.heap, address)
        loaded = self.storage.load(where, "heap", ir.IntType(bits), 1)
        return self.builder.zext(loaded, WORD) if bits < WORD.width else loaded

    def _do_heap_store(self, operation: Operation, address: ir.Value, value: ir.Value) -> None:
        bits = 8 * operation.fact(0, int)
        narrow = self.builder.trunc(value, ir.IntType(bits)) if bits < WORD.width else value
        self.storage.store(narrow, self.storage.offset(self.heap, address), "heap", 1)
