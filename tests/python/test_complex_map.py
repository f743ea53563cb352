# SPDX-License-Identifier: Apache-2.0
"""Maps over complex numbers, whose parts are two values of compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ferryvm
from ferryvm import CallError

from ..tier import nightly

ZS = np.array([1 + 2j, -0.5j, 3 - 1j, 0j, -2 + 0j, 0.25 + 0.75j])


def _same(found: Any, wanted: Any) -> None:
    wanted = np.array(wanted)
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    assert found.tobytes() == wanted.tobytes()


@pytest.mark.parametrize(
    ("backend", "dtype"),
    [
        *(("threaded", "complex128"), ("switch", "complex64"), ("llvm", "complex128")),
        *(("opencl", "complex128"), ("reference", "complex128"), nightly(("vliw", "complex64"))),
    ],
)
def test_elements_are_complex_numbers_on_every_backend(backend: str, dtype: str) -> None:
    def step(z: Any, w: Any) -> Any:
        return z * w + 1 if z.real > 0 else -w

    given = np.tile(ZS, 4 if backend == "vliw" else 40).astype(dtype)
    other = given[::-1].copy()
    compiled = ferryvm.function(backend=backend)(step)
    for _ in range(2):
        found = ferryvm.map(compiled, given, other)
        _same(found, [step(z, w) for z, w in zip(given, other, strict=True)])


def test_lists_of_complex_numbers_have_python_s_rules() -> None:
    zs = ZS.tolist()
    _same(ferryvm.map(lambda z: z * 2j, zs), [z * 2j for z in zs])
    with pytest.raises(ZeroDivisionError) as caught:
        ferryvm.map(lambda z: 1 / z, zs)
    assert str(caught.value).endswith(", in item 3 of a map")


def test_results_are_complex_where_one_of_them_is() -> None:
    def one(x: Any) -> Any:
        return x if x > 1 else x * 1j

    xs = np.arange(4.0)
    _same(ferryvm.map(one, xs), [one(x) for x in xs])


def test_several_results_have_arrays_of_their_own() -> None:
    def three(z: Any, k: Any) -> Any:
        return abs(z.real), z - k, z.imag > 0

    shape = (2, 3)
    found = ferryvm.map(three, ZS.reshape(shape), k=1 - 1j)
    columns = zip(*(three(z, 1 - 1j) for z in ZS), strict=True)
    for each, wanted in zip(found, columns, strict=True):
        _same(each, np.array(wanted).reshape(shape))


@pytest.mark.parametrize(
    ("arguments", "numbers"),
    [((ZS, range(6)), range(6)), ((ZS, 2), [2] * 6), ((ZS.tolist(), [0.5] * 6), [0.5] * 6)],
    ids=["range", "number", "list"],
)
def test_complex_arrays_stand_beside_other_arguments(arguments: Any, numbers: Any) -> None:
    wanted = [z * k for z, k in zip(ZS, numbers, strict=True)]
    _same(ferryvm.map(lambda z, k: z * k, *arguments), wanted)
    _same(ferryvm.map(lambda p: p[0] * p[1], arguments), wanted)


def test_masked_complex_numbers_are_left_out() -> None:
    mask = [0, 1, 0, 1, 0, 0]
    found = ferryvm.map(lambda z: 1 / z, np.ma.array(ZS, mask=mask))
    assert found.mask.tolist() == [bool(each) for each in mask]
    _same(found.compressed(), [1 / z for z, left in zip(ZS, mask, strict=True) if not left])


def test_results_replace_the_elements_that_they_are_computed_from() -> None:
    zs = ZS.copy()
    assert ferryvm.map(lambda z: z.conjugate(), zs, out=zs) is zs
    _same(zs, ZS.conj())
    with pytest.raises(CallError, match="out is float64; an array of complex128 is needed"):
        ferryvm.map(lambda z: z * 2, zs, out=np.zeros(6))
    with pytest.raises(CallError, match=r"out is masked, and no argument is; pass its data"):
        ferryvm.map(lambda z: z * 2, zs, out=np.ma.empty(6, complex))


def test_complex_results_remain_on_a_device_until_a_look() -> None:
    with ferryvm.resident():
        found = ferryvm.map(lambda z: z * 2 - 1, ferryvm.map(lambda z: z * z, ZS))
    assert found.dtype == np.complex128
    _same(np.asarray(found), [z * z * 2 - 1 for z in ZS])
