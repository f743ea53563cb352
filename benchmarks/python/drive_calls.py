# SPDX-License-Identifier: Apache-2.0
"""Times of one process: `drive_calls.py ferryvm|numba first|calls` prints names and values.

`first`: seconds from the import to the first result of daxpy over 2^23, without those of
`import numpy` and of making the arrays. `calls`: microseconds of a call of a function of two
floats, and of a map over 1,000 floats, into one array and into a new one each time.
"""

from __future__ import annotations

import sys
import time
import timeit
from collections.abc import Callable
from typing import Any

import numpy as np


def daxpy(x, y, a):
    """An element of a x + y."""
    return a * x + y


def both(a, b):
    """A number of two."""
    return a * b + 1.0


def one(x):
    """A number of one."""
    return x * 2.0 + 1.0


def _first(name: str) -> None:
    x, y = np.ones(1 << 23), np.ones(1 << 23)
    began = time.perf_counter()
    if name == "ferryvm":
        import ferryvm

        found = ferryvm.map(daxpy, x, y, a=2.0)
    else:
        found = _prange()(x, y, 2.0)
    seconds = time.perf_counter() - began
    assert found[5] == 3.0
    print("s", seconds)


def _prange() -> Callable[..., Any]:
    import numba

    item = numba.njit(cache=True)(daxpy)

    @numba.njit(parallel=True, cache=True)
    def work(x, y, a):
        z = np.empty_like(x)
        for i in numba.prange(len(x)):
            z[i] = item(x[i], y[i], a)
        return z

    found: Callable[..., Any] = work
    return found


def _calls(name: str) -> None:
    x = np.arange(1000.0)
    if name == "ferryvm":
        import ferryvm

        call: Callable[..., Any] = ferryvm.function(both)
        out = np.empty(1000)

        def mapped() -> object:
            return ferryvm.map(one, x)

        def mapped_into() -> object:
            return ferryvm.map(one, x, out=out)

        for _ in range(2):
            for _ in range(300):
                mapped()
                mapped_into()
                call(1.0, 2.0)
            time.sleep(1.0)  # code is compiled in the background meanwhile
    else:
        import numba

        call = numba.njit(both)
        vector = numba.vectorize(one)

        out = np.empty(1000)

        def mapped() -> object:
            return vector(x)

        def mapped_into() -> object:
            return vector(x, out=out)

        mapped()
    call(1.0, 2.0)
    print("call_us", _least("call(1.0, 2.0)", {"call": call}, 1000))
    print("map_us", _least("mapped()", {"mapped": mapped}, 100))
    print("map_into_us", _least("mapped()", {"mapped": mapped_into}, 100))


def _least(text: str, names: dict[str, Any], number: int) -> float:
    return 1e6 * min(timeit.repeat(text, globals=names, number=number, repeat=300)) / number


if __name__ == "__main__":
    {"first": _first, "calls": _calls}[sys.argv[2]](sys.argv[1])
