# SPDX-License-Identifier: Apache-2.0
"""The base of native functions that run by a plan: words of structures, calls, the gate."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from ferryvm_backends._llvm import ir
from ferryvm_backends.opencl.launch import GateWords
from ferryvm_backends.opencl.launch.trampoline import BYTE, INT, POINTER, WORD, offset, word


class PlanFunction:
    """A function whose first argument is the address of a structure."""

    name: str
    structure: type[ctypes.Structure]
    result: ir.Type = INT
    parameters: Sequence[ir.Type] = (POINTER,)

    def __init__(self, module: ir.Module) -> None:
        self.module = module
        self.function = ir.Function(
            module, ir.FunctionType(self.result, [*self.parameters]), self.name
        )
        self.base = self.function.args[0]
        self.b = ir.IRBuilder(self.function.append_basic_block("entry"))

    def at(self, name: str) -> ir.Value:
        """The place of a word of the structure."""
        return self.b.gep(self.base, [word(offset(self.structure, name))], source_etype=BYTE)

    def get(self, name: str) -> ir.Value:
        """A word of the structure."""
        return self.b.load(self.at(name), align=8, typ=WORD)

    def all(self, *names: str) -> list[ir.Value]:
        """Words of the structure."""
        return [self.get(name) for name in names]

    def add(self, name: str, more: ir.Value) -> ir.Value:
        """Add to a word of the structure; its new value."""
        total = self.b.add(self.get(name), more)
        self.b.store(total, self.at(name), align=8)
        return total

    def call(
        self, name: str, result: ir.Type, kinds: Sequence[ir.Type], *given: ir.Value
    ) -> ir.Value:
        """Call a function whose address the structure has."""
        address = self.b.inttoptr(self.get(name), POINTER)
        return self.b.call(ir.Callee(address, ir.FunctionType(result, kinds)), given)

    def unless(self, condition: ir.Value, target: ir.Block) -> None:
        """Go on, or to a block if it holds."""
        further = self.function.append_basic_block()
        self.b.cbranch(condition, target, further)
        self.b.position_at_end(further)

    def unless_zero(self, found: ir.Value, target: ir.Block) -> None:
        """Go on if a number is zero, else to a block."""
        zero = ir.Constant(found.type, 0)
        self.unless(self.b.icmp_unsigned("!=", found, zero), target)

    def ending(self, value: int) -> ir.Block:
        """A block that returns a number."""
        block = self.function.append_basic_block()
        ir.IRBuilder(block).ret(ir.Constant(INT, value))
        return block

    # --- the gate -----------------------------------------------------------------------------

    def gate_word(self, name: str) -> ir.Value:
        """The place of a word of the gate."""
        gate = self.b.inttoptr(self.get("gate"), POINTER)
        return self.b.gep(gate, [word(offset(GateWords, name))], source_etype=BYTE)

    def enter(self, busy: ir.Block) -> None:
        """Take the gate, or go to a block if another one has it."""
        place = self.gate_word("busy")
        before = self.b.cmpxchg(place, word(0), word(1), "seq_cst", 8)
        self.unless_zero(before, busy)

    def is_late(self) -> ir.Value:
        """True if the epoch of the structure is over."""
        now = self.b.load_atomic(self.gate_word("epoch"), "seq_cst", 8, WORD)
        return self.b.icmp_unsigned("!=", now, self.get("epoch"))

    def leave(self) -> None:
        """Give the gate back."""
        self.b.atomic_rmw("xchg", self.gate_word("busy"), word(0), "seq_cst", 8)
