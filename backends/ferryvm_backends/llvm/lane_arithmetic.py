# SPDX-License-Identifier: Apache-2.0
"""Arithmetic in lanes: operations on vectors, which have an element for each lane."""

from __future__ import annotations

from collections.abc import Sequence

from ferryvm.isa.constant_table import ConstantTable
from ferryvm.isa.overflow import EXPANSIONS
from ferryvm.isa.pure_function import PureFunction
from ferryvm.isa.type import F64, Type
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

    def any_bit(self, mask: ir.Value) -> ir.Value:
        """True if a lane is in a mask."""
        kind = ir.IntType(self.lanes)
        bits = self.builder.bitcast(mask, kind)
        return self.builder.icmp_unsigned("!=", bits, ir.Constant(kind, 0))

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

    def _applied(
        self,
        p: ir.Value,
        function: PureFunction,
        otherwise: ir.Value,
        arguments: Sequence[ir.Value],
    ) -> ir.Value:
        size = vector_bits() // F64.bits
        if not isinstance(p.type, ir.VectorType) or not 0 < size < self.lanes:
            return super()._applied(p, function, otherwise, arguments)
        given = [otherwise, *map(self.vector, arguments)]
        bits = self.builder.bitcast(self.builder.freeze(p), ir.IntType(self.lanes))
        kinds = [a.type for a in given if isinstance(a.type, ir.VectorType)]
        applied = in_parts(self.builder.module, function, kinds, size)
        return self.builder.call(applied, [bits, *given])

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


def in_parts(
    module: ir.Module, function: PureFunction, kinds: Sequence[ir.VectorType], size: int
) -> ir.Function:
    """A function that applies another one in the lanes of some bits, `size` lanes at a time, where
    one of these has a bit: few have. Its other operands are the results of other lanes, and the
    function's.

    The processor's vectors of f64 are one for each value then: code for all lanes would be as many
    times as long, and would have its values on the stack.
    """
    lanes = kinds[0].count
    name = f"parts of {function}.v{lanes}"
    known = module.globals.get(name)
    if known is not None:
        assert isinstance(known, ir.Function)
        return known
    word = ir.IntType(lanes)
    found = ir.Function(module, ir.FunctionType(kinds[0], [word, *kinds]), name)
    found.linkage = "internal"
    found.attributes |= {"nounwind", "memory(none)", "cold", "noinline"}
    builder = ir.IRBuilder(found.append_basic_block())
    bits, *values = found.args
    places = [builder.alloca(kind) for kind in kinds]
    for place, value in zip(places, values, strict=True):
        builder.store(value, place)
    start, part, end = builder.block, *(found.append_basic_block(each) for each in ("part", "end"))
    builder.branch(part)
    builder.position_at_end(part)
    left = builder.phi(word)
    left.add_incoming(bits, start)
    lowest = module.intrinsic(f"llvm.cttz.i{lanes}", word, [word, ir.IntType(1)])
    first = builder.call(lowest, [left, ir.Constant(ir.IntType(1), 1)])
    first = builder.and_(first, ir.Constant(word, lanes - size))
    few = ir.IntType(size)
    mask = builder.bitcast(
        builder.trunc(builder.lshr(left, first), few), ir.VectorType(ir.IntType(1), size)
    )
    pointers = [
        builder.gep(place, [builder.zext(first, ir.IntType(64))], kind.element)
        for place, kind in zip(places, kinds, strict=True)
    ]
    otherwise, *arguments = (
        builder.load(where, typ=ir.VectorType(kind.element, size))
        for where, kind in zip(pointers, kinds, strict=True)
    )
    inner = LaneArithmetic(builder, size)
    applied = inner._defined(function, arguments)
    applied.attributes |= {
        "cold",
        "noinline",
    }  # in the loop, constants would be in registers before
    result = inner.select(mask, builder.call(applied, arguments), otherwise)
    builder.store(result, pointers[0])
    whole = builder.shl(ir.Constant(word, (1 << size) - 1), first)
    rest = builder.and_(left, builder.xor(whole, ir.Constant(word, -1)))
    left.add_incoming(rest, part)
    builder.cbranch(builder.icmp_unsigned("!=", rest, ir.Constant(word, 0)), part, end)
    builder.position_at_end(end)
    builder.ret(builder.load(places[0]))
    return found
