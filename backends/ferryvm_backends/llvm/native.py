# SPDX-License-Identifier: Apache-2.0
"""From LLVM IR to object code."""

from __future__ import annotations

import ctypes
import re
import time
from collections.abc import Mapping

import llvmlite.binding as llvm

from ferryvm.flowgraph.component import cycle_without
from ferryvm.machine.host_stack import frame_bytes
from ferryvm_backends._llvm import codegen, ir
from ferryvm_backends._llvm.codegen import ObjectCode, object_code, target_machine


def parsed(module: ir.Module) -> llvm.ModuleRef:
    """LLVM's own form of a module. Raises RuntimeError for one that is wrong."""
    target = target_machine()
    module.triple = target.triple
    module.data_layout = str(target.target_data)
    return codegen.parsed(str(module))


def inline_single_calls(module: ir.Module) -> None:
    """Mark functions that are called in one place, and not rarely, for LLVM to inline."""
    for each in module.globals.values():
        if not isinstance(each, ir.Function) or each.linkage != "internal" or each.calls != 1:
            continue
        if not each.attributes & {"cold", "noinline"}:
            each.attributes.add("alwaysinline")


_LABEL = re.compile(r'(?:"[^"]*"|[-\w.$]+)(?=:)')
_TARGET = re.compile(r'label %("[^"]*"|[-\w.$]+)')


def has_loop(module: llvm.ModuleRef) -> bool:
    """True if a function's control-flow graph has a cycle."""
    # Looked for in the text: there every block has a name, if only a number, and asking llvmlite
    # for all instructions one by one takes ten times as long.
    places: dict[str, int] = {}
    onward: list[list[str]] = []
    for line in str(module).splitlines():
        label = _LABEL.match(line)
        if line.startswith("define"):
            if _is_cyclic(places, onward):
                return True
            places, onward = {}, [[]]  # the first block, which nothing leads to
        elif label is not None:
            places[label[0]] = len(onward)
            onward.append([])
        elif onward:
            onward[-1] += _TARGET.findall(line)
    return _is_cyclic(places, onward)


def _is_cyclic(places: Mapping[str, int], onward: list[list[str]]) -> bool:
    """True if the blocks at these places lead back to one another."""
    return bool(cycle_without([[places[name] for name in names] for names in onward], ()))


def stack_bytes(module: llvm.ModuleRef, code: bytes) -> int:
    """Bytes of the host's stack that the functions of a module take together; `code`: its
    object."""
    functions = sum(not function.is_declaration for function in module.functions)
    sections = llvm.ObjectFileRef.from_data(code).sections()
    return sum(
        (frame_bytes(s.data(), 0) for s in sections if s.is_text()), frame_bytes(b"", functions)
    )


def seconds_a_cycle() -> float:
    """Duration of one tick of the processor's time stamp counter, measured."""
    code = ObjectCode(object_code(parsed(_counter_module())))
    read = ctypes.CFUNCTYPE(ctypes.c_uint64)(code.address("ferry_cycles"))
    began, first = time.perf_counter(), int(read())
    while time.perf_counter() - began < 0.002:
        pass
    return (time.perf_counter() - began) / (int(read()) - first)


def _counter_module() -> ir.Module:
    module = ir.Module("cycles")
    word = ir.IntType(64)
    counter = ir.Function(module, ir.FunctionType(word, []), "llvm.readcyclecounter")
    function = ir.Function(module, ir.FunctionType(word, []), "ferry_cycles")
    builder = ir.IRBuilder(function.append_basic_block())
    builder.ret(builder.call(counter, []))
    return module
