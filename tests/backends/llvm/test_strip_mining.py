# SPDX-License-Identifier: Apache-2.0
"""Short counted loops run in strips: they are vectorised, end exactly, and can be interrupted."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Iterator

import numpy as np
import pytest

import ferryvm
from ferryvm.backend import Options
from ferryvm.engine import Engine, Execution, ProgramInterrupted
from ferryvm.ir.operation import POLL_BUDGET
from ferryvm.machine.control import Status
from ferryvm.region.region import region
from ferryvm.verify import verify
from ferryvm_backends.llvm import LlvmBackend

from ...tier import sample
from .compiled import COMPILED

AXPY = """
(define (axpy n a x y) (define i 0)
  (while (< i n) (array-set! y i (+ (array-ref y i) (* a (array-ref x i)))) (set! i (+ i 1))))
(axpy {n} 1.5 (make-array f64 {size}) (make-array f64 {size}))"""

SUM = """
(define (total v n) (define i 0) (define s 0)
  (while (< i n) (set! s (+ s 7 (array-ref v i))) (set! i (+ i 1))) s)
(total (make-array i64 {size}) {n})"""

HASH = """
(define (hash i n) (define s 1)
  (while (< i n) (set! s (^ s (* i (+ i 7)))) (set! i (+ i 1))) s)
(hash {start} {n})"""

LET = """
(define (hash i n) (define s 1)
  (while (< i n) (let ((more (+ i 7))) (set! s (^ s (* i more)))) (set! i (+ i 1))) s)
(hash {start} {n})"""


@pytest.mark.parametrize(
    ("source", "name", "vector"),
    [
        (AXPY.format(n=1000, size=1000), "axpy", r"fmul <\d+ x double>"),
        (SUM.format(n=1000, size=1000), "total", r"add <\d+ x i64>"),
        (HASH.format(start=0, n=1000), "hash", r"xor <\d+ x i64>"),
        (LET.format(start=0, n=1000), "hash", r"xor <\d+ x i64>"),
    ],
    ids=["stores", "sum-with-checks", "other-reduction", "local-of-an-iteration"],
)
def test_polls_do_not_keep_a_loop_from_being_vectorised(
    source: str, name: str, vector: str
) -> None:
    found = region(verify(ferryvm.compile(source)), name)
    text = LlvmBackend().show(found, Options(optimize=3), "optimized")
    assert re.search(vector, text)
    assert "load atomic i32" in text  # the flag


ENDS = [-(1 << 63), -1, 0, 1, 2, 7, POLL_BUDGET - 1, POLL_BUDGET, POLL_BUDGET + 1, 20000]


@pytest.mark.rotate("n", "source", most=4)
@pytest.mark.parametrize("n", ENDS)
@pytest.mark.parametrize("source", [AXPY, SUM], ids=["stores", "sum"])
def test_a_loop_ends_where_the_reference_ends(source: str, n: int) -> None:
    program = ferryvm.compile(source.format(n=n, size=max(n, 1)))
    states = []
    for backend in ("threaded", "llvm"):
        execution = Engine(backend).start(program)
        execution.run()
        states.append(execution.machine.snapshot())
    assert states[0] == states[1]


HEADS = {
    "stores": "(begin (array-set! v 0 (+ (array-ref v 0) i)) (< i n))",
    "loads": "(begin (set! s (+ s (array-ref v 0))) (< i n))",
    "sets": "(begin (set! s (+ (* s 3) 1)) (< i n))",
    "checks": "(begin (set! s (+ s (array-ref v (- i i)))) (< i n))",
}


@pytest.mark.rotate("n", "condition")
@pytest.mark.parametrize("n", ENDS)
@pytest.mark.parametrize("condition", HEADS)
def test_what_is_done_in_front_of_the_condition_is_done_once_a_round(
    condition: str, n: int
) -> None:
    source = f"""
(define (work v n) (define i 0) (define s 0)
  (while {HEADS[condition]} (set! s (+ s i)) (set! i (+ i 1)))
  (+ s (array-ref v 0)))
(work (make-array i64 3) {n})"""
    program = ferryvm.compile(source)
    assert ferryvm.run(program, "llvm").value == ferryvm.run(program, "threaded").value


@pytest.mark.rotate("length", "end")
@pytest.mark.parametrize("length", ENDS[2:])
@pytest.mark.parametrize("end", [-(1 << 63) + 20000, -5, 20000, (1 << 63) - 1])
def test_counts_may_begin_and_end_anywhere(length: int, end: int) -> None:
    program = ferryvm.compile(HASH.format(start=end - length, n=end))
    assert ferryvm.run(program, "llvm").value == ferryvm.run(program, "threaded").value


def test_a_count_far_past_its_bound_ends_at_once() -> None:
    program = ferryvm.compile(HASH.format(start=(1 << 63) - 1, n=-(1 << 63)))
    assert ferryvm.run(program, "llvm").value == 1


@contextlib.contextmanager
def interrupting(execution: Execution) -> Iterator[None]:
    """Has the flag set again and again."""
    done = threading.Event()

    def interrupt() -> None:
        while not done.wait(0.003):
            execution.machine.control.interrupt = 1

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(ProgramInterrupted):
            yield
    finally:
        done.set()
        thread.join()


@pytest.mark.parametrize("source", [HASH, LET], ids=["hash", "let"])
@pytest.mark.parametrize("times", sample([2, 20], 1))
def test_the_state_is_exact_whenever_a_vectorised_loop_is_interrupted(
    times: int, source: str
) -> None:
    execution = Engine(policy=COMPILED).start(ferryvm.compile(source.format(start=0, n=1 << 62)))
    done, expected, seen = 0, 1, 0
    while seen < times:
        with interrupting(execution):
            execution.run()
        words = np.frombuffer(execution.machine.snapshot().stack, np.uint64)
        locals_ = 1 + (source is LET)
        if len(words) < 4 + locals_ or not words[-4 - locals_]:
            continue  # it has not come to the loop
        seen += 1
        i, s = words[-4 - locals_], words[-locals_]  # a parameter before the last, and a local
        if source is LET:
            assert words[-1] == i + 6  # of the last iteration
        numbers = np.arange(done, i, dtype=np.uint64)
        done, expected = int(i), expected ^ int(np.bitwise_xor.reduce(numbers * (numbers + 7)))
        assert int(s) == expected
    assert done > times * POLL_BUDGET


@pytest.mark.parametrize("inner", [0, 3, POLL_BUDGET])
def test_a_loop_around_short_ones_can_be_interrupted(inner: int) -> None:
    source = """
(define (hash i n) (define s 1) (while (< i n) (set! s (^ s (* i i))) (set! i (+ i 1))) s)
(define s 0) (define n {}) (while #t (set! s (+ s (hash 0 n) (hash 1 n))))"""
    execution = Engine(policy=COMPILED).start(ferryvm.compile(source.format(inner)))
    for _ in range(2):  # the first time it may still be compiled
        progress = 0
        while not progress:
            with interrupting(execution):
                execution.run()
            assert execution.machine.status is Status.INTERRUPTED
            progress = execution.machine.memory.statics[0]
