# SPDX-License-Identifier: Apache-2.0
"""Ranges that run again as before on a device with memory of its own: a kernel and one wait, and
the states of the loops in order whatever has changed between."""

from __future__ import annotations

import ctypes
import signal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyopencl as cl
import pytest

import ferryvm
from ferryvm import Engine, Instance, TrapError
from ferryvm.engine.installed_launch import InstalledLaunch
from ferryvm.engine.launching import Launches
from ferryvm_backends.opencl import OpenClBackend, kernel
from ferryvm_backends.opencl.copied import residents
from ferryvm_backends.opencl.item import prepared, suspension
from ferryvm_backends.opencl.item.native_range import NativeRange
from ferryvm_backends.opencl.item.prepared import PreparedRange
from ferryvm_backends.opencl.launch import ItemRecord, RangeStatus

from .test_items import make_small, on

TEXT = """
(define (item (i i64) (k i64) (from (array i64)) (to (array i64)))
  (array-set! to i (/ k (array-ref from i))))
(define (member (l i64) (g i64) (k i64) (tile (array i64)) (from (array i64)) (to (array i64)))
  (array-set! tile l (* k (array-ref from (+ (* g 8) l))))
  (barrier)
  (array-set! to (+ (* g 8) l) (array-ref tile (- 7 l))))
(define (group (g i64) (k i64) (from (array i64)) (to (array i64)))
  (for-each-item 8 (member g k (make-array i64 8) from to)))
(define (items (n i64) (k i64) (from (array i64)) (to (array i64)))
  (for-each-item n (item k from to)))
(define (more (i i64) (from (array i64)) (to (array i64)))
  (array-set! to i (+ (array-ref to i) (array-ref from i))))
(define (add (n i64) (from (array i64)) (to (array i64)))
  (for-each-item n (more from to)))
(define (groups (n i64) (k i64) (from (array i64)) (to (array i64)))
  (for-each-item n (group k from to)))
"""

Array = npt.NDArray[np.int64]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch)
    monkeypatch.setattr(suspension, "SLICE", 1 << 24)
    monkeypatch.setattr(InstalledLaunch, "may_be_followed", lambda *_given: False)


class _Runs(list[PreparedRange]):
    """Ranges that have run again, also those that native code has run alone."""

    def __init__(self) -> None:
        super().__init__()
        self.entered: dict[int, tuple[PreparedRange, ItemRecord, int]] = {}
        """By the address of the native code's record, with its runs so far."""
        self.may_be_unlike = False
        """True if what a native call relies on may have changed at any time."""

    def settle(self) -> None:
        for address, (each, entry, times) in self.entered.items():
            self.entered[address] = each, entry, entry.times
            self.extend([each] * (entry.times - times))

    def __len__(self) -> int:
        self.settle()
        return super().__len__()

    def clear(self) -> None:
        self.settle()
        super().clear()


