# SPDX-License-Identifier: Apache-2.0
"""Whole programs, compiled before: opencl against llvm, and against C where nothing folds."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.benchmark import BY_NAME, Benchmark, Scale
from benchmarks.comparison import Progress, compare
from benchmarks.opencl.part import Compared
from benchmarks.opencl.peer import OPENCL, CompiledPeer
from benchmarks.opencl.program import FOLDING
from benchmarks.peers.native import HOST, NativePeer
from benchmarks.report import Report, Suite, Target
from benchmarks.scalar import FOLDED

LLVM, GCC = "llvm", "gcc"

MOST_OVER_LLVM = 1.10
MOST_FOLDED_MILLISECONDS = 1.0
MOST_OVER_GCC = 1.05

NOT_FOLDING = (BY_NAME["loopmix"], BY_NAME["collatz"])
"""Loops that no compiler takes away."""


def over_llvm(
    benchmarks: Sequence[Benchmark], rounds: int, scale: Scale | None, progress: Progress
) -> Compared:
    """Whole programs on opencl and on llvm."""
    peers = [CompiledPeer(name, name, f"ferryvm {name}") for name in (OPENCL, LLVM)]
    taking_part = {peer.name: peer for peer in peers}
    report = compare(WHOLE, benchmarks, taking_part, rounds, scale, progress)
    title = "whole programs, compiled before"
    return Compared("whole", title, report, [peer.details for peer in peers])


def llvm_goals(report: Report) -> list[Target]:
    """What opencl is held to beside llvm."""
    seconds = report.seconds(FOLDED, OPENCL)
    return [
        Target(
            "opencl over llvm, geometric mean",
            report.whole_mean(OPENCL, LLVM),
            MOST_OVER_LLVM,
            True,
        ),
        Target(
            f"opencl folds {FOLDED}",
            None if seconds is None else 1e3 * seconds,
            MOST_FOLDED_MILLISECONDS,
            True,
            " ms",
        ),
    ]


def over_gcc(rounds: int, scale: Scale | None, progress: Progress) -> Compared:
    """Loops that do not fold, on opencl and in C."""
    opencl = CompiledPeer(OPENCL, OPENCL, "ferryvm opencl")
    taking_part = {OPENCL: opencl, GCC: NativePeer(GCC, [HOST])}
    report = compare(NATIVE, NOT_FOLDING, taking_part, rounds, scale, progress)
    return Compared("native", "loops that do not fold, against C", report, [opencl.details])


def gcc_goals(report: Report) -> list[Target]:
    """What opencl is held to beside C."""
    return [
        Target(
            f"opencl over gcc -O3, {program}",
            report.ratio(program, OPENCL, GCC),
            MOST_OVER_GCC,
            True,
        )
        for program in report.cells
    ]


WHOLE = Suite("whole", Scale.SCALAR, (LLVM,), llvm_goals, FOLDING)
NATIVE = Suite("native", Scale.SCALAR, (GCC,), gcc_goals)
