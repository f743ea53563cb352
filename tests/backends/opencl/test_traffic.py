# SPDX-License-Identifier: Apache-2.0
"""What is copied is what changed, and it is counted."""

from __future__ import annotations

import numpy as np
import pyopencl as cl
import pytest

import ferryvm
from ferryvm.backend import Code, Options
from ferryvm.engine import Engine
from ferryvm.engine.explain import explain
from ferryvm.engine.observer import Observer
from ferryvm.machine.control import ControlBlock, Status
from ferryvm.machine.memory import Limits
from ferryvm.machine.state import Machine
from ferryvm.traffic import Traffic
from ferryvm_backends.opencl import OpenClBackend, copied
from ferryvm_backends.opencl.build import session
from ferryvm_backends.opencl.device import Device
from ferryvm_backends.opencl.host_memory import CHUNK
from ferryvm_backends.opencl.kernel import Kernel
from ferryvm_backends.opencl.resident import Copied, Needs

from ...heap_vector import on_heap
from .entering import NAME, enter, named, whole
from .test_lost import RESULT, TEXT, policy

SIZE = 40 * CHUNK


def _touching(device: Device, body: str) -> tuple[Code, Machine]:
    """A loop over a large vector's elements, at its head; the vector is there already."""
    text = f"(define v (make-vector u8 {SIZE})) (define i 0) (define s 0) (while (< i 3) {body} (set! i (+ i 1))) s"
    region = whole(text)
    execution = Engine("threaded", limits=Limits(first_heap=1 << 20)).start(region.verified.program)
    (head,) = region.graph.heads
    while execution.machine.control.pc != head:
        execution.run(1)
    import dataclasses

    code = OpenClBackend(wraps=False).compile(dataclasses.replace(region, entry=head), Options())
    return code, execution.machine


def test_a_heap_that_is_only_read_does_not_come_back(device: Device) -> None:
    code, machine = _touching(device, "(set! s (+ s (vector-ref v i)))")
    machine.memory.heap[8 : 8 + SIZE] = bytes([7]) * SIZE
    assert enter(code, machine) is Status.HALT
    found = code.activity()
    assert SIZE <= found.to_device < SIZE + 2 * CHUNK
    assert found.to_host < CHUNK
    assert machine.result()[1] == 21  # type: ignore[index]  # it has one


def test_only_chunks_that_are_stored_into_come_back(device: Device) -> None:
    code, machine = _touching(device, f"(vector-set! v (* i {10 * CHUNK}) 9)")
    assert enter(code, machine) is Status.HALT
    found = code.activity()
    assert 3 * CHUNK <= found.to_host < 5 * CHUNK
    assert [machine.memory.heap[8 + 10 * CHUNK * n] for n in range(4)] == [9, 9, 9, 0]


def test_what_the_host_has_not_touched_is_not_sent_again(device: Device) -> None:
    code, machine = _touching(device, "(set! s (+ s (vector-ref v i)))")
    machine.memory.heap[8 : 8 + SIZE] = bytes([7]) * SIZE
    before = ControlBlock.from_buffer_copy(machine.control)
    statics = machine.memory.statics.tolist()
    enter(code, machine)
    sent = code.activity().to_device
    machine.control.pc, machine.control.sp, machine.control.fp = before.pc, before.sp, before.fp
    for number, word in enumerate(statics):
        machine.memory.statics[number] = word
    machine.memory.heap[8 + 20 * CHUNK] = 1
    assert enter(code, machine) is Status.HALT
    assert code.activity().to_device - sent < 3 * CHUNK


def test_what_is_free_is_zero_for_the_next_machine(device: Device) -> None:
    region = whole(f"(define v (make-vector u8 {SIZE})) (vector-ref v {SIZE - 9})")
    code = OpenClBackend(wraps=False).compile(region, Options())
    machine = Machine(region.verified, Limits(first_heap=1 << 20))
    for _ in range(2):
        before = ControlBlock.from_buffer_copy(machine.control)
        assert enter(code, machine) is Status.HALT
        assert machine.result()[1] == 0  # type: ignore[index]  # it has one
        # As if another machine had got the same memory, which is zero again:
        machine.memory.clear_heap()
        for name in ("pc", "sp", "fp", "hp"):
            setattr(machine.control, name, getattr(before, name))
        for number in range(len(machine.memory.statics)):
            machine.memory.statics[number] = 0


