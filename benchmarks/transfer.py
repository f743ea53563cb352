# SPDX-License-Identifier: Apache-2.0
"""What it costs an interpreter to enter compiled code that does nothing and to go on after it.

A loop is timed as it stands and with code installed at its head. Everything else is the same, so
the difference is that many round trips. The code is an empty C function, or what a compiler makes
of a scope with nothing in it.
"""

from __future__ import annotations

import ctypes
import dataclasses
import time
from collections.abc import Callable, Sequence
from typing import Any

import ferryvm
from benchmarks.benchmark import ROOT, BenchmarkError
from benchmarks.build import build
from benchmarks.measure import interleave, median
from benchmarks.peers.peer import tool
from ferryvm.backend import Backend, Code, Compiler, Interpreter, Options
from ferryvm.errors import FerryError
from ferryvm.isa import I64
from ferryvm.machine.control import ControlBlock, Status
from ferryvm.machine.memory import Limits
from ferryvm.machine.state import Machine
from ferryvm.region.region import RegionKind, regions
from ferryvm.registry import Registry
from ferryvm.verify import Verified, verify

TARGET_NANOSECONDS = 25.0
CHECKED = 1000
"""Iterations for which it is counted whether the code is entered each time."""

HEAD = 2
"""The pc of the loop's head in the program below, which is that of the scope too."""

PROGRAM = """
.function main
.local n i64
    i64.const {}
    local.set n
:head
    enter_jit
    leave_jit
    local.get n
    i64.const 1
    i64.sub
    local.set n
    local.get n
    i64.eqz
    jump_unless head
    local.get n
    halt
"""


@dataclasses.dataclass(frozen=True)
class Empty:
    """Code that does nothing; what holds it is kept with it."""

    address: int
    holder: ctypes.CDLL | Code


def measure(
    backends: Sequence[str],
    compiler: str,
    rounds: int,
    iterations: int,
    progress: Callable[[str], None],
) -> dict[str, Any]:
    """Nanoseconds of a round trip by interpreter, the median of the rounds.

    `compiler`: whose code is entered beside the C function. Raises BenchmarkError for a backend
    that cannot be used or enters no compiled code.
    """
    verified = loop(iterations)
    scope = compiled(compiler, verified)
    metrics: dict[str, Any] = {"iterations": iterations, "rounds": rounds}
    for name in backends:
        interpreter = _interpreter(name)
        check_entered(interpreter)
        for what, empty in (("c", empty_region()), (compiler, scope)):
            found = _round_trip(interpreter, verified, empty, rounds, iterations)
            progress(f"{name}, {what}: {found:.1f} ns a round trip")
            metrics[f"{name}_{what}_ns"] = found
            metrics[f"{name}_{what}_is_met"] = found <= TARGET_NANOSECONDS
    return metrics | {"target_ns": TARGET_NANOSECONDS}


def loop(iterations: int) -> Verified:
    """The program that goes round so often."""
    return verify(ferryvm.assemble(PROGRAM.format(iterations)))


def empty_region(symbol: str = "region") -> Empty:
    """A C function that leaves at once."""
    status: int = vars(ControlBlock)["status"].offset
    flags = ["-O2", "-shared", "-fPIC", f"-DSTATUS={status}", f"-DLEAVE={Status.LEAVE:d}"]
    path = build("empty.so", [tool("gcc"), *flags], [ROOT / "peers" / "empty.c"])
    library = ctypes.CDLL(str(path))
    return Empty(ctypes.cast(library[symbol], ctypes.c_void_p).value or 0, library)


def compiled(name: str, verified: Verified) -> Empty:
    """What a compiler makes of the scope."""
    compiler = _usable(name)
    if not isinstance(compiler, Compiler):
        raise BenchmarkError(f"backend {name!r} is no compiler")
    (scope,) = [region for region in regions(verified) if region.kind is RegionKind.SCOPE]
    try:
        code = compiler.compile(scope, Options(cache=False))
    except FerryError as error:
        raise BenchmarkError(str(error)) from error
    return Empty(code.address, code)


def check_entered(interpreter: Interpreter) -> None:
    """Raise BenchmarkError unless the interpreter enters installed code each time round."""
    empty = empty_region("counted")
    assert isinstance(empty.holder, ctypes.CDLL)
    entered = ctypes.c_uint64.in_dll(empty.holder, "entered")
    before = entered.value
    _seconds(interpreter, loop(CHECKED), empty)
    if entered.value - before != CHECKED:
        found = f"{entered.value - before} times in {CHECKED} iterations"
        raise BenchmarkError(f"backend {interpreter.name!r} entered compiled code {found}")


def _usable(name: str) -> Backend:
    try:
        backend = Registry().get(name)
        reason = backend.probe()
    except FerryError as error:
        raise BenchmarkError(str(error)) from None
    if reason is not None:
        raise BenchmarkError(f"backend {name!r}: {reason}")
    return backend


def _interpreter(name: str) -> Interpreter:
    backend = _usable(name)
    if not isinstance(backend, Interpreter) or not backend.capabilities.cells:
        raise BenchmarkError(f"backend {name!r} enters no compiled code")
    return backend


def _round_trip(
    interpreter: Interpreter, verified: Verified, empty: Empty, rounds: int, iterations: int
) -> float:
    """Nanoseconds, the median of the differences between a run with the code and one without."""
    tasks = {
        True: lambda: _seconds(interpreter, verified, empty),
        False: lambda: _seconds(interpreter, verified, None),
    }
    times: dict[bool, list[float]] = {True: [], False: []}
    for is_entering, seconds in interleave(tasks, rounds, {}):
        times[is_entering].append(seconds)
    pairs = zip(times[True], times[False], strict=True)
    return median([1e9 * (entering - alone) / iterations for entering, alone in pairs])


def _seconds(interpreter: Interpreter, verified: Verified, empty: Empty | None) -> float:
    """Seconds of one run of the loop, with the code at its head if there is one."""
    artifact = interpreter.prepare(verified)
    if empty is not None:
        artifact.install(HEAD, empty.address, False)
    machine = Machine(verified, Limits())
    began = time.perf_counter()
    status = artifact.enter(machine, False)
    seconds = time.perf_counter() - began
    if status is not Status.HALT or machine.result() != (I64, 0):
        raise BenchmarkError(f"backend {interpreter.name!r} ended with {status.name}")
    return seconds
