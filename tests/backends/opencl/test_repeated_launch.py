# SPDX-License-Identifier: Apache-2.0
"""Launches over arrays that remain on a device, run again by one native call: the elements are
those of NumPy whatever has changed between, and exact where items leave, a handler raises, the
device fails or memory is given up."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ferryvm
from ferryvm import DeviceArray
from ferryvm.backend import BackendError
from ferryvm.engine.resident_call import RepeatedCall
from ferryvm.python.control_flow.kernel_source import Layout
from ferryvm.python.group.kernel import Kernel
from ferryvm_backends.opencl.array_copy import ArrayCopy
from ferryvm_backends.opencl.item import suspension
from ferryvm_backends.opencl.item.native_range import NativeRange
from ferryvm_backends.opencl.launch import STATUSES, RangeStatus
from ferryvm_backends.opencl.left_elements import LeftElements

from .test_items import make_small
from .test_resident_launch import _engine

N = 512
XS = np.arange(1, N + 1)
step = 1


@ferryvm.kernel
def reverse_tiles(out, x):
    i, me = ferryvm.item(), ferryvm.local_item()
    tile = ferryvm.group_array(8, "i64")
    tile[me] = x[i]
    ferryvm.barrier()
    out[i] = tile[7 - me] + step


@ferryvm.kernel
def divided(out, x, k):
    i = ferryvm.item()
    out[i] = k // int(x[i])


def reversed_(x: Any) -> Any:
    return np.asarray(x).reshape(-1, 8)[:, ::-1].ravel() + step


class _Kernels:
    def __init__(self, where: str) -> None:
        engine = _engine(f"{where} name")
        self.reverse, self.divided = (Kernel(one.function) for one in (reverse_tiles, divided))
        self.reverse.launched(Layout(1, (8,)), None, None)._engine = engine
        self.divided.launched(Layout(1, None), None, None)._engine = engine
        one, two, _ = three()
        for _ in range(4):  # until there is code, and the size of groups is known
            self.flip(two, one)
            self.divide(two, one)

    def flip(self, out: Any, x: Any) -> None:
        ferryvm.launch(self.reverse, N, out, x, group=8)

    def divide(self, out: Any, x: Any, k: int = 7000) -> None:
        ferryvm.launch(self.divided, N, out, x, k)


def _in_one_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch)
    monkeypatch.setattr(suspension, "SLICE", 1 << 24)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    _in_one_slice(monkeypatch)


@pytest.fixture(scope="module", params=["copied", pytest.param("gpu", marks=pytest.mark.gpu)])
def kernels(request: pytest.FixtureRequest) -> _Kernels:
    with pytest.MonkeyPatch.context() as patch:
        _in_one_slice(patch)
        return _Kernels(request.param)


@pytest.fixture
def again(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Receives the outcome of each launch that was to run again."""
    found: list[bool] = []
    run = RepeatedCall.run

    def noted(self: RepeatedCall, elements: Any) -> bool:
        found.append(False)
        found[-1] = run(self, elements)
        return found[-1]

    monkeypatch.setattr(RepeatedCall, "run", noted)
    return found


def three() -> list[DeviceArray]:
    return [DeviceArray(XS), DeviceArray(np.zeros(N, np.int64)), DeviceArray(XS[::-1].copy())]


def test_launches_that_take_turns_with_arrays_run_again(
    kernels: _Kernels, again: list[bool]
) -> None:
    one, two, other = three()
    turns = ((two, one), (other, two), (one, other))
    wanted: Any = XS
    for number in range(5):
        if number == 3:
            again.clear()
        for out, x in turns:
            kernels.flip(out, x)
            wanted = reversed_(wanted)
    assert again == [True] * 6
    assert np.array_equal(one, wanted)
    kernels.flip(two, one)  # behind a look
    assert again == [True] * 7
    assert np.array_equal(two, reversed_(wanted))
    assert np.array_equal(one, wanted)


