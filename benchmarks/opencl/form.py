# SPDX-License-Identifier: Apache-2.0
"""The loop of the examples in its forms: plain and marked, with and without the peephole.

    plain   no marks, the whole program is a kernel
    mixed   an interpreter runs the program and enters a kernel at the marked scope

What a compiler makes of either should not depend on how well the bytecode was improved before.
"""

from __future__ import annotations

import ferryvm
from benchmarks.benchmark import Benchmark, Scale
from benchmarks.comparison import Progress, compare
from benchmarks.opencl.part import Compared
from benchmarks.opencl.peer import OPENCL, CompiledPeer
from benchmarks.opencl.program import MARKED, PLAIN
from benchmarks.report import Report, Suite, Target
from ferryvm.engine import Engine
from ferryvm.policy import Policy
from ferryvm.policy.model import build_ours
from ferryvm.program import Program

OPTIMISED, UNOPTIMISED = "optimised", "unoptimised"
MOST = 1.05


def marked_to_opencl() -> Policy:
    """Marked scopes go to opencl, at once or not at all; nothing else is compiled."""
    rule = {
        "name": "marked",
        "when": {"marked": True},
        "backends": [{"name": OPENCL, "optimize": 3, "background": False, "required": True}],
    }
    return build_ours({"rule": [rule]})


class FormPeer(CompiledPeer):
    """opencl on bytecode with or without the peephole."""

    def __init__(self, name: str) -> None:
        super().__init__(name, OPENCL, f"{OPENCL}, {name}")

    def program(self, benchmark: Benchmark, scale: Scale) -> Program:
        text = benchmark.skiff(benchmark.at(scale))
        return ferryvm.compile(text, f"{benchmark.name}.skiff", self.name == OPTIMISED)

    def engine(self, benchmark: Benchmark) -> Engine:
        if benchmark is MARKED:
            return Engine(policy=marked_to_opencl())
        return super().engine(benchmark)


def forms(rounds: int, scale: Scale | None, progress: Progress) -> Compared:
    """Both forms of the loop, from both bytecodes."""
    peers = [FormPeer(name) for name in (UNOPTIMISED, OPTIMISED)]
    taking_part = {peer.name: peer for peer in peers}
    report = compare(SUITE, (PLAIN, MARKED), taking_part, rounds, scale, progress)
    title = "looptest, plain and mixed, with and without the peephole"
    return Compared("forms", title, report, [peer.details for peer in peers])


def goals(report: Report) -> list[Target]:
    """What unoptimised bytecode may cost."""
    return [
        Target(
            f"unoptimised over optimised bytecode, {form}",
            report.ratio(form, UNOPTIMISED, OPTIMISED),
            MOST,
            True,
        )
        for form in report.cells
    ]


SUITE = Suite("forms", Scale.SCALAR, (OPTIMISED,), goals)