@pytest.fixture(params=["commands", "at once", "in code"])
def again(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> _Runs:
    """Receives the ranges that run again: by commands from Python, by one native call, or by native
    code that comes to the launch."""
    found, is_native = _Runs(), request.param != "commands"
    run, run_at_once, enter_by = (
        PreparedRange.run,
        PreparedRange.run_at_once,
        PreparedRange.enter_by,
    )

    def noted(self: PreparedRange, *given: Any) -> Any:
        assert found.may_be_unlike or not (is_native and self._native)
        found.append(self)
        return run(self, *given)

    def entered(self: PreparedRange, entry: ItemRecord) -> None:
        if request.param == "in code":
            found.settle()
            found.entered[ctypes.addressof(entry)] = self, entry, entry.times
            enter_by(self, entry)

    def noted_at_once(self: PreparedRange, *given: Any) -> Any:
        status = run_at_once(self, *given)
        if status is not RangeStatus.UNLIKE:
            found.append(self)
        return status

    monkeypatch.setattr(PreparedRange, "run", noted)
    monkeypatch.setattr(PreparedRange, "run_at_once", noted_at_once)
    monkeypatch.setattr(PreparedRange, "enter_by", entered)
    monkeypatch.setattr(prepared, "SHORT", 1e9 if is_native else 0.0)
    return found


by_commands = pytest.mark.parametrize("again", ["commands"], indirect=True)
at_once = pytest.mark.parametrize("again", ["at once"], indirect=True)
from_python = pytest.mark.parametrize("again", ["commands", "at once"], indirect=True)
in_code = pytest.mark.parametrize("again", ["in code"], indirect=True)
native = pytest.mark.parametrize("again", ["at once", "in code"], indirect=True)
"""All three, but for some."""


@pytest.fixture(params=["copied", pytest.param("gpu", marks=pytest.mark.gpu)])
def instance(request: pytest.FixtureRequest) -> Instance:
    """The program on a device to which memory is copied."""
    where = "gpu" if request.param == "gpu" else "cpu"
    backend = OpenClBackend(wraps=False, device=where)
    if backend.probe() is not None:
        pytest.skip(f"there is no such device: {where}")
    found: Instance = on(backend).instantiate(ferryvm.compile(TEXT))
    return found


def numbers() -> tuple[Array, Array]:
    return np.arange(1, 81), np.zeros(80, np.int64)


def warm(instance: Instance, name: str, *given: object) -> Any:
    """The function, once a range with these arguments is prepared."""
    call = instance.exports[name]
    for _ in range(5):
        call(*given)
    return call


@by_commands
@pytest.mark.parametrize(("name", "n"), [("items", 80), ("groups", 10)])
def test_a_repeated_launch_is_a_kernel_and_one_wait(
    name: str,
    n: int,
    instance: Instance,
    again: _Runs,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given, to = numbers()
    call = warm(instance, name, n, 5, given, to)
    again.clear()
    calls: list[str] = []

    class Library:
        def __getattr__(self, name: str) -> Any:
            def noted(*given: Any) -> Any:
                calls.append(name)
                return getattr(kernel.library(), name)(*given)

            return noted

    for module in ("prepared", "kernel"):
        monkeypatch.setattr(f"ferryvm_backends.opencl.item.{module}.library", Library)
    for copy in ("enqueue_copy", "enqueue_fill_buffer", "enqueue_nd_range_kernel"):
        monkeypatch.setattr(cl, copy, lambda *_given, **_more: calls.append("another"))
    call(n, 5, given, to)
    assert len(again) == 1
    assert calls == ["clSetKernelArg", "clEnqueueNDRangeKernel", *["clEnqueueReadBuffer"] * 2]
    expected = 5 // given if name == "items" else 5 * given.reshape(-1, 8)[:, ::-1].ravel()
    assert to.tolist() == expected.tolist()


@pytest.mark.parametrize(("name", "n"), [("items", 80), ("groups", 10)])
def test_whatever_has_changed_is_seen(name: str, n: int, instance: Instance, again: _Runs) -> None:
    given, to = numbers()
    call = warm(instance, name, n, 5, given, to)

    def expected(k: int, of: Array) -> Array:
        return k // of if name == "items" else k * of.reshape(-1, 8)[:, ::-1].ravel()

    again.clear()
    given[[3, 70]] = 2  # elements that the device has, and that the host has got from it
    to[5] = 77
    call(n, 5, given, to)
    assert len(again) == 1
    assert to.tolist() == expected(5, given).tolist()
    call(n, 6, given, to)
    assert to.tolist() == expected(6, given).tolist()
    other = given + 1
    call(n, 6, other, to)
    assert to.tolist() == expected(6, other).tolist()
    call(n, 6, given, other)
    assert other.tolist() == expected(6, given).tolist()
    assert len(again) == 1
    for _ in range(3):
        call(n, 6, given, other)
        call(n, 6, given, to)
    assert to.tolist() == other.tolist() == expected(6, given).tolist()


@from_python
@pytest.mark.parametrize("is_behind", [False, True])
def test_a_signal_in_a_repeated_launch_leaves_a_call_that_goes_on(
    is_behind: bool,
    instance: Instance,
    again: _Runs,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given, to = numbers()
    call = warm(instance, "add", 80, given, to)
    again.clear()
    to[:] = 0

    def signalled(name: str) -> None:
        run = getattr(PreparedRange, name)

        def run_and_signal(*args: Any) -> Any:
            if not is_behind:
                signal.raise_signal(signal.SIGINT)
            found = run(*args)
            if is_behind:
                signal.raise_signal(signal.SIGINT)
            return found

        monkeypatch.setattr(PreparedRange, name, run_and_signal)

    signalled("run")
    signalled("run_at_once")
    with pytest.raises(KeyboardInterrupt) as raised:
        call(80, given, to)
    assert again
    assert to.tolist() in (given.tolist(), [0] * 80)
    suspended = getattr(raised.value, "call", None)  # None: the call had ended
    if suspended is not None:
        suspended.resume()
    assert to.tolist() == given.tolist()


def test_items_that_leave_a_repeated_launch_are_those_of_the_loop(
    instance: Instance, again: _Runs
) -> None:
    given, to = numbers()
    call = warm(instance, "items", 80, 500, given, to)
    again.clear()
    to[:] = -1
    given[60] = 0
    with pytest.raises(TrapError, match="division by zero, in item 60"):
        call(80, 500, given, to)
    assert len(again) == (0 if again.entered else 1)  # native code does not note these
    assert to[:60].tolist() == (500 // given[:60]).tolist()
    assert to[60] == -1
    given[60] = 1
    for _ in range(5):
        call(80, 500, given, to)
    assert len(again) > 1
    assert to.tolist() == (500 // given).tolist()


@by_commands
def test_after_a_failure_of_the_device_the_items_run_in_order(
    instance: Instance, again: _Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, to = numbers()
    call = warm(instance, "items", 80, 500, given, to)

    class Library:
        def __getattr__(self, name: str) -> Any:
            return (
                (lambda *_given: -5)
                if name == "clEnqueueReadBuffer"
                else getattr(kernel.library(), name)
            )

    again.clear()
    to[:] = 0
    monkeypatch.setattr(prepared, "library", Library)
    call(80, 500, given, to)
    assert len(again) == 1
    assert to.tolist() == (500 // given).tolist()


@native
def test_code_that_comes_to_a_repeated_launch_does_not_leave(
    instance: Instance, again: _Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, to = numbers()
    call = warm(instance, "items", 80, 500, given, to)
    launches = call.__ferryvm__[0].execution.launches

    def items() -> int:
        (activity,) = (each for each in launches.activities.values() if each.times)
        return int(activity.items)

    before, left = items(), list[None]()
    run = Launches.run

    def noted(self: Launches, machine: Any) -> Any:
        left.append(None)
        return run(self, machine)

    monkeypatch.setattr(Launches, "run", noted)
    for number in range(20):
        given[3] = number + 1
        call(80, 500, given, to)
        assert to.tolist() == (500 // given).tolist()
    assert items() == before + 20 * 80
    assert len(left) <= 5  # at powers of two


@at_once
@pytest.mark.parametrize("status", [RangeStatus.LEFT, RangeStatus.FAILED])
def test_after_a_failure_in_the_native_call_the_range_runs_again(
    status: RangeStatus,
    instance: Instance,
    again: _Runs,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given, to = numbers()
    call = warm(instance, "items", 80, 500, given, to)
    assert again[-1]._native is not None
    monkeypatch.setattr(again[-1]._native, "run", lambda: status)
    for again_ in range(3):
        to[:] = again_
        call(80, 500, given, to)
        assert to.tolist() == (500 // given).tolist()


@native
@pytest.mark.parametrize("function", ["set_argument", "enqueue", "read", "finish"])
def test_after_a_failure_of_the_driver_in_native_code_the_range_runs_again(
    function: str, instance: Instance, again: _Runs
) -> None:
    given, to = numbers()
    call = warm(instance, "items", 80, 500, given, to)
    plan, failing = again[-1]._native, ctypes.CFUNCTYPE(ctypes.c_int)(lambda: -5)
    assert plan is not None
    setattr(plan._plan, function, ctypes.cast(failing, ctypes.c_void_p).value)
    for number in range(3):
        given[5], to[:] = number + 1, 0
        call(80, 500, given, to)
        assert to.tolist() == (500 // given).tolist()


@in_code
def test_native_code_runs_nothing_that_was_planned_before_a_change(
    instance: Instance, again: _Runs
) -> None:
    given, to = numbers()
    call = warm(instance, "items", 80, 500, given, to)
    plan, gate = again[-1]._native, again[-1].copied.session.gate
    assert plan is not None
    assert plan.is_armed
    again.clear()
    gate.shut()
    assert not plan.is_armed
    assert plan.run() is RangeStatus.UNLIKE
    epoch = gate.epoch
    gate.shut()  # nothing is planned in this epoch
    assert gate.epoch == epoch
    for number in range(3):
        given[5], to[:] = number + 1, 0
        call(80, 500, given, to)  # from Python at first
        assert to.tolist() == (500 // given).tolist()
    assert plan.is_armed
    assert again[-1]._native is plan


@in_code
def test_native_code_waits_for_no_other_range_of_the_device(
    instance: Instance, again: _Runs
) -> None:
    given, to = numbers()
    warm(instance, "items", 80, 500, given, to)
    plan, gate = again[-1]._native, again[-1].copied.session.gate
    assert plan is not None
    plan.arm()
    gate._words.busy = 1  # another thread has it
    assert plan.run() is RangeStatus.UNLIKE
    gate._words.busy = 0


@in_code
def test_copies_of_ranges_that_native_code_has_run_are_counted(
    instance: Instance, again: _Runs
) -> None:
    given, to = numbers()
    call = warm(instance, "items", 80, 500, given, to)
    code = call.__ferryvm__[0].execution.launches
    (launch,) = (each for each in code._launches.values() if each.activity.times)
    before, runs = launch.code.activity(), launch.activity.times
    for number in range(9):
        given[5] = 1 + number // 3  # is sent three times of nine, or four
        call(80, 500, given, to)
    found = launch.code.activity()
    assert launch.activity.times == runs + 9
    assert found.entries == before.entries + 9
    assert found.to_host - before.to_host >= 9 * to.nbytes
    names = [[one.name for one in each.arrays] for each in (before, found)]
    assert names[0] == names[1]
    changes = [
        (two.entries - one.entries, two.unchanged - one.unchanged)
        for one, two in zip(before.arrays, found.arrays, strict=True)
    ]
    assert {entries for entries, _ in changes} == {9}
    assert min(unchanged for _, unchanged in changes) in (5, 6)


@at_once
def test_a_signal_handler_that_raises_behind_the_native_call_loses_nothing(
    instance: Instance, again: _Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, to = numbers()
    call = warm(instance, "items", 80, 500, given, to)
    plan = again[-1]._native
    assert plan is not None
    run = plan.run

    def raising() -> int:
        run()
        raise KeyboardInterrupt

    to[:] = 0
    with monkeypatch.context() as patch:
        patch.setattr(plan, "run", raising)
        with pytest.raises(KeyboardInterrupt):
            call(80, 500, given, to)
    assert to.tolist() == (500 // given).tolist()
    given += 1
    for _ in range(3):
        call(80, 500, given, to)
        assert to.tolist() == (500 // given).tolist()


@at_once
def test_a_launch_in_a_signal_handler_runs_in_order_and_waits_for_nobody(
    instance: Instance, again: _Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, to = numbers()
    other = on(OpenClBackend(wraps=False)).instantiate(ferryvm.compile(TEXT)).exports["items"]
    for _ in range(5):
        other(80, 500, given, to)
    call = warm(instance, "items", 80, 500, given, to)
    plan, its_own = again[-1]._native, np.zeros(80, np.int64)
    again.may_be_unlike = True  # the kernel of one work-item needs memory of the device
    assert plan is not None
    run = plan.run

    def handling() -> int:
        other(80, 700, given, its_own)
        return run()

    monkeypatch.setattr(plan, "run", handling)
    to[:] = 0
    call(80, 500, given, to)
    assert its_own.tolist() == (700 // given).tolist()
    assert to.tolist() == (500 // given).tolist()


@native
@pytest.mark.parametrize("part", ["send", "expect", "expect_word"])
def test_a_part_of_the_plan_that_is_missing_is_found(
    part: str, instance: Instance, again: _Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted faults: changes that are not sent; a stack, headers and registers that are not
    compared."""
    send = NativeRange.send

    def send_nothing(self: NativeRange, *given: Any) -> None:
        *where, (_, mirror), counts = given
        send(self, *where, (mirror, mirror), counts)  # type: ignore[call-arg]  # as it is called

    faulty = send_nothing if part == "send" else lambda *_given: None
    monkeypatch.setattr(NativeRange, part, faulty)
    given, to = numbers()
    call = warm(instance, "items", 80, 500, given, to)
    other = given + 1
    found = []
    for k, of in ((500, given), (700, given), (700, other), (700, other)):
        call(80, k, of, to)
        found.append(to.tolist() == (k // of).tolist())
        of[7] += 1
    assert all(found) is (part == "expect_word")  # the stack tells, too


def test_memory_that_is_given_up_is_no_longer_prepared(instance: Instance, again: _Runs) -> None:
    given, to = numbers()
    call = warm(instance, "items", 80, 500, given, to)
    ranges = again[-1]
    ranges.copied.close()
    assert ranges.state == ()
    residents(ranges.copied.session)._cached.clear()
    again.clear()
    to[:] = 0
    call(80, 500, given, to)
    assert not again
    assert to.tolist() == (500 // given).tolist()


@pytest.mark.nightly
def test_changes_of_the_host_that_are_not_sent_are_found(
    instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, to = numbers()
    call = warm(instance, "items", 80, 500, given, to)
    monkeypatch.setattr(prepared, "SHORT", 0.0)  # `send` of the native call has a fault of its own
    monkeypatch.setattr(
        "ferryvm_backends.opencl.object_copy.ObjectCopy.send_again", lambda *_given: None
    )
    given[7] = 3
    call(80, 500, given, to)
    assert to.tolist() != (500 // given).tolist()


def test_the_results_are_those_of_an_interpreter(instance: Instance) -> None:
    expected = Engine("threaded").instantiate(ferryvm.compile(TEXT))
    given, to = numbers()
    other = to.copy()
    for k in (3, 3, 3, 3, 4, 4, 4):
        instance.exports["groups"](10, k, given, to)
        expected.exports["groups"](10, k, given, other)
        assert to.tolist() == other.tolist()
        given[k] += 1
