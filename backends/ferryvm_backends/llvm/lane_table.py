# SPDX-License-Identifier: Apache-2.0
"""Look-ups in tables of constants, for each lane: permutations of vector registers that have the
constants, where the processor has them for all elements of a table; else gathers.

A gather of eight f64 takes some 40 cycles on processors of AMD and 8 on those of Intel, a
permutation of 16 constants one or two on both.
"""

from __future__ import annotations

from ferryvm.isa.constant_table import ConstantTable
from ferryvm.isa.type import Type
from ferryvm_backends._llvm import ir
from ferryvm_backends._llvm.arithmetic import LLVM_TYPE

PERMUTING_BITS = 512
"""Bits of the vectors for which there are permutations by vectors of places (AVX-512)."""

_ONE = {Type.F64: "df", Type.I64: "di", Type.F32: "sf", Type.I32: "si"}
_TWO = {Type.F64: "pd", Type.I64: "q", Type.F32: "ps", Type.I32: "d"}
"""Endings of the names of LLVM's permutations of one vector and of two."""


def can_permute(table: ConstantTable, lanes: int) -> bool:
    """True if the lanes are whole vectors of the table's type."""
    return lanes % (PERMUTING_BITS // table.type.bits) == 0


def permuted(builder: ir.IRBuilder, table: ConstantTable, index: ir.Value) -> ir.Value:
    """The constants of a table, for a vector of indices."""
    assert isinstance(index.type, ir.VectorType)
    width = PERMUTING_BITS // table.type.bits
    parts = []
    for first in range(0, index.type.count, width):
        places = range(first, first + width)
        part = index if index.type.count == width else builder.permuted(index, index, places)
        parts.append(_of_vector(builder, table, part))
    while len(parts) > 1:
        count = range(sum(part.type.count for part in parts[:2]))  # type: ignore[attr-defined]  # vectors
        pairs = zip(parts[::2], parts[1::2], strict=True)
        parts = [builder.permuted(a, b, count) for a, b in pairs]
    return parts[0]


def _of_vector(builder: ir.IRBuilder, table: ConstantTable, index: ir.Value) -> ir.Value:
    """The same for one vector of the processor."""
    t = table.type
    width = PERMUTING_BITS // t.bits
    kind = ir.VectorType(LLVM_TYPE[t], width)
    bits = table.bits * max(1, width // len(table))
    vectors = [_constants(t, kind, bits[n : n + width]) for n in range(0, len(bits), width)]
    if len(vectors) == 1:
        name = f"llvm.x86.avx512.permvar.{_ONE[t]}.512"
        function = builder.module.intrinsic(name, kind, [kind, index.type])
        return builder.call(function, [vectors[0], index])
    name = f"llvm.x86.avx512.vpermi2var.{_TWO[t]}.512"
    function = builder.module.intrinsic(name, kind, [kind, index.type, kind])
    found = [
        builder.call(function, [a, index, b])
        for a, b in zip(vectors[::2], vectors[1::2], strict=True)
    ]
    step = 2 * width
    while len(found) > 1:  # a bit of the index decides between each two
        bit, none = ir.Constant(index.type, step), ir.Constant(index.type, None)
        is_upper = builder.icmp_unsigned("!=", builder.and_(index, bit), none)
        pairs = zip(found[::2], found[1::2], strict=True)
        found = [builder.select(is_upper, high, low) for low, high in pairs]
        step *= 2
    return found[0]


def _constants(t: Type, kind: ir.VectorType, bits: tuple[int, ...]) -> ir.Value:
    integers = ir.VectorType(LLVM_TYPE[t.integer], kind.count)
    return ir.Constant(integers, list(bits)).bitcast(kind)


def gathered(
    builder: ir.IRBuilder, table: ConstantTable, array: ir.Value, index: ir.Value
) -> ir.Value:
    """The constants of a table in memory, for a vector of indices."""
    assert isinstance(index.type, ir.VectorType)
    count, t = index.type.count, table.type
    kind = ir.VectorType(LLVM_TYPE[t], count)
    # A lane that takes no part may have poison, which must not be an address.
    place = builder.and_(builder.freeze(index), ir.Constant(index.type, len(table) - 1))
    where = builder.gep(array, [place], LLVM_TYPE[t])
    all_, nothing = ir.Constant(ir.VectorType(ir.IntType(1), count), 1), ir.Constant(kind, None)
    align = ir.Constant(ir.IntType(32), t.bits // 8)
    arguments = [where, align, all_, nothing]
    name = f"llvm.masked.gather.v{count}{t}.v{count}p0"
    function = builder.module.intrinsic(name, kind, [each.type for each in arguments])
    return builder.call(function, arguments)
