# SPDX-License-Identifier: Apache-2.0
"""Launches of two and three dimensions: their indices, in order, and mistakes that are told."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

import ferryvm
from ferryvm.backend import Forcing
from ferryvm.build import F64, F64_ARRAY, I64, BuildError, Program
from ferryvm.skeleton import grid

from ..tier import nightly

TEXT = """
(define (show i j by) (print! (+ (* 10 i) (* by j))))
(define (show-all i j k) (print! (+ (* 100 i) (+ (* 10 j) k))))
(define rows 2)
(for-each-item (rows (+ rows 1)) (show 1))
(for-each-item (2 1 3) (show-all))
(for-each-item (0 3) (show 1))
(for-each-item (1) (only))
(for-each-item rows (only))
(define (only i) (print! (- 0 i)))
(define (count! i j (to (array i64)) columns)
  (let ((at (index-2d i j 37 columns))) (array-set! to at (+ 1 (array-ref to at)))))
(define to (make-array i64 (* 37 23)))
(for-each-item (37 23) (count! to 23))
(print! (reduce min to) (reduce max to))
"""
OUTPUT = "0 1 2 10 11 12 0 1 2 100 101 102 0 0 -1 1 1"


def test_a_list_of_one_size_is_a_form() -> None:
    with pytest.raises(ferryvm.SourceError, match="a form starts with a name, found the number"):
        ferryvm.compile(TEXT)


@pytest.mark.parametrize(
    "backend", ["threaded", *map(nightly, ("reference", "switch", "llvm", "opencl", "vliw"))]
)
def test_items_have_their_indices_in_row_major_order(backend: str) -> None:
    program = ferryvm.compile(TEXT.replace("(1) (only)", "1 (only)"))
    assert ferryvm.run(program, backend=backend).output.split() == OUTPUT.split()


def test_items_are_checked_one_by_one() -> None:
    text = """(define (f i j (to (array i64))) (array-set! to {} j))
              (for-each-item (3 4) (f (make-array i64 12)))"""
    for index, is_independent in (("(+ (* 4 i) j)", True), ("(+ i j)", False)):
        program = ferryvm.compile(text.format(index))
        execution = ferryvm.Engine("reference").start(program)
        if is_independent:
            execution.run(forcing=frozenset({Forcing.INDEPENDENCE}))
        else:
            with pytest.raises(ferryvm.FerryError, match="items 1 and 4 of the launch"):
                execution.run(forcing=frozenset({Forcing.INDEPENDENCE}))


def test_a_multiplication_and_a_shift_divide_exactly() -> None:
    chosen = random.Random(1)
    divisors = [1, 2, 3, 7, 641, (1 << 31) - 1, 1 << 31]
    divisors += [chosen.randrange(1, 1 << chosen.randrange(1, 32)) for _ in range(300)]
    for n in divisors:
        shift = 31 + (n - 1).bit_length()
        multiplier = (1 << shift) // n + 1
        last = (1 << 31) - 1
        for item in {0, last, last // n * n, last // n * n - 1, chosen.randrange(last)}:
            if item >= 0:
                assert item * multiplier < 1 << 63
                assert item * multiplier >> shift == item // n


@pytest.mark.parametrize("bits", [31, 2])
def test_the_builder_launches_in_dimensions(monkeypatch: pytest.MonkeyPatch, bits: int) -> None:
    """With `bits` 2, four items are many, whose indices are divisions."""
    monkeypatch.setattr(grid, "_FEW_BITS", bits)
    program = Program()
    put = program.function("put", {"i": I64, "j": I64, "k": I64, "to": F64_ARRAY, "n": I64})
    put.local_get("to")
    for index in "ijk":
        put.local_get(index)
        if index != "i":
            put.i64_add()
        if index != "k":
            put.local_get("n")
            put.i64_mul()
    put.local_get("i")
    put.local_get("j")
    put.i64_sub()
    put.f64_convert_i64_s()
    put.array_set_f64()
    main = program.function("main", {"to": F64_ARRAY, "n": I64})
    for name in ("to", "n", "n", "n", "n"):
        main.local_get(name)
    main.launch(put, dimensions=3)
    program.export(main)
    to = np.zeros((3, 3, 3))
    ferryvm.Engine("threaded").instantiate(program.build()).main(to, 3)
    expected = [float(i - j) for i, j, _ in itertools.product(range(3), repeat=3)]
    assert to.reshape(-1).tolist() == expected


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ("2 -1", "negative number of items: -1"),
        ("-1 0", "negative number of items: -1"),
        ("(<< 1 40) (<< 1 30)", "too many items of f in dimensions: 1099511627776 and 1073741824"),
    ],
)
def test_impossible_sizes_trap_at_the_form(sizes: str, message: str) -> None:
    text = f"(define (f i j) (print! (+ i j)))\n (for-each-item ({sizes}) (f))"
    with pytest.raises(ferryvm.TrapError) as raised:
        ferryvm.run(ferryvm.compile(text, "a.skiff"), backend="threaded")
    assert str(raised.value).splitlines()[0] == f"a.skiff:2:2: trap: {message}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(define (f i) 1) (for-each-item (1 2 3 4) (f))", "has at most 3 dimensions, found 4"),
        (
            "(define (f i) (print! i)) (for-each-item (1 2) (f))",
            "'f' gets 2 indices and 0 arguments, it takes (f i)",
        ),
        (
            "(define (f i j) (print! i (+ j 1.0))) (for-each-item (1 2) (f))",
            "'j' of 'f' is a float, an item is i64",
        ),
        (
            "(define (f i j) (print! i j)) (for-each-item (1 2.5) (f))",
            "the size of a dimension must be i64, found a float",
        ),
    ],
)
def test_a_mistake_in_skiff_is_told(text: str, message: str) -> None:
    with pytest.raises(ferryvm.SourceError) as raised:
        ferryvm.compile(text)
    assert message in str(raised.value)


def test_the_builder_tells_what_launch_takes() -> None:
    program = Program()
    f = program.function("f", [I64, F64])
    main = program.function("main")
    with pytest.raises(BuildError, match=r"launch takes a function \(i64 i64 ...\) -> \(\), found"):
        main.launch(f, dimensions=2)
    with pytest.raises(BuildError, match="launch has 1 to 3 dimensions, found 4"):
        main.launch(f, dimensions=4)


@pytest.mark.parametrize("bits", [31, 2])
def test_a_trap_names_the_indices_of_its_item(monkeypatch: pytest.MonkeyPatch, bits: int) -> None:
    monkeypatch.setattr(grid, "_FEW_BITS", bits)
    text = """(define (f i j k (to (array i64))) (array-set! to 0 (/ 6 (- 3 k))))
              (for-each-item (3 4 5) (f (make-array i64 1)))"""
    with pytest.raises(ferryvm.TrapError) as raised:
        ferryvm.run(ferryvm.compile(text), backend="threaded")
    assert str(raised.value).splitlines()[0].endswith("by zero, in item 3 (0, 0, 3)")


def test_only_item_functions_of_dimensions_have_indices() -> None:
    name = "launch f in 3 dimensions: item"
    words = (23, 7, 4, 5, 1, 2, 3, 4)
    assert grid.item_indices(name, words) == (1, 0, 3)
    assert grid.item_indices(f"{name} of many", (23, 7, 4, 5)) == (1, 0, 3)
    assert grid.item_indices("launch f in 2 dimensions", words) is None
    assert grid.item_indices(name, (23, 7, 0, 5, 1, 2, 3, 4)) is None
    assert grid.item_indices(name, (23, 4, 5)) is None
