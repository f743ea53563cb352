# SPDX-License-Identifier: Apache-2.0
"""Reductions: values, and the bits of floats in the order that docs/parallel.md states."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np
import pytest

import ferryvm
from ferryvm.backend import Forcing
from ferryvm.build import F64, F64_ARRAY, I64, I64_ARRAY, U8_ARRAY, BuildError, Program
from ferryvm.engine.instance import Instance

from ..tier import nightly
from .order import ACCUMULATORS, BLOCK, reduced

TEXT = """
(define (combine a b) (+ (* a b) (+ a b)))
(define (total (xs (array f64))) (reduce + xs))
(define (from-ten (xs (array f64))) (reduce + 10 xs))
(define (combined (xs (array i64))) (reduce combine 3 xs))
(define (product (xs (array f32))) (reduce * xs))
(define (least (xs (array f64))) (reduce min xs))
(define (greatest (xs (array i16))) (reduce max xs))
(define (sum-of-bytes (xs (array u8))) (reduce + xs))
(define (all-bits (xs (array i32))) (reduce & xs))
(define (any-bits (xs (array i32))) (reduce | xs))
"""
BACKENDS = ["threaded", *map(nightly, ("reference", "switch", "llvm", "opencl", "vliw"))]
SIZES = [1, 2, ACCUMULATORS - 1, ACCUMULATORS, ACCUMULATORS + 1, 50, BLOCK - 1, BLOCK, BLOCK + 1]
SIZES += [2 * BLOCK + 40]


@functools.cache
def instance(backend: str) -> Instance:
    return ferryvm.Engine(backend).instantiate(ferryvm.compile(TEXT))


def random(count: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.random.default_rng(count).normal(size=count)


@pytest.mark.parametrize("backend", BACKENDS)
def test_bits_of_a_sum_of_floats_are_those_of_the_stated_order(backend: str) -> None:
    for size in SIZES:
        xs = random(size)
        expected = reduced(xs.tolist(), operator.add, ACCUMULATORS)
        assert instance(backend).total(xs) == expected, size
        assert instance(backend).call("from-ten", xs) == 10 + expected, size


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_function_combines_elements_in_their_order(backend: str) -> None:
    def combine(a: int, b: int) -> int:
        found = a * b + a + b
        return (found + (1 << 63)) % (1 << 64) - (1 << 63)

    for size in (1, 3, ACCUMULATORS + 1, BLOCK + 1):
        xs = np.arange(size)
        expected = combine(3, reduced(xs.tolist(), combine, 1))
        assert instance(backend).combined(xs) == expected, size


@pytest.mark.nightly
@pytest.mark.parametrize("backend", ["threaded", "llvm"])
def test_results_of_blocks_are_reduced_in_the_same_way(backend: str) -> None:
    xs = random(BLOCK * BLOCK + 7)
    assert instance(backend).total(xs) == reduced(xs.tolist(), operator.add, ACCUMULATORS)


def test_other_operations_and_kinds_have_the_values_of_their_elements() -> None:
    found = instance("threaded")
    shorts = np.array([-5, 300, -300, 7] * 20, np.int16)
    assert found.greatest(shorts) == 300
    assert found.least(np.array([2.0, -0.0, 0.0])) == 0.0
    assert str(found.least(np.array([2.0, 0.0, -0.0]))) == "-0.0"
    assert np.isnan(found.least(np.array([2.0, np.nan, 0.0])))
    assert found.call("sum-of-bytes", np.full(5000, 255, np.uint8)) == 5000 * 255
    words = np.arange(100, 150, dtype=np.int32)
    assert found.call("all-bits", words) == functools.reduce(operator.and_, words.tolist())
    assert found.call("any-bits", words) == functools.reduce(operator.or_, words.tolist())
    assert found.product(np.array([3, 5, 0.1], np.float32)) == np.float32(15) * np.float32(0.1)


def test_accumulators_begin_with_values_that_change_no_bits() -> None:
    """Arrays whose elements are all the same: -0 and 0, infinities, the extreme integers."""
    found, size = instance("threaded"), ACCUMULATORS + 3
    for value in (-0.0, 0.0, np.inf, -np.inf):
        xs = np.full(size, value)
        assert str(found.total(xs)) == str(value)
        assert str(found.least(xs)) == str(value)
    assert str(found.product(np.full(size, -0.0, np.float32))) == "-0.0"
    assert found.greatest(np.full(size, -(1 << 15), np.int16)) == -(1 << 15)
    for bits in (0, -1, 1 << 30):
        words = np.full(size, bits, np.int32)
        assert found.call("all-bits", words) == found.call("any-bits", words) == bits


def test_an_empty_array_gives_the_identity_or_the_initial_value() -> None:
    found, none = instance("threaded"), np.array([])
    assert (found.total(none), found.call("from-ten", none), found.least(none)) == (0, 10, np.inf)
    assert found.combined(np.array([], int)) == 3
    assert found.product(np.array([], np.float32)) == 1
    assert found.greatest(np.array([], np.int16)) == -(1 << 63)
    assert found.call("all-bits", np.array([], np.int32)) == -1


def test_its_items_are_independent() -> None:
    text = f"{TEXT} (define xs (make-array f64 {BLOCK + 20} 0.1)) (total xs)"
    execution = ferryvm.Engine("reference").start(ferryvm.compile(text))
    found = execution.run(forcing=frozenset({Forcing.INDEPENDENCE}))
    assert found.value == reduced([0.1] * (BLOCK + 20), operator.add, ACCUMULATORS)


def test_the_builder_reduces_the_array_on_the_stack() -> None:
    program = Program()
    main = program.function("main", {"xs": U8_ARRAY, "ys": I64_ARRAY}, [I64, I64])
    main.local_get("xs")
    main.reduce("add")
    main.i64_const(5)
    main.local_get("ys")
    main.reduce("max", initial=True)
    program.export(main)
    found = ferryvm.Engine("threaded").instantiate(program.build())
    assert found.main(np.array([200, 100], np.uint8), np.array([3, 4])) == (300, 5)


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        ("and", "reduce: 'and' is not defined for f64"),
        ("sub", "reduce takes one of add, mul, min, max, and, or, xor, or a function of this"),
        ("negate", r"reduce: a function \(f64 f64\) -> \(f64\) is expected, found \(f64\)"),
        ("plus", "reduce with function 'plus' needs an initial value"),
    ],
)
def test_the_builder_tells_what_reduce_takes(operation: str, message: str) -> None:
    program = Program()
    functions = {
        "negate": program.function("negate", [F64], [F64]),
        "plus": program.function("plus", [F64, F64], [F64]),
    }
    main = program.function("main", {"xs": F64_ARRAY}, [F64])
    main.local_get("xs")
    with pytest.raises(BuildError, match=message):
        main.reduce(functions.get(operation, operation))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(reduce +)", "'reduce' is written (reduce operator [initial] array)"),
        ("(reduce - (array i64 1))", "'reduce' takes one of + * min max & | ^, or a function that"),
        ("(define (f a) a) (reduce f 0 (array i64 1))", "combines two values, 'f' takes 1"),
        ("(define (f a b) a) (reduce f (array i64 1))", "'f' is a function, so 'reduce' needs an"),
        ("(reduce & (array f64 1))", "the array of 'reduce' has values of f64, '&' takes integers"),
        ("(reduce + 1.5 (array i64 1))", "the initial value of 'reduce' must be i64, found"),
        ("(reduce + 5)", "the last operand of 'reduce' must be an array, found a number"),
        (
            "(define (f (a f64) b) a) (reduce f 0 (array i64 1))",
            "'a' of 'f' is f64, an element here is i64",
        ),
        (
            "(define (f a b) (< a b)) (reduce f 0 (array i64 1))",
            "'f' yields i32, 'reduce' needs i64, as the elements are",
        ),
    ],
)
def test_a_mistake_in_skiff_is_told(text: str, message: str) -> None:
    with pytest.raises(ferryvm.SourceError) as raised:
        ferryvm.compile(text)
    assert message in str(raised.value)
