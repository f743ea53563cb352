# SPDX-License-Identifier: Apache-2.0
"""The suite of the compilers and their goals."""

from __future__ import annotations

from benchmarks.benchmark import Scale
from benchmarks.report import Report, Suite, Target

FOLDED = "loop"
"""The program that a compiler which folds it away does no work for: no ratio then means anything,
and one of a thousandth would make any mean look good."""


def goals(report: Report) -> list[Target]:
    """What native code is held to."""
    ratios = report.ratios("llvm", "gcc")
    is_whole = report.whole_mean("llvm", "gcc") is not None
    folded = report.seconds(FOLDED, "llvm")
    return [
        Target("llvm over gcc -O3, geometric mean", report.whole_mean("llvm", "gcc"), 1.05, True),
        Target(
            "llvm over gcc -O3, worst program",
            max(ratios.values()) if ratios and is_whole else None,
            1.5,
            True,
        ),
        # 10^8 additions one by one take 30 ms.
        Target(f"llvm folds {FOLDED}", None if folded is None else 1e3 * folded, 1.0, True, " ms"),
    ]


SUITE = Suite("scalar", Scale.SCALAR, ("gcc",), goals, frozenset({FOLDED}))