def test_explain_shows_what_was_copied() -> None:
    engine = Engine(policy=policy(NAME), registry=named(OpenClBackend(wraps=False)))
    observer = Observer()
    observer.watch(engine)
    execution = engine.start(ferryvm.compile(on_heap(TEXT)))
    execution.run()
    assert execution.machine.result()[1] == RESULT  # type: ignore[index]  # it has one
    (tried, *_) = [t for one in explain(execution, observer, "halt").regions for t in one.tried]
    assert tried.to_device > 0
    assert tried.to_host > 3000 * 8 - CHUNK
    assert 0 < tried.transfer_seconds < 1


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slices of few looks at the flag."""
    monkeypatch.setattr(copied, "SLICE", 0.0)
    monkeypatch.setattr(copied, "_FIRST", 1)
    monkeypatch.setattr(copied, "_MOST", 2048)


LONG = """
(define x 1)
(define i 0)
(while (< i 60)
  (define j 0)
  (while (< j 3000) (set! x (+ (* x 3) j)) (set! j (+ j 1)))
  (set! i (+ i 1)))
x
"""


@pytest.mark.nightly
@pytest.mark.usefixtures("short")
def test_a_kernel_is_resumed_in_the_middle_after_each_slice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runs = []
    enqueue = Kernel.enqueue

    def counted(self: Kernel, queue: object) -> object:
        runs.append(self)
        return enqueue(self, queue)

    monkeypatch.setattr(Kernel, "enqueue", counted)
    engine = Engine(policy=policy(NAME), registry=named(OpenClBackend(wraps=False)))
    observer = Observer()
    observer.watch(engine)
    execution = engine.start(ferryvm.compile(on_heap(LONG)))
    execution.run()
    expected = Engine("threaded").start(ferryvm.compile(on_heap(LONG)))
    expected.run()
    assert execution.machine.snapshot() == expected.machine.snapshot()
    assert len(runs) > 10


@pytest.mark.nightly
@pytest.mark.usefixtures("short")
def test_a_whole_program_has_kernels_made_where_its_slices_end() -> None:
    engine = Engine(NAME, registry=named(OpenClBackend(wraps=False)))
    observer = Observer()
    observer.watch(engine)
    execution = engine.start(ferryvm.compile(on_heap(LONG)))
    execution.run()
    expected = Engine("threaded").start(ferryvm.compile(on_heap(LONG)))
    expected.run()
    assert execution.machine.snapshot() == expected.machine.snapshot()
    assert any("its time slice" in one.why for one in observer.placements)


def test_words_that_a_kernel_wrote_above_the_stack_are_not_taken_for_known(device: Device) -> None:
    machine = Machine(whole("1").verified)
    opened, control, traffic = session(device), machine.control, Traffic()
    memory = Copied(opened, control)
    nothing = Needs(False, False, False, False, 0, False)
    control.fp, control.sp = 8, 12
    machine.memory.stack[10] = 0x7E
    memory.push(control, nothing, traffic)
    # A kernel calls something, which writes there, and leaves when that has returned.
    written = np.full(8, 3, np.uint8)
    place = memory.stack.place
    cl.enqueue_copy(opened.queue, place.buffer, written, dst_offset=place.offset + 80)
    left = ControlBlock.from_buffer_copy(control)
    left.sp = 9
    memory.pull(left, 8, nothing, traffic)
    memory.push(control, nothing, traffic)
    memory.stack.fetch(80, 88)
    opened.queue.finish()
    assert memory.stack.mirror[80:88].view(np.uint64) == 0x7E
    memory.close()
