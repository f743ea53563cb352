# SPDX-License-Identifier: Apache-2.0
"""What nobody needs is removed, and nothing else."""

from __future__ import annotations

from ferryvm.ir.passes.dead_code import remove_dead_code

from .change import changed


def test_a_parameter_with_one_value_is_that_value() -> None:
    text = """
entry @0 ():
  %0: i64 = word 2
  jump b1(%0, i64:0)
b1 @1 (%1: i64, %2: i64):
  %3: i64 = add i64 %2, i64:1
  %4: boolean = compare i64 lt_s %3, %1
  branch %4 b2() b3()
b2 @1 ():
  poll @1 [_ _ %1]
  jump b1(%1, %3)^
b3 @2 ():
  return %1
"""
    after = changed(remove_dead_code, text)
    assert "b1 @1 (%1: i64):" in after
    assert "return %0" in after
    assert "poll @1 [_ _ %0]" in after


def test_a_parameter_that_only_feeds_itself_is_removed() -> None:
    text = """
entry @0 ():
  %0: i64 = word 2
  jump b1(%0)
b1 @1 (%1: i64):
  %2: i64 = add i64 %1, i64:1
  %3: boolean = compare i64 lt_s %0, i64:9
  branch %3 b2() b3()
b2 @1 ():
  poll @1 [_ _]
  jump b1(%2)^
b3 @2 ():
  leave @2 [_ _]
"""
    after = changed(remove_dead_code, text)
    assert "add" not in after
    assert "b1 @1 ():" in after


def test_what_has_an_effect_or_stands_in_a_state_stays() -> None:
    text = """
entry @0 ():
  %0: i64 = word 2
  %1: i64 = heap_load 8 %0
  %2: i64 = mul i64 %0, %0
  heap_store 8 %0, %2
  %4: i64 = update_element i64 add %0, i64:0, %2
  %5: i64 = compare_exchange_element u32 %0, i64:0, %2, %2
  %3: i64 = mul i64 %0, i64:3
  pay 1 1 @0 [_ _ %3]
  leave @0 [_ _]
"""
    after = changed(remove_dead_code, text)
    assert "heap_load" not in after
    assert after.count("mul") == 2
    assert "heap_store" in after
    assert "update_element i64 add" in after
    assert "compare_exchange_element u32" in after


def test_a_value_that_only_states_name_is_kept_up_to_date() -> None:
    text = """
entry @0 ():
  %0: f64 = word 2
  %1: f64 = fadd f64 %0, %0
  jump b1(%1)
b1 @1 (%2: f64):
  leave @1 [_ _ canonical(%2)]
"""
    assert "leave @1 [_ _ canonical(%1)]" in changed(remove_dead_code, text)


def test_of_parameters_with_the_same_arguments_one_is_left() -> None:
    text = """
entry @0 ():
  %0: i64 = word 2
  jump b1(i64:0, i64:0, %0, i64:0)
b1 @1 (%1: i64, %2: i64, %3: i64, %4: i64):
  %5: i64 = add i64 %1, i64:1
  %6: boolean = compare i64 lt_s %5, %3
  branch %6 b2() b3()
b2 @1 ():
  poll @1 [_ _ %2 %4]
  jump b1(%5, %5, %3, %1)^
b3 @2 ():
  leave @2 [_ _ %2 %4]
"""
    after = changed(remove_dead_code, text)
    assert "b1 @1 (%1: i64, %2: i64):" in after
    assert "leave @2 [_ _ %1 %2]" in after
