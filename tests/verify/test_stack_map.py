# SPDX-License-Identifier: Apache-2.0
"""What the verifier learns of a program that passes: stack maps, owners, frame sizes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ferryvm import Verified
from ferryvm.isa import F32, F64, I32, I64, Type

Verify = Callable[[str], Verified]
FUNCTION = " / .function f (i64 f32) -> f64 / .local i32 / f64.const 1 / return"


def stacks(verified: Verified) -> list[tuple[Type | None, ...]]:
    """The operand stack before each instruction."""
    return [verified.operand_types(pc) for pc in range(len(verified.program.code))]


def test_straight_line(verified: Verify) -> None:
    program = verified(
        ".function main / i32.const 1 / f64.const 1 / swap / dup / i64.extend_i32_s / drop / halt"
    )
    assert stacks(program) == [
        (), (I32,), (I32, F64), (F64, I32), (F64, I32, I32), (F64, I32, I64), (F64, I32),
    ]  # fmt: skip
    assert [program.depth(pc) for pc in range(7)] == [0, 1, 2, 2, 3, 3, 2]
    assert program.frame_words == (2 + 3,)


def test_call_takes_its_arguments_and_gives_its_result(verified: Verify) -> None:
    program = verified(
        ".function main / i32.const 1 / i64.const 1 / f32.const 1 / call f / halt" + FUNCTION
    )
    assert stacks(program) == [
        (),
        (I32,),
        (I32, I64),
        (I32, I64, F32),
        (I32, F64),
        (),
        (F64,),
    ]
    assert program.frame_words == (2 + 3, 2 + 1 + 1)


def test_result_of_a_call_is_the_argument_of_the_next(verified: Verify) -> None:
    program = verified(
        ".function main / call a / call b / call b / halt"
        " / .function a -> i32 / i32.const 1 / return"
        " / .function b (i32) -> i32 / local.get 0 / return"
    )
    assert stacks(program)[:4] == [(), (I32,), (I32,), (I32,)]
    assert program.frame_words == (2 + 1, 2 + 1, 2 + 1)


def test_indirect_call_takes_its_index_then_as_a_call(verified: Verify) -> None:
    program = verified(
        ".table f / .function main / i64.const 1 / f32.const 1 / i32.const 0"
        " / call_indirect (i64 f32) -> f64 / halt" + FUNCTION
    )
    assert program.operand_types(3) == (I64, F32, I32)
    assert program.operand_types(4) == (F64,)


def test_host_call_takes_arguments_and_gives_its_result(verified: Verify) -> None:
    program = verified(
        ".host h (i32 f32) -> i64 / .function main / i32.const 1 / f32.const 1 / host h / halt"
    )
    assert program.operand_types(3) == (I64,)


def test_every_target_of_a_jump_table_has_the_stack_below_the_index(verified: Verify) -> None:
    program = verified(
        ".function main / f64.const 1 / i32.const 2 / jump_table a b a / :a / drop / halt"
        " / :b / halt"
    )
    assert program.operand_types(2) == (F64, I32)
    assert [program.operand_types(pc) for pc in (3, 4, 5)] == [(F64,)] * 3
    assert [program.operand_types(pc) for pc in (6, 7, 8)] == [(F64,), (), (F64,)]


def test_loop_keeps_operands_below_it(verified: Verify) -> None:
    program = verified(
        ".function main / f32.const 1 / :a / i32.const 1 / jump_if a / i32.const 0 / jump_unless a"
        " / jump a"
    )
    assert [program.operand_types(pc) for pc in (1, 3, 5)] == [(F32,)] * 3


def test_return_may_leave_operands_behind(verified: Verify) -> None:
    program = verified(
        ".function main / call f / halt / .function f -> i64 / f32.const 1 / i64.const 1 / return"
    )
    assert program.operand_types(4) == (F32, I64)
    assert program.frame_words == (2 + 1, 2 + 2)


def test_halt_may_have_any_operands(verified: Verify) -> None:
    assert verified(".function main / i64.const 1 / halt").operand_types(1) == (I64,)


def test_unreachable_code_belongs_to_nobody_and_needs_no_types(verified: Verify) -> None:
    program = verified(
        ".function main / jump a / i64.add / call f / local.get 77 / :a / halt" + FUNCTION
    )
    reached = [program.is_reachable(pc) for pc in range(7)]
    assert reached == [True, False, False, False, True, True, True]
    assert [program.owner(pc) for pc in range(7)] == [0, -1, -1, -1, 0, 1, 1]
    assert program.operand_types(1) == ()


def test_function_that_nobody_calls_is_verified_too(verified: Verify) -> None:
    program = verified(".function main / halt" + FUNCTION)
    assert [program.owner(pc) for pc in range(3)] == [0, 1, 1]


def test_functions_may_stand_in_any_order_and_in_pieces(verified: Verify) -> None:
    program = verified(
        ".function main / jump a / :b / halt / :a / nop / jump b"
        " / .function f / jump d / :c / return / :d / jump c"
    )
    assert [program.owner(pc) for pc in range(7)] == [0, 0, 0, 0, 1, 1, 1]


def test_open_types_follow_the_stack_and_the_variable(verified: Verify) -> None:
    program = verified(
        ".static s f32 / .function main / .local f64 / local.get 0 / static.get 0 / swap / dup"
        " / i32.const 1 / select / local.set 0 / static.set 0 / halt"
    )
    assert stacks(program)[1:] == [
        (F64,), (F64, F32), (F32, F64), (F32, F64, F64), (F32, F64, F64, I32), (F32, F64), (F32,),
        (),
    ]  # fmt: skip


@pytest.mark.parametrize("deepest", [1, 2, 30])
def test_frame_counts_the_deepest_operands_wherever_they_are(
    verified: Verify, deepest: int
) -> None:
    pushes = " / ".join(["i64.const 1"] * deepest + ["drop"] * deepest)
    program = verified(f".function main / .local i32 i32 / {pushes} / i64.const 1 / halt")
    assert program.frame_words == (2 + 2 + deepest,)
