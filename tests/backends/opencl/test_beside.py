# SPDX-License-Identifier: Apache-2.0
"""Copies for launches that do not depend on the one that runs go on beside its kernel, on another
queue."""

from __future__ import annotations

from typing import Any

import pyopencl as cl
import pytest

import ferryvm
from ferryvm import Engine
from ferryvm.backend import BackendError
from ferryvm_backends.opencl import OpenClBackend, object_copy
from ferryvm_backends.opencl.build import session
from ferryvm_backends.opencl.device import find
from ferryvm_backends.opencl.item.kernel import ItemKernel, kernel_queue
from ferryvm_backends.opencl.item.suspension import SLICE, Suspended
from ferryvm_backends.opencl.object_copy import ObjectCopy

from ...tier import sample
from .test_items import make_small, on, outcome

COUNT = 5000
BYTES = 8 * COUNT
"""An array of so many elements is outside of the object space."""

TEXT = f"""
(define (step item (from (array i64)) (to (array i64)) kind)
  (if (= (array-ref from item) kind) (print! item))
  (array-set! to item (+ (* 3 (array-ref from item)) item)))
(define (filled (n i64) (factor i64))
  (define xs (make-array i64 n))
  (define i 0)
  (while (< i n) (array-set! xs i (* factor i)) (set! i (+ i 1)))
  xs)
(define (go (n i64) (times i64) (kind i64) (xs (array i64)) (ys (array i64)) (a (array i64)) (b (array i64)))
  (define i 0)
  (while (< i times)
    {{launches}}
    (set! i (+ i 1))))
(go 9 2 -1 (filled 9 1) (filled 9 1) (filled 9 1) (filled 9 1))
(define xs (filled {COUNT} 2))
(define ys (filled {COUNT} 5))
(define a (make-array i64 {COUNT}))
(define b (make-array i64 {COUNT}))
(go {COUNT} {{times}} {{kind}} xs ys a b)
(+ (array-ref a 4000) (* 7 (array-ref b 4500)))
"""

APART = "(for-each-item n (step xs a -1)) (for-each-item (- n 1) (step ys b kind))"
TO_AND_FRO = "(for-each-item n (step xs a -1)) (for-each-item (- n 1) (step a xs kind))"
THREE = f"{APART} (for-each-item n (step xs ys -1)) (for-each-item (- n 2) (step b a -1))"


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch)
    monkeypatch.setattr("ferryvm_backends.opencl.item.suspension.SLICE", SLICE)
    monkeypatch.setattr(object_copy, "_LEAST_BESIDE", 1)


def program(launches: str, times: int = 1, kind: int = -1) -> ferryvm.Program:
    text = TEXT.replace("{launches}", launches)
    return ferryvm.compile(text.format(times=times, kind=kind))


def in_order(source: ferryvm.Program) -> tuple[object, ...]:
    return outcome(Engine("threaded").start(source))


