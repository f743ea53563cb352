# SPDX-License-Identifier: Apache-2.0
"""A device that fails, or has not enough memory, is a recorded reason; nothing of the program is
lost."""

from __future__ import annotations

import dataclasses

import pyopencl as cl
import pytest

import ferryvm
from ferryvm.backend import BackendError, Options
from ferryvm.engine import Engine
from ferryvm.engine.journal import Outcome
from ferryvm.engine.observer import Observer
from ferryvm.machine.control import Status
from ferryvm.machine.state import Machine
from ferryvm.policy import Choice, Policy, Profile, Rule
from ferryvm.policy import Options as PolicyOptions
from ferryvm_backends.opencl import OpenClBackend, build
from ferryvm_backends.opencl.device import Device
from ferryvm_backends.opencl.kernel import Kernel
from ferryvm_backends.opencl.segment import Segment

from ...heap_vector import on_heap
from .entering import NAME, enter, named, whole

TEXT = """
(define v (make-vector i64 3000))
(define i 0)
(while (< i 3000) (vector-set! v i (+ i (if (> i 0) (vector-ref v (- i 1)) 0))) (set! i (+ i 1)))
(vector-ref v 2999)
"""
RESULT = sum(range(3000))


def policy(*names: str, required: bool = False) -> Policy:
    options = PolicyOptions(background=False, required=required)
    rule = Rule(backends=tuple(Choice(name, options) for name in names))
    return Policy(profile=Profile(loop_threshold=50, function_threshold=50), rules=(rule,))


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device on which no kernel can be enqueued, once it is built."""

    def enqueue(self: Kernel, queue: object) -> object:
        raise cl.RuntimeError("clEnqueueNDRangeKernel failed: OUT_OF_RESOURCES")

    monkeypatch.setattr(Kernel, "enqueue", enqueue)
    monkeypatch.setattr(Kernel, "run_dry", lambda self, queue: None)


@pytest.mark.usefixtures("failing")
def test_code_that_cannot_run_leaves_the_machine_as_it_was() -> None:
    region = whole(TEXT)
    code = OpenClBackend(wraps=False).compile(region, Options())
    machine = Machine(region.verified)
    before = machine.snapshot()
    assert enter(code, machine) is Status.LOST
    assert dataclasses.replace(machine.snapshot(), status=before.status) == before
    assert "failed: clEnqueueNDRangeKernel failed: OUT_OF_RESOURCES" in code.lost


def test_after_a_failure_nothing_of_the_device_is_taken_for_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    region = whole(TEXT)
    codes = [OpenClBackend(wraps=False).compile(region, Options()) for _ in range(2)]
    machine = Machine(region.verified)

    def fetch(self: Segment, begin: int, end: int) -> object:
        raise cl.RuntimeError("clEnqueueReadBuffer failed: OUT_OF_RESOURCES")

    with monkeypatch.context() as patch:
        patch.setattr(Segment, "fetch", fetch)
        assert enter(codes[0], machine) is Status.LOST  # the kernel has run, nothing came back
    assert enter(codes[1], machine) is Status.HALT
    assert machine.result()[1] == RESULT  # type: ignore[index]  # it has one


@pytest.mark.usefixtures("failing")
def test_the_next_backend_goes_on() -> None:
    backend = OpenClBackend(wraps=False)
    engine = Engine(policy=policy(NAME, "llvm"), registry=named(backend))
    observer = Observer()
    observer.watch(engine)
    execution = engine.start(ferryvm.compile(on_heap(TEXT)))
    execution.run()
    assert execution.machine.result()[1] == RESULT  # type: ignore[index]  # it has one
    (placement, *_) = observer.placements
    outcomes = [(a.backend, a.outcome) for a in placement.attempts]
    assert (NAME, Outcome.LOST) in outcomes
    assert outcomes[-1][0] == "llvm"
    assert "OUT_OF_RESOURCES" in next(
        a.reason for a in placement.attempts if a.outcome is Outcome.LOST
    )


@pytest.mark.usefixtures("failing")
def test_without_another_backend_the_interpreter_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    engine = Engine(policy=policy(NAME), registry=named(OpenClBackend(wraps=False)))
    execution = engine.start(ferryvm.compile(on_heap(TEXT)))
    execution.run()
    assert execution.machine.result()[1] == RESULT  # type: ignore[index]  # it has one
    assert "OUT_OF_RESOURCES; the program goes on without it" in caplog.text


@pytest.mark.usefixtures("failing")
def test_where_it_is_required_it_is_an_error() -> None:
    engine = Engine(policy=policy(NAME, required=True), registry=named(OpenClBackend(wraps=False)))
    with pytest.raises(BackendError, match="OUT_OF_RESOURCES"):
        engine.start(ferryvm.compile(on_heap(TEXT))).run()


@pytest.mark.parametrize("wraps", [True, False], ids=["wrapped", "copied"])
def test_memory_that_a_device_has_not_is_told(
    device: Device, monkeypatch: pytest.MonkeyPatch, wraps: bool
) -> None:
    small = dataclasses.replace(device, largest_buffer=1 << 20, shares_memory=True)
    monkeypatch.setattr("ferryvm_backends.opencl.device.find", lambda name="": small)
    region = whole(TEXT)
    code = OpenClBackend(wraps=wraps).compile(region, Options())
    machine = Machine(region.verified)
    before = machine.snapshot()
    assert enter(code, machine) is Status.LOST
    assert dataclasses.replace(machine.snapshot(), status=before.status) == before
    assert "buffers of more than 1048576" in code.lost
    assert "\n" not in code.lost


def test_a_device_without_f64_refuses_what_computes_with_it(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    poor = dataclasses.replace(device, has_f64=False, has_exact_f32=False)
    monkeypatch.setattr("ferryvm_backends.opencl.device.find", lambda name="": poor)
    backend = OpenClBackend()
    with pytest.raises(BackendError, match="has no f64, which the region computes with"):
        backend.compile(whole("(sqrt 2.5)"), Options())
    backend.compile(whole("(print! 4)"), Options())
    with pytest.raises(BackendError, match="does not compute f32 as IEEE 754 says"):
        backend.compile(whole("(sqrt (f32 2.5))"), Options())
    assert "double" not in backend.show(whole("(+ 1 2)"), Options(), "opencl")


def test_f32_is_divided_in_f64_where_a_device_does_not_round_its_own(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    weak = dataclasses.replace(device, divides_f32=False)
    monkeypatch.setattr("ferryvm_backends.opencl.device.find", lambda name="": weak)
    assert "-DFERRY_F32_BY_F64" in build.options(weak)
    region = whole(
        "(define x 1e-40f32) (define i 0)"
        " (while (< i 90) (set! x (sqrt (/ (+ x 1) (+ x 3e-39)))) (set! i (+ i 1)))"
    )
    machine = Machine(region.verified)
    assert enter(OpenClBackend().compile(region, Options()), machine) is Status.HALT
    expected = Engine("reference").start(region.verified)
    expected.run()
    assert machine.memory.statics.tolist() == expected.machine.memory.statics.tolist()


def test_a_device_that_is_not_there_is_told_with_those_that_are() -> None:
    with pytest.raises(BackendError, match=r"there is no device 'gpu7'; there is '[cg]pu', "):
        OpenClBackend().compile(whole("1"), Options(device="gpu7"))
