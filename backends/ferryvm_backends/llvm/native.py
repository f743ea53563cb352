# SPDX-License-Identifier: Apache-2.0
"""From LLVM IR to code that can be entered."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Mapping

import llvmlite.binding as llvm
from llvmlite import ir

from ferryvm.backend import Activity, Code
from ferryvm_backends._llvm.native import NativeCode, target_machine
from ferryvm_backends.llvm.symbol import (
    ACTIVITY,
    CYCLES,
    ENTRIES,
    ENTRY,
    FAILURES,
    INSTRUCTIONS,
)


def parsed(module: ir.Module) -> llvm.ModuleRef:
    """LLVM's own form of a module. Raises RuntimeError for one that is wrong."""
    target = target_machine()
    module.triple = target.triple
    module.data_layout = str(target.target_data)
    reference = llvm.parse_assembly(str(module))
    reference.verify()
    return reference


def optimise(module: llvm.ModuleRef, level: int) -> None:
    """Run LLVM's pipeline of a level (0 to 3) over a module."""
    tuning = llvm.create_pipeline_tuning_options(speed_level=level)
    tuning.loop_vectorization = tuning.slp_vectorization = level > 1
    builder = llvm.create_pass_builder(target_machine(), tuning)
    builder.getModulePassManager().run(module, builder)


def has_loop(module: llvm.ModuleRef) -> bool:
    """Whether a function of a module goes back to a block that it has come from, or calls one."""
    for function in module.functions:
        if function.is_declaration:
            continue
        seen: set[str] = set()
        for block in function.blocks:
            seen.add(block.name)
            for instruction in block.instructions:
                if instruction.opcode in ("br", "switch"):
                    targets = [o.name for o in instruction.operands if str(o.type) == "label"]
                    if seen.intersection(targets):
                        return True
    return False


def emitted(module: llvm.ModuleRef) -> bytes:
    """The object code of a module."""
    return bytes(target_machine().emit_object(module))


_calibrated: list[float] = []


def seconds_a_cycle() -> float:
    """What one step of the processor's time stamp counter takes, measured once."""
    if not _calibrated:
        native = NativeCode(emitted(parsed(_counter_module())))
        read = ctypes.CFUNCTYPE(ctypes.c_uint64)(native.function_address("ferry_cycles"))
        began, first = time.perf_counter(), read()
        while time.perf_counter() - began < 0.002:
            pass
        _calibrated.append((time.perf_counter() - began) / (read() - first))
    return _calibrated[0]


def _counter_module() -> ir.Module:
    module = ir.Module("cycles")
    word = ir.IntType(64)
    counter = ir.Function(module, ir.FunctionType(word, []), "llvm.readcyclecounter")
    function = ir.Function(module, ir.FunctionType(word, []), "ferry_cycles")
    builder = ir.IRBuilder(function.append_basic_block())
    builder.ret(builder.call(counter, []))
    return module


class RegionCode(Code):
    """A loaded region."""

    def __init__(
        self,
        native: NativeCode,
        guards: tuple[int, ...],
        is_from_cache: bool,
        notes: Mapping[str, float],
    ) -> None:
        """`guards`: the pc of each guard, in the order of their counts."""
        self._native, self._guards = native, guards
        self.is_from_cache, self.notes = is_from_cache, notes
        self.address = native.function_address(ENTRY)
        words = ctypes.c_uint64 * (FAILURES + len(guards))
        self._activity = words.from_address(native.address(ACTIVITY))

    def activity(self) -> Activity:
        words = list(self._activity)
        return Activity(
            words[ENTRIES],
            words[CYCLES] * seconds_a_cycle() if words[CYCLES] else 0.0,
            words[INSTRUCTIONS],
            {pc: words[FAILURES + number] for number, pc in enumerate(self._guards)},
        )
