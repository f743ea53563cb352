# SPDX-License-Identifier: Apache-2.0
"""Peers that compile as they run: LuaJIT, PyPy and node.

Each gets one run with small sizes that nobody measures. What they compile after that, in the middle
of loops that are already running, is part of their seconds: it cannot be told apart.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from benchmarks.benchmark import ROOT, Benchmark, Scale
from benchmarks.peers.cpython import DRIVER, PROCESSOR
from benchmarks.peers.lua import DRIVER as LUA_DRIVER
from benchmarks.peers.peer import (
    Measurement,
    Peer,
    Task,
    first_line,
    measured,
    sizes,
    tool,
    twin,
    warm_up,
)


class LuaJitCompilerPeer(Peer):
    """LuaJIT with its compiler, whose twins use FFI arrays and FFI's 64-bit integers."""

    name = "luajit"
    label = "LuaJIT"

    def version(self) -> str:
        return first_line([tool("luajit"), "-v"])

    def prepare(self, benchmark: Benchmark, scale: Scale) -> Task:
        source = twin(benchmark, "jit.lua", "luajit.lua", "lua")
        start = [tool("luajit"), str(LUA_DRIVER), "--warm", warm_up(benchmark)]
        return _task(benchmark, [*start, str(source), *sizes(benchmark, scale)])


class PyPyPeer(Peer):
    """PyPy, with the same twins as CPython."""

    name = "pypy"
    label = "PyPy"

    def __init__(self, is_processor: bool = False) -> None:
        """`is_processor`: measure the processor's time."""
        self.clock = PROCESSOR if is_processor else []

    def version(self) -> str:
        shown = (
            "import sys; print('PyPy %d.%d.%d' % sys.pypy_version_info[:3], sys.version_info[:2])"
        )
        return first_line([tool("pypy3"), "-c", shown])

    def prepare(self, benchmark: Benchmark, scale: Scale) -> Task:
        start = [tool("pypy3"), str(DRIVER), *self.clock, "--warm", warm_up(benchmark)]
        source = str(twin(benchmark, "py"))
        return _task(benchmark, [*start, source, *sizes(benchmark, scale)])


class NodePeer(Peer):
    """JavaScript on V8, by node."""

    name = "node"
    label = "node"

    def version(self) -> str:
        return f"node {first_line([tool('node'), '--version'])}"

    def prepare(self, benchmark: Benchmark, scale: Scale) -> Task:
        start = [tool("node"), str(ROOT / "peers" / "drive.mjs"), warm_up(benchmark)]
        source = str(twin(benchmark, "mjs"))
        return _task(benchmark, [*start, source, *sizes(benchmark, scale)])


def _task(benchmark: Benchmark, command: Sequence[str]) -> Task:
    def run() -> Measurement:
        # How long the first run took is not how long compiling took.
        return dataclasses.replace(measured(benchmark, command), compile_seconds=None)

    return run
