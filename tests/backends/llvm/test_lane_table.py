# SPDX-License-Identifier: Apache-2.0
"""Look-ups in tables of constants in lanes: each lane has the constant of its index."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import pytest

from ferryvm.isa.constant_table import ConstantTable
from ferryvm.isa.type import Type
from ferryvm_backends._llvm import ir
from ferryvm_backends._llvm.arithmetic import LLVM_TYPE
from ferryvm_backends._llvm.codegen import parsed, target_machine
from ferryvm_backends._llvm.native import load
from ferryvm_backends._llvm.passes import Pipeline, improve
from ferryvm_backends.llvm import lane_arithmetic
from ferryvm_backends.llvm.lane_arithmetic import LaneArithmetic

LANES = 16
PLACES = [0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 47, 63, 64, 0xFFFF_FFFF]


def table(t: Type, count: int) -> ConstantTable:
    """Constants whose bits differ from those of every other table."""
    return ConstantTable(f"{t}_{count}", t, [n * n + 1000 * count + 1 for n in range(count)])


def looked_up(tables: Sequence[ConstantTable]) -> list[list[int]]:
    """The bits that compiled lanes have for `PLACES`, for each table."""
    module, width = ir.Module(), 8 * LANES
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [ir.PointerType()]), "looked_up")
    builder = ir.IRBuilder(function.append_basic_block())
    (memory,) = function.args
    for number, each in enumerate(tables):
        integer = LLVM_TYPE[each.type.integer]
        kind = ir.VectorType(integer, LANES)
        offset = ir.Constant(ir.IntType(64), 2 * number * width)
        given = builder.gep(memory, [offset], ir.IntType(8))
        index = builder.load(given, align=8, typ=kind)
        found = builder.bitcast(LaneArithmetic(builder, LANES).lookup(each, index), kind)
        offset = ir.Constant(ir.IntType(64), (2 * number + 1) * width)
        builder.store(found, builder.gep(memory, [offset], ir.IntType(8)), align=8)
    builder.ret_void()
    content = target_machine().emit_object(improve(parsed(str(module)), Pipeline.LEVEL_2))
    buffer = (ctypes.c_uint8 * (2 * width * len(tables)))()
    for number, each in enumerate(tables):
        size = each.type.bits // 8
        indices = b"".join(place.to_bytes(size, "little") for place in PLACES)
        ctypes.memmove(ctypes.addressof(buffer) + 2 * number * width, indices, len(indices))
    code = load(content)
    code.function("looked_up")(ctypes.addressof(buffer))
    results = []
    for number, each in enumerate(tables):
        size, first = each.type.bits // 8, (2 * number + 1) * width
        words = bytes(buffer)[first : first + size * LANES]
        results.append(
            [int.from_bytes(words[n : n + size], "little") for n in range(0, len(words), size)]
        )
    return results


@pytest.mark.parametrize("is_gathered", [False, True])
def test_lanes_look_up_what_the_table_has(
    is_gathered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_gathered:
        monkeypatch.setattr(lane_arithmetic, "can_permute", lambda table, lanes: False)
    tables = [table(t, count) for t in Type for count in (2, 8, 16, 32, 64)]
    found = looked_up(tables)
    assert found == [[each.at(place) for place in PLACES] for each in tables]


def test_table_has_a_power_of_two_of_constants() -> None:
    with pytest.raises(ValueError, match="table odd: 2 to 64 constants expected, found 3"):
        ConstantTable("odd", Type.I64, [1, 2, 3])
