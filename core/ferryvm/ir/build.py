# SPDX-License-Identifier: Apache-2.0
"""Building operations: an emitter whose values are those of the region IR.

Each operation is simplified when it is built (`ferryvm.ir.simplify`), and equal operations of a
block are one (local value numbering). The passes do everything else.
"""

from __future__ import annotations

from ferryvm.ir.graph import (
    BOOLEAN,
    Block,
    Constant,
    Edge,
    Operation,
    Static,
    Terminator,
    Value,
    ValueType,
)
from ferryvm.ir.simplify import SimplifyingEmitter, simplify
from ferryvm.isa.constant_table import ConstantTable
from ferryvm.isa.emitter import Condition
from ferryvm.isa.pure_function import PureFunction
from ferryvm.isa.type import F32, F64, I32, I64, Type

Key = tuple[object, ...]


class Builder(SimplifyingEmitter):
    """The pure operations of the emitter protocol, appended to `block`."""

    block: Block
    pc: int = -1
    """The instruction from which operations are lifted."""

    def __init__(self, constants: dict[tuple[ValueType, int], Constant] | None = None) -> None:
        """`constants`: those of the body that it builds or changes."""
        self.constants = {} if constants is None else constants
        self._known: dict[Key, Operation] = {}
        """Pure operations of the current block."""

    def open(self, block: Block) -> None:
        """Continue at the end of a block."""
        self.block = block
        self._known = {}

    def constant(self, t: ValueType, bits: int) -> Constant:
        """The constant with these bits."""
        found = self.constants.get((t, bits))
        if found is None:
            found = self.constants[t, bits] = Constant(t, bits)
        return found

    def pure(
        self,
        name: str,
        static: tuple[Static, ...],
        arguments: tuple[Value, ...],
        type_: ValueType,
    ) -> Value:
        """The value of an operation without effects."""
        simple = simplify(self, name, static, arguments, type_)
        return self.invariant(name, static, arguments, type_) if simple is None else simple

    def invariant(
        self,
        name: str,
        static: tuple[Static, ...],
        arguments: tuple[Value, ...],
        type_: ValueType,
    ) -> Value:
        """The value of an operation that reads something constant during a run of the body."""
        key = (name, static, arguments)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self.emit(Operation(name, type_, static, arguments))
        return known

    def emit(self, operation: Operation) -> Operation:
        """Append an operation to the block."""
        operation.pc = self.pc
        self.block.operations.append(operation)
        return operation

    def close(self, end: Terminator) -> None:
        """Terminate the block."""
        end.pc = self.pc
        self.block.terminator = end

    def canonical(self, t: Type, a: Value) -> Value:
        """`a`, or the canonical NaN if it is any NaN."""
        return self.pure("canonical", (t,), (a,), t)

    def add(self, t: Type, a: Value, b: Value) -> Value:
        return self.pure("add", (t,), (a, b), t)

    def sub(self, t: Type, a: Value, b: Value) -> Value:
        return self.pure("sub", (t,), (a, b), t)

    def mul(self, t: Type, a: Value, b: Value) -> Value:
        return self.pure("mul", (t,), (a, b), t)

    def add_overflows(self, t: Type, a: Value, b: Value) -> Value:
        return self.pure("add_overflows", (t,), (a, b), BOOLEAN)

    def sub_overflows(self, t: Type, a: Value, b: Value) -> Value:
        return self.pure("sub_overflows", (t,), (a, b), BOOLEAN)

    def mul_overflows(self, t: Type, a: Value, b: Value) -> Value:
        return self.pure("mul_overflows", (t,), (a, b), BOOLEAN)

    def div_s(self, t: Type, a: Value, b: Value) -> Value:
        return self.pure("div_s", (t,), (a, b), t)

    def div_u(self, t: Type, a: Value, b: Value) -> Value:
        return self.pure("div_u", (t,), (a, b), t)

    def rem_s(self, t: Type, a: Value, b: Value) -> Value:
        return self.pure("rem_s", (t,), (a, b), t)

    def rem_u(self, t: Type, a: Value, b: Value) -> Value:
        return self.pure("rem_u", (t,), (a, b), t)

    def bit_and(self, t: Type, a: Value, b: Value) -> Value:
        return self.pure("bit_and", (t,), (a, b), t)

    def bit_or(self, t: Type, a: Value, b: Value) -> Value:
        return self.pure("bit_or", (t,), (a, b), t)

    def bit_xor(self, t: Type, a: Value, b: Value) -> Value:
        return self.pure("bit_xor", (t,), (a, b), t)

    def shl(self, t: Type, a: Value, b: Value) -> Value:
        return self.pure("shl", (t,), (a, b), t)

    def shr_s(self, t: Type, a: Value, b: Value) -> Value:
        return self.pure("shr_s", (t,), (a, b), t)

    def shr_u(self, t: Type, a: Value, b: Value) -> Value:
        return self.pure("shr_u", (t,), (a, b), t)

    def clz(self, t: Type, a: Value) -> Value:
        return self.pure("clz", (t,), (a,), t)

    def ctz(self, t: Type, a: Value) -> Value:
        return self.pure("ctz", (t,), (a,), t)

    def popcnt(self, t: Type, a: Value) -> Value:
        return self.pure("popcnt", (t,), (a,), t)

    def compare(self, t: Type, condition: Condition, a: Value, b: Value) -> Value:
        return self.pure("compare", (t, condition), (a, b), BOOLEAN)

    def all(self, p: Value, q: Value) -> Value:
        return self.pure("all", (), (p, q), BOOLEAN)

    def any(self, p: Value, q: Value) -> Value:
        return self.pure("any", (), (p, q), BOOLEAN)

    def none(self, p: Value) -> Value:
        return self.pure("none", (), (p,), BOOLEAN)

    def boolean_to_i32(self, p: Value) -> Value:
        return self.pure("boolean_to_i32", (), (p,), I32)

    def select(self, p: Value, a: Value, b: Value) -> Value:
        return self.pure("select", (), (p, a, b), a.type)

    def lookup(self, table: ConstantTable, index: Value) -> Value:
        return self.pure("lookup", (table,), (index,), table.type)

    def fadd(self, t: Type, a: Value, b: Value) -> Value:
        return self.pure("fadd", (t,), (a, b), t)

    def fsub(self, t: Type, a: Value, b: Value) -> Value:
        return self.pure("fsub", (t,), (a, b), t)

    def fmul(self, t: Type, a: Value, b: Value) -> Value:
        return self.pure("fmul", (t,), (a, b), t)

    def fdiv(self, t: Type, a: Value, b: Value) -> Value:
        return self.pure("fdiv", (t,), (a, b), t)

    def ffma(self, t: Type, a: Value, b: Value, c: Value) -> Value:
        return self.pure("ffma", (t,), (a, b, c), t)

    def fsqrt(self, t: Type, a: Value) -> Value:
        return self.pure("fsqrt", (t,), (a,), t)

    def apply(self, function: PureFunction, *arguments: Value) -> Value:
        return self.pure("apply", (function,), arguments, function.result)

    def fceil(self, t: Type, a: Value) -> Value:
        return self.pure("fceil", (t,), (a,), t)

    def ffloor(self, t: Type, a: Value) -> Value:
        return self.pure("ffloor", (t,), (a,), t)

    def ftrunc(self, t: Type, a: Value) -> Value:
        return self.pure("ftrunc", (t,), (a,), t)

    def fnearest(self, t: Type, a: Value) -> Value:
        return self.pure("fnearest", (t,), (a,), t)

    def wrap(self, a: Value) -> Value:
        return self.pure("wrap", (), (a,), I32)

    def extend_s(self, a: Value) -> Value:
        return self.pure("extend_s", (), (a,), I64)

    def extend_u(self, a: Value) -> Value:
        return self.pure("extend_u", (), (a,), I64)

    def to_float_s(self, to: Type, t: Type, a: Value) -> Value:
        return self.pure("to_float_s", (to, t), (a,), to)

    def to_float_u(self, to: Type, t: Type, a: Value) -> Value:
        return self.pure("to_float_u", (to, t), (a,), to)

    def to_int_s(self, to: Type, t: Type, a: Value) -> Value:
        return self.pure("to_int_s", (to, t), (a,), to)

    def to_int_u(self, to: Type, t: Type, a: Value) -> Value:
        return self.pure("to_int_u", (to, t), (a,), to)

    def promote(self, a: Value) -> Value:
        return self.pure("promote", (), (a,), F64)

    def demote(self, a: Value) -> Value:
        return self.pure("demote", (), (a,), F32)

    def reinterpret(self, to: Type, t: Type, a: Value) -> Value:
        return self.pure("reinterpret", (to, t), (a,), to)

    def to_slot(self, t: Type, a: Value) -> Value:
        return self.pure("to_slot", (t,), (a,), I64)

    def from_slot(self, t: Type, a: Value) -> Value:
        return self.pure("from_slot", (t,), (a,), t)


class FlowBuilder(Builder):
    """The operations, and edges between blocks."""

    def branch(self, p: Value, yes: Edge, no: Edge) -> None:
        """End the block with a branch."""
        self.close(Terminator("branch", (), (p,), None, (yes, no)))

    def jump(self, target: Block, *arguments: Value, is_back: bool = False) -> None:
        """End the block with a jump."""
        self.close(Terminator("jump", edges=(Edge(target, [*arguments], is_back),)))
