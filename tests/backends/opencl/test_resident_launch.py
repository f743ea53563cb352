# SPDX-License-Identifier: Apache-2.0
"""Kernels whose arrays remain on a device with memory of its own: chains of launches and maps copy
nothing between, and nothing is lost where items leave, the device fails, or lacks memory."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import ferryvm
from ferryvm import DeviceArray, Engine
from ferryvm.backend import BackendError
from ferryvm.engine import launching
from ferryvm.ir.c.opencl_group import WORK
from ferryvm.python.control_flow.kernel_source import Layout
from ferryvm.python.group.kernel import Kernel
from ferryvm_backends.opencl import OpenClBackend
from ferryvm_backends.opencl.group.slice import GroupSlices
from ferryvm_backends.opencl.item.kernel import ItemKernel
from ferryvm_backends.opencl.item.memory import CopiedMemory
from ferryvm_backends.opencl.left_elements import LeftElements

from .entering import NAME, named
from .test_items import make_small, on
from .test_resident import sent

N = 4096
XS = np.arange(float(N))


@ferryvm.kernel
def reverse_tiles(out, x):
    i, me = ferryvm.item(), ferryvm.local_item()
    tile = ferryvm.group_array(8, "f64")
    tile[me] = x[i]
    ferryvm.barrier()
    out[i] = tile[7 - me] + 1.0


@ferryvm.kernel
def picked(out, x, index):
    i = ferryvm.item()
    total = ferryvm.group_sum(x[i])
    out[index[i]] = total


@ferryvm.kernel
def added(out, x, k):
    i = ferryvm.item()
    if i % 2:
        out[i] = out[i] + x[i] + k


def affine(x):
    return x * 2.0 + 1.0


def reversed_(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return x.reshape(-1, 8)[:, ::-1].ravel() + 1.0


class _On:
    """Kernels, and a function to map, in an engine on a device that has copies of arrays."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.affine = ferryvm.function(affine)
        self.affine._engine = engine
        self.reverse, self.picked, self.added = map(self._of, (reverse_tiles, picked, added))
        index = np.arange(N)
        for _ in range(3):
            ferryvm.map(self.affine, XS)
            self.launch(self.reverse, np.zeros(N), XS)
            self.launch(self.picked, np.zeros(N), XS, index)
            ferryvm.launch(self.added, N, np.zeros(N), XS, 2)

    def _of(self, kernel: Kernel[...]) -> Kernel[...]:
        found = Kernel(kernel.function)
        for group in ((8,), None):
            found.launched(Layout(1, group), None, None)._engine = self.engine
        return found

    @staticmethod
    def launch(kernel: Kernel[...], *arguments: Any, n: int = N) -> None:
        ferryvm.launch(kernel, n, *arguments, group=8)


def _engine(request: str) -> Engine:
    where, _, how = request.partition(" ")
    backend = OpenClBackend(wraps=False, device="gpu" if where == "gpu" else "cpu")
    if backend.probe() is not None:
        pytest.skip(f"there is no such device: {where}")
    return on(backend) if how == "policy" else Engine(NAME, registry=named(backend))


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    make_small(monkeypatch)
    return


@pytest.fixture(
    scope="module",
    params=[
        "copied policy",
        "copied name",
        pytest.param("gpu policy", marks=pytest.mark.gpu),
        pytest.param("gpu name", marks=pytest.mark.gpu),
    ],
)
def warm(request: pytest.FixtureRequest) -> _On:
    with pytest.MonkeyPatch.context() as patch:
        make_small(patch)
        return _On(_engine(request.param))


def copied(of: _On) -> int:
    """Bytes of elements that were copied between host and device so far."""
    launched = [each for k in (of.reverse, of.picked, of.added) for each in k._launched.values()]
    return sum(map(sent, [of.affine, *launched]))  # type: ignore[arg-type]  # functions all


def test_a_chain_of_launches_and_maps_copies_nothing_between(warm: _On) -> None:
    x, index = DeviceArray(XS), DeviceArray(np.arange(N)[::-1].copy())
    out, other = DeviceArray(np.zeros(N)), DeviceArray(np.zeros(N))
    warm.launch(warm.reverse, out, x)
    warm.launch(warm.picked, other, x, index)
    ferryvm.launch(warm.added, N, out, x, 2)
    before = copied(warm)
    for _ in range(3):
        warm.launch(warm.reverse, out, x)
        with ferryvm.resident():
            ys = ferryvm.map(warm.affine, out)
        warm.launch(warm.picked, other, ys, index)
        warm.launch(warm.reverse, out, other)
        ferryvm.launch(warm.added, N, out, ys, 2)
    assert copied(warm) == before
    assert "host" not in (out.where, other.where, ys.where)
    assert x.where == index.where == "host"  # which has them, too
    ys_wanted = affine(reversed_(XS))
    other_wanted = np.repeat(ys_wanted.reshape(-1, 8).sum(1), 8)[::-1]
    wanted = reversed_(other_wanted)
    wanted[1::2] += ys_wanted[1::2] + 2
    assert np.array_equal(out, wanted)
    assert np.array_equal(other, other_wanted)
    assert np.array_equal(ys, ys_wanted)
    assert out.where == "host"


