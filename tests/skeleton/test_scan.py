# SPDX-License-Identifier: Apache-2.0
"""Scans: values, and the bits of floats in the order that docs/parallel.md states."""

from __future__ import annotations

import functools
import operator

import numpy as np
import pytest

import ferryvm
from ferryvm.backend import Forcing
from ferryvm.build import F64_ARRAY, I64_ARRAY, U8_ARRAY, BuildError, Program
from ferryvm.engine.instance import Instance

from ..tier import nightly
from .order import SCAN_BLOCK, scanned

TEXT = """
(define (combine a b) (+ (* a b) (+ a b)))
(define (store! (to (array f64)) (xs (array f64))) (array-copy! to 0 (scan + xs)))
(define (store-combined! (to (array i64)) (xs (array i64))) (array-copy! to 0 (scan combine xs)))
(define (greatest (xs (array u8))) (scan max xs))
"""
BACKENDS = ["threaded", *map(nightly, ("reference", "switch", "llvm", "opencl", "vliw"))]
SIZES = [0, 1, 2, SCAN_BLOCK - 1, SCAN_BLOCK, SCAN_BLOCK + 1, 8 * SCAN_BLOCK, 8 * SCAN_BLOCK + 300]


@functools.cache
def instance(backend: str) -> Instance:
    return ferryvm.Engine(backend).instantiate(ferryvm.compile(TEXT))


@pytest.mark.parametrize("backend", BACKENDS)
def test_bits_of_sums_of_floats_are_those_of_the_stated_order(backend: str) -> None:
    for size in SIZES:
        xs, found = np.random.default_rng(size).normal(size=size), np.empty(size)
        instance(backend).call("store!", found, xs)
        assert found.tolist() == scanned(xs.tolist(), operator.add), size


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_function_combines_elements_in_their_order(backend: str) -> None:
    def combine(a: int, b: int) -> int:
        found = a * b + a + b
        return (found + (1 << 63)) % (1 << 64) - (1 << 63)

    xs, found = np.arange(2 * SCAN_BLOCK + 5) % 3, np.empty(2 * SCAN_BLOCK + 5, int)
    instance(backend).call("store-combined!", found, xs)
    assert found.tolist() == scanned(xs.tolist(), combine)


@pytest.mark.nightly
@pytest.mark.parametrize("backend", ["threaded", "llvm"])
def test_the_last_results_of_blocks_are_scanned_in_the_same_way(backend: str) -> None:
    size = SCAN_BLOCK * SCAN_BLOCK + 7
    xs, found = np.random.default_rng(1).normal(size=size), np.empty(size)
    instance(backend).call("store!", found, xs)
    assert found.tolist() == scanned(xs.tolist(), operator.add)


def test_values_of_narrow_elements_are_i64() -> None:
    xs = np.random.default_rng(3).integers(0, 256, 700).astype(np.uint8)
    found = instance("threaded").greatest(xs)
    assert (found.dtype, found.tolist()) == (np.int64, np.maximum.accumulate(xs).tolist())


def test_python_scans_with_a_function_of_an_instance() -> None:
    xs = np.arange(600) % 2
    found = ferryvm.scan(instance("threaded").combine, xs)
    expected = np.empty(600, int)
    instance("threaded").call("store-combined!", expected, xs)
    assert found.tolist() == expected.tolist()


@pytest.mark.nightly
def test_its_items_are_independent() -> None:
    size = 9 * SCAN_BLOCK
    text = f"(array-ref (scan + (make-array f64 {size} 0.1)) {size - 1})"
    execution = ferryvm.Engine("reference").start(ferryvm.compile(text))
    found = execution.run(forcing=frozenset({Forcing.INDEPENDENCE}))
    assert found.value == scanned([0.1] * size, operator.add)[-1]


def test_the_builder_scans_the_array_on_the_stack() -> None:
    program = Program()
    main = program.function("main", {"xs": U8_ARRAY}, [I64_ARRAY])
    main.local_get("xs")
    main.scan("mul")
    program.export(main)
    wrong = program.function("wrong", {"xs": F64_ARRAY}, [F64_ARRAY])
    wrong.local_get("xs")
    with pytest.raises(BuildError, match="scan: 'xor' is not defined for f64"):
        wrong.scan("xor")
    wrong.return_()
    made = ferryvm.Engine("threaded").instantiate(program.build())
    assert made.main(np.array([3, 100, 2], np.uint8)).tolist() == [3, 300, 600]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(scan +)", "'scan' is written (scan operator array) or (scan function array)"),
        ("(scan / (array f64 1))", "'scan' takes one of + * min max & | ^, or a function that"),
        ("(print! (scan + (array f64 1)))", "must be a number or a string, found (array f64)"),
    ],
)
def test_a_mistake_in_skiff_is_told(text: str, message: str) -> None:
    with pytest.raises(ferryvm.SourceError) as raised:
        ferryvm.compile(text)
    assert message in str(raised.value)