def on_device(source: ferryvm.Program) -> tuple[object, ...]:
    return outcome(on(OpenClBackend(wraps=False)).start(source))


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What has been enqueued, or waited for: kernels of all items, and copies of arrays."""
    found: list[str] = []
    copy, enqueue, head = cl.enqueue_copy, ItemKernel.enqueue, Suspended.head
    apart = kernel_queue(session(find("cpu")))

    def copied(queue: Any, to: Any, source: Any, **more: Any) -> Any:
        host, name = (source, "send") if hasattr(source, "nbytes") else (to, "bring")
        if getattr(host, "nbytes", 0) >= BYTES - 4096:
            assert queue != apart
            found.append(name)
        return copy(queue, to, source, **more)

    def started(self: ItemKernel, queue: Any, first: int, end: int, *more: Any) -> None:
        if end - first > 9:
            is_behind = len(more) == 4 and more[3] is not None
            found.append("kernel apart" if queue == apart and is_behind else "kernel")
        enqueue(self, queue, first, end, *more)

    def waited(self: Suspended, queue: Any = None) -> Any:
        found.append("wait apart" if queue == apart else "wait")
        return head(self, queue)

    monkeypatch.setattr(cl, "enqueue_copy", copied)
    monkeypatch.setattr(ItemKernel, "enqueue", started)
    monkeypatch.setattr(Suspended, "head", waited)
    return found


def test_what_a_launch_does_not_need_is_copied_while_it_runs(commands: list[str]) -> None:
    """The first kernel is behind the array that it reads, and beside the one of the second launch;
    this one is beside the results of the first."""
    source = program(APART)
    assert on_device(source) == in_order(source)
    first = [*commands[commands.index("send") :]]
    assert [one for one in first if one not in ("kernel", "wait")] == [
        *("send", "kernel apart", "send", "wait apart"),
        *("kernel apart", "bring", "wait apart"),
        "bring",
    ]


def test_results_that_later_launches_change_are_brought_early_once(commands: list[str]) -> None:
    source = program(THREE, times=5)
    assert on_device(source) == in_order(source)
    assert commands.count("bring") <= 2 * 4  # of four arrays that are stored into 20 times


def test_a_chain_of_launches_brings_nothing_early(commands: list[str]) -> None:
    source = program(TO_AND_FRO, times=3)
    assert on_device(source) == in_order(source)
    assert commands.count("bring") == 2


@pytest.mark.rotate("launches", "kind")
@pytest.mark.parametrize("kind", [15, 22500 - 10])  # an element of ys
@pytest.mark.parametrize("launches", [APART, THREE], ids=["two", "four"])
def test_an_item_that_leaves_finds_results_that_are_under_way(launches: str, kind: int) -> None:
    source = program(launches, times=2, kind=kind)
    assert on_device(source) == in_order(source)


@pytest.mark.parametrize("backend", [pytest.param("gpu", marks=pytest.mark.gpu)], indirect=True)
@pytest.mark.parametrize("launches", [APART, TO_AND_FRO, THREE], ids=["two", "one", "four"])
def test_a_gpu_copies_beside_kernels(launches: str, backend: OpenClBackend) -> None:
    source = program(launches, times=3)
    assert outcome(on(backend).start(source)) == in_order(source)


@pytest.mark.parametrize("failing", sample(["brought", "copy_others"], 1))
def test_a_device_that_fails_beside_a_kernel_loses_nothing(
    failing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, calls, right = program(APART, times=2), [0], getattr(ObjectCopy, failing)

    def failed(self: ObjectCopy, *given: object) -> object:
        calls[0] += len(self._copies) > 2  # not of the first, small arrays
        if calls[0] == 1:
            raise BackendError("opencl: lost")
        return right(self, *given)

    monkeypatch.setattr(ObjectCopy, failing, failed)
    assert on_device(source) == in_order(source)
    assert calls[0]


def test_a_launch_alone_compares_its_own_arrays_only(commands: list[str]) -> None:
    """No other launch follows, so the other array is not sent at all."""
    source = program("(for-each-item n (step xs a kind)) (set! b xs) (array-set! a 0 9)")
    assert on_device(source) == in_order(source)
    assert commands.count("send") == 1


_mark = ObjectCopy.mark


def _mark_once(self: ObjectCopy, place: int, start: int, end: int) -> None:
    """Results that are under way are taken for those of later launches, too."""
    under_way = set(self._brought)
    before = {*self._changed}
    _mark(self, place, start, end)
    if self._stored_again & under_way:
        self._changed = before


FAULTS = {
    "results under way never arrive": ("brought", lambda *given: iter(()), APART, 1),
    "other arrays are never sent": ("_send_others", lambda *given: None, APART, 1),
    "results of later launches do not count": ("mark", _mark_once, THREE, 2),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, faulty, launches, times = FAULTS[fault]
    source = program(launches, times=times)
    monkeypatch.setattr(ObjectCopy, name, faulty)
    assert on_device(source) != in_order(source)
