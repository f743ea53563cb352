# SPDX-License-Identifier: Apache-2.0
"""Operations of a group: every item gives a value, and gets what became of all of them."""

from __future__ import annotations

import functools
import operator

import numpy as np
import pytest

import ferryvm
from ferryvm.backend import Forcing
from ferryvm.build import F64, F64_ARRAY, I64, I64_ARRAY, U8_ARRAY, BuildError, Program
from ferryvm.build.function import Function
from ferryvm.engine.instance import Instance

from ..tier import nightly
from .order import ACCUMULATORS, BLOCK, SCAN_BLOCK, reduced, scanned

TEXT = """
(define (join a b) (+ (* a b) (+ a b)))
(define (member item (xs (array f64)) (values (array f64)) (to (array f64)) n)
  (define x (array-ref xs item))
  (array-set! to item (group-reduce + x item values))
  (array-set! to (+ n item) (group-scan + x item values))
  (array-set! to (+ (* 2 n) item) (group-scan-before + x item values))
  (array-set! to (+ (* 3 n) item) (group-broadcast x (- n 1) item values))
  (array-set! to (+ (* 4 n) item) (group-reduce max x item values)))
(define (floats (xs (array f64)) (to (array f64)))
  (define n (array-length xs))
  (for-each-item n (member xs (make-array f64 n) to n)))
(define (other item (xs (array i64)) (values (array i64)) (narrow (array i32))
                (singles (array f32)) (to (array i64)) n)
  (define x (array-ref xs item))
  (array-set! to item (group-reduce join x item values))
  (array-set! to (+ n item) (group-scan join x item values))
  (array-set! to (+ (* 2 n) item) (i64 (group-reduce & (i32 x) item narrow)))
  (array-set! to (+ (* 3 n) item) (i64 (group-reduce max (f32 x) item singles)))
  (array-set! to (+ (* 4 n) item) (group-scan-before min x item values)))
(define (others (xs (array i64)) (to (array i64)))
  (define n (array-length xs))
  (for-each-item n
    (other xs (make-array i64 n) (make-array i32 n) (make-array f32 n) to n)))
(define (apart item (values (array i64)))
  (if (< item 2)
    (print! (group-reduce + item item values))
    (print! (group-reduce + item item values))))
(define (different n)
  (for-each-item n (apart (make-array i64 n))))
"""
BACKENDS = ["threaded", *map(nightly, ("reference", "switch", "llvm", "opencl"))]
SIZES = [1, 5, ACCUMULATORS + 1]
MORE = [2 * ACCUMULATORS, 2 * SCAN_BLOCK + 3, 2 * BLOCK + 30]


@functools.cache
def instance(backend: str) -> Instance:
    return ferryvm.Engine(backend).instantiate(ferryvm.compile(TEXT, "group.skiff"))


def check_floats(backend: str, size: int) -> None:
    """Check all operations of a group of floats."""
    xs = np.random.default_rng(size).normal(size=size)
    to = np.zeros((5, size))
    instance(backend).floats(xs, to.reshape(-1))
    total = reduced(xs.tolist(), operator.add, ACCUMULATORS)
    running = scanned(xs.tolist(), operator.add)
    assert to[0].tolist() == [total] * size
    assert to[1].tolist() == running
    assert to[2].tolist() == [0.0, *running[:-1]]
    assert to[3].tolist() == [xs[-1]] * size
    assert to[4].tolist() == [xs.max()] * size


def check_others(backend: str, size: int) -> None:
    """Check functions of the program, integers and f32."""

    def join(a: int, b: int) -> int:
        found = a * b + a + b
        return (found + (1 << 63)) % (1 << 64) - (1 << 63)

    xs = np.where(np.arange(size) % 3 == 0, 7, 3 - 2 * (np.arange(size) % 2))
    to = np.zeros((5, size), np.int64)
    instance(backend).others(xs, to.reshape(-1))
    assert to[0].tolist() == [reduced(xs.tolist(), join, 1)] * size
    assert to[1].tolist() == scanned(xs.tolist(), join)
    assert to[2].tolist() == [np.bitwise_and.reduce(xs)] * size
    assert to[3].tolist() == [xs.max()] * size
    least = scanned(xs.tolist(), min)
    assert to[4].tolist() == [(1 << 63) - 1, *least[:-1]]


