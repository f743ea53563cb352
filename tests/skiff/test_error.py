# SPDX-License-Identifier: Apache-2.0
"""Every kind of fault, with the exact text that reports it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ferryvm.errors import SourceError
from ferryvm.skiff import parse_listing
from ferryvm.skiff.scope import FORMS

from ..tier import together

Faults = Callable[[str], list[str]]

CASES = {
    # reading
    "(print! 1": ["1:1: '(' is never closed"],
    "(define (f)\n  (if 1 2\n(f) (g)": ["2:3: '(' is never closed", "3:6: no function 'g'"],
    "(define (f\n(f 1)": ["1:9: '(' is never closed"],
    "(define x (+ 1\n(print! x)": ["1:11: '(' is never closed"],
    "1)": ["1:2: ')' closes nothing"],
    "#| a": ["1:1: the comment '#|' is never closed with '|#'"],
    "|# a": ["1:1: '|#' closes no comment", "1:4: no variable 'a'"],
    '"a b': ["1:1: the string has no end in its line; a line end in it is written \\n"],
    "[": ["1:1: unexpected character '['"],
    # atoms
    "12ab": ["1:1: '12ab' is not a number"],
    "#true": ["1:1: '#true' is not a literal; #t and #f are"],
    "while": ["1:1: 'while' is built in and has no value"],
    "(define total 1) totl": ["1:18: no variable 'totl'; did you mean 'total'?"],
    "(print! x) (define x 1)": ["1:9: 'x' is used before its definition in line 1"],
    "(x)\n(define x 1)": ["1:2: 'x' is used before its definition in line 2"],
    "(define (f) 1) f": ["1:16: 'f' is a function, not a variable; a call is written (f)"],
    "3000000000i32": ["1:1: 3000000000i32 does not fit i32 (-2147483648 to 2147483647)"],
    "0x1ffffffffi32": ["1:1: 0x1ffffffffi32 does not fit i32 (-2147483648 to 4294967295)"],
    "(+ 1i32 3000000000)": ["1:9: 3000000000 does not fit i32 (-2147483648 to 2147483647)"],
    "9223372036854775808": [
        "1:1: 9223372036854775808 does not fit i64 (-9223372036854775808 to 9223372036854775807)"
    ],
    "1e999": ["1:1: 1e999 is too large for f64"],
    "1e39f32": ["1:1: 1e39f32 is too large for f32"],
    # applications
    "()": ["1:1: an empty form '()' means nothing"],
    "(1 2)": ["1:2: a form starts with a name, found the number '1'"],
    "((f))": ["1:2: a form starts with a name, found a list"],
    "(prnt! 1)": ["1:2: no function 'prnt!'; did you mean 'print!'?"],
    "(define x 1) (x 2)": ["1:15: 'x' is a variable, not a function"],
    "(define (f a b) a) (f 1)": ["1:20: 'f' takes 2 arguments, found 1: (f a b)"],
    "(define (f) 1) (f 1)": ["1:16: 'f' takes 0 arguments, found 1: (f)"],
    "(define (f (x f32)) x) (f 1i32)": ["1:27: argument 1 ('x') of 'f' must be f32, found i32"],
    "(define (f x) (sqrt x)) (f 1i64)": [
        "1:28: argument 1 ('x') of 'f' must be a float, found i64"
    ],
    # definitions
    "(define-constant A (/ 1 0))": ["1:20: a constant is divided by zero"],
    "(define-constant A (+ 1.5 1))": [
        "1:20: '+' of a constant takes integers without a suffix, found 1.5"
    ],
    "(define x 1) (define-constant A x)": [
        "1:33: a constant is a number, a character, or + - * / % of constant integers"
    ],
    "(define-constant A 1) (set! A 2)": ["1:29: 'A' is a constant and cannot be set"],
    "(define-constant A 1) (A 1)": ["1:24: 'A' is a constant, not a function"],
    "(define-constant A (* 0xffffffff 0xffffffff 2))": [
        "1:20: '*' of a constant takes 2 or more integers below 2^64"
    ],
    "A (define-constant A 1)": ["1:1: 'A' is used before its definition in line 1"],
    "(define (f) (define-constant A 1) 1)": [
        "1:13: a constant is defined at the top level, not inside another form"
    ],
    "(define x 1)\n(define x 2)": ["2:9: 'x' is already defined in line 1"],
    "(define (f) 1)\n(define f 2)": ["2:9: 'f' is already defined in line 1"],
    "(define (f) 1)\n(define (f) 2)": ["2:10: 'f' is already defined in line 1"],
    "(define (f x) (define x 1) x)": ["1:23: 'x' is already defined in line 1"],
    "(let ((a 1) (a 2)) a)": ["1:14: 'a' is already defined in line 1"],
    "(define (f a a) a)": ["1:14: two parameters are named 'a'"],
    "(define max 1)": ["1:9: 'max' is built in and cannot be defined"],
    "(define 5 1)": ["1:9: expected the name of a variable, found the number '5'"],
    "(define 5x 1)": ["1:9: expected the name of a variable, found '5x'"],
    "(define (f 5) 1)": ["1:12: expected the name of a parameter, found the number '5'"],
    "(define (f (x)) 1)": ["1:12: a parameter is written name or (name type)"],
    "(define (f (x f65)) 1)": [
        (
            "1:15: expected a type (i32 i64 f32 f64 (array element) string anyref, or a struct), "
            "found 'f65'; did you mean 'f64'?"
        )
    ],
    "(define (f))": ["1:10: function 'f' has no body"],
    "(define (f) ->)": [
        "1:10: function 'f' has no body",
        "1:13: expected the result's type after '->'",
    ],
    "(define (f) (define (g) 1) 1)": [
        "1:13: a function is defined at the top level, not inside another form"
    ],
    "(define (f) -> f64 1i32)": ["1:20: 'f' returns f64 as stated, but its last form is i32"],
    "(define (f) -> f64 (while 0))": [
        "1:20: 'f' returns f64 as stated, but its last form yields no value"
    ],
    "(set! x 1)": ["1:7: no variable 'x'"],
    "(define (f) 1) (set! f 2)": ["1:22: 'f' is a function and cannot be set"],
    "(define x 1i32) (set! x 2.5)": ["1:25: 'x' is i32, found a float"],
    # types
    "(+ 1i32 2i64)": [
        "1:9: the operands of '+' differ: i32 before, i64 here; convert one, as in (i32 ...)"
    ],
    "(+ 1.5 2i64)": [
        "1:8: the operands of '+' differ: a float before, i64 here; convert one, as in (f64 ...)"
    ],
    "(& 1.5 2)": ["1:4: '&' takes integers, found a float"],
    "(min 1i32 2)": ["1:6: 'min' takes floats, found i32"],
    "(- (make-array f64 1))": ["1:4: '-' takes numbers, found (array f64)"],
    "(f32 (make-array f64 1))": ["1:6: 'f32' takes numbers, found (array f64)"],
    "(make-vector f64 1)": [
        "1:2: no function 'make-vector'",
        "1:14: 'f64' is built in and has no value",
    ],
    "(while 1.5)": ["1:8: a condition must be an integer, found a float"],
    "(not 1.5)": ["1:6: a condition must be an integer, found a float"],
    "(write-byte! 1i64)": ["1:14: what 'write-byte!' writes must be i32, found i64"],
    "(print! (if 1 2i32 2.5))": ["1:20: the branches of 'if' differ: i32 before, a float here"],
    "(+ 1 (set! x 2))(define x 1)": ["1:12: 'x' is used before its definition in line 1"],
    "(define x 1) (+ 1 (set! x 2))": ["1:19: 'set!' yields no value, and one is needed here"],
    "(+ 1 (if 1 2))": ["1:6: 'if' without else yields no value, and one is needed here"],
    "(+ 1 (begin))": ["1:6: 'begin' yields no value, and one is needed here"],
    "(define (f) (while 0)) (+ 1 (f))": ["1:29: 'f' yields no value, and one is needed here"],
    "(print! (g)) (define (g) (while 0))": [
        "1:26: 'g' is used as a value, but its last form yields no value"
    ],
    # operators and instructions
    "(+)": ["1:1: '+' takes at least 1 operand, found 0"],
    "(% 1)": ["1:1: '%' takes 2 operands, found 1"],
    "(< 1)": ["1:1: '<' takes at least 2 operands, found 1"],
    "(i32 1 2)": ["1:1: 'i32' takes 1 operand, found 2"],
    "(i64.rotl 1.5 2)": ["1:11: operand 1 of 'i64.rotl' must be i64, found a float"],
    "(i64.rotl 1)": ["1:1: 'i64.rotl' takes 2 operands, found 1"],
    "(i64.load 0)": [
        "1:1: 'i64.load' takes the unsigned 32-bit byte offset and 1 operand, found 1"
    ],
    "(i64.load (+ 1 2) 0)": [
        "1:11: 'i64.load' takes the unsigned 32-bit byte offset first, found a list"
    ],
    "(i64.load -1 0)": ["1:11: '-1' is not an unsigned 32-bit byte offset (0 to 4294967295)"],
    "(i32.const 1.5)": ["1:12: 'i32.const' takes the i32 literal, found '1.5'"],
    "(i64.rotr 1 2 3)": ["1:1: 'i64.rotr' takes 2 operands, found 3"],
    "(i64.rotk 1 2)": ["1:2: no function 'i64.rotk'; did you mean 'i64.rotr'?"],
    # special forms
    "(let (a) 1)": ["1:7: a binding of 'let' is written (name value)"],
    "(cond (1))": ["1:7: a clause of 'cond' is written (condition form ...) or (else form ...)"],
    "(cond (else 1) (1 2))": ["1:8: 'else' must be the last clause of 'cond'"],
    "(try 1 (catch e 2))": [f"1:1: 'try' is written {FORMS['try']}"],
    "(try (catch (e) 2) 1)": [f"1:1: 'try' is written {FORMS['try']}"],
    "(begin (throw 1i32) (throw 2.5))": ["1:28: exceptions here are i32, found a float"],
    "(+ 1i32 (try 1i64 (catch (e) 2.5)))": ["1:19: 'try' is i64, its handler is a float"],
    "(enter-jit (while 0))": [f"1:1: 'enter-jit' is written {FORMS['enter-jit']}"],
    "(enter-jit (begin) (begin))": [f"1:1: 'enter-jit' is written {FORMS['enter-jit']}"],
}


@together("text", CASES)
def test_a_fault_is_reported_with_its_place_and_text(faults: Faults, text: str) -> None:
    assert faults(text) == CASES[text]


MISUSED = {
    "host-function": "(host-function f)",
    "define": "(define x)",
    "set!": "(set! 5 1)",
    "if": "(if 1)",
    "cond": "(cond)",
    "barrier": "(barrier 1)",
    "while": "(while)",
    "for-each-item": "(for-each-item 1)",
    "for-each-group": "(for-each-group (1 2 3) (f))",
    "map": "(map +)",
    "map!": "(map! 1 +)",
    "reduce": "(reduce +)",
    "scan": "(scan +)",
    "group-reduce": "(group-reduce + 1 0)",
    "group-scan": "(group-scan +)",
    "group-scan-before": "(group-scan-before + 1)",
    "group-broadcast": "(group-broadcast 1 0 null)",
    "let": "(let)",
    "throw": "(throw)",
    "try": "(try 1)",
    "and": "(and)",
    "or": "(or)",
    "not": "(not)",
    "write-byte!": "(write-byte!)",
    "enter-jit": "(enter-jit)",
    "define-constant": "(define-constant a)",
    "define-struct": "(define-struct)",
    "write-string!": "(write-string!)",
    "eq?": "(eq? 1)",
    "null?": "(null?)",
    "is?": "(is? i31ref)",
    "cast": "(cast i31ref)",
    "make-array": "(make-array i64)",
    "array": "(array)",
    "array-ref": "(array-ref null)",
    "array-set!": "(array-set! null 1)",
    "array-length": "(array-length)",
    "array-fill!": "(array-fill! null 1 2 3 4)",
    "array-copy": "(array-copy)",
    "array-copy!": "(array-copy! null 1)",
    "array-append": "(array-append null)",
    "array=?": "(array=? null)",
    "index-2d": "(index-2d 1 2 3)",
    **{
        f"atomic-{name}!": f"(atomic-{name}! null 1)"
        for verb in ("add", "min", "max", "and", "or")
        for name in (verb, f"fetch-{verb}")
    },
    "atomic-exchange!": "(atomic-exchange! null 1 2 3)",
    "atomic-compare-exchange!": "(atomic-compare-exchange! null 1 2)",
}


@pytest.mark.parametrize("name", MISUSED)
def test_a_misused_form_is_reported_with_how_it_is_written(faults: Faults, name: str) -> None:
    assert faults(MISUSED[name]) == [f"1:1: '{name}' is written {FORMS[name]}"]


def test_every_special_form_that_can_be_misused_is_in_the_list() -> None:
    assert set(FORMS) - set(MISUSED) == {"begin", "print!"}


def test_faults_show_the_line_and_a_caret() -> None:
    with pytest.raises(SourceError) as caught:
        parse_listing("(define total 0)\n\t(set! totl (+ total 1))\r\n", "sum.skiff")
    assert str(caught.value) == (
        "sum.skiff:2:8: no variable 'totl'; did you mean 'total'?\n"
        "    \t(set! totl (+ total 1))\n"
        "    \t      ^^^^"
    )


def test_faults_of_all_phases_are_reported_at_once_in_the_order_of_the_text(faults: Faults) -> None:
    text = "(define (f x) (sqrt x))\n(f 1i32)\n(g)\n(if)\n(& 1 y)\n1i32 (\n"
    assert [fault.split(" ")[0] for fault in faults(text)] == [
        "2:4:",
        "3:2:",
        "4:1:",
        "5:6:",
        "6:6:",
    ]


def test_a_fault_causes_no_further_faults(faults: Faults) -> None:
    text = "(define x (unknown)) (define (f a) (+ a x)) (+ (f 1.5) (f 2.5) (sqrt (& x 1)))"
    assert faults(text) == [
        "1:12: no function 'unknown'",
        "1:73: '&' takes integers, found a float",
    ]


@pytest.mark.parametrize(
    "text",
    ["(" * 10_000, "(" * 10_000 + ")" * 10_000, "(+ 1 " * 10_000],
    ids=["open", "closed", "sums"],
)
def test_nesting_too_deep_is_one_fault(faults: Faults, text: str) -> None:
    found = faults(text)
    assert len(found) == 1
    assert found[0].endswith("more than 100 parentheses are open here")


def test_the_example_of_the_reference_is_reported_as_it_says() -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "skiff.md"
    _, _, chapter = page.read_text(encoding="utf-8").partition("\n## Errors\n")
    _, text, rest = chapter.split("```\n", 2)
    report = rest.split("\n\n")[0].strip("\n")
    with pytest.raises(SourceError) as caught:
        parse_listing(text, "sum.skiff")
    assert (
        "\n".join("    " + line for line in str(caught.value).split("\n"))
        == "    " + report.strip()
    )
