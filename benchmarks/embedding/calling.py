# SPDX-License-Identifier: Apache-2.0
"""Calls between Python and programs, and exceptions: microseconds each, beside wasmtime-py.

Every row is measured in turns with all others, in processor time, and its figure is the least of
the rounds: whatever disturbs a call makes it longer. What a loop costs around a call is taken off
where that is said.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from typing import Any

import ferryvm
from ferryvm import host, i64

CALLS = 20_000
"""Calls that one measurement takes the mean of."""

PROGRAM = """
.host twice (i64) -> (i64)
.tag wrong i64
.export add
.export ask
.export throw
.export plain
.export deep
.function start
    halt
.function add (a i64 b i64) -> i64
    local.get a
    local.get b
    i64.add
    return
.function ask (n i64) -> i64
    .local sum i64
:again
    local.get sum
    host twice
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
.function raise (n i64) -> i64
    local.get n
    throw wrong
.function throw (n i64) -> i64
    .local sum i64
    .catch wrong from try to end using caught
:again
:try
    local.get n
    call raise
    drop
:end
    jump next
:caught
    local.get sum
    i64.add
    local.set sum
:next
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
.function echo (n i64) -> i64
    local.get n
    return
.function plain (n i64) -> i64
    .local sum i64
:again
    local.get n
    call echo
    local.get sum
    i64.add
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
.function ten (n i64) -> i64
    local.get n
    i64.eqz
    jump_if bottom
    local.get n
    i64.const 1
    i64.sub
    call ten
    return
:bottom
    i64.const 7
    throw wrong
.function deep (n i64) -> i64
    .catch wrong from again to end using caught
:again
    i64.const 9
    call ten
    drop
:end
    i64.const 0
    return
:caught
    drop
    local.get n
    i64.const 1
    i64.sub
    local.set n
    local.get n
    i64.const 0
    i64.ne
    jump_if again
    i64.const 1
    return
"""

WASM = """
(module
  (import "host" "twice" (func $twice (param i64) (result i64)))
  (func (export "add") (param i64 i64) (result i64)
    local.get 0 local.get 1 i64.add)
  (func (export "ask") (param i64) (result i64) (local i64)
    (loop $again
      local.get 1 call $twice local.set 1
      local.get 0 i64.const 1 i64.sub local.tee 0
      i64.const 0 i64.ne br_if $again)
    local.get 1))
"""

BACKENDS = ("llvm", "threaded")

TARGETS_US = {
    "call llvm": 1.5,
    "call threaded": 3.0,
    "host llvm": 2.5,
    "host threaded": 2.5,
    "throw llvm": 0.05,
    "throw ten frames threaded": 5.0,
}
"""Microseconds that each may take."""


@host
def twice(x: i64) -> i64:
    """Twice a number, modulo 2^64."""
    return 0 if x else 1


def measure(rounds: int, progress: Callable[[str], None]) -> dict[str, Any]:
    """Microseconds a call of each kind, and the ratio to wasmtime-py's where that is installed."""
    kinds = _kinds()
    best: dict[str, float] = {}
    for _ in range(rounds):
        for name, work in kinds.items():
            took = work()
            best[name] = min(took, best.get(name, took))
    for backend in BACKENDS:  # what the loop and the call without an exception take
        best[f"throw {backend}"] -= best.pop(f"no throw {backend}")
    microseconds = {name: 1e6 * seconds for name, seconds in best.items()}
    for name, value in microseconds.items():
        progress(f"{name}: {value:.3f} us")
    peers = {
        f"{kind} llvm of wasmtime-py": microseconds[f"{kind} llvm"]
        / microseconds[f"{kind} wasmtime"]
        for kind in ("call", "host")
        if f"{kind} wasmtime" in microseconds and f"{kind} llvm" in microseconds
    }
    missed = [name for name, most in TARGETS_US.items() if microseconds[name] > most]
    missed += [name for name, most in (("call", 0.5), ("host", 1.0))
               if peers.get(f"{name} llvm of wasmtime-py", 0.0) > most]  # fmt: skip
    return {**{f"{name} (us)": value for name, value in microseconds.items()}, **peers,
            "missed": ", ".join(missed) or "none"}  # fmt: skip


def _kinds() -> dict[str, Callable[[], float]]:
    """Each kind of call as a function that gives the seconds of one."""
    kinds: dict[str, Callable[[], float]] = {}
    program = ferryvm.assemble(PROGRAM)
    for backend in BACKENDS:
        instance = ferryvm.Engine(backend).instantiate(program, hosts=[twice])
        kinds[f"call {backend}"] = _calls(instance.add)
        kinds[f"host {backend}"] = _loop(instance.ask)
        kinds[f"call with a host call {backend}"] = _calls(lambda a, b, ask=instance.ask: ask(1))
        kinds[f"throw {backend}"] = _loop(instance.throw)
        kinds[f"no throw {backend}"] = _loop(instance.plain)
        kinds[f"throw ten frames {backend}"] = _loop(instance.deep)
    try:
        wasmtime: Any = importlib.import_module("wasmtime")
    except ImportError:
        return kinds
    engine = wasmtime.Engine()
    store = wasmtime.Store(engine)
    kind = wasmtime.FuncType([wasmtime.ValType.i64()], [wasmtime.ValType.i64()])
    linker = wasmtime.Linker(engine)
    linker.define_func("host", "twice", kind, twice.function)
    exports = linker.instantiate(store, wasmtime.Module(engine, WASM)).exports(store)
    add, ask = exports["add"], exports["ask"]
    kinds["call wasmtime"] = _calls(lambda a, b: add(store, a, b))
    kinds["host wasmtime"] = _loop(lambda n: ask(store, n))
    return kinds


def _calls(function: Callable[[int, int], object]) -> Callable[[], float]:
    """Seconds of a call from Python, the loop around it taken off."""
    numbers = range(CALLS)

    def measured() -> float:
        start = time.process_time()
        for number in numbers:
            function(number, 3)
        between = time.process_time()
        for _ in numbers:
            pass
        return (2 * between - start - time.process_time()) / CALLS

    return measured


def _loop(function: Callable[[int], object]) -> Callable[[], float]:
    """Seconds of an iteration of a loop in the program."""

    def measured() -> float:
        start = time.process_time()
        function(CALLS)
        return (time.process_time() - start) / CALLS

    return measured
