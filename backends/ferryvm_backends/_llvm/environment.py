# SPDX-License-Identifier: Apache-2.0
"""Native code entered from a thread whatever its floating-point environment.

    ferry_..._call(control):   save the control register, set ours, run, restore it; the status

`ferryvm.float_environment` does the same from Python, which takes ten times as long as a short call
of a program. Only the register that rules the arithmetic of compiled code is changed: MXCSR on
x86-64, FPCR and FPSR on AArch64. x87 arithmetic, which `fegetenv` saves as well, is never emitted.
"""

from __future__ import annotations

from collections.abc import Callable

from ferryvm.architecture import IS_X86
from ferryvm.float_environment import CONTROL
from ferryvm.machine.control import ControlBlock
from ferryvm_backends._llvm import ir
from ferryvm_backends._llvm.arithmetic import WORD, word
from ferryvm_backends._llvm.handler import BYTE, INT32, POINTER


def define_call(module: ir.Module, name: str, run: ir.Function) -> None:
    """Add a C function `uint32_t name(ControlBlock *)` that calls `run` in our floating-point
    environment and returns the status that it left."""
    call = ir.Function(module, ir.FunctionType(INT32, [POINTER]), name)
    builder = ir.IRBuilder(call.append_basic_block())
    (control,) = call.args
    restore = enter(module, builder)
    builder.call(run, [control])
    restore()
    offset: int = vars(ControlBlock)["status"].offset
    at = builder.gep(control, [word(offset)], source_etype=BYTE)
    builder.ret(builder.load(at, typ=INT32, align=4))


def enter(module: ir.Module, builder: ir.IRBuilder) -> Callable[[], None]:
    """Emit the change to our floating-point environment; the returned function emits the
    restoration of the caller's."""
    return _enter_x86(module, builder) if IS_X86 else _enter_aarch64(module, builder)


def _enter_x86(module: ir.Module, builder: ir.IRBuilder) -> Callable[[], None]:
    """Emit the change of MXCSR; the returned function emits its restoration."""
    nothing = ir.VoidType()
    store = module.intrinsic("llvm.x86.sse.stmxcsr", nothing, [POINTER])
    load = module.intrinsic("llvm.x86.sse.ldmxcsr", nothing, [POINTER])
    callers, own = builder.alloca(INT32, align=4), builder.alloca(INT32, align=4)
    builder.call(store, [callers])
    builder.store(ir.Constant(INT32, CONTROL), own, align=4)
    builder.call(load, [own])

    def restore() -> None:
        builder.call(load, [callers])

    return restore


def _enter_aarch64(module: ir.Module, builder: ir.IRBuilder) -> Callable[[], None]:
    """As `_enter_x86`, for FPCR; and FPSR, which holds the sticky flags."""
    nothing = ir.VoidType()
    saved = []
    for register in ("fpcr", "fpsr"):
        get = module.intrinsic(f"llvm.aarch64.get.{register}", WORD, [])
        put = module.intrinsic(f"llvm.aarch64.set.{register}", nothing, [WORD])
        saved.append((put, builder.call(get, [])))
    builder.call(saved[0][0], [word(CONTROL)])

    def restore() -> None:
        for put, value in saved:
            builder.call(put, [value])

    return restore
