# SPDX-License-Identifier: Apache-2.0
"""Calls of native functions through the address in `control.natives`, so that cached code does not
depend on the process.

Without an address control leaves with HOST, as at every other host call.
"""

from __future__ import annotations

from ferryvm.ir.graph import Operation
from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine.control import Status
from ferryvm.machine.native import NATIVE_WORDS, NativeField
from ferryvm_backends._llvm import ir
from ferryvm_backends._llvm.arithmetic import word
from ferryvm_backends._llvm.native_caller import native_type
from ferryvm_backends.llvm.context import INT32, status_constant
from ferryvm_backends.llvm.function import FunctionContext
from ferryvm_backends.llvm.side_exit import SideExits


class HostCalls:
    """Lowers them."""

    def __init__(self, function: FunctionContext, exits: SideExits) -> None:
        self.function, self.exits, self.builder = function, exits, function.builder

    def do_call_host(self, operation: Operation, *arguments: ir.Value) -> ir.Value | None:
        builder, storage, control = self.builder, self.function.storage, self.function.control
        number = operation.fact(0, int)
        rows = storage.pointer(storage.field(control, "natives"))
        place = WORD_BYTES * (NATIVE_WORDS * number + NativeField.FUNCTION)
        address = storage.load(storage.offset(rows, place), "control", fixed=True)
        is_absent = builder.icmp_unsigned("==", address, word(0))
        left = ir.Constant(INT32, number)
        self.exits.leave_if(is_absent, self.exits.exit_state(operation), Status.HOST, exit_id=left)
        # Not the status of an earlier host call, in which the program could be called again.
        storage.set_field(control, "status", status_constant(Status.RUNNING))
        results = (operation.word_type,) if operation.type else ()
        signature = native_type([a.word_type for a in operation.arguments], results)
        callee = ir.Callee(storage.pointer(address), signature)
        result = builder.call(callee, arguments)
        return result if operation.type else None
