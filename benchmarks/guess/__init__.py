# SPDX-License-Identifier: Apache-2.0
"""The gain of guesses in launches: code of `llvm` with `speculate` against the same without.

Both run in one process, in turn, after a run each in which they were compiled; CPU time counts.
"""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ferryvm
from benchmarks.benchmark import BenchmarkError
from benchmarks.measure import interleave, median
from ferryvm.engine import Engine, Execution
from ferryvm.policy import Choice, Options, Policy, Profile, Rule
from ferryvm.policy.condition import Like
from ferryvm.policy.predicate import Test, When
from ferryvm.program import Program

PROGRAMS = ("decode", "grid", "root")

_SIZE = re.compile(r"(\(define (?:items|width) )(\d+)")

_LANES = {"in order": 1, "lanes": 0}
"""The policy's `lanes` for both kinds of code."""


def measure(rounds: int, progress: Callable[[str], None], scale: int = 1) -> dict[str, Any]:
    """Seconds of CPU time without and with guesses, and their ratios: medians over the rounds.

    `scale`: divides the sizes of the programs. Raises BenchmarkError if results differ.
    """
    found: dict[str, Any] = {}
    for name in PROGRAMS:
        program = ferryvm.compile(_text(name, scale), name)
        for title, lanes in _LANES.items():
            without, with_ = _pair(program, lanes, rounds)
            key = f"{name}, {title}"
            found |= {f"{key}: without": without, f"{key}: with": with_}
            found[f"{key}: ratio"] = with_ / without
            progress(f"{key}: {with_ / without:.2f}")
    return found


def _text(name: str, scale: int) -> str:
    text = (Path(__file__).parent / f"{name}.skiff").read_text(encoding="utf-8")
    return _SIZE.sub(lambda found: f"{found[1]}{int(found[2]) // scale}", text)


def _pair(program: Program, lanes: int, rounds: int) -> tuple[float, float]:
    """Median seconds without and with guesses."""
    executions = {guesses: _started(program, lanes, guesses) for guesses in (False, True)}
    results = {guesses: one.run().output for guesses, one in executions.items()}
    if results[False] != results[True]:
        raise BenchmarkError(f"with guesses the result is {results[True]}, not {results[False]}")
    tasks = {guesses: functools.partial(_run, one) for guesses, one in executions.items()}
    seconds: dict[bool, list[float]] = {False: [], True: []}
    for guesses, taken in interleave(tasks, rounds, {}):
        seconds[guesses].append(taken)
    return median(seconds[False]), median(seconds[True])


def _started(program: Program, lanes: int, guesses: bool) -> Execution:
    options = Options(background=False, cache=False, threads=1, lanes=lanes, speculate=guesses)
    rule = Rule(when=When((Test("kind", (Like("launch"),)),)), backends=(Choice("llvm", options),))
    policy = Policy(rules=(rule,), profile=Profile(loop_threshold=100))
    return Engine(policy=policy).start(program)


def _run(execution: Execution) -> float:
    again = execution.again()
    began = time.process_time()
    again.run()
    return time.process_time() - began
