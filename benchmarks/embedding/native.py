# SPDX-License-Identifier: Apache-2.0
"""Native host functions: nanoseconds of an iteration that calls one, beside a C loop that calls the
same function through a pointer. Both loops count down and pass the result on."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from typing import Any

import ferryvm
from ferryvm_backends._llvm.codegen import ObjectCode, parsed, target_machine

CALLS = 2_000_000
"""Iterations that one measurement takes the mean of."""

TARGETS_NS = {"native threaded": 30.0, "native llvm": 5.0}
"""Nanoseconds that an iteration may take more than the C loop's."""

PROGRAM = """
.host bump (i64) -> (i64)
.export ask
.function start
    halt
.function ask (n i64) -> i64
    .local sum i64
:again
    local.get sum
    host bump
    local.set sum
    local.get n
    i64.const 1
    i64.sub
    local.set n
    local.get n
    i64.const 0
    i64.ne
    jump_if again
    local.get sum
    return
"""

PEER = """
define i64 @bump(i64 %x) noinline {
  %y = add i64 %x, 1
  ret i64 %y
}
define i64 @ask(ptr %f, i64 %n) {
entry:
  br label %again
again:
  %sum = phi i64 [0, %entry], [%next, %again]
  %left = phi i64 [%n, %entry], [%less, %again]
  %next = call i64 %f(i64 %sum)
  %less = sub i64 %left, 1
  %goes_on = icmp ne i64 %less, 0
  br i1 %goes_on, label %again, label %done
done:
  ret i64 %next
}
"""


def measure(rounds: int, progress: Callable[[str], None]) -> dict[str, Any]:
    """Nanoseconds an iteration of each kind, and which goals are missed."""
    code = ObjectCode(target_machine().emit_object(parsed(PEER)))
    pointer = code.address("bump")
    loop = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)(code.address("ask"))
    function = ferryvm.native_host("bump", "(i64) -> (i64)", pointer, keep_alive=code)
    program = ferryvm.assemble(PROGRAM)
    kinds: dict[str, Callable[[int], int]] = {"native C": lambda n: int(loop(pointer, n))}
    for backend in ("threaded", "llvm"):
        instance = ferryvm.Engine(backend).instantiate(program, hosts=[function])
        kinds[f"native {backend}"] = instance.exports["ask"]
    best: dict[str, float] = {}
    for _ in range(rounds):
        for name, ask in kinds.items():
            began = time.perf_counter()
            if ask(CALLS) != CALLS:
                raise AssertionError(f"{name}: a wrong result")
            took = 1e9 * (time.perf_counter() - began) / CALLS
            best[name] = min(took, best.get(name, took))
    for name, value in best.items():
        progress(f"{name}: {value:.2f} ns")
    missed = [name for name, most in TARGETS_NS.items() if best[name] - best["native C"] > most]
    return {
        **{f"{name} (ns)": value for name, value in best.items()},
        "native missed": ", ".join(missed) or "none",
    }
