# SPDX-License-Identifier: Apache-2.0
"""Programs of many small functions: built by `ferryvm.build`, assembled from text, verified,
started.

Each function has loops over integers and floats, a call and literals of its own. The builder gives
each statement a source position; assembly has one for each line.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable
from typing import Any

import ferryvm
from benchmarks.measure import median
from ferryvm.asm import assemble, write
from ferryvm.build import F64, I64, Function, Program
from ferryvm.verify import verify

TARGET_PER_SECOND = 300_000
"""Instructions a second of the builder and of the assembler."""
TARGET_SECONDS = 8.0
"""For 1,000,000 instructions, from the first method to the end of the run."""
TARGET_INSTRUCTIONS = 1_000_000

_INSTRUCTIONS = 100
"""Of a function, about."""
_INSTRUCTIONS_OF_LOOP = 19


def build(instructions: int) -> Program:
    """A program of about so many instructions; its start function calls the last of them."""
    choose = random.Random(1)
    p = Program()
    before: Function | None = None
    for number in range(max(1, instructions // _INSTRUCTIONS)):
        before = _function(p, number, before, choose)
    main = p.function("main", results=[I64])
    main.i64_const(1)
    assert before is not None
    main.call(before)
    p.start(main)
    return p


def _function(p: Program, number: int, before: Function | None, choose: random.Random) -> Function:
    f = p.function(f"f{number}", {"n": I64}, [I64])
    (n,) = f.parameters
    total, sum_ = f.local("total", I64), f.local("sum", F64)
    for line in range(_INSTRUCTIONS // _INSTRUCTIONS_OF_LOOP):
        f.at("made.toy", number * 10 + line, 1)
        f.i64_const(choose.randrange(1, 4))
        f.local_set(n)
        with f.block() as done, f.loop() as again:
            f.local_get(n)
            f.i64_eqz()
            f.br_if(done)
            f.at("made.toy", number * 10 + line, 9)
            f.local_get(sum_)
            f.f64_const(choose.random())
            f.f64_add()
            f.local_set(sum_)
            f.at("made.toy", number * 10 + line, 21)
            f.local_get(total)
            f.i64_const(choose.getrandbits(40))
            f.i64_xor()
            f.local_set(total)
            f.local_get(n)
            f.i64_const(1)
            f.i64_sub()
            f.local_set(n)
            f.br(again)
    if before is not None and number % 100:
        f.local_get(total)
        f.call(before)
        f.local_set(total)
    f.local_get(total)
    return f


def text_of(program: Program) -> str:
    """The same program as assembly, each line of which is its own position."""
    lines = write(program.listing()).splitlines()
    return "\n".join(line for line in lines if not line.startswith((".loc", ".file")))


def _built(instructions: int) -> ferryvm.Program:
    return build(instructions).build()


def _run(engine: ferryvm.Engine, verified: ferryvm.Verified) -> ferryvm.RunResult:
    return engine.start(verified).run()


def measure(rounds: int, instructions: int, progress: Callable[[str], None]) -> dict[str, Any]:
    """Medians of processor seconds of each stage, and instructions a second.

    `total_s` is what a builder's program takes from the first method to its end, with the default
    policy; `is_met` holds the figures to their targets, for programs of the targets' size.
    """
    text = text_of(build(instructions))
    taken: dict[str, list[float]] = {}

    def timed(name: str, work: Callable[..., Any], *arguments: object) -> Any:
        gc.collect()
        start = time.process_time()
        found = work(*arguments)
        taken.setdefault(name, []).append(time.process_time() - start)
        return found

    ferryvm.run(build(_INSTRUCTIONS).build())  # what a process does once
    count = 0
    for _ in range(rounds):
        program = timed("build", _built, instructions)
        count = len(program.code)
        verified = timed("verify", verify, program)
        timed("start", _run, ferryvm.Engine(), verified)
        timed("assemble", assemble, text)
        progress(", ".join(f"{name} {values[-1]:.3f} s" for name, values in taken.items()))
    seconds = {name: median(values) for name, values in taken.items()}
    total = seconds["build"] + seconds["verify"] + seconds["start"]
    built, assembled = count / seconds["build"], count / seconds["assemble"]
    at_size = instructions == TARGET_INSTRUCTIONS
    return {
        "instructions": count,
        "rounds": rounds,
        "built_per_s": built,
        "assembled_per_s": assembled,
        "target_per_s": TARGET_PER_SECOND,
        **{f"{name}_s": value for name, value in seconds.items()},
        "total_s": total,
        "target_s": TARGET_SECONDS if at_size else None,
        "is_met": min(built, assembled) >= TARGET_PER_SECOND
        and (not at_size or total <= TARGET_SECONDS),
    }
