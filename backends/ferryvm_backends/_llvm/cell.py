# SPDX-License-Identifier: Apache-2.0
"""Code of the cells that replace an instruction: counting, and entry of compiled code.

    count   takes one from the pc's counter; at the last one leaves with HOT, else runs the instruction
    enter   calls the function installed for the pc; on LEAVE continues at the pc where that left
    launch  as enter, at a `launch.test`; but where a piece of the record is due, which native code leaves
            for too, runs the instruction

The replaced instruction is in `control.originals`, so it is one load away. Cells are changed while
the program runs (see `form`): the writer first stores the data that the cell needs, then the cell
with release order; the fences below are the other half of that.
"""

from __future__ import annotations

import abc

from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine.control import Status
from ferryvm_backends._llvm import ir
from ferryvm_backends._llvm.arithmetic import WORD, word
from ferryvm_backends._llvm.entry import pack, set_status, unpack
from ferryvm_backends._llvm.handler import INT32, POINTER, Registers
from ferryvm_backends._llvm.loader import PUBLISH
from ferryvm_backends._llvm.object_handler import ObjectHandlerBuilder

NATIVE = ir.FunctionType(INT32, [POINTER])
"""Compiled code: a function from a control block's address to a status."""


class CellHandlerBuilder(ObjectHandlerBuilder):
    """A builder of handlers and of the cells before them."""

    @abc.abstractmethod
    def _run_original(self, registers: Registers, address: ir.Value) -> None:
        """End the block with the instruction at `registers.ip`; its operation is at `address`."""

    def build_count(self, registers: Registers) -> None:
        """Emit the handler of a count cell; ends the block."""
        builder = self.builder
        self._enter_cell(registers)
        address = self._word_of("counters", registers)
        remaining = self._load(address)
        self._store(builder.sub(remaining, word(1)), address)
        with builder.if_then(builder.icmp_unsigned("<=", remaining, word(1)), likely=False):
            self._store(word(0), address)  # also where it was 0, so that it never wraps
            self._exit(registers, Status.HOT)
        self._run_original(registers, self._word_of("originals", registers))

    def build_launch(self, registers: Registers) -> None:
        """Emit the handler of an enter cell at a `launch.test`; ends the block."""
        builder = self.builder
        self._enter_cell(registers)
        limit, next_, record = (
            self._load(self._offset(registers.sp, -WORD_BYTES * depth)) for depth in (3, 2, 1)
        )
        is_done = builder.icmp_signed(">=", next_, limit)
        has_more = builder.icmp_unsigned("!=", record, word(0))
        with builder.if_then(builder.and_(is_done, has_more), likely=False):
            self._run_original(registers, self._word_of("originals", registers))
        self._call_installed(registers)

    def build_enter(self, registers: Registers) -> None:
        """Emit the handler of an enter cell; ends the block."""
        self._enter_cell(registers)
        self._call_installed(registers)

    def _call_installed(self, registers: Registers) -> None:
        builder = self.builder
        function = self._load(self._word_of("entries", registers), t=POINTER)
        pack(builder, registers)
        status = builder.call(ir.Callee(function, NATIVE), [registers.control])
        has_ended = builder.icmp_unsigned("!=", status, ir.Constant(INT32, int(Status.LEAVE)))
        with builder.if_then(has_ended, likely=False):
            set_status(builder, registers.control, status)
            builder.ret_void()
        after = unpack(builder, registers.control)
        # Code that leaves and is entered again for ever must not prevent Ctrl-C.
        self._exit_if_interrupted(after)
        # Not its cell: code that leaves at its own entry would be called again for ever.
        self._run_original(after, self._word_of("originals", after))

    def _enter_cell(self, registers: Registers) -> None:
        """Start a cell's handler; a cell has no effect where its instruction cannot be paid."""
        self._stand_at(registers)
        if self.counting:
            self._check_fuel()
        self.builder.fence("acquire")

    def _word_of(self, table: str, registers: Registers) -> ir.Value:
        """Address of the word at `registers.ip` of a table that has a word a pc."""
        builder = self.builder
        cells = builder.sub(self._address(registers.ip), self._control_field("code"))
        # A cell has two words.
        return self._offset(self._pointer(self._control_field(table)), builder.lshr(cells, word(1)))


def define_publish(module: ir.Module) -> None:
    """Add the function behind `NativeCode.publisher`."""
    signature = ir.FunctionType(ir.VoidType(), [POINTER, WORD])
    function = ir.Function(module, signature, PUBLISH)
    builder = ir.IRBuilder(function.append_basic_block())
    address, value = function.args
    builder.fence("release")
    builder.store(value, address, align=8)  # an aligned word is stored at once
    builder.ret_void()
