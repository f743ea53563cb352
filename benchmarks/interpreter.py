# SPDX-License-Identifier: Apache-2.0
"""The suite of the interpreters and their goals."""

from __future__ import annotations

from benchmarks.benchmark import Scale
from benchmarks.report import Report, Suite, Target


def goals(report: Report) -> list[Target]:
    """What interpreters are held to."""
    every = report.whole_mean("threaded", "wasm3")
    return [
        Target("switch over C++ switch, loop", report.ratio("loop", "cpp-switch", "switch"), 1.0),
        Target(
            "threaded over C++ computed goto, loop",
            report.ratio("loop", "cpp-goto", "threaded"),
            2.5,
        ),
        Target(
            "threaded without the peephole over C++ computed goto, loop",
            report.ratio("loop", "cpp-goto", "threaded-listing"),
            2.5,
        ),
        Target("threaded over wasm3, geometric mean", 1 / every if every else None, 1.0),
    ]


SUITE = Suite("interpreters", Scale.INTERPRETERS, ("gcc", "wasm3"), goals)
