# SPDX-License-Identifier: Apache-2.0
"""Floats that are stored close to each other are made canonical together, where nothing can
tell."""

from __future__ import annotations

import pytest

from ferryvm.ir.passes.nan_check import combine_nan_checks

from .change import changed

STORES = """
entry @0 ():
  %0: i64 = word 2
  %1: f64 = word 3
  %2: f64 = fadd f64 %1, %1
  %3: f64 = canonical f64 %2
  %4: i64 = reinterpret i64 f64 %3
  heap_store 8 i64:0, %4
  heap_store 8 i64:8, %4
  {between}
  heap_store 8 i64:16, %4
  return %0
"""

BLIND = {
    "statics": "set_static 0 %1",
    "an operand of arithmetic": """%5: i64 = heap_load 8 i64:8
  %6: f64 = reinterpret f64 i64 %5
  %7: f64 = fmul f64 %6, %1
  set_static 0 %7""",
    "an operand of a comparison": """%5: i64 = heap_load 8 i64:8
  %6: f64 = reinterpret f64 i64 %5
  %7: boolean = compare f64 lt %6, %1
  %8: i64 = select %7, %0, i64:1
  set_static 0 %8""",
}

SEES = {
    "bits": "%5: i64 = heap_load 8 i64:8\n  set_static 0 %5",
    "a part of a NaN, perhaps": """%5: i64 = heap_load 8 %0
  %6: f64 = reinterpret f64 i64 %5
  %7: f64 = fmul f64 %6, %1
  set_static 0 %7""",
    "half a NaN": """%5: i64 = heap_load 4 i64:8
  %6: i32 = wrap %5
  %7: f32 = reinterpret f32 i32 %6
  %8: f32 = fsqrt f32 %7
  set_static 0 %8""",
    "half of what is loaded": """%5: i64 = heap_load 8 i64:8
  %6: i32 = wrap %5
  %7: f32 = reinterpret f32 i32 %6
  %8: f32 = fsqrt f32 %7
  set_static 0 %8""",
    "bits of a float": """%5: i64 = heap_load 8 i64:8
  %6: f64 = reinterpret f64 i64 %5
  set_static 0 %6""",
    "bits of one that may be chosen": """%5: i64 = heap_load 8 i64:8
  %6: f64 = reinterpret f64 i64 %5
  %7: boolean = compare f64 lt %1, %1
  %8: f64 = select %7, %6, %1
  set_static 0 %8""",
    "bits that are compared": """%5: i64 = heap_load 8 i64:8
  %6: boolean = compare i64 lt_s %5, %0
  %7: i64 = select %6, %0, i64:1
  set_static 0 %7""",
    "bits in a state": """%5: i64 = heap_load 8 i64:8
  %6: f64 = reinterpret f64 i64 %5
  poll @0 [_ _ %0 %6]""",
    "who goes on": "poll @0 [_ _ %0 %1]",
    "a store of something else": "heap_store 8 i64:8, %0",
    "a store of a part": "heap_store 4 i64:8, %4",
}


@pytest.mark.parametrize("between", BLIND)
def test_stores_are_raw_if_nothing_between_them_can_tell(between: str) -> None:
    after = changed(combine_nan_checks, STORES.format(between=BLIND[between]))
    assert "canonicalise f64 i64:0, %2, i64:8, %2, i64:16, %2\n  return" in after
    assert "canonical f64" not in after


@pytest.mark.parametrize("between", SEES)
def test_stores_stay_as_they_are_if_something_between_them_can_tell(between: str) -> None:
    assert "canonicalise" not in changed(combine_nan_checks, STORES.format(between=SEES[between]))


def test_a_group_ends_in_front_of_what_can_tell() -> None:
    text = STORES.format(between=f"heap_store 8 i64:24, %4\n  {SEES['bits']}")
    after = changed(combine_nan_checks, text)
    begin, end = after.split("  canonicalise f64 i64:0, %2, i64:8, %2, i64:24, %2\n")
    assert begin.count("heap_store") == 3
    assert "heap_load 8 i64:8\n" in end
    assert "canonical f64 %2" in begin  # for the store behind the load, which is alone


