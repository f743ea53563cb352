# SPDX-License-Identifier: Apache-2.0
"""Kernels in copied memory are entered natively where little has changed, else by way of Python."""

from __future__ import annotations

import ctypes
import dataclasses
from collections import Counter

import pytest

import ferryvm
from ferryvm.backend import Code, Options
from ferryvm.engine import Engine
from ferryvm.engine.explain import explain
from ferryvm.engine.observer import Observer
from ferryvm.machine.control import REGISTER_BYTES, ControlBlock, Status
from ferryvm.machine.state import Machine
from ferryvm.policy import Choice, Policy, Profile, Rule
from ferryvm.policy import Options as PolicyOptions
from ferryvm_backends.opencl import OpenClBackend, copied
from ferryvm_backends.opencl.code import KernelCode
from ferryvm_backends.opencl.launch import ENTER, FAILED, GO_ON

from ...heap_vector import on_heap
from .entering import NAME, enter, named, whole

pytestmark = pytest.mark.parametrize(
    "backend", ["copied", pytest.param("gpu", marks=pytest.mark.gpu)], indirect=True
)

STATICS = """
(define s 1) (define i 0)
(while (< i 60) (enter-jit ((set! s (+ (* s 3) i)))) (set! i (+ i 1)))
s
"""
FRAMES = """
(define (f n x)
  (set! x (- x 3))
  (enter-jit ((set! x (+ (* x n) 1))))
  (if (= n 0) x (+ (f (- n 1) x) x)))
(f 60 1)
"""
RISING = """
(define (g n) (if (= n 0) (begin (print! n) 0) (+ 1 (g (- n 1)))))
(define s 0) (define i 0)
(while (< i 3) (enter-jit ((set! s (+ s (g 40))))) (set! i (+ i 1)))
s
"""
READING = """
(define v (make-vector i64 1000)) (define s 0) (define i 0)
(while (< i 20)
  (if (= i 10) (vector-set! v 7 5))
  (enter-jit ((set! s (+ s (vector-ref v 7)))))
  (set! i (+ i 1)))
s
"""
WRITING = """
(define v (make-vector i64 1000)) (define s 0) (define i 0)
(while (< i 6)
  (enter-jit ((vector-set! v (* i 100) i)))
  (set! s (+ s (vector-ref v (* i 100)))) (set! i (+ i 1)))
s
"""
LOOP = """
(define x 1) (define j 0)
(while (< j 40000) (set! x (+ (* x 3) j)) (set! j (+ j 1)))
x
"""


@pytest.fixture
def backs(monkeypatch: pytest.MonkeyPatch) -> Counter[int]:
    """How often native code has asked Python, and why."""
    found: Counter[int] = Counter()
    answer = KernelCode.answer

    def counted(self: KernelCode, control: ControlBlock, why: int) -> int:
        found[why] += 1
        return answer(self, control, why)

    monkeypatch.setattr(KernelCode, "answer", counted)
    return found


def _entries(backend: OpenClBackend, text: str) -> int:
    """Run a program with its scopes on the device, see that it ends as it should; how often a
    kernel was entered."""
    rule = Rule(backends=(Choice(NAME, PolicyOptions(background=False, required=True)),))
    profile = Profile(loop_threshold=1 << 40, function_threshold=1 << 40)
    program = ferryvm.compile(on_heap(text))
    engine = Engine(policy=Policy(profile=profile, rules=(rule,)), registry=named(backend))
    observer = Observer()
    observer.watch(engine)
    execution, expected = engine.start(program), Engine("reference").start(program)
    for each in (execution, expected):
        each.run()
    assert execution.machine.snapshot() == expected.machine.snapshot()
    tried = [t for one in explain(execution, observer, "halt").regions for t in one.tried]
    return sum(one.entries for one in tried)


def test_statics_that_changed_are_given_with_the_arguments(
    backend: OpenClBackend, backs: Counter[int]
) -> None:
    assert _entries(backend, STATICS) == 60
    assert backs == {ENTER: 1}


def test_frames_that_changed_are_given_with_the_arguments(
    backend: OpenClBackend, backs: Counter[int]
) -> None:
    assert _entries(backend, FRAMES) == 61
    assert backs == {ENTER: 1}


def test_a_stack_that_rises_is_fetched_to_its_end(
    backend: OpenClBackend, backs: Counter[int]
) -> None:
    assert _entries(backend, RISING) == 3
    assert backs == {ENTER: 1}


def test_a_heap_that_has_not_changed_needs_no_python(
    backend: OpenClBackend, backs: Counter[int]
) -> None:
    assert _entries(backend, READING) == 20
    assert backs == {ENTER: 2}  # the first time, and after the host has stored into it


def test_a_heap_that_is_written_is_for_python(backend: OpenClBackend, backs: Counter[int]) -> None:
    assert _entries(backend, WRITING) == 6
    assert backs == {ENTER: 6}


@pytest.mark.nightly
def test_after_a_slice_python_goes_on(
    backend: OpenClBackend, backs: Counter[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copied, "SLICE", 0.0)
    monkeypatch.setattr(copied, "_FIRST", 1)
    code, machine = _at_the_loop(backend)
    control, statics = machine.control, machine.memory.statics
    registers = ctypes.string_at(ctypes.addressof(control), REGISTER_BYTES)
    words = bytes(statics.cast("B"))
    results = []
    for is_again in (False, True):
        ctypes.memmove(ctypes.addressof(control), registers, REGISTER_BYTES)
        statics.cast("B")[:] = words
        backs.clear()
        assert enter(code, machine) is Status.HALT
        assert backs == {GO_ON if is_again else ENTER: 1}
        results.append(machine.result())
    expected = Engine("reference").start(ferryvm.compile(on_heap(LOOP)))
    expected.run()
    assert results == [expected.machine.result()] * 2


def test_a_call_that_fails_leaves_the_machine_as_it_was(
    backend: OpenClBackend, backs: Counter[int]
) -> None:
    code, machine = _at_the_loop(backend)
    assert isinstance(code, copied.CopiedCode)
    before, words = machine.snapshot(), bytes(machine.memory.statics.cast("B"))
    registers = ctypes.string_at(ctypes.addressof(machine.control), REGISTER_BYTES)
    assert enter(code, machine) is Status.HALT
    ctypes.memmove(ctypes.addressof(machine.control), registers, REGISTER_BYTES)
    machine.memory.statics.cast("B")[:] = words
    code.record.queue = 0  # clEnqueueNDRangeKernel: INVALID_COMMAND_QUEUE
    assert enter(code, machine) is Status.LOST
    assert backs == {ENTER: 1, FAILED: 1}
    assert dataclasses.replace(machine.snapshot(), status=before.status) == before
    assert code.lost.endswith("failed: INVALID_COMMAND_QUEUE")
    other, _ = _at_the_loop(backend)
    assert enter(other, machine) is Status.HALT  # nothing of the device is taken for known


def _at_the_loop(backend: OpenClBackend) -> tuple[Code, Machine]:
    """Code of the loop, and a machine in front of it."""
    region = whole(LOOP)
    (head,) = region.graph.heads
    execution = Engine("threaded").start(region.verified.program)
    while execution.machine.control.pc != head:
        execution.run(1)
    code = backend.compile(dataclasses.replace(region, entry=head), Options())
    return code, execution.machine
