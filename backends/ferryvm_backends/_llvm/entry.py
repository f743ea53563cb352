# SPDX-License-Identifier: Apache-2.0
"""Getting from the control block into registers and back: shared by both interpreters."""

from __future__ import annotations

from ferryvm.machine.control import ControlBlock, Status
from ferryvm_backends._llvm import ir
from ferryvm_backends._llvm.arithmetic import WORD, word
from ferryvm_backends._llvm.handler import BYTE, INT32, POINTER, Registers


def _field(builder: ir.IRBuilder, control: ir.Value, name: str) -> ir.Value:
    offset = word(getattr(ControlBlock, name).offset)
    return builder.gep(control, [offset], source_etype=BYTE)


def unpack(builder: ir.IRBuilder, control: ir.Value) -> Registers:
    """The registers that a control block describes."""

    def load(name: str, t: ir.Type = POINTER) -> ir.Value:
        return builder.load(_field(builder, control, name), typ=t, align=8)

    def place(base: str, count: str, shift: int) -> ir.Value:
        scaled = builder.shl(load(count, WORD), word(shift))
        return builder.gep(load(base), [scaled], source_etype=BYTE)

    return Registers(
        ip=place("code", "pc", 4),
        sp=place("stack", "sp", 3),
        fp=place("stack", "fp", 3),
        control=control,
        statics=load("statics"),
        heap=load("heap"),
    )


def pack(builder: ir.IRBuilder, registers: Registers) -> None:
    """Store registers into the control block."""

    def store(name: str, base: str, pointer: ir.Value, shift: int) -> None:
        start = builder.load(_field(builder, registers.control, base), typ=WORD, align=8)
        distance = builder.sub(builder.ptrtoint(pointer, WORD), start)
        builder.store(
            builder.lshr(distance, word(shift)), _field(builder, registers.control, name), align=8
        )

    store("pc", "code", registers.ip, 4)
    store("sp", "stack", registers.sp, 3)
    store("fp", "stack", registers.fp, 3)


def leave(builder: ir.IRBuilder, registers: Registers, status: Status) -> None:
    """Store registers and a status into the control block, and return."""
    pack(builder, registers)
    set_status(builder, registers.control, ir.Constant(INT32, int(status)))
    builder.ret_void()


def set_status(builder: ir.IRBuilder, control: ir.Value, status: ir.Value) -> None:
    """Store a status into the control block."""
    builder.store(status, _field(builder, control, "status"), align=4)
