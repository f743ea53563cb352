# SPDX-License-Identifier: Apache-2.0
"""LLVM IR that is written as text: what LLVM does not see is checked as it is built."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest

from ferryvm.isa.type import F32, F64, Type
from ferryvm_backends._llvm import ir
from ferryvm_backends._llvm.arithmetic import LLVM_TYPE, WORD, word

POINTER = ir.PointerType()


def started(module: ir.Module, name: str = "f") -> tuple[ir.Function, ir.IRBuilder]:
    function = ir.Function(module, ir.FunctionType(WORD, [POINTER, WORD]), name)
    return function, ir.IRBuilder(function.append_basic_block("start"))


def test_nothing_is_added_to_a_block_that_has_ended() -> None:
    function, builder = started(ir.Module())
    builder.ret(word(0))
    for add in (builder.unreachable, lambda: builder.add(word(1), word(2))):
        with pytest.raises(ValueError, match="the block has ended in front of"):
            add()
    builder.position_at_end(function.blocks[0])
    with pytest.raises(ValueError, match="the block has ended in front of"):
        builder.load(function.args[0], typ=WORD)


def test_a_block_that_has_ended_can_be_gone_back_to() -> None:
    module = ir.Module()
    function, builder = started(module)
    further = function.append_basic_block("start")
    builder.branch(further)
    builder.position_at_end(further)
    with builder.goto_block(function.blocks[0]):
        loaded = builder.load(function.args[0], align=8, typ=WORD)
    builder.ret(builder.mul(loaded, function.args[1]))
    text = str(module)
    assert text.index("load") < text.index("br label %start.1") < text.index("mul")
    llvm.parse_assembly(text).verify()


def test_equal_metadata_is_one_node() -> None:
    module = ir.Module()
    assert module.add_metadata('!"one"') == module.add_metadata('!"one"') == "!0"
    assert module.add_metadata('!"two"') == "!1"


def test_a_module_has_each_name_once() -> None:
    module = ir.Module()
    started(module)
    with pytest.raises(ValueError, match="the module has two of 'f'"):
        started(module)


@pytest.mark.parametrize("name", ["plain", "two words", 'a "quoted" one', "back\\slash", "ö"])
def test_any_name_can_be_read_back(name: str) -> None:
    module = ir.Module(name)
    _, builder = started(module, name)
    builder.ret(word(7))
    assert len(list(llvm.parse_assembly(str(module)).functions)) == 1


@pytest.mark.parametrize("t", [F32, F64], ids=str)
@pytest.mark.parametrize("value", [0.0, -0.0, 0.1, 1.5e-45, 3.4e38, float("inf")])
def test_a_float_constant_is_rounded_to_its_type(t: Type, value: float) -> None:
    module, kind = ir.Module(), LLVM_TYPE[t]
    function = ir.Function(module, ir.FunctionType(kind, []), "f")
    ir.IRBuilder(function.append_basic_block()).ret(ir.Constant(kind, value))
    llvm.parse_assembly(str(module)).verify()  # LLVM refuses one that is not exact
