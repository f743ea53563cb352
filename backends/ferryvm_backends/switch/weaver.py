# SPDX-License-Identifier: Apache-2.0
"""A loop around one switch: every handler ends in a jump back to the one dispatch block.

The code array of the program is run as it is: a cell's first half-word is the opcode and a target
immediate is a pc, so nothing needs to be prepared.
"""

from __future__ import annotations

import dataclasses

from llvmlite import ir

from ferryvm.isa import INSTRUCTIONS
from ferryvm.machine.control import Status
from ferryvm_backends._llvm.arithmetic import word
from ferryvm_backends._llvm.entry import pack, unpack
from ferryvm_backends._llvm.weaver import POINTER, Registers, StackWeaver

_MOVING = ("ip", "sp", "fp")
"""The registers that change as a program runs."""


class SwitchWeaver(StackWeaver):
    """Weaves all handlers into one function from a control block's address."""

    def __init__(self, module: ir.Module, symbol: str, counting: bool) -> None:
        self.counting = counting
        function = ir.Function(module, ir.FunctionType(ir.VoidType(), [POINTER]), symbol)
        self._entry = function.append_basic_block("entry")
        self._loop = function.append_basic_block("dispatch")
        self._exits: dict[Status, tuple[ir.Block, list[ir.PhiInstr]]] = {}
        self._function = function
        self.builder = ir.IRBuilder(self._entry)

    def weave_all(self) -> None:
        """Emit the whole function."""
        builder = self.builder
        first = unpack(builder, self._function.args[0])
        code = builder.load(self._control_pointer(first, "code"), typ=POINTER, align=8)
        self._code = code
        builder.branch(self._loop)
        builder.position_at_end(self._loop)
        self._phis = [builder.phi(POINTER, name) for name in _MOVING]
        self._join(self._phis, first, self._entry)
        registers = dataclasses.replace(first, **dict(zip(_MOVING, self._phis, strict=True)))
        opcode = builder.load(registers.ip, typ=ir.IntType(16), align=2)
        unreachable = self._function.append_basic_block("no.such.opcode")
        switch = builder.switch(opcode, unreachable)
        builder.position_at_end(unreachable)
        builder.unreachable()  # the verifier has seen every opcode
        for row in INSTRUCTIONS:
            block = self._function.append_basic_block(row.mnemonic)
            switch.add_case(ir.Constant(ir.IntType(16), row.opcode), block)
            builder.position_at_end(block)
            self.weave((row,), registers)

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
        phis = [builder.phi(POINTER, name) for name in _MOVING]
        moved = dataclasses.replace(registers, **dict(zip(_MOVING, phis, strict=True)))
        pack(builder, moved, status)
        builder.ret_void()
        return block, phis

    def _target_cell(self, target: ir.Value) -> ir.Value:
        return self._offset(self._code, self.builder.shl(target, word(4)))
