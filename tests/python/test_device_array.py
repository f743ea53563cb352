# SPDX-License-Identifier: Apache-2.0
"""Arrays of other libraries in maps, and results that remain where they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ferryvm
from ferryvm import CallError

XS = np.arange(4.0)


def twice(x):
    return x * 2


def test_resident_results_are_read_as_arrays() -> None:
    with ferryvm.resident():
        ys = ferryvm.map(twice, XS.reshape(2, 2))
        low, high = ferryvm.map(lambda x: (x - 1, x + 1), ys)
        assert type(ferryvm.map(twice, XS, out=np.empty(4))) is np.ndarray
    assert repr(ys) == "DeviceArray(shape=(2, 2), dtype=float64, where='host')"
    assert (ys.ndim, ys.size, ys.nbytes, len(ys)) == (2, 4, 32, 2)
    assert ys[1, 1] == 6.0
    assert ys.tolist() == [row.tolist() for row in ys] == [[0.0, 2.0], [4.0, 6.0]]
    assert (np.asarray(high) - low == 2).all()
    assert np.asarray(ys, np.float32).dtype == np.float32
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(ys)[0, 0] = 1
    with pytest.raises(ValueError, match="a copy is needed to convert float64 to"):
        np.asarray(ys, np.int64, copy=False)
    assert type(ferryvm.map(twice, ys)) is np.ndarray
    assert ferryvm.map(lambda x, t: x + t[0, 1], XS, t=ys).tolist() == (XS + 2).tolist()
    assert ferryvm.reduce(lambda a, b: a + b, ys) == 12.0
    assert ferryvm.map(lambda p: p[0] + p[1], (ys, ys)).tolist() == (2 * ys[:]).tolist()


@ferryvm.kernel
def add_to(out, x):
    i = ferryvm.item()
    out[i] += x[i]


def test_launches_change_the_arrays_that_they_get() -> None:
    given = np.arange(4.0)
    x = ferryvm.DeviceArray(given)
    shown = np.asarray(x)
    for backend in ("threaded", "reference"):
        ferryvm.launch(add_to, 4, x, x, backend=backend)
    assert shown.tolist() == x.tolist() == (4 * XS).tolist()
    assert given.tolist() == XS.tolist()
    with ferryvm.resident():
        ys = ferryvm.map(twice, x)
    ferryvm.launch(add_to, 4, ys, x, backend="threaded")
    assert ys.tolist() == (12 * XS).tolist()
    assert "its backend runs no launches on a device" in str(ferryvm.explain(add_to))
    with pytest.raises(TypeError, match="does not support item assignment"):
        x[0] = 1  # type: ignore[index]
    with pytest.raises(ValueError, match="read-only"):
        ferryvm.launch(add_to, 4, shown, XS, backend="threaded")
    ferryvm.launch(add_to, 4, x, XS, backend="threaded")
    assert x.tolist() == (5 * XS).tolist()
    with pytest.raises(ferryvm.UnsupportedError, match="argument x shares memory with argument"):
        ferryvm.launch(add_to, 4, x, shown, backend="threaded")


def test_what_is_no_array_of_a_program_is_refused() -> None:
    for values, message in (
        (["a"], "an array of <U1 is not supported"),
        (np.zeros(2, np.float16), "an array of float16 is not supported; pass a.astype"),
        (np.ma.array(XS), "a masked array is not supported; pass a.filled"),
        (1.0, "an array of no dimensions is not supported"),
    ):
        with pytest.raises(TypeError, match=f"^DeviceArray: {message}"):
            ferryvm.DeviceArray(values)  # type: ignore[arg-type]  # on purpose
    x = ferryvm.DeviceArray(XS[::2])
    x.close()
    x.close()
    assert repr(x) == "DeviceArray(closed)"
    for use in (lambda: ferryvm.launch(add_to, 2, x, x), lambda: np.asarray(x), lambda: x.shape):
        with pytest.raises(ValueError, match="the DeviceArray is closed"):
            use()
    with pytest.raises(ferryvm.UnsupportedError, match="array of int64"):
        ferryvm.launch(add_to, 2, ferryvm.DeviceArray([1, 2]), XS, backend="threaded")


def test_dlpack_goes_out_and_in() -> None:
    with ferryvm.resident():
        ys = ferryvm.map(twice, XS)
    taken = np.from_dlpack(ys)
    assert taken.tolist() == (2 * XS).tolist()

    class Exchanged:
        """What has DLPack alone."""

        def __dlpack__(self, **options: Any) -> Any:
            return XS.__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return XS.__dlpack_device__()

    assert ferryvm.map(twice, Exchanged()).tolist() == (2 * XS).tolist()
    assert ferryvm.scan(lambda a, b: a + b, Exchanged()).tolist() == np.cumsum(XS).tolist()


class Series:
    """A column, as pandas has it."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if self.values is None:
            raise TypeError("can't convert device type tensor to numpy")
        return self.values


def test_columns_are_read_as_arrays() -> None:
    column = Series(XS)
    assert ferryvm.map(lambda x, y: x - y, column, Series(np.ones(4))).tolist() == [-1, 0, 1, 2]
    assert ferryvm.map(lambda i, xs: xs[i], range(2), xs=column).tolist() == [0.0, 1.0]
    assert ferryvm.map(twice, Series(np.array([1, 2], object))).tolist() == [2, 4]
    frame = Series(np.asfortranarray(XS.reshape(2, 2)))
    assert ferryvm.map(twice, frame).tolist() == [[0.0, 2.0], [4.0, 6.0]]
    with pytest.raises(CallError, match="item 1 is a str where those before are int"):
        ferryvm.map(twice, Series(np.array([1, "a"], object)))
    with pytest.raises(CallError, match=r"argument x: .* gives no array: can't convert device"):
        ferryvm.map(twice, Series(None))
    with pytest.raises(ferryvm.UnsupportedError, match=r"pass numpy.asarray\(a\)"):
        ferryvm.function(lambda xs: xs[0])(column)
