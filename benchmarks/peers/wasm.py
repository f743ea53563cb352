# SPDX-License-Identifier: Apache-2.0
"""wasm3, an interpreter for WebAssembly: the C twins by clang, run in this process by pywasm3."""

from __future__ import annotations

import importlib
import time
from pathlib import Path
from typing import Any

from benchmarks.benchmark import Benchmark, Scale
from benchmarks.build import build
from benchmarks.peers.native import C_FLAGS
from benchmarks.peers.peer import Measurement, MissingError, Peer, Task, first_line, tool, twin

STACK_BYTES = 1 << 20


class WasmPeer(Peer):
    """wasm3; only the call of `work` is timed, in a runtime of its own."""

    name = "wasm3"
    label = "wasm3"

    def __init__(self, twin_globals: bool = False) -> None:
        self.defines = ("-DTWIN_GLOBALS",) if twin_globals else ()

    def version(self) -> str:
        compiler = first_line([self._clang(), "--version"])
        return f"wasm3 {self._wasm3().M3_VERSION} (pywasm3), twins by {compiler}"

    def prepare(self, benchmark: Benchmark, scale: Scale) -> Task:
        wasm3 = self._wasm3()
        code = self._module(benchmark).read_bytes()
        sizes = benchmark.at(scale)

        def run() -> Measurement:
            # A runtime of its own each time: the twins' memory starts as zero, as in a process.
            environment = wasm3.Environment()
            runtime = environment.new_runtime(STACK_BYTES)
            runtime.load(environment.parse_module(code))
            work = runtime.find_function("work")  # which also compiles it
            start = time.perf_counter()
            result = work(*sizes)
            return Measurement(time.perf_counter() - start, result)

        return run

    def _module(self, benchmark: Benchmark) -> Path:
        flags = ["--target=wasm32", *C_FLAGS, "-ffreestanding", "-nostdlib"]
        link = ["-Wl,--no-entry", "-Wl,--export-all"]
        command = [self._clang(), *flags, *link, *self.defines]
        return build(f"{benchmark.name}.wasm", command, [twin(benchmark, "c")])

    @staticmethod
    def _wasm3() -> Any:
        try:
            return importlib.import_module("wasm3")
        except ImportError:
            raise MissingError("the Python package pywasm3 is not installed") from None

    @staticmethod
    def _clang() -> str:
        tool("wasm-ld", "; clang needs it to link for wasm32")
        return tool("clang")
