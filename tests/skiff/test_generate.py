# SPDX-License-Identifier: Apache-2.0
"""The shape of the code, before the peephole: what the interpreters' speed rests on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ferryvm.listing import Line
from ferryvm.skiff import parse_listing

Code = Callable[..., list[str]]


def test_a_loop_tests_at_its_bottom_with_one_jump_a_round(code: Code) -> None:
    text = "(define (f n) (while (> n 0) (set! n (- n 1))))"
    assert code(text, "f") == [
        "jump test2",
        "top1:",
        "local.get 0",
        "i64.const 1",
        "i64.sub",
        "local.set 0",
        "test2:",
        "local.get 0",
        "i64.const 0",
        "i64.gt_s",
        "jump_if top1",
        "return 0",
    ]


def test_and_or_not_become_jumps(code: Code) -> None:
    text = "(define (f a b) (while (or (not (< a 1.5)) (and b (= a 0.0))) 1))"
    assert code(text, "f")[4:] == [
        "test2:",
        "local.get 0",
        "f64.const 4609434218613702656",
        "f64.lt",
        "jump_unless top1",
        "local.get 1",
        "i64.eqz",
        "jump_if through3",
        "local.get 0",
        "f64.const 0",
        "f64.eq",
        "jump_if top1",
        "through3:",
        "return 0",
    ]


def test_branches_of_a_function_return_where_they_end(code: Code) -> None:
    text = "(define (f n) (if (< n 2i32) n (f (- n 1))))"
    assert code(text, "f") == [
        "local.get 0",
        "i32.const 2",
        "i32.lt_s",
        "jump_unless else1",
        "local.get 0",
        "return 1",
        "else1:",
        "local.get 0",
        "i32.const 1",
        "i32.sub",
        "call f",
        "return 1",
    ]


def test_a_constant_condition_is_no_test(code: Code) -> None:
    assert code("(while #t (print! 1))") == [
        "jump test2",
        "top1:",
        "i64.const 1",
        "host print_i64",
        "test2:",
        "jump top1",
        "halt",
    ]
    assert code("(if 0 1 2)") == [
        "jump else2",
        "i64.const 1",
        "jump end1",
        "else2:",
        "i64.const 2",
        "end1:",
        "halt",
    ]


def test_enter_jit_brackets_its_forms_and_keeps_the_value(code: Code) -> None:
    assert code("(enter-jit ((print! 1) (+ 2 3)))") == [
        "enter_jit", "i64.const 1", "host print_i64",
        "i64.const 2", "i64.const 3", "i64.add", "leave_jit", "halt",
    ]  # fmt: skip


def test_a_chain_of_comparisons_computes_every_operand_once(code: Code) -> None:
    assert code("(define (g) 1) (if (< 0 (g) 9) 1 2)").count("call g") == 1
    assert "local.set 0" not in code("(define (f x) (if (< 0 x 9) 1 2))", "f")


@pytest.mark.parametrize(
    ("element", "after", "before"),
    [
        ("i8", "i64.extend_i32_s", "i32.wrap_i64"),
        ("u8", "i64.extend_i32_u", "i32.wrap_i64"),
        ("i16", "i64.extend_i32_s", "i32.wrap_i64"),
        ("u16", "i64.extend_i32_u", "i32.wrap_i64"),
        ("u32", "i64.extend_i32_u", "i32.wrap_i64"),
        ("i32", "", ""),
        ("i64", "", ""),
        ("f32", "", ""),
        ("f64", "", ""),
    ],
)
def test_narrow_elements_are_i64_and_others_what_they_are(
    code: Code, element: str, after: str, before: str
) -> None:
    found = code(f"(define v (make-array {element} 3)) (array-set! v 1 (array-ref v 0))")
    assert found[1] == f"array.new_default_{element}"
    widened = [each for each in (after, before) if each]
    assert found[3:] == [
        "static.get 0", "i64.const 1", "static.get 0", "i64.const 0", f"array.get_{element}",
        *widened, f"array.set_{element}", "halt",
    ]  # fmt: skip


def test_narrow_literal_is_narrow_at_once(code: Code) -> None:
    found = code("(array-set! (array u8) 0 -1)")
    assert found[3:] == ["i32.const 4294967295", "array.set_u8", "halt"]


def test_every_instruction_has_the_place_it_comes_from() -> None:
    text = "(define (f x) (if x (print! x) (f (+ x 1))))\n(while (f 1))\n"
    text = text.replace("(while (f 1))", "(f 1) (let ((a 1)) (enter-jit ((set! a 2))))")
    listing = parse_listing(text, "test")
    lines = [item for f in listing.functions for item in f.items if isinstance(item, Line)]
    assert all(line.position is not None and line.position.file == "test" for line in lines)


def test_a_function_named_main_is_not_where_execution_starts() -> None:
    listing = parse_listing("(define (main) 1) (main)")
    assert [function.name for function in listing.functions] == ["main_", "main"]


def test_an_empty_text_is_a_program_that_halts(code: Code) -> None:
    assert code("") == ["halt"]
