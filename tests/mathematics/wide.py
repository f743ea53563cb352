# SPDX-License-Identifier: Apache-2.0
"""Errors of f64 results, against gcc's libquadmath: functions of binary128, with 60 bits to
spare."""

from __future__ import annotations

import ctypes
import functools
import math
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from tests.mathematics.exhaustive import built

Array = NDArray[np.float64]

TEXT = """
#include <math.h>
#include <quadmath.h>
#include <stdint.h>
#define LARGEST 0x1.fffffffffffffp1023

/* The error of the result that has the largest one, in units in the last place of the exact one; its
   place; the number of results that are not the nearest f64. */
double run(const double *x, const double *y, const double *found, int64_t count, int64_t *place,
           int64_t *wrong)
{
    double largest = 0;
    for (int64_t i = 0; i < count; ++i) {
        const __float128 exact = FUNCTION(x[i] SECOND);
        const double nearest = (double)exact, result = found[i];
        const int is_same = nearest == result || (nearest != nearest && result != result);
        *wrong += !is_same;
        if (is_same && !isfinite(result))
            continue;
        /* An infinite result stands for 2^1024. */
        const __float128 value = isinf(result) ? copysignq(0x1p1024Q, result) : result;
        const double magnitude = fmin(fabs(nearest), LARGEST), next = nextafter(magnitude, LARGEST);
        const double unit = next == magnitude ? 0x1p971 : next - magnitude;
        const int is_number = nearest == nearest && result == result;
        const double error = is_number ? (double)(fabsq(value - exact) / unit) : INFINITY;
        if (error > largest) {
            largest = error;
            *place = i;
        }
    }
    return largest;
}
"""


class Worst(NamedTuple):
    """The largest error of some results."""

    error: float
    """In units in the last place; infinite if only one of result and exact value is a NaN."""
    operands: tuple[float, ...]
    wrong: int
    """Results that are not the nearest f64."""


@functools.cache
def _library(name: str, arity: int) -> ctypes.CDLL:
    second = ", y[i]" if arity == 2 else ""
    text = f"#define FUNCTION {name}q\n#define SECOND {second}\n{TEXT}"
    with TemporaryDirectory() as folder:
        library = built(text, Path(folder), "-lquadmath")
    library.run.restype = ctypes.c_double
    return library


def worst(name: str, found: Array, *operands: Array) -> Worst:
    """The largest error of the results `found` of a function."""
    run = _library(name, len(operands)).run
    columns = [np.ascontiguousarray(each) for each in (*operands, found)]
    addresses = [ctypes.c_void_p(each.ctypes.data) for each in columns]
    if len(operands) == 1:
        addresses.insert(1, ctypes.c_void_p())
    place, wrong = ctypes.c_int64(-1), ctypes.c_int64()
    count = ctypes.c_int64(len(found))
    error = run(*addresses, count, ctypes.byref(place), ctypes.byref(wrong))
    at = place.value
    values = (math.nan,) * len(operands) if at < 0 else tuple(float(x[at]) for x in operands)
    return Worst(error, values, wrong.value)
