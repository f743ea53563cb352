# SPDX-License-Identifier: Apache-2.0
"""Lua 5.4 and LuaJIT's interpreter, with the Lua twins."""

from __future__ import annotations

from benchmarks.benchmark import ROOT, Benchmark, Scale
from benchmarks.peers.peer import (
    MissingError,
    Peer,
    Task,
    first_line,
    measured,
    sizes,
    tool,
    twin,
)

DRIVER = ROOT / "peers" / "drive.lua"

LUAJIT_LACKS = {
    "loopmix": "wrapping 64-bit multiplication: LuaJIT has it only as boxed FFI values, which"
    " would time the allocator",
}
"""Programs that LuaJIT cannot run as the same work without its compiler, and what it lacks."""


class Lua54Peer(Peer):
    """PUC-Rio Lua."""

    name = "lua"
    label = "Lua 5.4"

    def version(self) -> str:
        return first_line([tool("lua5.4"), "-v"])

    def prepare(self, benchmark: Benchmark, scale: Scale) -> Task:
        source = twin(benchmark, "lua")
        command = [tool("lua5.4"), str(DRIVER), str(source), *sizes(benchmark, scale)]
        return lambda: measured(benchmark, command)


class LuaJitPeer(Peer):
    """LuaJIT with its compiler off."""

    name = "luajit"
    label = "LuaJIT -joff"

    def version(self) -> str:
        return first_line([tool("luajit"), "-v"])

    def prepare(self, benchmark: Benchmark, scale: Scale) -> Task:
        if benchmark.name in LUAJIT_LACKS:
            raise MissingError(f"lacks {LUAJIT_LACKS[benchmark.name]}")
        source = twin(benchmark, "luajit.lua", "lua")
        command = [tool("luajit"), "-joff", str(DRIVER), str(source), *sizes(benchmark, scale)]
        return lambda: measured(benchmark, command)
