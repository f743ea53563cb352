# SPDX-License-Identifier: Apache-2.0
"""The LLVM module of the threaded interpreter: its handlers, tables of them, and the way in."""

from __future__ import annotations

import json
from collections.abc import Sequence

from llvmlite import ir

from ferryvm.isa import INSTRUCTIONS, Instruction
from ferryvm.machine.control import Status
from ferryvm_backends._llvm.entry import pack, unpack
from ferryvm_backends._llvm.weaver import POINTER, Registers
from ferryvm_backends.threaded import fusion
from ferryvm_backends.threaded.symbol import COUNTING, PLAIN, RUN
from ferryvm_backends.threaded.weaver import CONVENTION, HANDLER, ThreadedWeaver, call_handler

EXITS = (
    Status.HALT,
    Status.HOST,
    Status.TRAP,
    Status.GROW,
    Status.INTERRUPTED,
    Status.FUEL,
)


def _define(module: ir.Module, name: str) -> tuple[ir.Function, Registers]:
    function = ir.Function(module, HANDLER, name)
    function.calling_convention = CONVENTION
    function.linkage = "private"  # no symbol: thousands of them would slow loading down
    function.attributes.add("nounwind")
    return function, Registers(*function.args)


def _exit(module: ir.Module, status: Status) -> ir.Function:
    function, registers = _define(module, f"exit.{status.name.lower()}")
    function.attributes.add("noinline")
    builder = ir.IRBuilder(function.append_basic_block())
    pack(builder, registers, status)
    builder.ret_void()
    return function


def _run(module: ir.Module) -> None:
    run = ir.Function(module, ir.FunctionType(ir.VoidType(), [POINTER]), RUN)
    builder = ir.IRBuilder(run.append_basic_block())
    registers = unpack(builder, run.args[0])
    first = builder.load(registers.ip, typ=POINTER, align=8)
    call_handler(builder, first, registers, tail=False)


def build() -> tuple[ir.Module, bytes]:
    """The module with handlers for every instruction and for every fused group.

    The notes are the groups in the order of their handlers, as JSON lists of opcodes.
    """
    fused = fusion.groups()
    module = ir.Module("ferry_threaded")
    exits = {status: _exit(module, status) for status in EXITS}
    singles = [(row,) for row in INSTRUCTIONS]

    def table(symbol: str, counting: bool, groups: Sequence[Sequence[Instruction]]) -> None:
        weaver = ThreadedWeaver(counting, exits)
        handlers = []
        for group in groups:
            names = " ".join(row.mnemonic for row in group)
            function, registers = _define(module, f"counting {names}" if counting else names)
            weaver.builder = ir.IRBuilder(function.append_basic_block())
            weaver.weave(group, registers)
            handlers.append(function)
        array = ir.ArrayType(POINTER, len(handlers))
        variable = ir.GlobalVariable(module, array, symbol)
        variable.global_constant = True
        variable.initializer = ir.Constant(array, [h.bitcast(POINTER) for h in handlers])

    table(PLAIN, False, [*singles, *fused])
    table(COUNTING, True, singles)
    _run(module)
    notes = json.dumps([[row.opcode for row in group] for group in fused])
    return module, notes.encode()
