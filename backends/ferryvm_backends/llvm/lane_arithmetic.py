# SPDX-License-Identifier: Apache-2.0
"""Arithmetic in lanes: operations on vectors, which have an element for each lane."""

from __future__ import annotations

from collections.abc import Sequence

from ferryvm.isa.constant_table import ConstantTable
from ferryvm.isa.overflow import EXPANSIONS
from ferryvm.isa.type import Type
from ferryvm_backends._llvm import ir
from ferryvm_backends._llvm.arithmetic import LLVM_TYPE, Arithmetic, StraightLineArithmetic
from ferryvm_backends.llvm.lane_count import vector_bits
from ferryvm_backends.llvm.lane_table import PERMUTING_BITS, can_permute, gathered, permuted


class LaneArithmetic(StraightLineArithmetic):
    """Arithmetic on vectors of so many lanes, and on scalars."""

    def __init__(self, builder: ir.IRBuilder, lanes: int) -> None:
        super().__init__(builder)
        self.lanes = lanes

    def vector(self, a: ir.Value) -> ir.Value:
        """A value for each lane, of one for all or for each."""
        if isinstance(a.type, ir.VectorType):
            return a
        if isinstance(a, ir.Constant):
            return ir.Constant(ir.VectorType(a.type, self.lanes), [a] * self.lanes)
        return self.builder.splat(a, self.lanes)

    def _as(self, t: Type, a: ir.Value) -> ir.Type:
        scalar = LLVM_TYPE[t]
        return ir.VectorType(scalar, self.lanes) if isinstance(a.type, ir.VectorType) else scalar

    def _intrinsic(self, name: str, result: ir.Type, *arguments: ir.Value) -> ir.Value:
        if isinstance(arguments[0].type, ir.VectorType):
            base, _, t = name.rpartition(".")
            name = f"{base}.v{self.lanes}{t}"
        return super()._intrinsic(name, result, *arguments)

    def _shape(self, arguments: Sequence[ir.Value]) -> str:
        return f".v{self.lanes}" if _are_vectors(arguments) else ""

    def _within(self, builder: ir.IRBuilder, arguments: Sequence[ir.Value]) -> Arithmetic:
        if not _are_vectors(arguments):
            return StraightLineArithmetic(builder)
        return _VectorArithmetic(builder, self.lanes)

    def _some(self, p: ir.Value) -> ir.Value:
        if not isinstance(p.type, ir.VectorType):
            return p
        # A lane that takes no part may have poison, which must not decide a branch.
        kind = ir.IntType(self.lanes)
        bits = self.builder.bitcast(self.builder.freeze(p), kind)
        return self.builder.icmp_unsigned("!=", bits, ir.Constant(kind, 0))

    def select(self, p: ir.Value, a: ir.Value, b: ir.Value) -> ir.Value:
        if isinstance(p.type, ir.VectorType):
            a, b = self.vector(a), self.vector(b)
        return super().select(p, a, b)

    # Vectors have no flags.

    def _overflows(self, name: str, t: Type, a: ir.Value, b: ir.Value) -> ir.Value:
        if not _are_vectors((a, b)):
            return super()._overflows(name, t, a, b)
        expansion = EXPANSIONS[f"{name[1:]}_overflows"]
        vectors = _VectorArithmetic(self.builder, self.lanes)
        found: ir.Value = expansion(vectors, t, self.vector(a), self.vector(b))
        return found

    def lookup(self, table: ConstantTable, index: ir.Value) -> ir.Value:
        if not isinstance(index.type, ir.VectorType):
            return super().lookup(table, index)
        if vector_bits() == PERMUTING_BITS and can_permute(table, self.lanes):
            return permuted(self.builder, table, index)
        return gathered(self.builder, table, self._array(table), index)

    # What a conversion yields where no lane takes part must be some value, not poison: it may
    # decide a branch.

    def to_int_s(self, to: Type, t: Type, a: ir.Value) -> ir.Value:
        return self.builder.freeze(super().to_int_s(to, t, a))

    def to_int_u(self, to: Type, t: Type, a: ir.Value) -> ir.Value:
        return self.builder.freeze(super().to_int_u(to, t, a))


class _VectorArithmetic(LaneArithmetic):
    """Arithmetic on vectors alone: constants are vectors, too."""

    def constant(self, t: Type, bits: int) -> ir.Value:
        return self.vector(super().constant(t, bits))


def _are_vectors(arguments: Sequence[ir.Value]) -> bool:
    return any(isinstance(a.type, ir.VectorType) for a in arguments)
