# SPDX-License-Identifier: Apache-2.0
"""The LLVM module of the threaded interpreter: its handlers, tables of them, and the entry."""

from __future__ import annotations

from collections.abc import Container, Sequence

from ferryvm.isa import INSTRUCTIONS, Instruction
from ferryvm.machine.control import Status
from ferryvm_backends._llvm import ir
from ferryvm_backends._llvm.cell import define_publish
from ferryvm_backends._llvm.entry import leave, unpack
from ferryvm_backends._llvm.environment import define_call
from ferryvm_backends._llvm.handler import POINTER, Registers
from ferryvm_backends._llvm.resumption import define_resume
from ferryvm_backends._llvm.slot_runner import define_slot_runner
from ferryvm_backends.threaded import fusion
from ferryvm_backends.threaded.handler import (
    CONVENTION,
    HANDLER,
    ThreadedHandlerBuilder,
    call_handler,
)
from ferryvm_backends.threaded.symbol import CALL, CELLS, COUNTING, PLAIN, RESUME, RUN, SLOT

EXITS = (
    Status.HALT,
    Status.HOST,
    Status.TRAP,
    Status.GROW,
    Status.ALLOCATE,
    Status.INTERRUPTED,
    Status.FUEL,
    Status.HOT,
    Status.THROW,
    Status.LAUNCH,
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
    leave(ir.IRBuilder(function.append_basic_block()), registers, status)
    return function


def _run(module: ir.Module) -> None:
    run = ir.Function(module, ir.FunctionType(ir.VoidType(), [POINTER]), RUN)
    builder = ir.IRBuilder(run.append_basic_block())
    registers = unpack(builder, run.args[0])
    first = builder.load(registers.ip, typ=POINTER, align=8)
    call_handler(builder, first, registers, tail=False)
    define_call(module, CALL, run)
    define_resume(module, RESUME, run)
    define_slot_runner(module, SLOT, run)


def _table(module: ir.Module, name: str, handlers: Sequence[ir.Value]) -> None:
    array = ir.ArrayType(POINTER, len(handlers))
    variable = ir.GlobalVariable(module, array, name)
    variable.global_constant = True
    variable.initializer = ir.Constant(array, handlers)


class _Handlers:
    """Defines handlers of one kind: those that pay fuel, or those that do not."""

    def __init__(self, module: ir.Module, counting: bool, exits: dict[Status, ir.Function]) -> None:
        self._module, self._counting = module, counting
        self._handler_builder = ThreadedHandlerBuilder(counting, exits)

    def _declare(self, name: str) -> tuple[ir.Function, Registers]:
        function, registers = _define(self._module, f"counting {name}" if self._counting else name)
        self._handler_builder.builder = ir.IRBuilder(function.append_basic_block())
        return function, registers

    def groups(self, groups: Sequence[Sequence[Instruction]]) -> list[ir.Value]:
        """One handler a group; null for a group without instructions."""
        handlers: list[ir.Value] = []
        for group in groups:
            if not group:
                handlers.append(ir.Constant(POINTER, None))
                continue
            function, registers = self._declare(" ".join(row.mnemonic for row in group))
            self._handler_builder.build_handler(group, registers)
            handlers.append(function)
        return handlers

    def cells(self) -> list[ir.Function]:
        """The handlers of count, enter and launch cells."""
        count, registers = self._declare("cell.count")
        self._handler_builder.build_count(registers)
        enter, registers = self._declare("cell.enter")
        self._handler_builder.build_enter(registers)
        launch, registers = self._declare("cell.launch")
        self._handler_builder.build_launch(registers)
        return [count, enter, launch]


def build() -> tuple[ir.Module, bytes]:
    """The module with handlers for every instruction, every fused group and the cells.

    The notes are the groups in the order of their handlers.
    """
    fused = fusion.groups()
    singles = [(row,) for row in INSTRUCTIONS]
    module = _module([*singles, *fused], singles)
    return module, fusion.packed([[row.opcode for row in group] for group in fused])


def build_part(opcodes: Container[int], counting: bool) -> ir.Module:
    """The module with handlers for some instructions, which pay fuel or do not, and the cells."""
    nothing: list[tuple[Instruction, ...]] = [() for _ in INSTRUCTIONS]
    chosen = [(row,) if row.opcode in opcodes else () for row in INSTRUCTIONS]
    return _module(nothing if counting else chosen, chosen if counting else nothing)


def _module(
    plain_groups: Sequence[Sequence[Instruction]], counting_groups: Sequence[Sequence[Instruction]]
) -> ir.Module:
    """The module with handlers for groups; a group without instructions has none."""
    module = ir.Module("ferry_threaded")
    exits = {status: _exit(module, status) for status in EXITS}
    plain, counting = (_Handlers(module, counting, exits) for counting in (False, True))
    _table(module, PLAIN, plain.groups(plain_groups))
    _table(module, COUNTING, counting.groups(counting_groups))
    _table(module, CELLS, [*plain.cells(), *counting.cells()])
    _run(module)
    define_publish(module)
    return module