def test_kernels_that_take_turns_find_what_the_others_have_changed(
    kernels: _Kernels, again: list[bool]
) -> None:
    one, two, other = three()
    for number in range(5):
        if number == 3:
            again.clear()
        kernels.flip(two, one)
        kernels.divide(other, two)
        kernels.divide(one, other, 7001)
    assert again == [True] * 6
    wanted: Any = XS
    for _ in range(5):
        flipped = reversed_(wanted)
        wanted = 7001 // (7000 // flipped)
    assert np.array_equal(two, flipped)
    assert np.array_equal(one, wanted)


def test_whatever_has_changed_is_seen(kernels: _Kernels, again: list[bool]) -> None:
    global step
    one, two, other = three()

    def warm() -> None:
        for _ in range(4):
            kernels.flip(two, one)
            kernels.divide(other, one)
        again.clear()

    warm()
    kernels.divide(other, one, 9000)
    assert not again
    assert np.array_equal(other, 9000 // XS)
    ferryvm.launch(divided, N, one, DeviceArray(XS), 5000, backend="threaded")
    kernels.flip(two, one)
    assert np.array_equal(two, reversed_(5000 // XS))
    given = np.from_dlpack(one)  # others may change it from now on
    given[:] = XS
    kernels.flip(two, one)
    assert np.array_equal(two, reversed_(XS))
    one = DeviceArray(XS)
    warm()
    try:
        step = 5
        kernels.flip(two, one)
        assert np.array_equal(two, reversed_(XS))
    finally:
        step = 1
    kernels.flip(two, one)
    assert np.array_equal(two, reversed_(XS))
    one.close()
    with pytest.raises(ValueError, match="closed"):
        kernels.flip(two, one)
    assert True not in again


def test_an_item_that_fails_leaves_elements_as_before_the_launch(
    kernels: _Kernels, again: list[bool]
) -> None:
    one, two, _ = three()
    for _ in range(4):
        kernels.divide(two, one)
    kernels.divide(one, DeviceArray(np.where(XS == 78, 7001, 1)))
    kernels.flip(two, two)
    again.clear()
    with pytest.raises(ZeroDivisionError) as caught:
        kernels.divide(two, one)
    assert again == [False]
    assert str(caught.value).endswith(", in item 77 of kernel divided")
    before, found = reversed_(7000 // XS), np.array(two)
    assert found[:77].tolist() == [1] * 77
    assert found[77] == before[77]
    assert np.isin(found[78:] - 1, [0, *(before[78:] - 1)]).all()
    one = DeviceArray(XS)
    for _ in range(4):
        kernels.divide(two, one)
    assert again[-1]
    assert np.array_equal(two, 7000 // XS)


@pytest.mark.parametrize("is_behind", [False, True])
@pytest.mark.parametrize("name", ["flip", "divide"])
def test_a_handler_that_raises_leaves_what_was_or_what_is_done(
    name: str, is_behind: bool, kernels: _Kernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two, _ = three()
    launch: Callable[..., None] = getattr(kernels, name)
    done = reversed_(XS) if name == "flip" else 7000 // XS
    for _ in range(4):
        launch(two, one)
    kernels.flip(two, two)
    run = NativeRange.run_apart

    def raising(self: NativeRange, *given: Any) -> int:
        if is_behind:
            run(self, *given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(NativeRange, "run_apart", raising)
        with pytest.raises(KeyboardInterrupt):
            launch(two, one)
    assert np.array_equal(two, done if is_behind else reversed_(done))
    for _ in range(3):
        launch(two, one)
        assert np.array_equal(two, done)


def run_with_failure(native: NativeRange, status: RangeStatus) -> RangeStatus:
    """The outcome of a native call in which OpenCL fails, or something is not as it was."""
    name = {RangeStatus.FAILED: "enqueue", RangeStatus.LOST: "finish"}.get(status)
    if name is None:
        return status
    failing = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: -5)
    before = getattr(native._plan, name)
    setattr(native._plan, name, ctypes.cast(failing, ctypes.c_void_p).value)
    try:
        native._plan.is_awaited = True
        return STATUSES[native._run_apart()]
    finally:
        setattr(native._plan, name, before)


@pytest.mark.parametrize("status", [RangeStatus.UNLIKE, RangeStatus.FAILED, RangeStatus.LOST])
@pytest.mark.parametrize("name", ["flip", "divide"])
def test_a_device_that_fails_is_told_or_has_not_begun(
    name: str, status: RangeStatus, kernels: _Kernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two, _ = three()
    launch: Callable[..., None] = getattr(kernels, name)
    done = reversed_(XS) if name == "flip" else 7000 // XS
    for _ in range(4):
        launch(two, one)
    with monkeypatch.context() as patch:
        patch.setattr(
            NativeRange, "run_apart", lambda self, _is_awaited: run_with_failure(self, status)
        )
        if name == "flip" and status is RangeStatus.LOST:
            with pytest.raises(BackendError, match="failed with elements that were there alone"):
                launch(two, one)
            with pytest.raises(BackendError, match="failed with results that were there alone"):
                two.tolist()
            two = DeviceArray(XS)
        else:
            launch(two, one)
            assert np.array_equal(two, done)
    for _ in range(3):
        launch(two, one)
    assert np.array_equal(two, done)
    assert np.array_equal(one, XS)


def test_elements_survive_the_memory_of_the_machine_that_has_them(
    kernels: _Kernels, again: list[bool]
) -> None:
    one, two, other = three()
    for _ in range(3):
        kernels.flip(two, one)
    elements = two.elements
    assert isinstance(elements, LeftElements)
    home = elements.home
    assert home is not None
    home.make_free()  # as for other elements
    assert elements.home is None
    kernels.flip(two, one)
    assert elements.home is home
    while elements.is_there:
        assert elements._session.pool.give_up()
    again.clear()
    for _ in range(3):
        kernels.flip(other, two)
        assert np.array_equal(other, reversed_(reversed_(XS)))
    assert again[-1:] == [True]


def overwritten_elsewhere(kernels: _Kernels) -> bool:
    """True if the host gets what items store into an array whose elements somebody holds still."""
    x, one = DeviceArray(XS), DeviceArray(XS)
    for _ in range(2):
        kernels.divide(x, one)
    held = x.elements
    taken = np.from_dlpack(x)
    kernels.divide(x, one, 9000)
    del held
    return np.array_equal(taken, 9000 // XS)


def test_an_array_that_is_overwritten_has_no_elements_of_before(
    kernels: _Kernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert overwritten_elsewhere(kernels)
    monkeypatch.setattr(ArrayCopy, "make_free", lambda _self: None)  # a planted fault
    assert not overwritten_elsewhere(kernels)


def _old_elements(self: ArrayCopy, elements: LeftElements) -> bool:
    return elements.home is self or self.taken is elements


def _never_at_home(self: LeftElements, *_given: object) -> None:
    self._is_on_host = False
    self.version += 1


def _never_done(self: NativeRange, _value: int) -> int:
    return _word(self, 0)


_word = NativeRange.word


@pytest.mark.parametrize(
    ("of", "name", "planted"),
    [
        (ArrayCopy, "has", _old_elements),
        (LeftElements, "change_in", _never_at_home),
        (LeftElements, "change_once", _never_at_home),
        (NativeRange, "word", _never_done),
    ],
)
def test_elements_that_are_not_where_they_say_are_found(
    of: type, name: str, planted: Any, kernels: _Kernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted faults."""
    monkeypatch.setattr(of, name, planted)
    with pytest.raises((AssertionError, ZeroDivisionError)):
        test_kernels_that_take_turns_find_what_the_others_have_changed(kernels, [])
