# SPDX-License-Identifier: Apache-2.0
"""Objects in memory without LLVM: the same code, and those that need more are LLVM's to load."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from ferryvm.architecture import IS_X86
from ferryvm_backends._llvm import ir
from ferryvm_backends._llvm.build import compile_module
from ferryvm_backends._llvm.codegen import ObjectCode
from ferryvm_backends._llvm.loader import NativeCode, self_contained
from ferryvm_backends._llvm.native import load, processor

WORD = ir.IntType(64)


def compiled(change: Callable[[ir.Module], None] = lambda module: None) -> bytes:
    """An object whose `function` adds an element of a constant table, and has another double it."""
    module = ir.Module("small")
    kind = ir.ArrayType(WORD, 3)
    table = ir.GlobalVariable(module, kind, "table")
    table.global_constant = True
    table.initializer = ir.Constant(kind, [ir.Constant(WORD, n) for n in (10, 20, 30)])
    signature = ir.FunctionType(WORD, [WORD])
    other = ir.Function(module, signature, "other")
    other.attributes.add("noinline")
    builder = ir.IRBuilder(other.append_basic_block())
    builder.ret(builder.add(other.args[0], other.args[0]))
    function = ir.Function(module, signature, "function")
    builder = ir.IRBuilder(function.append_basic_block())
    place = builder.gep(table, [ir.Constant(WORD, 0), function.args[0]], source_etype=kind)
    element = builder.load(place, typ=WORD)
    builder.ret(builder.call(other, [element]))
    change(module)
    return compile_module(module, merge_tails=True)


def with_a_variable(module: ir.Module) -> None:
    """Something that can be written."""
    variable = ir.GlobalVariable(module, WORD, "counter")
    variable.initializer = ir.Constant(WORD, 7)
    function = ir.Function(module, ir.FunctionType(WORD, []), "read")
    builder = ir.IRBuilder(function.append_basic_block())
    builder.store(builder.add(builder.load(variable), ir.Constant(WORD, 1)), variable)
    builder.ret(builder.load(variable))


def with_another_library(module: ir.Module) -> None:
    """A function of the C library."""
    own = ir.Function(module, ir.FunctionType(WORD, []), "pthread_self")
    function = ir.Function(module, ir.FunctionType(WORD, []), "thread")
    builder = ir.IRBuilder(function.append_basic_block())
    builder.ret(builder.call(own, []))


def with_a_copy(module: ir.Module) -> None:
    """A function of the C library on bytes."""
    pointer = ir.PointerType()
    own = ir.Function(module, ir.FunctionType(pointer, [pointer, pointer, WORD]), "memcpy")
    function = ir.Function(module, ir.FunctionType(WORD, [pointer, pointer, WORD]), "copy")
    builder = ir.IRBuilder(function.append_basic_block())
    builder.call(own, list(function.args))
    builder.ret(ir.Constant(WORD, 0))


def called(code: NativeCode, name: str, *arguments: int) -> int:
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(arguments))
    return int(kind(code.address(name))(*arguments))


@pytest.mark.parametrize("loader", [load, ObjectCode])
def test_code_does_the_same_whoever_loads_it(loader: Callable[[bytes], NativeCode]) -> None:
    code = loader(compiled())
    assert [called(code, "function", number) for number in range(3)] == [20, 40, 60]


def test_a_self_contained_object_is_loaded_without_llvm() -> None:
    if not IS_X86:
        pytest.skip("LLVM's loader loads all other objects")
    assert self_contained(compiled()) is not None


def test_what_is_elsewhere_is_loaded_by_llvm() -> None:
    code = load(compiled(with_another_library))
    assert isinstance(code, ObjectCode)
    assert called(code, "thread") == threading.get_ident()


@pytest.mark.skipif(not IS_X86, reason="LLVM's loader loads all objects")
def test_variables_and_functions_on_bytes_need_no_llvm() -> None:
    code = load(compiled(with_a_variable))
    assert not isinstance(code, ObjectCode)
    assert [called(code, "read") for _ in range(2)] == [8, 9]
    copying = load(compiled(with_a_copy))
    assert not isinstance(copying, ObjectCode)
    source, target = (ctypes.c_int64 * 3)(1, 2, 3), (ctypes.c_int64 * 3)()
    called(copying, "copy", ctypes.addressof(target), ctypes.addressof(source), 16)
    assert list(target) == [1, 2, 0]


def test_text_cannot_be_written_and_data_cannot_be_run() -> None:
    code = load(compiled())
    pages = {}
    for line in Path("/proc/self/maps").read_text(encoding="ascii").splitlines():
        span, rights, *_ = line.split()
        first, end = (int(part, 16) for part in span.split("-"))
        pages[first, end] = rights
    for name, rights in (("function", "r-x"), ("table", "r--")):
        address = code.address(name)
        (found,) = [has for (first, end), has in pages.items() if first <= address < end]
        assert found.startswith(rights), name


def test_a_processor_is_told_the_same_each_time() -> None:
    assert processor() == processor() != ""
