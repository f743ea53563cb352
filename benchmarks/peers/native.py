# SPDX-License-Identifier: Apache-2.0
"""The C twins by gcc, the baseline of all ratios, and by clang."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from benchmarks.benchmark import ROOT, Benchmark, Scale
from benchmarks.build import build, build_seconds
from benchmarks.peers.peer import Measurement, Peer, Task, first_line, measured, sizes, tool, twin

# Contraction off: a fused multiply-add would round once where every other peer rounds twice.
C_FLAGS = ("-O3", "-ffp-contract=off", "-fno-math-errno")
HOST = "-march=native"
"""What compilers that run on the machine they compile for know about it anyway."""


class NativePeer(Peer):
    """The C twin, compiled apart from its driver so that sizes stay unknown to the compiler."""

    def __init__(self, compiler: str = "gcc", extra: Sequence[str] = ()) -> None:
        self.name = compiler
        self.label = f"{compiler} -O3"
        self.flags = (*C_FLAGS, *extra)

    def version(self) -> str:
        flags = " ".join(self.flags)
        return f"{first_line([tool(self.name), '--version'])}, {flags}"

    def prepare(self, benchmark: Benchmark, scale: Scale) -> Task:
        compiler = tool(self.name)
        source = twin(benchmark, "c")
        count = len(benchmark.sizes)
        kind = ("-DFLOAT_RESULT",) if benchmark.is_float else ()
        driver = build(
            f"drive{count}.o",
            [compiler, *self.flags, "-x", "c", "-c", f"-DSIZES={count}", *kind],
            [ROOT / "peers" / "drive.c"],
        )
        compiling = [compiler, *self.flags, "-c"]
        code = build(f"{benchmark.name}.o", compiling, [source])
        program = build(benchmark.name, [compiler], [driver, code])
        command = [str(program), *sizes(benchmark, scale)]

        def run() -> Measurement:
            seconds = build_seconds(compiling, [source])
            found = measured(benchmark, command)
            return dataclasses.replace(found, compile_seconds=seconds)

        return run
