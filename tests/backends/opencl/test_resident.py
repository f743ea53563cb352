# SPDX-License-Identifier: Apache-2.0
"""Results of maps that remain on a device with memory of its own: chains of maps copy nothing
between."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import ferryvm
from ferryvm.backend import BackendError
from ferryvm.python.call.function import PythonFunction
from ferryvm_backends.opencl import OpenClBackend
from ferryvm_backends.opencl.item.kernel import ItemKernel
from ferryvm_backends.opencl.left_elements import LeftElements

from .test_items import make_small, on

XS = np.arange(3000.0)


def affine(x):
    return x * 2.0 + 1.0


def looked_up(x, y, table):
    return x * y + table[1]


def halves(i, n):
    return i // (n - i), i < 5


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    make_small(monkeypatch)
    return


class _Functions:
    """The functions above on a device that has copies of arrays, warm."""

    def __init__(self) -> None:
        self.engine = on(OpenClBackend(wraps=False))
        self.affine, self.looked_up, self.halves = map(self._of, (affine, looked_up, halves))
        for _ in range(2):
            ferryvm.map(self.affine, XS)
            ferryvm.map(self.looked_up, XS, XS, table=XS)
            ferryvm.map(self.halves, range(50), n=1000)

    def _of(self, function: Any) -> PythonFunction[..., Any]:
        found = ferryvm.function(function)
        found._engine = self.engine
        return found


@pytest.fixture(scope="module")
def on_device() -> _Functions:
    with pytest.MonkeyPatch.context() as patch:
        make_small(patch)
        return _Functions()


def sent(function: PythonFunction[..., Any]) -> int:
    """Bytes of elements that were copied for a function so far, to the device and back."""
    regions = [each for version in function.explain().versions for each in version.regions]
    arrays = [array for region in regions for tried in region.tried for array in tried.arrays]
    return sum(each.to_device + each.to_host for each in arrays if each.name != "objects")


def test_a_chain_of_maps_copies_nothing_between(on_device: _Functions) -> None:
    f, g = on_device.affine, on_device.looked_up
    with ferryvm.resident():
        ys = ferryvm.map(f, XS)
        before = sent(f), sent(g)
        for _ in range(3):
            ys = ferryvm.map(f, ys)
            zs = ferryvm.map(g, ys, ys, table=ys)
        assert (sent(f), sent(g)) == before
    assert "Portable" in zs.where
    assert "results remained on the device" in str(g.explain())
    wanted = XS
    for _ in range(4):
        wanted = affine(wanted)
    assert np.array_equal(zs, wanted * wanted + wanted[1])
    assert zs.where == "host"
    # outside of the context results are NumPy's, also of what is on the device
    found = ferryvm.map(f, ys)
    assert type(found) is np.ndarray
    assert np.array_equal(found, affine(wanted))
    assert "Portable" in ys.where


def test_items_that_leave_find_what_is_on_the_device(on_device: _Functions) -> None:
    f = on_device.halves
    with ferryvm.resident():
        halves_, small = ferryvm.map(f, range(50), n=1000)
        assert "Portable" in small.where
        assert small.dtype == bool
        again, _ = ferryvm.map(f, halves_, n=1)
        assert again.tolist() == [x // (1 - x) for x in range(1)] * 50
        with pytest.raises(ZeroDivisionError) as caught:
            ferryvm.map(f, range(50), n=7)
    assert str(caught.value).endswith(", in item 7 of a map")
    assert small.tolist() == [True] * 5 + [False] * 45


def test_results_come_to_the_host_where_a_device_lacks_memory(on_device: _Functions) -> None:
    f = on_device.affine
    with ferryvm.resident():
        ys = ferryvm.map(f, XS)
        assert isinstance(ys.elements, LeftElements)
        give_up = ys.elements._session.pool.give_up
        while ys.where != "host":
            assert give_up()
        assert ys.elements is None
        zs = ferryvm.map(f, ys)
    assert np.array_equal(zs, affine(affine(XS)))


def test_a_device_that_fails_leaves_maps_to_the_host(
    on_device: _Functions, monkeypatch: pytest.MonkeyPatch
) -> None:
    f = on_device.affine
    with ferryvm.resident():
        ys = ferryvm.map(f, XS)

        def failed(*_: object) -> None:
            raise BackendError("opencl: lost")

        with monkeypatch.context() as patch:
            patch.setattr(ItemKernel, "enqueue", failed)
            zs = ferryvm.map(f, ys)  # on the host from now on
    assert zs.where == "host"
    assert np.array_equal(zs, affine(affine(XS)))
