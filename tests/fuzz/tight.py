# SPDX-License-Identifier: Apache-2.0
"""Random programs in memory that ends, or begins, directly at guard pages.

    python -m tests.fuzz.tight [--programs N] [--seed N] [--backends A,B]

Each program's heap is as large as it needs it and its stack a few words larger than the smallest,
so what a backend reads or writes past the end of a segment ends the process with SIGSEGV. In the
usual layout segments begin at guard pages: each program is run in both.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import dataclasses
import sys
import time

import ferryvm
from ferryvm.engine import Engine
from ferryvm.engine.result import TrapError
from ferryvm.machine.memory import SMALLEST_STACK, Limits
from ferryvm.registry import Registry
from ferryvm.testing import Differ, Verdict
from ferryvm.testing.generate import generate
from ferryvm.testing.generate.trap import LIMITS
from ferryvm.verify import Verified, verify

_MOST = 100_000
"""Instructions of a program that are run to see what heap it needs."""


def limits(program: Verified, number: int) -> Limits:
    """Limits that leave a program no more heap than it uses."""
    execution = Engine("reference", limits=LIMITS).start(program)
    with contextlib.suppress(TrapError):  # it has used its heap all the same
        execution.run(_MOST)
    # What main needs is there, and more for few calls.
    stack = max(SMALLEST_STACK, 8 * program.frame_words[0]) + 8 * (number % 128)
    return Limits(stack, execution.machine.control.hp, execution.machine.control.hp)


def run(programs: int, seed: int, backends: list[str]) -> collections.Counter[str]:
    """How often each verdict was given; all in both layouts."""
    registry, verdicts = Registry(), collections.Counter[str]()
    empty = ferryvm.assemble(".function main\nhalt\n")
    for name in backends:  # what is built once is not held against the first program
        ferryvm.run(empty, name)
    for number in range(programs):
        program = verify(generate(seed, number))
        begins = limits(program, number)
        for chosen in (begins, dataclasses.replace(begins, is_tight=True)):
            differ = Differ(backends, registry=registry, limits=chosen)
            for one in differ.compare(program):
                verdicts[one.verdict.value] += 1
                if one.verdict is Verdict.DISAGREE:
                    print(f"seed {seed}, program {number}: {one.backends}: {one.difference}")
    return verdicts


def main() -> int:
    """Run the programs; exit code 1 if backends disagree."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.tight")
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=20261142)
    parser.add_argument("--backends", default="switch,threaded,llvm")
    options = parser.parse_args()
    began = time.perf_counter()
    verdicts = run(options.programs, options.seed, options.backends.split(","))
    counts = ", ".join(f"{name} {count}" for name, count in sorted(verdicts.items()))
    print(
        f"{options.programs} programs in 2 layouts: {counts}, {time.perf_counter() - began:.0f} s"
    )
    return 1 if verdicts[Verdict.DISAGREE.value] else 0


if __name__ == "__main__":
    sys.exit(main())
