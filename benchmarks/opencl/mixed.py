# SPDX-License-Identifier: Apache-2.0
"""Whole runs under a policy that gives what gets hot to opencl, against the interpreter alone.

The program waits for its kernels, so that each run enters them, however soon it would end. The
first round builds, later ones find what it built.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from benchmarks.benchmark import Benchmark, Scale
from benchmarks.comparison import Progress, compare
from benchmarks.opencl.part import Compared
from benchmarks.opencl.peer import OPENCL, AlonePeer, MixedPeer
from benchmarks.report import Suite
from ferryvm import policy
from ferryvm.policy import Choice, Options, Policy, Rule
from ferryvm.policy.model import INTERPRETER, PROMPT


def hot_to_opencl(scale: Scale | None = None) -> Policy:
    """The default policy's counts, with opencl for whatever they find hot; at smaller sizes than
    the usual ones little gets so hot, and counts are smaller too."""
    usual = policy.default().profile if scale is None else PROMPT
    profile = dataclasses.replace(usual, delay_ms=0)
    rule = Rule("hot", backends=(Choice(OPENCL, Options(background=False)),))
    return Policy(INTERPRETER, profile, (rule,))


def mixed(
    benchmarks: Sequence[Benchmark], rounds: int, scale: Scale | None, progress: Progress
) -> Compared:
    """Whole runs with kernels and without."""
    opencl = MixedPeer(OPENCL, OPENCL, f"{INTERPRETER} and {OPENCL}", hot_to_opencl(scale))
    alone = AlonePeer(INTERPRETER)
    suite = Suite("mixed", Scale.SCALAR, (alone.name,), lambda _report: [])
    taking_part = {opencl.name: opencl, alone.name: alone}
    report = compare(suite, benchmarks, taking_part, rounds, scale, progress)
    return Compared("mixed", "whole runs, what is hot to opencl", report, [opencl.details])
