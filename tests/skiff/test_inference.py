# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from ferryvm.skiff import parse_listing
from ferryvm.skiff.type import (
    F64,
    FLOATS,
    I32,
    I64,
    INTEGERS,
    NUMBERS,
    VALUES,
    ArrayOf,
    Unknown,
    default,
    find,
    unify,
)


def signature(text: str, name: str = "f") -> str:
    function = next(f for f in parse_listing(text).functions if f.name == name)
    return str(function.signature)


def statics(text: str) -> list[str]:
    return [f"{static.name} {static.type}" for static in parse_listing(text).statics]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(define (f x) x)", "(i64) -> (i64)"),
        ("(define (f x) (+ x 1.5))", "(f64) -> (f64)"),
        ("(define (f x) (+ x 1.5f32))", "(f32) -> (f32)"),
        ("(define (f x) (sqrt x))", "(f64) -> (f64)"),
        ("(define (f x) (< x 1.5))", "(f64) -> (i32)"),
        ("(define (f x) (print! x))", "(i64) -> ()"),
        ("(define (f x) (while x))", "(i64) -> ()"),
        ("(define (f (x f32)) (* x 2))", "(f32) -> (f32)"),
        ("(define (f x) -> i32 x)", "(i32) -> (i32)"),
        ("(define (f x) -> f32 1)", "(i64) -> (f32)"),
        ("(define (f x) x) (f 1i32)", "(i32) -> (i32)"),
        ("(f 2.5) (define (f x) x)", "(f64) -> (f64)"),
        ("(define (f x y) (if x y 1.5))", "(i64 f64) -> (f64)"),
        ("(define (f v) (+ 1i32 (array-ref v 0)))", "(i32[]) -> (i32)"),
        ("(define (f v) (array-ref v 0)) (f (make-array f32 1))", "(f32[]) -> (f32)"),
        ("(define (f v) (array-ref v 0)) (f (make-array u8 1))", "(u8[]) -> (i64)"),
        ("(define (f (v (array f32)) i) (array-ref v i))", "(f32[] i64) -> (f32)"),
        ("(define (f x) (if (< x 1) x (g x))) (define (g y) (f (- y 2.0)))", "(f64) -> (f64)"),
        ("(define (f n) (if n (g (- n 1)))) (define (g n) (f n))", "(i64) -> ()"),
        ("(define (f) (f))", "() -> (i64)"),
        ("(define (f v) (print! (array-ref v 0)) (sqrt (array-ref v 1)))", "(f64[]) -> (f64)"),
        ("(define (f) -> (array f32) (make-array f32 1))", "() -> (f32[])"),
        ("(define (f x) (select x 1.5f32 1))", "(f32) -> (f32)"),
        ("(define (f x) (i32.wrap_i64 x))", "(i64) -> (i32)"),
        ("(define (f) (if 1 (set! x 2) 3)) (define x 1)", "() -> ()"),
        ("(define (f) (define x 1) (set! x 2.5) (x))", "() -> (f64)"),
    ],
)
def test_types_of_functions_are_inferred(text: str, expected: str) -> None:
    assert signature(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(define x 1)", ["x i64"]),
        ("(define x 1.5)", ["x f64"]),
        ("(define x 1) (set! x 2i32)", ["x i32"]),
        ("(define x 0) (define (f) (set! x (+ x 0.5f32)))", ["x f32"]),
        ("(define x #t)", ["x i32"]),
        ("(define x (make-array u8 1))", ["x u8[]"]),
        ("(begin (define x 1)) (if 1 (define y 2.5))", ["x i64", "y f64"]),
        ("(let ((x 1)) (define y 2) y)", []),
    ],
)
def test_types_of_globals_are_inferred(text: str, expected: list[str]) -> None:
    assert statics(text) == expected


def test_unknowns_that_are_unified_share_what_both_allow() -> None:
    a, b = Unknown(INTEGERS), Unknown(NUMBERS)
    assert unify(a, b)
    assert not unify(b, F64)
    assert unify(b, I32)
    assert find(a) == I32


def test_a_domain_of_one_is_that_type() -> None:
    a = Unknown(frozenset({"i32", "f64"}))
    assert unify(a, Unknown(FLOATS))
    assert find(a) == F64


def test_unknowns_without_a_common_type_do_not_unify() -> None:
    assert not unify(Unknown(INTEGERS), Unknown(FLOATS))
    assert not unify(Unknown(NUMBERS), ArrayOf(I64))


def test_arrays_unify_by_their_elements() -> None:
    element = Unknown(frozenset({"u8", "f64"}))
    assert unify(ArrayOf(element), ArrayOf(F64))
    assert find(element) == F64
    assert not unify(ArrayOf(F64), ArrayOf(I64))


def test_unknowns_default_to_the_64_bit_types() -> None:
    domains = [VALUES, NUMBERS, FLOATS, frozenset({"i32", "f32"})]
    assert [default(Unknown(domain)) for domain in domains] == [I64, I64, F64, I32]
