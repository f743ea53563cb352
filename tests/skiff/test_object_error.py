# SPDX-License-Identifier: Apache-2.0
"""Faults of arrays, structs and strings, with the exact text that reports them."""

from __future__ import annotations

from collections.abc import Callable

from ferryvm.skiff.scope import FORMS

from ..tier import together

Faults = Callable[[str], list[str]]

P = "(define-struct point (x f64) (y i64))\n"
S = "(define-struct shape (x f64)) (define-struct (circle shape) (r f64))\n"

CASES = {
    # definitions of structs
    "(define-struct (a b c) x)": [f"1:1: 'define-struct' is written {FORMS['define-struct']}"],
    "(define (f) (define-struct a) 1)": [
        "1:13: a struct is defined at the top level, not inside another form"
    ],
    "(define-struct a x)\n(define-struct a y)": ["2:16: struct 'a' is already defined in line 1"],
    "(define-struct i64 x)": ["1:16: 'i64' is built in and cannot be defined"],
    "(define-struct array x) (make-array 1)": [
        "1:16: 'array' is built in and cannot be defined",
        f"1:25: 'make-array' is written {FORMS['make-array']}",
        (
            "1:37: expected the type of elements (i8 u8 i16 u16 i32 u32 i64 f32 f64, or of "
            "references), found the number '1'"
        ),
    ],
    "(define-struct 5 x)": ["1:16: expected the name of a struct, found the number '5'"],
    "(define-struct ä x) (make-ä 1 2)": [
        ("1:16: 'ä' is no name for a struct: it begins with a letter or _, and has letters, digits "
        "and _$!?*/<>=+@%&^~|-")
    ],
    "(define-struct a x.y)": [
        ("1:18: 'x.y' is no name for a field: it begins with a letter or _, and has letters, digits "
        "and _$!?*/<>=+@%&^~|-")
    ],
    "(define-struct a (x f65))": [
        ("1:21: expected a type (i32 i64 f32 f64 (array element) string anyref, or a struct), "
        "found 'f65'; did you mean 'f64'?")
    ],
    "(define-struct a (x i64 1))": ["1:18: a field is written name or (name type)"],
    "(define-struct a ((x) i64))": ["1:19: expected the name of a field, found a list"],
    "(define-struct a x (x i64))": ["1:21: struct 'a' has a field 'x' already"],
    "(define-struct a x)\n(define-struct (b a) x)": [
        "2:22: struct 'b' has a field 'x' of its parent already"
    ],
    "(define-struct (b a) x)\n(define-struct a)": [
        "1:19: the parent 'a' must be defined above its child"
    ],
    "(define-struct (b c) x)": ["1:19: expected the name of a parent struct, found 'c'"],
    "(define-struct (b b) x)": ["1:19: expected the name of a parent struct, found 'b'"],
    "(define-struct a x)\n(define (a-x v) v)": ["2:10: 'a-x' is already defined in line 1"],
    "(define a? 1)\n(define-struct a x)": ["1:9: 'a?' is already defined in line 2"],
    "(define-struct eq x)": ["1:16: 'eq?', an operation of struct 'eq', is built in"],
    "".join(f"(define-struct {f'(s{n} s{n - 1})' if n else 's0'}) " for n in range(13)): [
        "1:307: a struct has at most 11 ancestors"
    ],
    # uses of structs
    P + "(make-point 1)": ["2:1: 'make-point' takes 2 arguments, found 1: (make-point x y)"],
    P + "(point-x)": ["2:1: 'point-x' takes 1 argument, found 0: (point-x point)"],
    P + "(set-point-x! 1)": [
        "2:1: 'set-point-x!' takes 2 arguments, found 1: (set-point-x! point x)"
    ],
    P + "(point?)": ["2:1: 'point?' takes 1 argument, found 0: (point? reference)"],
    "(atomic-add! (array f64 1) 0 1)": [
        "1:14: operand 1 of 'atomic-add!' must be an array of i32, u32 or i64, found (array f64)"
    ],
    "(define xs (array f64 1)) (atomic-or! xs 0 1.5)": [
        "1:39: operand 1 of 'atomic-or!' must be an array of i32, u32 or i64, found (array f64)"
    ],
    "(atomic-add! (array u32 1) 0 1.5)": [
        "1:30: an element of (array u32) must be i64, found a float"
    ],
    P + "(make-point 1 2.5)": ["2:15: field 'y' of 'make-point' must be i64, found a float"],
    P + "(set-point-y! (make-point 1 2) 2.5)": [
        "2:32: the value of 'set-point-y!' must be i64, found a float"
    ],
    P + "(point-z (make-point 1 2))": [
        "2:2: struct 'point' has no field 'z'; its fields: x y"
    ],
    P + "(set-point-z! (make-point 1 2) 1)": [
        "2:2: struct 'point' has no field 'z'; its fields: x y"
    ],
    S + "(circle-x (make-circle 1 2))": [
        "2:2: 'x' is a field of the parent of 'circle': use 'shape-x'"
    ],
    P + "(point-x 1.5)": ["2:10: the operand of 'point-x' must be point, found a float"],
    P + '(point-x "abc")': ["2:10: the operand of 'point-x' must be point, found (array u8)"],
    P + "(define (f (r anyref)) (point-x r))": [
        ("2:33: the operand of 'point-x' must be point, found anyref; test it at run time, as in "
        "(cast point ...)")
    ],
    S + "(circle-r (make-shape 1))": [
        ("2:11: the operand of 'circle-r' must be circle, found shape; test it at run time, as in "
        "(cast circle ...)")
    ],
    P + "point-x": ["2:1: 'point-x' is a function, not a variable; a call is written (point-x)"],
    P + "(set! point-x 1)": ["2:7: 'point-x' is a function and cannot be set"],
    P + "point": ["2:1: no variable 'point'"],
    P + "(+ 1 (set-point-y! (make-point 1 2) 3))": [
        "2:6: 'set-point-y!' yields no value, and one is needed here"
    ],
    P + "(+ (make-point 1 2) 1)": ["2:4: '+' takes numbers, found point"],
    P + "(if (make-point 1 2) 1 2)": ["2:5: a condition must be an integer, found point"],
    P + "(print! (make-point 1 2))": [
        "2:9: what 'print!' prints must be a number or a string, found point"
    ],
    P + "(if 1 (throw 1) (throw (make-point 1 2)))": [
        "2:24: exceptions here are a number, found point"
    ],
    P + '(if 1 (throw "a") (throw (make-point 1 2)))': [
        "2:26: exceptions here are (array u8), found point"
    ],
    P + '(try (throw "a") (catch ((e point)) 1))': [
        "2:13: exceptions here are point, found (array u8)"
    ],
    P + "(try (try 1 (catch ((e string)) 1)) (catch ((e point)) 1))": [
        "2:46: exceptions here are (array u8), found point"
    ],
    "(try 1 (catch ((e i64 i64)) 1))": [
        "1:16: an exception's variable is written name or (name type)"
    ],
    P + "(if 1 (make-point 1 2) (array i64))": [
        "2:24: the branches of 'if' differ: point before, (array i64) here"
    ],
    # tests and casts
    P + "(is? f64 (make-point 1 2))": ["2:10: 'is?' takes a type of references, found f64"],
    P + "(cast string (make-point 1 2))": ["2:14: point is never (array u8)"],
    P + "(point? 5)": ["2:9: 'point?' takes a reference, found a number"],
    "(eq? 1 null)": ["1:6: an operand of 'eq?' must be a reference, found a number"],
    "(null? 1.5)": ["1:8: an operand of 'null?' must be a reference, found a float"],
    "(cast pont null)": [
        ("1:7: expected a type (i32 i64 f32 f64 (array element) string anyref, or a struct), "
        "found 'pont'")
    ],
    "(null)": ["1:2: a form starts with a name, found 'null'"],
    "(define null 1)": ["1:9: 'null' is built in and cannot be defined"],
    "(+ 1 null)": ["1:6: '+' takes numbers, found a reference"],
    # arrays
    "(make-array f64 1i32)": ["1:17: the length of an array must be i64, found i32"],
    "(make-array f64 1 2i64)": ["1:19: an element of (array f64) must be f64, found i64"],
    "(make-array f65 1)": [
        ("1:13: expected the type of elements (i8 u8 i16 u16 i32 u32 i64 f32 f64, or of references), "
        "found 'f65'; did you mean 'f64'?")
    ],
    "(array u8 1 2.5)": ["1:13: an element of (array u8) must be i64, found a float"],
    "(array-ref 1 2)": ["1:12: operand 1 of 'array-ref' must be an array, found a number"],
    "(array-ref (array u8 1) 0i32)": ["1:25: the index of an array must be i64, found i32"],
    "(array-copy! (array u8 1) 0 (array i8 1))": [
        "1:29: operand 3 of 'array-copy!' must be (array u8), found (array i8)"
    ],
    "(define (f v) (+ 1.5 (array-ref v 0))) (f (array u8 1))": [
        "1:33: an element of (array u8) is read as i64, and used as a float here"
    ],
    P + "(array point (make-point 1 2) 5)": [
        "2:31: an element of (array point) must be point, found a number"
    ],
    S + "(define (f (v (array shape))) v) (f (array circle))": [
        "2:37: argument 1 ('v') of 'f' must be (array shape), found (array circle)"
    ],
    # strings
    '"a\\qb"': [
        ("1:3: '\\q' is no escape in a string; there are \\n \\t \\r \\0 \\a \\b \\\\ \\\" and "
        "\\x41; (a code point in base 16)")
    ],
    '"\\xd800;"': ["1:2: 0xd800 is no code point of a character"],
    "#\\hello": [
        ("1:1: '#\\hello' is no character; there are #\\a, #\\x61 and the names alarm backspace "
        "delete escape newline null return space tab")
    ],
    '("abc")': ["1:2: a form starts with a name, found the string '\"abc\"'"],
    '(define "x" 1)': ["1:9: expected the name of a variable, found the string '\"x\"'"],
    "(write-string! 5)": ["1:16: what 'write-string!' writes must be (array u8), found a number"],
    "(print! (array i8))": [
        "1:9: what 'print!' prints must be a number or a string, found (array i8)"
    ],
}  # fmt: skip


@together("text", CASES)
def test_a_fault_is_reported_with_its_place_and_text(faults: Faults, text: str) -> None:
    assert faults(text) == CASES[text]