@pytest.mark.parametrize("backend", BACKENDS)
def test_items_get_the_bits_of_a_reduction_and_a_scan_of_their_values(backend: str) -> None:
    for size in SIZES:
        check_floats(backend, size)
        check_others(backend, size)


@pytest.mark.nightly
@pytest.mark.parametrize("backend", ["threaded", "llvm"])
def test_groups_of_several_blocks_follow_the_order_of_arrays_as_long(backend: str) -> None:
    for size in MORE:
        check_floats(backend, size)
        check_others(backend, size)


def test_items_at_different_operations_trap_with_both_places() -> None:
    wanted = "item 0 waits at group.skiff:27:13; item 2 waits at group.skiff:28:13"
    with pytest.raises(ferryvm.TrapError, match=wanted):
        instance("threaded").different(3)


def test_operations_one_after_another_are_independent_and_a_value_read_early_is_not() -> None:
    def run(text: str) -> None:
        execution = ferryvm.Engine("reference").start(ferryvm.compile(text, "p"))
        execution.run(forcing=frozenset({Forcing.INDEPENDENCE}))

    run(f"{TEXT} (floats (array f64 1 2 3) (make-array f64 15))")
    early = """(define (member item (values (array i64)))
  (print! (array-ref values (- 2 item)))
  (print! (group-reduce + 1 item values)))
(for-each-item 3 (member (make-array i64 3)))
"""
    wanted = "item 0 read element 2 of the .* at p:2:11, item 2 writes it at p:3:11"
    with pytest.raises(ferryvm.FerryError, match=wanted):
        run(early)


def member(program: Program) -> Function:
    """A function of items with a value, its number and an array for values."""
    given = {"item": I64, "x": F64, "values": F64_ARRAY, "to": F64_ARRAY}
    return program.function("member", given)


@pytest.mark.parametrize("backend", ["threaded", nightly("vliw")])
def test_builder_has_the_operations_of_groups(backend: str) -> None:
    program = Program()
    item = member(program)
    for number, operation in enumerate(("reduce", "scan", "scan before", "broadcast")):
        item.local_get("to")
        item.local_get("item")
        item.i64_const(10 * number)
        item.i64_add()
        item.local_get("x")
        item.local_get("item")
        item.f64_convert_i64_s()
        item.f64_add()
        if operation == "broadcast":
            item.i64_const(1)
        item.local_get("item")
        item.local_get("values")
        match operation:
            case "reduce":
                item.group_reduce("mul")
            case "scan":
                item.group_scan("add")
            case "scan before":
                item.group_scan("add", exclusive=True)
            case _:
                item.group_broadcast()
        item.array_set_f64()
    main = program.function("main", {"to": F64_ARRAY})
    main.f64_const(2.0)
    main.i64_const(3)
    main.array_new_default_f64()
    main.local_get("to")
    main.i64_const(3)
    main.launch(item)
    program.export(main)
    to = np.zeros((4, 10))
    ferryvm.Engine(backend).instantiate(program.build()).main(to.reshape(-1))
    assert to[:, :3].tolist() == [[24.0] * 3, [2.0, 5.0, 9.0], [0.0, 2.0, 5.0], [3.0] * 3]


def test_arrays_that_do_not_have_values_as_they_are_are_refused() -> None:
    function = Program().function("item", {"item": I64, "values": U8_ARRAY, "more": I64_ARRAY})
    function.i64_const(1)
    function.local_get("item")
    function.local_get("values")
    with pytest.raises(BuildError, match=r"group_reduce takes an array of one of .*i64\[\]"):
        function.group_reduce("add")
    with pytest.raises(ferryvm.SourceError, match="elements of u8, one of i32 i64 f32 f64"):
        ferryvm.compile("(define (f i (v (array u8))) (group-reduce + i i v))", "p")
