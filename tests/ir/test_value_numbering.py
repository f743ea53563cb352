# SPDX-License-Identifier: Apache-2.0
"""Value numbering: equal computations are one where one comes before the other on every way."""

from __future__ import annotations

import pytest

from ferryvm.ir.passes.value_numbering import number_values

from .change import changed


def test_constants_are_folded_and_identities_applied() -> None:
    assert changed(
        number_values,
        """
entry @0 ():
  %0: i64 = word 2
  %1: i64 = add i64 i64:2, i64:3
  %2: i64 = add i64 %0, i64:0
  %3: i64 = add i64 %2, %1
  return %3
""",
    ) == (
        """
entry @0 ():
  %0: i64 = word 2
  %1: i64 = add i64 %0, i64:5
  return %1
"""
    )


def test_an_equal_operation_in_a_dominating_block_is_used() -> None:
    text = changed(
        number_values,
        """
entry @0 ():
  %0: i64 = word 2
  %1: i64 = mul i64 %0, %0
  %2: boolean = compare i64 eq %1, %0
  branch %2 b1() b2()
b1 @1 ():
  %3: i64 = mul i64 %0, %0
  return %3
b2 @2 ():
  %4: i64 = frame
  return %4
""",
    )
    assert text.count("mul") == 1
    assert "b1 @1 ():\n  return %1\n" in text


def test_operations_of_two_sides_stay_where_they_are() -> None:
    text = """
entry @0 ():
  %0: i64 = word 2
  %1: boolean = compare i64 eq %0, i64:7
  branch %1 b1() b2()
b1 @1 ():
  %2: i64 = mul i64 %0, %0
  return %2
b2 @2 ():
  %3: i64 = mul i64 %0, %0
  return %3
"""
    assert changed(number_values, text) == text


def test_edges_and_states_name_what_is_left() -> None:
    text = changed(
        number_values,
        """
entry @0 ():
  %0: i64 = word 2
  %1: i64 = mul i64 %0, %0
  %2: i64 = mul i64 %0, %0
  pay 1 1 @0 [_ _ %2] {s0=%2 hp=%2}
  jump b1(%2)
b1 @1 (%3: i64):
  leave @1 [_ _ %2]
""",
    )
    assert "pay 1 1 @0 [_ _ %1] {s0=%1 hp=%1}\n  jump b1(%1)\n" in text
    assert "leave @1 [_ _ %1]\n" in text


def test_a_load_is_repeated_only_after_a_store_or_a_call() -> None:
    text = changed(
        number_values,
        """
entry @0 ():
  %0: i64 = word 2
  %1: i64 = heap_load 8 %0
  %2: i64 = heap_load 8 %0
  %3: i64 = heap_load 4 %0
  set_static 0 %2
  set_heap_pointer %2
  %4: i64 = heap_load 8 %0
  heap_store 1 %1, %4
  %5: i64 = heap_load 8 %0
  call_indirect () 3 %5 @0 [_ _ %4 i64:0 i64:0]
  %6: i64 = heap_load 8 %0
  %7: i64 = add i64 %5, %6
  %8: i64 = add i64 %7, %3
  return %8
""",
    )
    assert text.count("heap_load 8") == 3
    assert text.count("heap_load 4") == 1


@pytest.mark.parametrize(
    ("change", "loads"),
    [
        ("element_store i32 %0, %0, %1", 1),
        ("heap_store 8 %0, %0", 1),
        ("element_store i64 %0, %0, %1", 2),
        ("fill_elements i64 %0, %0, %1, %1", 2),
        ("move_elements i64 %0, %0, %1, %1, %1", 2),
        ("elements_from_heap i64 %0, %0, %1, %1", 2),
        ("canonicalise_elements f64 %0, %0, %9", 1),
        ("call_indirect () 3 %1 @0 [_ _ %0 i64:0 i64:0]", 2),
    ],
)
def test_an_element_is_loaded_again_after_a_store_to_its_kind(change: str, loads: int) -> None:
    text = f"""
entry @0 ():
  %0: i64 = word 2
  %9: f64 = word 3
  %1: i64 = element_load i64 %0, %0
  %2: i64 = element_load i64 %0, %1
  {change}
  %3: i64 = element_load i64 %0, %0
  %4: i64 = element_load i32 %0, %0
  %5: i64 = add i64 %2, %3
  %6: i64 = add i64 %5, %4
  return %6
"""
    found = changed(number_values, text)
    assert found.count("element_load i64 %0, %0") == loads
    assert found.count("element_load i32") == 1