def test_an_array_may_be_read_and_stored_into_at_once(warm: _On) -> None:
    x = DeviceArray(XS)
    wanted = XS
    for _ in range(3):
        warm.launch(warm.reverse, x, x)
        wanted = reversed_(wanted)
    assert x.where != "host"
    assert np.array_equal(x, wanted)
    # a launch behind a look changes it again; elements that no item stores remain
    warm.launch(warm.picked, x, x, np.zeros(N, np.int64), n=8)
    wanted = wanted.copy()
    wanted[0] = wanted[:8].sum()
    assert np.array_equal(x, wanted)


def test_what_the_host_changes_between_is_sent_again(warm: _On) -> None:
    x, ones = DeviceArray(XS), DeviceArray(np.ones(N))
    for _ in range(2):
        ferryvm.launch(warm.added, N, x, ones, 1)
        assert x.where != "host"
        ferryvm.launch(added, N, x, ones, -3, backend="threaded")
        assert np.array_equal(x, XS)  # as the device had it before


def test_arrays_of_numpy_take_part(warm: _On) -> None:
    x, out = DeviceArray(XS), np.zeros(N)
    warm.launch(warm.reverse, x, x)
    warm.launch(warm.reverse, out, x)
    assert np.array_equal(out, reversed_(reversed_(XS)))
    given = np.array(x)
    given += 1  # a copy
    warm.launch(warm.reverse, x, given)
    assert np.array_equal(x, reversed_(reversed_(XS) + 1))
    taken = np.from_dlpack(x)  # the host's from now on
    warm.launch(warm.reverse, x, XS)
    assert x.where == "host"
    assert np.array_equal(taken, reversed_(XS))


def test_elements_of_another_device_come_to_the_host_before(warm: _On) -> None:
    x = DeviceArray(XS)
    warm.launch(warm.reverse, x, x)
    assert x.elements is not None
    x.elements.memory = "another device's"
    warm.launch(warm.reverse, x, x)
    assert np.array_equal(x, reversed_(reversed_(XS)))
    assert "reverse_tiles had its arrays on the host" in str(warm.reverse.explain())
    assert "elements are on another device than work-groups of" in str(warm.reverse.explain())


def test_a_trap_inside_a_group_finds_all_on_the_host(warm: _On) -> None:
    x, out = DeviceArray(XS), DeviceArray(np.zeros(N))
    index = np.arange(N)
    index[77] = N
    warm.launch(warm.reverse, x, x)
    with pytest.raises(IndexError, match="4096 is out of bounds") as caught:
        warm.launch(warm.picked, out, x, index)
    assert str(caught.value).endswith(", in item 77, item 5 of group 9 of kernel picked")
    assert np.array_equal(x, reversed_(XS))
    assert np.asarray(out)[:72].all()
    launched = warm.picked.explain()
    assert "picked had its arrays on the host" in str(launched)
    assert "items did not end there" in str(launched)


def test_a_device_that_fails_or_lacks_memory_loses_nothing(
    warm: _On, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, out = DeviceArray(XS), DeviceArray(np.zeros(N))
    warm.launch(warm.reverse, x, x)
    elements = x.elements
    assert isinstance(elements, LeftElements)
    while x.elements is not None:
        assert elements._session.pool.give_up()
    warm.launch(warm.reverse, out, x)
    assert out.where != "host"

    wanted = reversed_(reversed_(XS))
    places = (GroupSlices, "_run_slices"), (LeftElements, "__init__"), (CopiedMemory, "pull")
    for of, name in places:
        failures = [BackendError("opencl: no memory")]
        run = getattr(of, name)

        def fails_once(*given: Any, run: Any = run, failures: Any = failures, **more: Any) -> Any:
            run(*given, **more)
            if failures:
                raise failures.pop()

        with monkeypatch.context() as patch:
            patch.setattr(of, name, fails_once)
            patch.setattr(launching.Launches, "_stop", lambda *_: None)
            warm.launch(warm.reverse, out, out)
        wanted = reversed_(wanted)
        assert not failures
        assert np.array_equal(out, wanted)


@pytest.mark.parametrize("is_behind", [False, True])
def test_an_interrupt_leaves_what_was_or_what_is_done(
    is_behind: bool, warm: _On, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = DeviceArray(XS)
    warm.launch(warm.reverse, x, x)
    run: Callable[..., Any] = launching.Launches.run_resident

    def interrupted(*given: Any) -> Any:
        found = run(*given) if is_behind else None
        signal.raise_signal(signal.SIGINT)
        return run(*given) if found is None else found

    with monkeypatch.context() as patch:
        patch.setattr(launching.Launches, "run_resident", interrupted)
        with pytest.raises(KeyboardInterrupt):
            warm.launch(warm.reverse, x, x)
    once = reversed_(XS)
    assert np.array_equal(x, reversed_(once) if is_behind else once)
    warm.launch(warm.reverse, x, x)


def test_launches_that_take_turns_with_arrays_are_kernels_without_a_check(
    warm: _On, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = DeviceArray(XS), DeviceArray(np.zeros(N))
    for _ in range(2):
        warm.launch(warm.reverse, other, one)
        warm.launch(warm.reverse, one, other)
    started: list[str] = []
    start = ItemKernel._start

    def noted(self: ItemKernel, *given: Any) -> None:
        started.append(str(self.handle.function_name))
        start(self, *given)

    monkeypatch.setattr(ItemKernel, "_start", noted)
    warm.launch(warm.reverse, other, one)
    warm.launch(warm.reverse, one, other)
    assert {*started} == {WORK}
