# SPDX-License-Identifier: Apache-2.0
"""Reductions and scans of complex numbers, in the stated order with CPython's arithmetic."""

from __future__ import annotations

import itertools
import operator
from typing import Any

import numpy as np
import pytest

import ferryvm
from ferryvm import CallError, UnsupportedError
from ferryvm.build import F64, Program

from ..skeleton.order import SCAN_BLOCK, reduced, scanned
from ..tier import nightly

BLOCK = 1024


def affine(z: Any, w: Any) -> Any:
    """Associative: x -> x * real + imag, one after the other."""
    return complex(z.real * w.real, z.imag * w.real + w.imag)


def product(z: Any, w: Any) -> Any:
    return z * w


def numbers(count: int, dtype: str) -> Any:
    """Of a size near 1, so that products neither overflow nor vanish."""
    random = np.random.default_rng(count)
    angles = random.uniform(-3.0, 3.0, count)
    found = random.uniform(0.9, 1.1, count) * (np.cos(angles) + 1j * np.sin(angles))
    return found.tolist() if dtype == "list" else found.astype(dtype)


def same(found: Any, wanted: Any) -> None:
    assert type(found) is type(wanted)
    assert np.asarray(found).tobytes() == np.asarray(wanted).tobytes()


ROTATION = [
    ("threaded", "complex128", operator.add),
    ("switch", "complex64", product),
    ("llvm", "complex64", operator.add),
    ("llvm", "list", affine),
    nightly(("opencl", "complex128", product)),  # it compiles for seconds
    ("reference", "complex128", product),
    ("vliw", "complex64", product),
]


@pytest.mark.parametrize(("backend", "dtype", "function"), ROTATION)
def test_bits_are_those_of_the_stated_order(backend: str, dtype: str, function: Any) -> None:
    is_slow = backend in ("reference", "vliw")
    compiled = ferryvm.function(backend=backend)(lambda z, w: function(z, w))
    for count in (1, 40) if is_slow else (1, BLOCK, 2 * BLOCK + 3):
        zs = numbers(count, dtype)
        elements = zs if dtype == "list" else [*zs]
        combined = reduced(elements, function, 1)
        same(ferryvm.reduce(compiled, zs), combined)
        same(ferryvm.reduce(compiled, zs, 2), function(type(combined)(2), combined))
        wanted = np.array(scanned(elements, function), "complex128" if dtype == "list" else dtype)
        same(ferryvm.scan(compiled, zs), wanted)