LOOP = """
entry @0 ():
  %0: i64 = word 2
  %1: i64 = heap_load 8 %0
  jump b1(i64:0)
b1 @1 (%2: i64):
  %3: i64 = heap_load 8 %0
  %4: i64 = add i64 %2, %3
  %5: boolean = compare i64 lt_s %4, %1
  branch %5 b2() b3()
b2 @2 ():
  STORE
  poll @1 [_ _ %4]
  jump b1(%4)^
b3 @3 ():
  %6: i64 = heap_load 8 %0
  return %6
"""


def test_a_load_in_a_loop_that_changes_nothing_is_that_before_it() -> None:
    text = changed(number_values, LOOP.replace("STORE", "set_static 0 %4"))
    assert text.count("heap_load") == 1


def test_a_load_in_a_loop_that_stores_is_done_each_time() -> None:
    text = changed(number_values, LOOP.replace("STORE", "heap_store 8 %4, %4"))
    assert text.count("heap_load") == 2
    assert "b3 @3 ():\n  return %3\n" in text


def test_a_load_after_a_store_on_one_of_two_ways_is_done_again() -> None:
    text = """
entry @0 ():
  %0: i64 = word 2
  %1: i64 = heap_load 8 %0
  %2: boolean = compare i64 eq %1, %0
  branch %2 b1() b2()
b1 @1 ():
  heap_store 8 %0, %0
  jump b2()
b2 @2 ():
  %3: i64 = heap_load 8 %0
  return %3
"""
    assert changed(number_values, text) == text


def test_checks_that_cannot_fail_are_gone() -> None:
    text = changed(
        number_values,
        """
entry @0 ():
  %0: boolean = compare i64 eq i64:1, i64:2
  trap_if UNREACHABLE %0 @0 [_ _]
  grow_if %0, i64:8 @0 [_ _]
  guard 0 %0 @0 [_ _]
  leave @0 [_ _]
""",
    )
    assert text == "\nentry @0 ():\n  leave @0 [_ _]\n"


def test_header_words_are_the_same_across_stores_and_calls() -> None:
    text = changed(
        number_values,
        """
entry @0 ():
  %0: i64 = word 2
  %1: i64 = header_word 1 %0
  %2: i64 = header_word 2 %0
  element_store f64 %2, i64:0, %1
  field_store 14 0 %0, %1
  heap_store 8 i64:0, %1
  %3: i64 = header_word 1 %0
  return %3
""",
    )
    assert text.count("header_word 1") == 1
    assert "return %1" in text


def test_fields_and_elements_are_loaded_again() -> None:
    text = """
entry @0 ():
  %0: i64 = word 2
  %1: i64 = field_load 14 1 %0
  field_store 14 1 %0, %0
  %2: i64 = field_load 14 1 %0
  %3: i64 = element_load 15 %0, %1
  element_store 15 %0, %1, %2
  %4: i64 = element_load 15 %0, %1
  %5: i64 = bit_xor i64 %3, %4
  return %5
"""
    assert changed(number_values, text) == text


def test_what_a_cast_yields_is_another_value_than_its_operand() -> None:
    text = """
entry @0 ():
  %0: i64 = word 2
  %1: i64 = cast 14 %0
  %2: i64 = header_word 0 %0
  %3: i64 = header_word 0 %1
  %4: i64 = bit_xor i64 %2, %3
  return %4
"""
    assert changed(number_values, text) == text


def test_a_new_object_is_not_null_and_its_header_is_known() -> None:
    text = changed(
        number_values,
        """
entry @0 ():
  %0: i64 = word 2
  %1: i64 = object_top
  %2: boolean = compare i64 eq %1, i64:0
  set_header_word 0 %1, i64:25
  set_header_word 1 %1, %0
  %3: i64 = header_word 0 %1
  %4: i64 = header_word 1 %1
  %5: i64 = add i64 %3, %4
  %6: i64 = select %2, %0, %5
  return %6
""",
    )
    assert "= header_word" not in text
    assert "add i64 %0, i64:25" in text
    assert "compare" not in text
