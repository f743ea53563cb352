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
