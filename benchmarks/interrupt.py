# SPDX-License-Identifier: Apache-2.0
"""How long a backend takes to give control back on SIGINT, and whether its state can go on.

The program runs in a process of its own, which this one interrupts at random times. After each
interruption the state is copied, and the copy goes on for some instructions on two backends, which
have to agree. When all is over, a run that counted is repeated without interruptions, on another
backend and for as many instructions: it has to end in the same state.

    python -m benchmarks.interrupt BACKEND PROGRAM COUNT        the interrupted process
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ferryvm
from benchmarks.benchmark import BenchmarkError
from benchmarks.measure import median
from ferryvm.engine import Engine, Execution, ProgramInterrupted
from ferryvm.testing import StoppedState, difference

TARGET_MILLISECONDS = 50.0
_LONGEST_WAIT = 0.04
"""Seconds; a signal comes at any time up to then after the run has begun."""

_SHORTEST_WAIT = 0.005
"""Seconds that the process may take from saying so to running the program."""

_PROGRAMS = {
    "loop": "(define n 0) (define h 7) (while #t (set! h (+ (* h 31) n)) (set! n (+ n 1)))",
    "recursion": """
(define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
(define h 0)
(while #t (set! h (+ h (fib 15))))
""",
    "vector": """
(define v (make-array f64 4096))
(define i 0)
(while #t
  (array-set! v (& i 4095) (+ (array-ref v (& i 4095)) 0.5))
  (set! i (+ i 1)))
""",
}


def measure(backend: str, count: int, seed: int, progress: Callable[[str], None]) -> dict[str, Any]:
    """Latencies of `count` interruptions, in milliseconds.

    Raises BenchmarkError if an interrupted state could not go on as it should.
    """
    chance = random.Random(seed)
    latencies: list[float] = []
    share = -(-count // len(_PROGRAMS))
    for name in _PROGRAMS:
        found = _interrupt(backend, name, share, chance)
        progress(f"{backend}, {name}: {len(found)} interruptions, longest {max(found):.1f} ms")
        latencies += found
    latencies.sort()
    last = latencies[min(len(latencies) - 1, int(0.99 * len(latencies)))]
    return {
        "backend": backend,
        "interruptions": len(latencies),
        "median_ms": median(latencies),
        "p99_ms": last,
        "longest_ms": latencies[-1],
        "target_ms": TARGET_MILLISECONDS,
        "is_met": last <= TARGET_MILLISECONDS,
    }


def _interrupt(backend: str, name: str, count: int, chance: random.Random) -> list[float]:
    command = [sys.executable, "-m", "benchmarks.interrupt", backend, name, str(count)]
    root = Path(__file__).resolve().parents[1]
    latencies = []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=root
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        for _ in range(count):
            if child.stdout.readline() != "running\n":
                break
            time.sleep(chance.uniform(_SHORTEST_WAIT, _LONGEST_WAIT))
            sent = time.monotonic()
            child.send_signal(signal.SIGINT)
            latencies.append(1e3 * (float(child.stdout.readline() or "inf") - sent))
        verdict = child.stdout.read()
        if child.wait() or verdict != "good\n":
            lines = child.stderr.read().strip().splitlines() or [verdict]
            raise BenchmarkError(f"{backend}, {name}: {lines[-1]}")
    return latencies


# --- the interrupted process ----------------------------------------------------------------


def _say(text: str) -> None:
    print(text, flush=True)


def _run(backend: str, name: str, count: int) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    program = ferryvm.compile(_PROGRAMS[name])
    counted, plain = (Engine(backend).start(program) for _ in range(2))
    for execution in (counted, plain):
        execution.run(1000)  # whatever the first run prepares is no part of the latency
    for number in range(count):
        _be_interrupted(plain if number % 2 else counted, is_counting=not number % 2)
    other = Engine("switch" if backend == "threaded" else "threaded").start(program)
    other.run(counted.instructions)
    counted.run(fuel=0)  # the status, too, is now that of a run whose fuel ran out
    _expect_equal("a run without interruptions", counted, other)
    _say("good")


def _be_interrupted(execution: Execution, is_counting: bool) -> None:
    _say("running")
    try:
        execution.run(count=is_counting)
    except ProgramInterrupted:
        _say(repr(time.monotonic()))
    copies = [execution.fork() for _ in range(2)]
    for copy, name in zip(copies, ("reference", "switch"), strict=True):
        copy.run(2000, backend=name)
    _expect_equal("going on from an interruption", *copies)


def _expect_equal(what: str, left: Execution, right: Execution) -> None:
    states = [StoppedState(one.machine.snapshot(), None, b"") for one in (left, right)]
    found = difference(left.machine, *states)
    if found is not None:
        raise BenchmarkError(f"{what} ends in another state: {found}")


if __name__ == "__main__":
    _run(sys.argv[1], sys.argv[2], int(sys.argv[3]))
