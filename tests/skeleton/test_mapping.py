# SPDX-License-Identifier: Apache-2.0
"""Maps in Skiff and in the builder: values, lengths that differ, and mistakes that are told."""

from __future__ import annotations

import numpy as np
import pytest

import ferryvm
from ferryvm.backend import Forcing
from ferryvm.build import F64, F64_ARRAY, I32, I32_ARRAY, U8_ARRAY, BuildError, Program
from ferryvm.verify import verify

from ..tier import nightly

TEXT = """
(define-struct point (x f64) (y f64))
(define (axpy x y a) (+ (* a x) y))
(define (make x y) (make-point x y))
(define (norm (p point)) (+ (point-x p) (point-y p)))
(define (look i (in (array f64))) (array-ref in i))

(define xs (array f64 1 2 3))
(define ys (map (axpy 10) xs xs))
(print! (array-ref ys 2))                        ; 33
(print! (reduce max (map norm (map make xs ys))))
(map! ys sqrt (map + ys xs))
(print! (array-ref ys 2))                        ; of 36
(map! ys (axpy -1) xs ys)                        ; an array that is read, too
(print! (array-ref ys 2))
(define bytes (array u8 200 255))
(print! (array-ref (map + bytes bytes) 1))       ; values are i64
(map! bytes * bytes bytes)
(print! (array-ref bytes 1))                     ; stored without the higher bits
(print! (array-ref (map i32 bytes) 0))
(print! (array-ref (map (look xs) (array i8 2 0)) 0))
(print! (array-length (map abs (make-array f32 0))))
"""
OUTPUT = "33.0\n36.0\n6.0\n3.0\n510\n1\n64\n3.0\n0\n"


@pytest.mark.parametrize(
    "backend", ["threaded", *map(nightly, ("reference", "switch", "llvm", "opencl", "vliw"))]
)
def test_a_function_is_called_with_elements_and_shared_arguments(backend: str) -> None:
    assert ferryvm.run(ferryvm.compile(TEXT), backend=backend).output == OUTPUT


def test_its_items_are_independent() -> None:
    execution = ferryvm.Engine("reference").start(ferryvm.compile(TEXT))
    assert execution.run(forcing=frozenset({Forcing.INDEPENDENCE})).output == OUTPUT


def test_a_function_is_generated_once_for_the_same_types() -> None:
    text = "(define a (array f64 1)) (map sqrt a)"
    once = ferryvm.compile(text)
    twice = ferryvm.compile("(define (f x) (* x x)) (define a (map f (array f64 1))) (map f a)")
    names = [function.name for function in twice.functions]
    assert names == ["main", "f", "map f f64[] to f64[]", "map f f64[] to f64[]: item"]
    assert [export.name for export in once.exports] == []


@pytest.mark.parametrize("backend", ["threaded", nightly("reference"), nightly("llvm")])
@pytest.mark.parametrize(
    ("form", "message"),
    [
        ("(map + (array i64 1 2) (array i64 3))", "array 1 and array 2 of map: 2 and 1"),
        ("(map! (array i64 1) ~ (array i8 3 4 5))", "the result and array 1 of map!: 1 and 3"),
    ],
)
def test_different_lengths_trap_with_both_at_the_place_of_the_form(
    backend: str, form: str, message: str
) -> None:
    with pytest.raises(ferryvm.TrapError) as raised:
        ferryvm.run(ferryvm.compile(f"(print! 1)\n {form}", "a.skiff"), backend=backend)
    assert str(raised.value).splitlines() == [
        f"a.skiff:2:2: trap: unequal lengths of {message}",
        "    in main at a.skiff:2:2",
    ]


