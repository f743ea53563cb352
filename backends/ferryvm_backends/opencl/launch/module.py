# SPDX-License-Identifier: Apache-2.0
"""The native code of entry stubs, as an LLVM module."""

from __future__ import annotations

from ferryvm_backends._llvm import ir
from ferryvm_backends.opencl.launch import RECORD_BYTES, STUBS, Record
from ferryvm_backends.opencl.launch.copied import CopiedLauncher
from ferryvm_backends.opencl.launch.range import add_range_functions
from ferryvm_backends.opencl.launch.trampoline import BYTE, INT, POINTER, offset, word
from ferryvm_backends.opencl.launch.wrapped import WrappedLauncher


def build() -> tuple[ir.Module, bytes]:
    """The module: `entry_stub_0` and so on, their `records`, and the functions behind them."""
    module = ir.Module("entry_stubs")
    kind = ir.ArrayType(BYTE, STUBS * RECORD_BYTES)
    records = ir.GlobalVariable(module, kind, "records")
    records.initializer = ir.Constant(kind, None)
    records.align = 8
    WrappedLauncher(module)
    CopiedLauncher(module)
    add_range_functions(module)
    signature = ir.FunctionType(INT, [POINTER, POINTER])
    for number in range(STUBS):
        stub = ir.Function(module, ir.FunctionType(INT, [POINTER]), f"entry_stub_{number}")
        builder = ir.IRBuilder(stub.append_basic_block())
        record = builder.gep(records, [word(number * RECORD_BYTES)], source_etype=BYTE)
        where = builder.gep(record, [word(offset(Record, "launch"))], source_etype=BYTE)
        launch = ir.Callee(builder.load(where, align=8, typ=POINTER), signature)
        builder.ret(builder.call(launch, [record, stub.args[0]], tail="tail"))
    return module, b""