@pytest.mark.nightly
@pytest.mark.parametrize("backend", ["threaded", "llvm", "opencl"])
def test_results_of_blocks_are_combined_in_the_same_order(backend: str) -> None:
    zs = numbers(SCAN_BLOCK * SCAN_BLOCK + 7, "complex128")
    compiled = ferryvm.function(backend=backend)(product)
    same(ferryvm.scan(compiled, zs), np.array(scanned([*zs], product)))
    zs = np.tile(zs, BLOCK * BLOCK // len(zs) + 1)
    same(ferryvm.reduce(compiled, zs), reduced([*zs], product, 1))


def test_shapes_empty_arrays_and_arrays_for_results_are_as_of_floats() -> None:
    zs = numbers(6, "complex128").reshape(2, 3)
    wanted = np.array([*itertools.accumulate(zs.reshape(-1), product)]).reshape(2, 3)
    out = np.empty((2, 3), complex)
    assert ferryvm.scan(product, zs, out=out) is out
    same(out, wanted)
    assert ferryvm.scan(product, zs, out=zs) is zs
    same(zs, wanted)
    same(ferryvm.scan(product, zs[:0]), np.empty((0, 3), complex))
    same(ferryvm.reduce(product, zs[:0], 1j), np.complex128(1j))
    assert ferryvm.reduce(product, [], 1j) == 1j


def test_an_exception_is_that_of_python_s_numbers() -> None:
    with pytest.raises(ZeroDivisionError, match="division by zero"):
        ferryvm.reduce(lambda z, w: z / (w - w), [1j, 2j])


ZS = np.array([1 + 2j, 3 - 1j, 0.5j, 2.0])
REFUSED: list[tuple[Any, Any, dict[str, Any], str]] = [
    (max, ZS, {}, "complex numbers have no order here; compare abs"),
    (lambda z, w: min(z, w), ZS.tolist(), {}, "complex numbers have no order here; compare abs"),
    (np.add, ZS, {}, r"numpy.add\(numpy.complex128, numpy.complex128\); write a \+ b"),
    (product, ZS[::2], {}, "not contiguous is not supported; pass a.copy"),
    (product, ZS.astype(">c16"), {}, r"pass a.astype\(numpy.complex128\)"),
    (product, np.ma.array(ZS, mask=ZS.real > 1), {}, r"is masked; pass .* a.compressed\(\)"),
    (product, [1j, 2.0], {}, "item 1 is a float where those before are complex"),
    (lambda z, w: abs(z) + abs(w), ZS, {}, "values are numpy.float64 where the elements are"),
    (lambda x, y: x + y * 1j, ZS.real.copy(), {}, r"pass a.astype\(numpy.complex128\)"),
    (product, ZS, {"out": np.empty(4)}, "out is float64; an array of complex128 is needed"),
    (product, ZS, {"out": np.ma.empty(4, complex)}, "out is masked; pass its data, out.data"),
    (product, np.zeros(4, complex), {"out": ZS[::-1]}, "out is read-only or not contiguous"),
    (product, ZS[:3], {"out": ZS[1:]}, "^scan of product: argument out shares memory"),
    (product, ZS, {"initial": "1"}, "initial is '1'; a value for complex128 is needed"),
    (product, ZS, {"initial": 10**400}, "a value for complex128 is needed"),
    (product, ZS.astype("c8"), {"initial": np.complex128(1j)}, "a value for complex64 is needed"),
    (product, ZS.real.copy(), {"initial": 1j}, "initial is 1j; a value for float64 is needed"),
]


@pytest.mark.parametrize(("function", "array", "named", "message"), REFUSED)
def test_refusals_are_one_line(
    function: Any, array: Any, named: dict[str, Any], message: str
) -> None:
    operation: Any = ferryvm.scan if "out" in named else ferryvm.reduce
    with pytest.raises((CallError, UnsupportedError), match=message) as raised:
        operation(function, array, **named)
    assert "\n" not in str(raised.value)


def test_an_instance_s_function_combines_pairs_of_floats() -> None:
    program = Program()
    parts = dict.fromkeys(("a", "b", "c", "d"), F64)
    plus = program.function("plus", parts, results=[F64, F64])
    for one, other in (("a", "c"), ("b", "d")):
        plus.local_get(one)
        plus.local_get(other)
        plus.f64_add()
    program.export(plus)
    f = ferryvm.Engine("threaded").instantiate(program.build()).plus
    assert ferryvm.reduce(f, ZS) == ZS.sum()
    assert ferryvm.reduce(f, ZS, 1j) == ZS.sum() + 1j
    out = np.empty(4, complex)
    for found in (ferryvm.scan(f, ZS), ferryvm.scan(f, ZS, out=out)):
        assert found.tolist() == np.add.accumulate(ZS).tolist()
    for wrong in (ZS.real.copy(), ZS.astype("c8"), ZS[::2]):
        with pytest.raises(CallError, match=r"^reduce of plus: "):
            ferryvm.reduce(f, wrong)
    with pytest.raises(CallError, match=r"^reduce of plus: initial is '1'; a complex number"):
        ferryvm.reduce(f, ZS, "1")  # type: ignore[arg-type]  # that is the test
    made = ferryvm.Engine("threaded").instantiate(ferryvm.compile("(define (f (x f64) y) (+ x y))"))
    for operation in (ferryvm.reduce, ferryvm.scan):
        with pytest.raises(CallError, match=r"of f: .* is an array of complex128; .*f64"):
            operation(made.f, ZS)
    with pytest.raises(CallError, match=r"^scan of plus: out is an array of float64; one of"):
        ferryvm.scan(f, ZS, out=np.empty(4))
