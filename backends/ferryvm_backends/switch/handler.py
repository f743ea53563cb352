# SPDX-License-Identifier: Apache-2.0
"""A loop around one switch: every handler ends in a jump back to the one dispatch block.

The program's code is run in the form that it has: a cell's first half-word is the opcode and a
target immediate is a pc. Count, enter and launch cells have opcodes past the table's.
"""

from __future__ import annotations

import dataclasses

from ferryvm.isa import INSTRUCTIONS
from ferryvm.machine.control import Status
from ferryvm_backends._llvm import ir
from ferryvm_backends._llvm.arithmetic import word
from ferryvm_backends._llvm.cell import CellHandlerBuilder
from ferryvm_backends._llvm.entry import leave, unpack
from ferryvm_backends._llvm.handler import POINTER, Registers
from ferryvm_backends.switch.symbol import COUNT_OPCODE, ENTER_OPCODE, LAUNCH_OPCODE

_OPCODE = ir.IntType(16)
_MOVING = ("ip", "sp", "fp")
"""The registers that change as a program runs."""


class SwitchHandlerBuilder(CellHandlerBuilder):
    """Weaves all handlers into one function from a control block's address."""

    def __init__(self, module: ir.Module, symbol: str, counting: bool) -> None:
        self.counting = counting
        function = ir.Function(module, ir.FunctionType(ir.VoidType(), [POINTER]), symbol)
        self._entry = function.append_basic_block("entry")
        self._loop = function.append_basic_block("dispatch")
        self._run = function.append_basic_block("run")
        self._exits: dict[Status, tuple[ir.Block, list[ir.PhiInstr]]] = {}
        self._function = function
        self.builder = ir.IRBuilder(self._entry)

    def build_all(self) -> None:
        """Emit the whole function."""
        builder = self.builder
        first = unpack(builder, self._function.args[0])
        code = builder.load(self._control_pointer(first, "code"), typ=POINTER, align=8)
        self._code = code
        builder.branch(self._loop)
        builder.position_at_end(self._loop)
        self._phis = [builder.phi(POINTER) for _ in _MOVING]
        self._join(self._phis, first, self._entry)
        at = self._moved(first, self._phis)
        opcode = builder.load(at.ip, typ=_OPCODE, align=2)
        # A separate block, at which a cell continues with the opcode that it replaces.
        builder.branch(self._run)
        builder.position_at_end(self._run)
        self._opcode = builder.phi(_OPCODE)
        self._run_phis = [builder.phi(POINTER) for _ in _MOVING]
        self._opcode.add_incoming(opcode, self._loop)
        self._join(self._run_phis, at, self._loop)
        registers = self._moved(first, self._run_phis)
        unreachable = self._function.append_basic_block("no.such.opcode")
        switch = builder.switch(self._opcode, unreachable)
        builder.position_at_end(unreachable)
        builder.unreachable()  # the verifier has seen every opcode

        def case(opcode: int, name: str) -> None:
            block = self._function.append_basic_block(name)
            switch.add_case(ir.Constant(_OPCODE, opcode), block)
            builder.position_at_end(block)

        for row in INSTRUCTIONS:
            case(row.opcode, row.mnemonic)
            self.build_handler((row,), registers)
        case(COUNT_OPCODE, "cell.count")
        self.build_count(registers)
        case(ENTER_OPCODE, "cell.enter")
        self.build_enter(registers)
        case(LAUNCH_OPCODE, "cell.launch")
        self.build_launch(registers)

    @staticmethod
    def _moved(registers: Registers, values: list[ir.PhiInstr]) -> Registers:
        return dataclasses.replace(registers, **dict(zip(_MOVING, values, strict=True)))

    def _control_pointer(self, registers: Registers, name: str) -> ir.Value:
        self.registers = registers
        return self._control_address(name)

    @staticmethod
    def _join(phis: list[ir.PhiInstr], registers: Registers, block: ir.Block) -> None:
        for name, phi in zip(_MOVING, phis, strict=True):
            phi.add_incoming(getattr(registers, name), block)

    def _dispatch(self, registers: Registers) -> None:
        self._join(self._phis, registers, self.builder.block)
        self.builder.branch(self._loop)

    def _run_original(self, registers: Registers, address: ir.Value) -> None:
        opcode = self.builder.load(address, typ=_OPCODE, align=8)
        self._opcode.add_incoming(opcode, self.builder.block)
        self._join(self._run_phis, registers, self.builder.block)
        self.builder.branch(self._run)

    def _exit(self, registers: Registers, status: Status) -> None:
        if status not in self._exits:
            self._exits[status] = self._exit_block(registers, status)
        block, phis = self._exits[status]
        self._join(phis, registers, self.builder.block)
        self.builder.branch(block)

    def _exit_block(
        self, registers: Registers, status: Status
    ) -> tuple[ir.Block, list[ir.PhiInstr]]:
        block = self._function.append_basic_block(f"exit.{status.name.lower()}")
        builder = ir.IRBuilder(block)
        phis = [builder.phi(POINTER) for _ in _MOVING]
        leave(builder, self._moved(registers, phis), status)
        return block, phis

    def _target_cell(self, target: ir.Value) -> ir.Value:
        return self._offset(self._code, self.builder.shl(target, word(4)))