def test_a_trap_in_an_item_names_it() -> None:
    program = ferryvm.compile("(map / (array i64 1 2 3) (array i64 1 1 0))", "a.skiff")
    with pytest.raises(ferryvm.TrapError, match=r"^a.skiff:1:6: .*division by zero, in item 2\n"):
        ferryvm.run(program, backend="threaded")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(map +)", "'map' is written (map function array ...) or (map (function argument ...)"),
        ("(map! (array i64 1) +)", "'map!' is written (map! to function array ...)"),
        ("(map 5 (array i64 1))", "'map' takes an operator or a function that the program defines"),
        ("(define (f a) a) (map ff (array i64 1))", "found 'ff'; did you mean 'f'?"),
        ("(map sqrt (array i64 1))", "'x1' of 'sqrt' is a float, an element here is i64"),
        ("(map sqrt (array f64 1) (array f64 1))", "'sqrt' takes 1 operand, found 2"),
        (
            "(define (f a b) a) (map (f 1) (array i64 1) (array i64 1))",
            "'f' gets an element of each array, of which there are 2, and 1 argument; it takes (f a",
        ),
        ("(define (f a) (print! a)) (map f (array i64 1))", "'f' yields no value, 'map' needs its"),
        (
            "(define (f a (b i32)) a) (map (f 1i64) (array i64 1))",
            "argument 2 ('b') of 'f' must be i32, found i64",
        ),
        ("(map f64 5)", "array 1 of 'map' must be an array, found a number"),
        (
            "(map! (array f64 1) i64 (array i64 1))",
            "'i64' yields i64, an element here is f64",
        ),
        ("(print! (map! (array i64 1) ~ (array i64 1)))", "'map!' yields no value"),
    ],
)
def test_a_mistake_in_skiff_is_told(text: str, message: str) -> None:
    with pytest.raises(ferryvm.SourceError) as raised:
        ferryvm.compile(text)
    assert message in str(raised.value)


def _scaling(program: Program) -> ferryvm.build.Function:
    scale = program.function("scale", {"x": F64, "n": I32, "a": F64}, [F64, I32])
    scale.local_get("x")
    scale.local_get("a")
    scale.f64_mul()
    scale.local_get("n")
    return scale


def test_the_builder_maps_functions_of_several_results() -> None:
    program = Program()
    scale = _scaling(program)
    fresh = program.function("fresh", {"x": F64_ARRAY, "n": U8_ARRAY}, [F64_ARRAY, I32_ARRAY])
    fresh.f64_const(2.5)
    fresh.local_get("x")
    fresh.local_get("n")
    fresh.map(scale, arrays=2)
    given = program.function("given", {"x": F64_ARRAY, "n": U8_ARRAY})
    given.local_get("x")
    given.local_get("n")
    given.f64_const(2.5)
    given.local_get("x")
    given.local_get("n")
    given.map_to(scale, arrays=2)
    program.export(fresh)
    program.export(given)
    instance = ferryvm.Engine("threaded").instantiate(program.build())
    x, n = np.array([1.0, 2.0]), np.array([200, 3], np.uint8)
    found = instance.fresh(x, n)
    assert (found[0].tolist(), found[1].tolist()) == ([2.5, 5], [200, 3])
    instance.given(x, n)
    assert (x.tolist(), n.tolist()) == ([2.5, 5], [200, 3])


def test_the_builder_maps_references() -> None:
    program = Program()
    node = program.struct("node", {"value": F64})
    make = program.function("make", [F64], [node])
    make.local_get(make.parameters[0])
    make.struct_new(node)
    value = program.function("value", [node], [F64])
    value.local_get(value.parameters[0])
    value.struct_get(node["value"])
    main = program.function("main", {"x": F64_ARRAY}, [F64_ARRAY])
    main.local_get("x")
    main.map(make)
    main.map(value)
    program.export(main)
    assert verify(program.build())
    instance = ferryvm.Engine("threaded").instantiate(program.build())
    assert instance.main(np.array([1.5, 2])).tolist() == [1.5, 2]


@pytest.mark.parametrize(
    ("arrays", "operands", "message"),
    [
        (1, "x", r"map takes 3 operands, the stack has \(f64\[\]\)"),
        (4, "xxxx", "map takes a function with results that takes elements of 4 arrays"),
        (2, "axx", "map: an element of f64.. is no i32 for <function scale"),
        (2, "aax", r"map takes arrays, the stack has \(f64 f64 f64\[\]\)"),
    ],
)
def test_the_builder_tells_what_map_takes(arrays: int, operands: str, message: str) -> None:
    program = Program()
    scale = _scaling(program)
    main = program.function("main", {"x": F64_ARRAY, "a": F64})
    for name in operands:
        main.local_get(name)
    with pytest.raises(BuildError, match=message):
        main.map(scale, arrays=arrays)
