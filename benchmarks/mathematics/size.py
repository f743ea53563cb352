# SPDX-License-Identifier: Apache-2.0
"""The size of each meaning: its operations, and bytes of machine code; and how long a region with
ten functions compiles."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from typing import Any

import llvmlite.binding as llvm

import ferryvm
from benchmarks.benchmark import BenchmarkError
from benchmarks.measure import median
from ferryvm.backend import Compiler, Options
from ferryvm.ir.function_body import function_body
from ferryvm.isa.mathematics import FUNCTIONS
from ferryvm.isa.pure_function import PureFunction
from ferryvm.isa.type import F64
from ferryvm.region.region import RegionKind, regions
from ferryvm.registry import Registry
from ferryvm.verify import verify
from ferryvm_backends._llvm import ir
from ferryvm_backends._llvm.arithmetic import LLVM_TYPE, StraightLineArithmetic
from ferryvm_backends._llvm.codegen import parsed, target_machine
from ferryvm_backends._llvm.passes import Pipeline, improve
from ferryvm_backends.llvm.lane_arithmetic import LaneArithmetic
from ferryvm_backends.llvm.lane_count import vector_bits

TEN = "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sinh", "tanh", "cbrt"
"""The functions of the region whose compilation is timed."""


@dataclasses.dataclass(frozen=True)
class Size:
    """The size of a meaning."""

    operations: int
    """Constants not counted; equal ones are one."""
    scalar: int
    """Bytes of machine code of the function alone, its constants included."""
    lanes: int
    """The same in lanes of two of the processor's vectors of f64; 0: it has none."""

    def as_json(self) -> dict[str, int]:
        """The size as JSON."""
        return dataclasses.asdict(self)


def size(function: PureFunction) -> Size:
    """The size of a function."""
    lanes = 2 * vector_bits() // F64.bits
    operations = len(function_body(function).operations)
    return Size(operations, _bytes(function, 1), _bytes(function, lanes) if lanes else 0)


def _bytes(function: PureFunction, lanes: int) -> int:
    def kind(scalar: ir.Type) -> ir.Type:
        return scalar if lanes == 1 else ir.VectorType(scalar, lanes)

    module = ir.Module()
    types = [kind(LLVM_TYPE[t]) for t in function.parameters]
    signature = ir.FunctionType(kind(LLVM_TYPE[function.result]), types)
    native = ir.Function(module, signature, "measured")
    native.attributes.add("nounwind")
    builder = ir.IRBuilder(native.append_basic_block())
    arithmetic = StraightLineArithmetic(builder) if lanes == 1 else LaneArithmetic(builder, lanes)
    builder.ret(arithmetic.apply(function, *native.args))
    code = target_machine().emit_object(improve(parsed(str(module)), Pipeline.LEVEL_2))
    sections = llvm.ObjectFileRef.from_data(code).sections()
    loaded = (b".text", b".ltext", b".rodata", b".lrodata")
    return sum(one.size() for one in sections if (one.name() or b"").startswith(loaded))


def compile_milliseconds(rounds: int) -> dict[str, Any]:
    """Milliseconds of processor time of a region with ten functions by `llvm`: each round, and the
    median."""
    backend = Registry().get("llvm")
    if not isinstance(backend, Compiler) or backend.probe() is not None:
        raise BenchmarkError(f"llvm is not usable: {backend.probe()}")
    names = [f"f64.{name}" for name in TEN]
    assert all(name in FUNCTIONS for name in names)
    sum_ = " ".join(f"({name} x)" for name in names)
    program = ferryvm.compile(f"(define (all (x f64)) (+ {sum_})) (print! (all 1.5))")
    found = []
    for number in range(rounds + 1):
        # Of a program that was just verified: nothing about it is known yet.
        region = next(
            r for r in regions(verify(program)) if r.kind is RegionKind.FUNCTION and "all" in r.name
        )
        began = time.process_time()
        backend.compile(region, Options(optimize=2, cache=False))
        if number:  # the first one has what a process does once
            found.append(1e3 * (time.process_time() - began))
    return {"rounds_ms": found, "ms": median(found), "functions": names}


def sizes(functions: Sequence[PureFunction]) -> dict[str, Size]:
    """The sizes of functions by name."""
    return {function.name: size(function) for function in functions}