def test_floats_of_two_sizes_are_two_groups() -> None:
    half = """%5: f32 = demote %2
  %6: f32 = canonical f32 %5
  %7: i32 = reinterpret i32 f32 %6
  %8: i64 = extend_u %7
  heap_store 8 i64:24, %4
  heap_store 4 i64:32, %8
  heap_store 4 i64:36, %8
  heap_store 4 i64:40, %8"""
    after = changed(combine_nan_checks, STORES.format(between=half))
    assert "canonicalise f64 i64:0, %2, i64:8, %2, i64:24, %2\n" in after
    assert after.count("canonicalise f32 i64:32, ") == 1
    assert after.index("canonicalise f64") < after.index("heap_store 4")


def test_what_is_canonical_elsewhere_stays_so() -> None:
    after = changed(combine_nan_checks, STORES.format(between="set_static 0 %3"))
    assert "canonicalise" in after
    assert "%3: f64 = canonical f64 %2" in after
    assert "set_static 0 %3" in after


ELEMENTS = """
entry @0 ():
  %0: i64 = word 2
  %1: f64 = word 3
  %2: i64 = header_word 2 %0
  %3: f64 = fadd f64 %1, %1
  %4: f64 = canonical f64 %3
  %5: i64 = reinterpret i64 f64 %4
  element_store f64 %2, i64:0, %5
  element_store f64 %2, i64:8, %5
  {between}
  element_store f64 %2, i64:16, %5
  return %0
"""
TOGETHER = "canonicalise_elements f64 %2, i64:0, %3, %2, i64:8, %3, %2, i64:16, %3\n  return"
OPERAND = """%6: i64 = element_load f64 %2, i64:8
  %7: f64 = reinterpret f64 i64 %6
  %8: f64 = fmul f64 %7, %1
  set_static 0 %8"""


@pytest.mark.parametrize(
    "between",
    [
        OPERAND,
        "%6: i64 = element_load i64 %2, i64:8\n  set_static 0 %6",
        "%6: i64 = heap_load 8 %0\n  set_static 0 %6",
        "%6: i64 = field_load 12 0 %0\n  set_static 0 %6",
        "element_store i64 %2, i64:8, %0",
        "heap_store 8 i64:8, %0",
    ],
)
def test_elements_are_raw_if_nothing_between_them_can_tell(between: str) -> None:
    assert TOGETHER in changed(combine_nan_checks, ELEMENTS.format(between=between))


@pytest.mark.parametrize(
    "between",
    [
        OPERAND.replace("set_static 0 %8", "set_static 0 %7"),
        "%6: i64 = element_load f64 %2, i64:24\n  set_static 0 %6",
        "element_store f64 %2, i64:8, %0",
        "fill_elements f64 %2, i64:0, i64:1, %0",
        "poll @0 [_ _ %0 %1]",
    ],
)
def test_elements_stay_canonical_if_something_between_them_can_tell(between: str) -> None:
    assert "canonicalise" not in changed(combine_nan_checks, ELEMENTS.format(between=between))


def test_stores_to_the_heap_and_to_elements_are_two_groups() -> None:
    stores = "".join(f"heap_store 8 i64:{8 * number}, %5\n  " for number in range(3))
    after = changed(combine_nan_checks, ELEMENTS.format(between=f"{stores}{OPERAND}"))
    assert "canonicalise f64 i64:0, %3, i64:8, %3, i64:16, %3\n" in after
    assert "canonicalise_elements" not in after


def test_two_stores_may_be_left_to_vectorisers() -> None:
    two = STORES.replace("  heap_store 8 i64:8, %4\n  {between}\n", "")
    assert changed(combine_nan_checks, two) == two
