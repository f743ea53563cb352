# SPDX-License-Identifier: Apache-2.0
"""gcc -O3 of the C twins: the baseline of all ratios."""

from __future__ import annotations

from benchmarks.benchmark import ROOT, Benchmark
from benchmarks.build import build
from benchmarks.peers.peer import Peer, Task, first_line, measured, tool, twin

# Contraction off: a fused multiply-add would round once where every other peer rounds twice.
C_FLAGS = ("-O3", "-ffp-contract=off", "-fno-math-errno")


class NativePeer(Peer):
    """The C twin, compiled apart from its driver so that sizes stay unknown to the compiler."""

    name = "gcc"
    label = "gcc -O3"

    def __init__(self, twin_globals: bool = False) -> None:
        self.defines = ("-DTWIN_GLOBALS",) if twin_globals else ()

    def version(self) -> str:
        return first_line([tool("gcc"), "--version"])

    def prepare(self, benchmark: Benchmark, sizes: tuple[int, ...], is_full: bool) -> Task:
        gcc = tool("gcc")
        source = twin(benchmark, "c")
        kind = ("-DFLOAT_RESULT",) if benchmark.is_float else ()
        driver = build(
            f"drive{len(sizes)}.o",
            [gcc, *C_FLAGS, "-x", "c", "-c", f"-DSIZES={len(sizes)}", *kind],
            [ROOT / "peers" / "drive.c"],
        )
        code = build(f"{benchmark.name}.o", [gcc, *C_FLAGS, "-c", *self.defines], [source])
        program = build(benchmark.name, [gcc], [driver, code])
        command = [str(program), *map(str, sizes)]
        return lambda: measured(benchmark, command)
