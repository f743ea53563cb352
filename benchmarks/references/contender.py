# SPDX-License-Identifier: Apache-2.0
"""The contenders on a program with references: a task each, which runs the program once and gives
processor seconds and the result.

gcc, Lua and CPython run in processes of their own, so that each run has a fresh heap. ferryvm runs
in this process, on an instance that has run before: the time of compiling is not measured here.
"""

from __future__ import annotations

import contextlib
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path

import ferryvm
from benchmarks.benchmark import ROOT, BenchmarkError
from benchmarks.build import build
from benchmarks.peers import process
from benchmarks.peers.cpython import DRIVER as PYTHON_DRIVER
from benchmarks.peers.ferry import engine
from benchmarks.peers.lua import DRIVER as LUA_DRIVER
from benchmarks.peers.peer import SECONDS_A_RUN, MissingError, first_line, tool
from benchmarks.references.program import Sizes, Twin, assembled, of_skiff
from ferryvm.program import Program

Outcome = tuple[float, int | float]
"""Processor seconds and the result."""
Task = Callable[[], Outcome]

FLAGS = ("-O3", "-march=native")
"""gcc's, with fused multiply-add where the machine has it."""

WARM_UPS = 3
"""Runs before the measured ones: code is compiled in the background, first quickly, then well."""

SMALL = " (small)"
"""Ends the name of gcc where it runs the sizes of interpreters."""

SKIFF = " (Skiff)"
"""Ends the name of a backend where it runs the twin in Skiff, not the one in assembly."""

COMPILED = ("gcc", "llvm", "llvm" + SKIFF)
"""Contenders that run the sizes of compilers."""

AT_MOST = {"threaded": 3, "threaded" + SKIFF: 3, "switch": 3, "lua": 3, "cpython": 1}
"""Rounds that slow contenders take part in."""


def tasks(twin: Twin, sizes: Sizes) -> dict[str, Callable[[], Task]]:
    """What makes the task of each contender; it raises MissingError where there is none."""
    found: dict[str, Callable[[], Task]] = {
        "gcc": lambda: _gcc(twin, sizes.compiled),
        "llvm": lambda: _ferry(assembled(twin.name), "llvm", sizes.compiled),
        "llvm" + SKIFF: lambda: _ferry(of_skiff(twin.name), "llvm", sizes.compiled),
    }
    if sizes.interpreted != sizes.compiled:
        found["gcc" + SMALL] = lambda: _gcc(twin, sizes.interpreted)
    for name in ("threaded", "switch"):
        found[name] = lambda backend=name: _ferry(  # type: ignore[misc]  # a default binds the name
            assembled(twin.name), backend, sizes.interpreted
        )
    found["threaded" + SKIFF] = lambda: _ferry(of_skiff(twin.name), "threaded", sizes.interpreted)
    if twin.has_structs:
        found["lua"] = lambda: _lua(twin, sizes.interpreted)
        found["cpython"] = lambda: _cpython(twin, sizes.interpreted)
    return found


def versions() -> dict[str, str]:
    """The versions of the peers that are installed."""
    commands = {"gcc": ["gcc", "--version"], "lua": ["lua5.4", "-v"]}
    found = {"ferryvm": ferryvm.__version__, "cpython": platform.python_version()}
    for name, (program, option) in commands.items():
        with contextlib.suppress(MissingError):  # each program says what is missing
            found[name] = first_line([tool(program), option])
    return found


def _ferry(program: Program, backend: str, size: int) -> Task:
    work = engine(backend).instantiate(program).exports["work"]
    for _ in range(WARM_UPS if backend == "llvm" else 0):
        work(size)

    def run() -> Outcome:
        began = time.process_time()
        result: int | float = work(size)
        return time.process_time() - began, result

    return run


def _gcc(twin: Twin, size: int) -> Task:
    compiler = tool("gcc")
    kind = ("-DFLOAT_RESULT",) if twin.is_float else ()
    driver = build(
        "drive_references.o",
        [compiler, *FLAGS, "-c", "-DSIZES=1", "-DCLOCK=CLOCK_PROCESS_CPUTIME_ID", *kind],
        [ROOT / "peers" / "drive.c"],
    )
    code = build(f"{twin.name}_references.o", [compiler, *FLAGS, "-c"], [twin.path("c")])
    program = build(f"{twin.name}_references", [compiler], [driver, code])
    return _child(twin, [str(program), str(size)])


def _lua(twin: Twin, size: int) -> Task:
    return _child(twin, [tool("lua5.4"), str(LUA_DRIVER), str(twin.path("lua")), str(size)])


def _cpython(twin: Twin, size: int) -> Task:
    path: Path = twin.path("py")
    return _child(twin, [sys.executable, str(PYTHON_DRIVER), "--processor", str(path), str(size)])


def _child(twin: Twin, command: list[str]) -> Task:
    def run() -> Outcome:
        done = process.run(command, SECONDS_A_RUN, {})
        words = done.output.split()
        if done.exit_code != 0 or len(words) != 2:
            said = (done.errors or done.output).strip().splitlines() or ["nothing"]
            raise BenchmarkError(f"{twin.name}: {command[0]}: exit {done.exit_code}: {said[-1]}")
        return float(words[0]), float(words[1]) if twin.is_float else int(words[1])

    return run
