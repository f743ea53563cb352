# SPDX-License-Identifier: Apache-2.0
"""Jump threading: ways of control get shorter, loops keep their heads and polls."""

from __future__ import annotations

from ferryvm.ir.passes.jump_threading import thread_jumps

from .change import changed


def test_a_branch_on_a_constant_is_a_jump_and_unreached_blocks_are_gone() -> None:
    text = """
entry @0 ():
  branch false b1() b2()
b1 @1 ():
  leave @1 [_ _]
b2 @2 ():
  switch i64:7 b3() b4()
b3 @3 ():
  leave @3 [_ _]
b4 @4 ():
  leave @4 [_ _]
"""
    assert changed(thread_jumps, text) == "\nentry @0 ():\n  leave @4 [_ _]\n"


def test_a_branch_to_one_place_is_a_jump() -> None:
    text = """
entry @0 ():
  %0: boolean = compare i64 eq i64:1, i64:2
  branch %0 b1(i64:3) b1(i64:3)
b1 @1 (%1: i64):
  leave @1 [_ _ %1]
"""
    assert "branch" not in changed(thread_jumps, text)


def test_a_block_is_joined_to_the_only_one_before_it() -> None:
    text = """
entry @0 ():
  %0: i64 = word 2
  jump b1(%0)
b1 @1 (%1: i64):
  %2: i64 = add i64 %1, %1
  jump b2(%2)
b2 @2 (%3: i64):
  pay 1 1 @2 [_ _ %1]
  return %3
"""
    assert changed(thread_jumps, text) == (
        """
entry @0 ():
  %0: i64 = word 2
  %1: i64 = add i64 %0, %0
  pay 1 1 @2 [_ _ %0]
  return %1
"""
    )


TWO_WAYS = """
entry @0 ():
  %0: i64 = word 2
  %1: boolean = compare i64 eq %0, i64:1
  branch %1 b1() b2()
b1 @1 ():
  heap_store 8 %0, %0
  jump b3({first})
b2 @2 ():
  %2: boolean = compare i64 eq %0, i64:2
  %3: i32 = boolean_to_i32 %2
  jump b3({second})
b3 @3 (%4: i32):
  %5: boolean = compare i32 ne %4, i32:0
  branch %5 b4() b5(%4)
b4 @4 ():
  leave @4 [_ _ %0]
b5 @5 (%6: i32):
  leave @5 [_ _ %6]
"""


def test_a_way_on_which_a_branch_is_decided_passes_it_by() -> None:
    after = changed(thread_jumps, TWO_WAYS.format(first="i32:1", second="i32:0"))
    assert after.count("branch") == 1
    assert "heap_store 8 %0, %0\n  leave @4 [_ _ %0]\n" in after
    assert "leave @5 [_ _ i32:0]\n" in after


def test_a_way_on_which_the_condition_exists_branches_on_it() -> None:
    after = changed(thread_jumps, TWO_WAYS.format(first="i32:1", second="%3"))
    assert after.count("branch") == 2
    assert "%3: i32 = boolean_to_i32 %2\n  branch %2 b4() b5(%3)\n" in after
    assert "b3" not in after


def test_a_block_whose_values_others_use_is_not_passed_by() -> None:
    text = TWO_WAYS.format(first="i32:1", second="i32:0").replace(
        "leave @4 [_ _ %0]", "leave @4 [_ _ %4]"
    )
    assert "b3 @3 (%4: i32):" in changed(thread_jumps, text)


def test_the_head_of_a_loop_is_not_passed_by() -> None:
    text = """
entry @0 ():
  %0: i64 = word 2
  jump b1(true)
b1 @1 (%1: boolean):
  branch %1 b2() b3()
b2 @2 ():
  %2: boolean = compare i64 eq %0, i64:1
  poll @1 [_ _ %0]
  jump b1(%2)^
b3 @3 ():
  leave @3 [_ _ %0]
"""
    assert changed(thread_jumps, text) == text


def test_a_block_that_only_jumps_is_passed_by_wherever_control_comes_from() -> None:
    text = """
entry @0 ():
  %0: i64 = word 2
  %1: boolean = compare i64 eq %0, i64:1
  branch %1 b1(%0) b2()
b1 @1 (%2: i64):
  jump b3(%2)
b2 @2 ():
  jump b3(i64:5)
b3 @3 (%3: i64):
  return %3
"""
    after = changed(thread_jumps, text)
    assert "branch %1 b3(%0) b3(i64:5)\nb3 @3 (%2: i64):\n" in after


def test_it_says_whether_anything_changed() -> None:
    found: list[bool] = []
    text = "\nentry @0 ():\n  jump b1()\nb1 @1 ():\n  leave @1 [_ _]\n"

    def twice(body: object) -> None:
        found.extend(thread_jumps(body) for _ in range(2))  # type: ignore[arg-type]  # a Body

    changed(twice, text)
    assert found == [True, False]
