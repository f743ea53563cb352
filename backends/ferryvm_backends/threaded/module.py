# SPDX-License-Identifier: Apache-2.0
"""The LLVM module of the threaded interpreter.

    run(control)          the C entry: registers from the control block, then the first handler
    handlers              table of addresses: plain[opcode] … counting[opcode] … fused groups …
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from ferryvm.isa import INSTRUCTIONS, Instruction
from ferryvm.machine.control import Status
from ferryvm_backends._llvm.entry import pack, unpack
from ferryvm_backends._llvm.weaver import POINTER, Registers
from ferryvm_backends.threaded.weaver import CONVENTION, HANDLER, ThreadedWeaver, call_handler

RUN = "ferry_threaded_run"
HANDLERS = "ferry_threaded_handlers"

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
    function.linkage = "internal"
    function.attributes.add("nounwind")
    return function, Registers(*function.args)


def _exit(module: ir.Module, status: Status) -> ir.Function:
    function, registers = _define(module, f"exit.{status.name.lower()}")
    function.attributes.add("noinline")
    builder = ir.IRBuilder(function.append_basic_block())
    pack(builder, registers, status)
    builder.ret_void()
    return function


def build(groups: Sequence[Sequence[Instruction]]) -> ir.Module:
    """The module with handlers for every instruction and for every fused group."""
    module = ir.Module("ferry_threaded")
    exits = {status: _exit(module, status) for status in EXITS}
    plain = ThreadedWeaver(module, False, exits)
    counting = ThreadedWeaver(module, True, exits)
    singles = [(row,) for row in INSTRUCTIONS]

    def weave(weaver: ThreadedWeaver, group: Sequence[Instruction], prefix: str) -> ir.Function:
        function, registers = _define(module, prefix + " ".join(row.mnemonic for row in group))
        weaver.builder = ir.IRBuilder(function.append_basic_block())
        weaver.weave(group, registers)
        return function

    handlers = [weave(plain, group, "") for group in singles]
    handlers += [weave(counting, group, "counting ") for group in singles]
    handlers += [weave(plain, group, "") for group in groups]
    table_type = ir.ArrayType(POINTER, len(handlers))
    table = ir.GlobalVariable(module, table_type, HANDLERS)
    table.global_constant = True
    table.initializer = ir.Constant(table_type, [h.bitcast(POINTER) for h in handlers])

    run = ir.Function(module, ir.FunctionType(ir.VoidType(), [POINTER]), RUN)
    builder = ir.IRBuilder(run.append_basic_block())
    registers = unpack(builder, run.args[0])
    first = builder.load(registers.ip, typ=POINTER, align=8)
    call_handler(builder, first, registers, tail=False)
    return module
